r"""The mass matrix by the composite rigid body algorithm.

With I_c the composite inertia of body i and all that hangs on it, S the axis of a joint, and X the
change of place from a body to its parent [Walker, Orin 1982; Featherstone 2008, table 6.2]:

.. math::

    F = I_c S_i, \quad M_{ii} = S_i \cdot F, \qquad
    F \leftarrow X F, \quad M_{ij} = M_{ji} = S_j \cdot F \quad\text{for each } j
    \text{ on the way to the root}

All vectors are in axes of the root, about the origin of the body that they belong to, so that X
only shifts: n + p x f.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.composite_inertia import LEVER, add_to_parent_composite, single_bodies
from rnea_control.dynamics.rnea import fits_position
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Vector3,
    add,
    cross,
    dot,
    matrix_at,
    scale,
    symmetric_at,
    times_symmetric,
    vector_at,
    z_axis,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout


def crba(model: RobotModel, ws: Workspace, q: FloatArray, M: FloatArray) -> FloatArray:
    """The joint-space mass matrix M(q), armature included. Performs no allocation.

    The composite rigid body algorithm; the module's docstring has the equations.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        M: output, shape (nv, nv), [kg m^2], [kg m] or [kg]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        if _crba(model.bodies, ws.memory, q, M):
            return M
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, M) from error
    raise _explain(model, ws, q, M)


@inlined
def mass_matrix(
    bodies: FloatArray,
    memory: FloatArray,
    place: IntArray | None,
    q: FloatArray,
    M: FloatArray,
) -> None:
    """Fills M; velocity k stands in row and column `place[k]`, or k if there is no `place`."""
    single_bodies(bodies, memory, q)
    for r in range(M.shape[0]):
        for c in range(M.shape[1]):
            M[r, c] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        f, n = axis_momentum(bodies, memory, i)
        row, ratio = int(bodies[i, layout.V]), bodies[i, layout.RATIO]
        if place is not None:
            row = place[row]
        felt = felt_by_axis(bodies, memory, i, f, n) + bodies[i, layout.ARMATURE]
        M[row, row] += ratio * ratio * felt
        j, parent = i, int(bodies[i, layout.PARENT])
        if parent != 0:
            add_to_parent_composite(bodies, memory, i)
        while parent != 0:
            n = add(n, cross(vector_at(memory, j, LEVER), f))
            j, parent = parent, int(bodies[parent, layout.PARENT])
            column = int(bodies[j, layout.V])
            if place is not None:
                column = place[column]
            entry = ratio * bodies[j, layout.RATIO] * felt_by_axis(bodies, memory, j, f, n)
            M[row, column] += entry
            M[column, row] += entry


@inlined
def axis_momentum(bodies: FloatArray, memory: FloatArray, i: int) -> tuple[Vector3, Vector3]:
    """I_c S: force and moment that accelerate composite body i along its joint's axis by 1."""
    z = z_axis(matrix_at(memory, i, ws_layout.POSE_ROTATION))
    mc = vector_at(memory, i, ws_layout.COMPOSITE + 1)
    f, n = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if bodies[i, layout.ANGULAR] != 0.0:
        turned = scale(bodies[i, layout.ANGULAR], z)
        f = cross(turned, mc)
        n = times_symmetric(symmetric_at(memory, i, ws_layout.COMPOSITE + 4), turned)
    if bodies[i, layout.LINEAR] != 0.0:
        moved = scale(bodies[i, layout.LINEAR], z)
        f = add(f, scale(memory[i, ws_layout.COMPOSITE], moved))
        n = add(n, cross(mc, moved))
    return f, n


@inlined
def felt_by_axis(bodies: FloatArray, memory: FloatArray, i: int, f: Vector3, n: Vector3) -> float:
    """S . F, with all in axes of the root."""
    z = z_axis(matrix_at(memory, i, ws_layout.POSE_ROTATION))
    felt = bodies[i, layout.ANGULAR] * dot(z, n)
    if bodies[i, layout.LINEAR] != 0.0:
        felt += bodies[i, layout.LINEAR] * dot(z, f)
    return felt


@inlined
def along_axis(bodies: FloatArray, i: int, f: Vector3, n: Vector3) -> float:
    """S . F: what the joint of row i feels of a force and moment."""
    return bodies[i, layout.ANGULAR] * n[2] + bodies[i, layout.LINEAR] * f[2]


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[:,::1])")
def _crba(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    M: FloatArray,
) -> bool:
    nv = int(bodies[0, layout.V])
    if not fits_position(bodies, memory, q) or M.shape[0] != nv or M.shape[1] != nv:
        return False
    mass_matrix(bodies, memory, None, q, M)
    return True


def _explain(model: RobotModel, ws: Workspace, q: FloatArray, M: FloatArray) -> Exception:
    return argument_error(model, ws, q=(q, ("nq",)), M=(M, ("nv", "nv")))
