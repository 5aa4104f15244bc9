"""Access to a body by name: its constants in its row of `model.bodies` (model/bodies.py), and the
results of recursions in its row of `Workspace.memory`."""

from __future__ import annotations

from rnea_control.array_types import Matrix
from rnea_control.jit.inlining import inlined
from rnea_control.model import bodies as layout
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial.vectors import Symmetric3, Vector3

# Columns of a row of `memory`. Unless noted, vectors are expressed in the body's frame B and about
# its origin. Spatial vectors have six numbers, (linear, angular) or (force, moment).
POSE_IN_PARENT = 0  # twelve; R_PB, which turns from B to the parent body's frame P, and p_PB, in P
VELOCITY = 12  # six; `rnea` needs the angular part only
ACCELERATION = 18  # six, minus gravity
FORCE = 24  # six; force of the joint on B and all bodies beyond it
# `rnea` and `gravity` use only the columns above.
POSE = 30  # twelve; R_WB and p_WB
LEVER = 42  # p_PB in axes of W
COMPOSITE_INERTIA = 45  # ten parameters of B and all bodies beyond it, in axes of W
REFERENCE_VELOCITY = 55  # six
REFERENCE_ACCELERATION = 61  # six
VELOCITY_PRODUCT = 67  # six; c = v x S dq
ARTICULATED_INERTIA = 73  # 21; I^A, see jit/spatial.py
BIAS_FORCE = 94  # six; p^A
MOMENTUM = BIAS_FORCE  # six; momentum of B and all bodies beyond it; no recursion needs both
U_OVER_D = 100  # six
u_OVER_D = 106
COLUMNS = 107

# Columns of a row of joint angles, `LANES` angles, sines and cosines each: the sines of whole
# vector registers are computed fastest. These rows follow the rows of the bodies.
LANES = 8
ANGLE = 0
SINE = LANES
COSINE = 2 * LANES


@inlined
def row_count(n: int) -> int:
    """Rows of `memory` for n moving bodies."""
    return n + 1 + (n + LANES - 1) // LANES


@inlined
def parent(bodies: Matrix, i: int) -> int:
    """The row of the parent body."""
    return int(bodies[i, layout.PARENT])


@inlined
def inertia(rows: Matrix, i: int, first: int = layout.INERTIA) -> tuple[float, Vector3, Symmetric3]:
    """m [kg], m c [kg m], and I about the origin [kg m^2], from ten columns of a row beginning with
    `first`."""
    mc = spatial.vector_at(rows, i, first + 1)
    return rows[i, first], mc, spatial.symmetric_at(rows, i, first + 4)


@inlined
def velocity_index(bodies: Matrix, i: int) -> int:
    """Index of this row's velocity in v, a and tau."""
    return int(bodies[i, layout.V])


@inlined
def position_count(bodies: Matrix) -> int:
    """nq"""
    return int(bodies[0, layout.Q])


@inlined
def velocity_count(bodies: Matrix) -> int:
    """nv"""
    return int(bodies[0, layout.V])


@inlined
def base_acceleration(bodies: Matrix) -> Vector3:
    """-g: acceleration of the root from which the recursions start; this is how gravity enters."""
    return spatial.vector_at(bodies, 0, layout.BASE_ACCELERATION)


@inlined
def link_body(links: Matrix, k: int) -> int:
    """The row of the body that link k is part of."""
    return int(links[k, layout.LINK_BODY])


@inlined
def motion(memory: Matrix, i: int) -> tuple[Vector3, Vector3, Vector3]:
    """Angular velocity, angular acceleration, and acceleration of the origin less gravity."""
    w = spatial.vector_at(memory, i, VELOCITY + 3)
    acc, dw = spatial.at(memory, i, ACCELERATION)
    return w, dw, acc


@inlined
def store_motion(memory: Matrix, i: int, w: Vector3, dw: Vector3, acc: Vector3) -> None:
    spatial.store_vector(memory, i, VELOCITY + 3, w)
    spatial.store(memory, i, ACCELERATION, (acc, dw))


@inlined
def subtract_external_forces(links: Matrix, memory: Matrix, forces: Matrix, column: int) -> None:
    """Subtracts the external force on each body from the force that its joint must exert.

    Args:
        links: `links` of the model.
        memory: `memory` of the workspace.
        forces: external forces, a row for each link, or no rows for no forces.
        column: first of the six columns of `memory` with the joint's force.
    """
    for k in range(forces.shape[0]):
        R, p = spatial.pose_at(links, k, layout.LINK_ROTATION)
        force = spatial.to_parent(R, p, spatial.at(forces, k, 0))
        spatial.add_to(memory, link_body(links, k), column, spatial.scale(-1.0, force))
