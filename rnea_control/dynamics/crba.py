r"""The mass matrix by the composite rigid body algorithm.

With I_c the composite inertia of body i and all that hangs on it, S the axis of a joint, and X the
change of frame from a body to its parent [Walker, Orin 1982; Featherstone 2008, table 6.2]:

.. math::

    F = I_c S_i, \quad M_{ii} = S_i \cdot F, \qquad
    F \leftarrow X F, \quad M_{ij} = M_{ji} = S_j \cdot F \quad\text{for each } j
    \text{ on the way to the root}
"""

from __future__ import annotations

from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.composite import add_composite_to_parent, composites_start
from rnea_control.dynamics.kernel import inlined, kernel
from rnea_control.dynamics.rnea import fits_position
from rnea_control.dynamics.vector3 import (
    FloatArray,
    Vector3,
    add,
    cross,
    dot,
    matrix_at,
    multiply,
    rotate,
    scale,
    store_matrix,
    store_vector,
    symmetric_at,
    vector_at,
    z_axis,
)
from rnea_control.dynamics.velocity import placement_pass
from rnea_control.dynamics.workspace import IntArray, Workspace
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

_LEVER = ws_layout.VELOCITY  # from the parent's origin to the body's, in axes of the root
_AXIS = ws_layout.REFERENCE_VELOCITY  # of the joint, six, in axes of the root


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
        if _crba(model._bodies, ws._memory, ws._spatial, q, M):
            return M
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, M) from error
    raise _explain(model, ws, q, M)


@inlined
def mass_matrix(
    bodies: FloatArray,
    memory: FloatArray,
    spatial: FloatArray,
    place: IntArray | None,
    q: FloatArray,
    M: FloatArray,
) -> None:
    """Fills M; velocity k stands in row and column `place[k]`, or k if there is no `place`."""
    placement_pass(bodies, memory, q)
    turn_to_root(bodies, memory, spatial)
    composites_start(bodies, spatial)
    for r in range(M.shape[0]):
        for c in range(M.shape[1]):
            M[r, c] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        f, n = axis_momentum(bodies, spatial, i)
        row, ratio = int(bodies[i, layout.V]), bodies[i, layout.RATIO]
        if place is not None:
            row = place[row]
        M[row, row] += ratio * ratio * (along_axis(bodies, i, f, n) + bodies[i, layout.ARMATURE])
        if bodies[i, layout.PARENT] == 0.0:
            continue
        add_composite_to_parent(bodies, memory, spatial, i)
        R_WB = matrix_at(spatial, i, ws_layout.POSE_ROTATION)
        f, n = rotate(R_WB, f), rotate(R_WB, n)
        j = i
        while bodies[j, layout.PARENT] != 0.0:
            n = add(n, cross(vector_at(spatial, j, _LEVER), f))
            j = int(bodies[j, layout.PARENT])
            column = int(bodies[j, layout.V])
            if place is not None:
                column = place[column]
            slide, turn = vector_at(spatial, j, _AXIS), vector_at(spatial, j, _AXIS + 3)
            entry = ratio * bodies[j, layout.RATIO] * (dot(turn, n) + dot(slide, f))
            M[row, column] += entry
            M[column, row] += entry


@inlined
def turn_to_root(bodies: FloatArray, memory: FloatArray, spatial: FloatArray) -> None:
    """Axes of the joints, and the way from each body to its parent, in axes of the root."""
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R = matrix_at(memory, i, ws_layout.ROTATION)
        p = vector_at(memory, i, ws_layout.TRANSLATION)
        if parent != 0:
            R_WP = matrix_at(spatial, parent, ws_layout.POSE_ROTATION)
            R, p = multiply(R_WP, R), rotate(R_WP, p)
        store_matrix(spatial, i, ws_layout.POSE_ROTATION, R)
        store_vector(spatial, i, _LEVER, p)
        store_vector(spatial, i, _AXIS, scale(bodies[i, layout.LINEAR], z_axis(R)))
        store_vector(spatial, i, _AXIS + 3, scale(bodies[i, layout.ANGULAR], z_axis(R)))


@inlined
def axis_momentum(bodies: FloatArray, spatial: FloatArray, i: int) -> tuple[Vector3, Vector3]:
    """I_c S: force and moment that accelerate composite body i along its joint's axis by 1."""
    angular, linear = bodies[i, layout.ANGULAR], bodies[i, layout.LINEAR]
    m = spatial[i, ws_layout.COMPOSITE]
    mc = vector_at(spatial, i, ws_layout.COMPOSITE + 1)
    inertia = symmetric_at(spatial, i, ws_layout.COMPOSITE + 4)
    f = (-angular * mc[1], angular * mc[0], linear * m)
    n = (
        angular * inertia[2] + linear * mc[1],
        angular * inertia[4] - linear * mc[0],
        angular * inertia[5],
    )
    return f, n


@inlined
def along_axis(bodies: FloatArray, i: int, f: Vector3, n: Vector3) -> float:
    """S . F: what the joint of row i feels of a force and moment."""
    return bodies[i, layout.ANGULAR] * n[2] + bodies[i, layout.LINEAR] * f[2]


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,::1])")
def _crba(
    bodies: FloatArray,
    memory: FloatArray,
    spatial: FloatArray,
    q: FloatArray,
    M: FloatArray,
) -> bool:
    nv = int(bodies[0, layout.V])
    if not fits_position(bodies, memory, q) or M.shape[0] != nv or M.shape[1] != nv:
        return False
    mass_matrix(bodies, memory, spatial, None, q, M)
    return True


def _explain(model: RobotModel, ws: Workspace, q: FloatArray, M: FloatArray) -> Exception:
    return argument_error(model, ws, q=(q, ("nq",)), M=(M, ("nv", "nv")))
