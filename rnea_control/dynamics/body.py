"""A body by name: its constants, read from its row of `model.bodies` (model/bodies.py), and what a
recursion computes of it, in its row of `Workspace.memory` (dynamics/workspace.py)."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as state
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.spatial import (
    Matrix3,
    Spatial,
    Symmetric3,
    Vector3,
    add_to_spatial,
    force_to_parent,
    matrix_at,
    spatial_at,
    spatial_scale,
    store_matrix,
    store_spatial,
    store_vector,
    symmetric_at,
    vector_at,
)
from rnea_control.model import bodies as layout


@inlined
def parent(bodies: FloatArray, i: int) -> int:
    """The row of the parent body."""
    return int(bodies[i, layout.PARENT])


@inlined
def mass(bodies: FloatArray, i: int) -> float:
    """m [kg]"""
    return bodies[i, layout.INERTIA]


@inlined
def first_moment(bodies: FloatArray, i: int) -> Vector3:
    """m c [kg m], in B"""
    return vector_at(bodies, i, layout.INERTIA + 1)


@inlined
def inertia(bodies: FloatArray, i: int) -> Symmetric3:
    """I about B's origin [kg m^2], in B"""
    return symmetric_at(bodies, i, layout.INERTIA + 4)


@inlined
def armature(bodies: FloatArray, i: int) -> float:
    """Inertia of the actuator's rotor as felt at the joint [kg m^2] or [kg]"""
    return bodies[i, layout.ARMATURE]


@inlined
def ratio(bodies: FloatArray, i: int) -> float:
    """Velocity of this row's joint for 1 of v: not 1 if it mimics another one"""
    return bodies[i, layout.RATIO]


@inlined
def velocity_index(bodies: FloatArray, i: int) -> int:
    """Where this row's velocity stands in v, a and tau."""
    return int(bodies[i, layout.V])


@inlined
def position_count(bodies: FloatArray) -> int:
    """nq"""
    return int(bodies[0, layout.Q])


@inlined
def velocity_count(bodies: FloatArray) -> int:
    """nv"""
    return int(bodies[0, layout.V])


@inlined
def base_acceleration(bodies: FloatArray) -> Vector3:
    """-g: the recursions start from a root that accelerates with it; so gravity enters them."""
    return vector_at(bodies, 0, layout.BASE_ACCELERATION)


@inlined
def link_body(links: FloatArray, k: int) -> int:
    """The row of the body that link k is part of."""
    return int(links[k, layout.LINK_BODY])


@inlined
def link_placement(links: FloatArray, k: int) -> tuple[Matrix3, Vector3]:
    """R_BL and p_BL: where the frame of link k is in that of its body."""
    R = matrix_at(links, k, layout.LINK_ROTATION)
    return R, vector_at(links, k, layout.LINK_TRANSLATION)


@inlined
def relative_pose(memory: FloatArray, i: int) -> tuple[Matrix3, Vector3]:
    """R_PB and p_PB"""
    return matrix_at(memory, i, state.ROTATION), vector_at(memory, i, state.TRANSLATION)


@inlined
def store_relative_pose(memory: FloatArray, i: int, R: Matrix3, p: Vector3) -> None:
    store_matrix(memory, i, state.ROTATION, R)
    store_vector(memory, i, state.TRANSLATION, p)


@inlined
def pose(memory: FloatArray, i: int) -> tuple[Matrix3, Vector3]:
    """R_WB and p_WB"""
    return matrix_at(memory, i, state.POSE_ROTATION), vector_at(memory, i, state.POSE_TRANSLATION)


@inlined
def store_pose(memory: FloatArray, i: int, R: Matrix3, p: Vector3) -> None:
    store_matrix(memory, i, state.POSE_ROTATION, R)
    store_vector(memory, i, state.POSE_TRANSLATION, p)


@inlined
def motion(memory: FloatArray, i: int) -> tuple[Vector3, Vector3, Vector3]:
    """Angular velocity, angular acceleration, and acceleration of the origin less gravity."""
    w = vector_at(memory, i, state.VELOCITY + 3)
    acc, dw = spatial_at(memory, i, state.ACCELERATION)
    return w, dw, acc


@inlined
def store_motion(memory: FloatArray, i: int, w: Vector3, dw: Vector3, acc: Vector3) -> None:
    store_vector(memory, i, state.VELOCITY + 3, w)
    store_spatial(memory, i, state.ACCELERATION, (acc, dw))


@inlined
def force(memory: FloatArray, i: int) -> Spatial:
    """What the joint of body i exerts on it, once all bodies beyond are added."""
    return spatial_at(memory, i, state.FORCE)


@inlined
def store_force(memory: FloatArray, i: int, f: Spatial) -> None:
    store_spatial(memory, i, state.FORCE, f)


@inlined
def add_force(memory: FloatArray, i: int, f: Spatial) -> None:
    add_to_spatial(memory, i, state.FORCE, f)


@inlined
def subtract_external_forces(
    links: FloatArray, memory: FloatArray, forces: FloatArray, column: int
) -> None:
    """Subtracts what the world exerts on each body from what its joint must exert.

    Args:
        links: of the model.
        memory: of the workspace.
        forces: a row for each link, or no rows for no forces.
        column: where in `memory` the six numbers of each body stand.
    """
    for k in range(forces.shape[0]):
        R, p = link_placement(links, k)
        force = force_to_parent(R, p, spatial_at(forces, k, 0))
        add_to_spatial(memory, link_body(links, k), column, spatial_scale(-1.0, force))
