"""The mass matrix by the composite rigid body algorithm.

[Walker, Orin 1982; Featherstone 2008, table 6.2]. With I^c the composite inertia of a body and all
bodies beyond it, S the motion subspace of a joint, and X* taking a force to the parent:

    (1)   I^c_i    =  I_i                            for each body
                                                     then, from the leaf bodies to the root,
    (2)   I^c_P   +=  X* I^c_i X
    (3)   F        =  I^c_i S_i
    (4)   M_ii     =  S_i . F + armature
                                                     and, for each j on the way to the root,
    (5)   F        =  X* F
    (6)   M_ij     =  M_ji  =  S_j . F

All vectors are in axes of the root, about the origin of the body that they belong to, so that X*
only shifts: n + p x f.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import body
from rnea_control.dynamics import composite_inertia as composite
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit_position,
)
from rnea_control.dynamics.joint import s_angular, s_linear
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.spatial import Spatial
from rnea_control.kernels.vector3 import ORIGIN, add, cross, dot, scale, times_symmetric
from rnea_control.model import RobotModel


def crba(model: RobotModel, ws: Workspace, q: FloatArray, M: FloatArray) -> FloatArray:
    """The joint-space mass matrix M(q), armature included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        M: output, shape (nv, nv), [kg m^2], [kg m] or [kg]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        if not _crba(model.bodies, ws.memory, q, M):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, M=M) from fault
    return M


@inlined
def mass_matrix(
    bodies: FloatArray,
    memory: FloatArray,
    permutation: IntArray | None,
    q: FloatArray,
    M: FloatArray,
) -> None:
    """Fills M; velocity k is row and column `permutation[k]`, or k if that is None."""
    composite.single_bodies(bodies, memory, q)  # (1)
    for r in range(M.shape[0]):
        for c in range(M.shape[1]):
            M[r, c] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        j, P = i, body.parent(bodies, i)
        if P != 0:
            composite.add_to_parent(bodies, memory, i)  # (2)
        f, n = composite_force(bodies, memory, i)  # (3)
        ratio, row = body.ratio(bodies, i), body.velocity_index(bodies, i)
        if permutation is not None:
            row = permutation[row]
        felt = felt_by_joint(bodies, memory, i, (f, n)) + body.armature(bodies, i)
        M[row, row] += ratio * ratio * felt  # (4)
        while P != 0:
            n = add(n, cross(composite.lever(memory, j), f))  # (5)
            j, P = P, body.parent(bodies, P)
            column = body.velocity_index(bodies, j)
            if permutation is not None:
                column = permutation[column]
            felt = felt_by_joint(bodies, memory, j, (f, n))
            entry = ratio * body.ratio(bodies, j) * felt
            M[row, column] += entry  # (6)
            M[column, row] += entry


@inlined
def composite_force(bodies: FloatArray, memory: FloatArray, i: int) -> Spatial:
    """I^c S: the force that accelerates composite body i along its joint by 1."""
    z, mc = composite.joint_axis(memory, i), composite.first_moment(memory, i)
    f = n = ORIGIN
    if s_angular(bodies, i) != 0.0:
        angular = scale(s_angular(bodies, i), z)
        f = cross(angular, mc)
        n = times_symmetric(composite.inertia(memory, i), angular)
    if s_linear(bodies, i) != 0.0:
        linear = scale(s_linear(bodies, i), z)
        f = add(f, scale(composite.mass(memory, i), linear))
        n = add(n, cross(mc, linear))
    return f, n


@inlined
def felt_by_joint(bodies: FloatArray, memory: FloatArray, i: int, force: Spatial) -> float:
    """S . F, with all in axes of the root."""
    z = composite.joint_axis(memory, i)
    felt = s_angular(bodies, i) * dot(z, force[1])
    if s_linear(bodies, i) != 0.0:
        felt += s_linear(bodies, i) * dot(z, force[0])
    return felt


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[:,::1])")
def _crba(bodies: FloatArray, memory: FloatArray, q: FloatArray, M: FloatArray) -> bool:
    nv = body.velocity_count(bodies)
    if not fit_position(bodies, memory, q) or M.shape[0] != nv or M.shape[1] != nv:
        return False
    mass_matrix(bodies, memory, None, q, M)
    return True
