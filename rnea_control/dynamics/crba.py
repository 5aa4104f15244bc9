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
only shifts: n + p x f. With p from the parent's origin to the body's, and h = m c, X* I X is

    m,    h + m p,    I + 2 (p . h) 1 - p h^T - h p^T + m (p . p 1 - p p^T)

[Featherstone 2008, sec. 2.13], and inertias of bodies that move as one add up.

The inertia at a joint is M_jj with all other joints held, and 1 / (M^-1)_jj <= M_jj with all other
joints free. The two differ by a factor of ten and more where axes are in line, such as the axes of
joints 1 and 3 of a stretched arm. With M = L L^T and L y = e_j, (M^-1)_jj is y . y.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.workspace import Workspace, argument_error, fit_position, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model.bodies import ARMATURE, RATIO, S_ANGULAR, S_LINEAR
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import vectors
from rnea_control.spatial.algebra import Spatial
from rnea_control.spatial.vectors import ORIGIN, Vector3, add, cross, dot, rotate, scale

_MASS = body.COMPOSITE_INERTIA
_FIRST_MOMENT = body.COMPOSITE_INERTIA + 1
_INERTIA = body.COMPOSITE_INERTIA + 4
SMALLEST_PIVOT = 1e-13  # pivot that is 0 except for rounding, as a fraction of its upper bound


def crba(model: RobotModel, ws: Workspace, q: Vector, M: Matrix) -> Matrix:
    """Joint-space mass matrix M(q), armature included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        M: output, shape (nv, nv), [kg m^2], [kg m] or [kg]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        crba_kernel(model.bodies, ws.memory, q, M)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return M


@inlined
def mass_matrix(bodies: Matrix, memory: Matrix, q: Vector, M: Matrix) -> None:
    """Fills M."""
    single_bodies(bodies, memory, q)  # (1)
    M[:] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        j, P = i, body.parent(bodies, i)
        if P != 0:
            add_to_parent(bodies, memory, i)  # (2)
        f, n = composite_force(bodies, memory, i)  # (3)
        ratio, row = bodies[i, RATIO], body.velocity_index(bodies, i)
        felt = felt_by_joint(bodies, memory, i, (f, n)) + bodies[i, ARMATURE]
        M[row, row] += ratio * ratio * felt  # (4)
        while P != 0:
            n = add(n, cross(spatial.vector_at(memory, j, body.LEVER), f))  # (5)
            j, P = P, body.parent(bodies, P)
            column = body.velocity_index(bodies, j)
            felt = felt_by_joint(bodies, memory, j, (f, n))
            entry = ratio * bodies[j, RATIO] * felt
            M[row, column] += entry  # (6)
            M[column, row] += entry


@inlined
def composite_force(bodies: Matrix, memory: Matrix, i: int) -> Spatial:
    """I^c S: the force that accelerates composite body i along its joint by 1."""
    z, mc = joint_axis(memory, i), spatial.vector_at(memory, i, _FIRST_MOMENT)
    f = n = ORIGIN
    if bodies[i, S_ANGULAR] != 0.0:
        angular = scale(bodies[i, S_ANGULAR], z)
        f = cross(angular, mc)
        n = vectors.times_symmetric(spatial.symmetric_at(memory, i, _INERTIA), angular)
    if bodies[i, S_LINEAR] != 0.0:
        linear = scale(bodies[i, S_LINEAR], z)
        f = add(f, scale(memory[i, _MASS], linear))
        n = add(n, cross(mc, linear))
    return f, n


@inlined
def felt_by_joint(bodies: Matrix, memory: Matrix, i: int, force: Spatial) -> float:
    """S . F, with all in axes of the root."""
    z = joint_axis(memory, i)
    felt = bodies[i, S_ANGULAR] * dot(z, force[1])
    if bodies[i, S_LINEAR] != 0.0:
        felt += bodies[i, S_LINEAR] * dot(z, force[0])
    return felt


@inlined
def single_bodies(bodies: Matrix, memory: Matrix, q: Vector) -> None:
    """Computes rotation, lever and inertia of each body, in axes of the root."""
    joint.sines_and_cosines(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        P = body.parent(bodies, i)
        R, p = joint.placement(bodies, memory, q, i)
        if P != 0:
            R_WP = spatial.matrix_at(memory, P, body.POSE)
            R, p = vectors.multiply(R_WP, R), rotate(R_WP, p)
        spatial.store_matrix(memory, i, body.POSE, R)
        spatial.store_vector(memory, i, body.LEVER, p)
        m, mc, inertia = body.inertia(bodies, i)
        memory[i, _MASS] = m
        spatial.store_vector(memory, i, _FIRST_MOMENT, rotate(R, mc))
        rotated = vectors.rotated_symmetric(R, inertia)
        for k in range(6):
            memory[i, _INERTIA + k] = rotated[k]


@inlined
def add_to_parent(bodies: Matrix, memory: Matrix, i: int) -> None:
    """I_P += X* I X"""
    P = body.parent(bodies, i)
    p = spatial.vector_at(memory, i, body.LEVER)
    m, h, own = body.inertia(memory, i, body.COMPOSITE_INERTIA)
    mp = scale(m, p)
    # p h^T + h p^T + m p p^T = p s^T + s p^T
    s = add(h, scale(0.5, mp))
    x, y, z = 2.0 * p[0] * s[0], 2.0 * p[1] * s[1], 2.0 * p[2] * s[2]
    memory[P, _MASS] += m
    spatial.add_to_vector(memory, P, _FIRST_MOMENT, add(h, mp))
    memory[P, _INERTIA] += own[0] + (y + z)
    memory[P, _INERTIA + 1] += own[1] - (p[0] * s[1] + s[0] * p[1])
    memory[P, _INERTIA + 2] += own[2] - (p[0] * s[2] + s[0] * p[2])
    memory[P, _INERTIA + 3] += own[3] + (x + z)
    memory[P, _INERTIA + 4] += own[4] - (p[1] * s[2] + s[1] * p[2])
    memory[P, _INERTIA + 5] += own[5] + (x + y)


@inlined
def joint_axis(memory: Matrix, i: int) -> Vector3:
    """z of body i, in axes of the root"""
    return vectors.z_axis(spatial.matrix_at(memory, i, body.POSE))


@inlined
def felt_inertias(
    bodies: Matrix, memory: Matrix, q: Vector, M: Matrix, held: Vector, free: Vector
) -> None:
    """Fills `held` and `free` with the inertia at each joint while the other joints are held or
    free, shape (nv,), [kg m^2] or [kg]; `free` is NaN for a joint that moves no inertia. `M`, shape
    (nv, nv), is overwritten."""
    mass_matrix(bodies, memory, q, M)
    n = M.shape[0]
    for k in range(n):
        held[k] = M[k, k]
        pivot = M[k, k]
        for i in range(k):
            pivot -= M[k, i] * M[k, i]
        M[k, k] = math.sqrt(max(pivot, SMALLEST_PIVOT * held[k]))
        for i in range(k + 1, n):
            for j in range(k):
                M[i, k] -= M[i, j] * M[k, j]
            M[i, k] /= M[k, k]
    for j in range(n):
        # y beyond y_j is kept in row j, right of the diagonal.
        first = 1.0 / M[j, j]
        square = first * first
        for i in range(j + 1, n):
            y = -M[i, j] * first
            for k in range(j + 1, i):
                y -= M[i, k] * M[j, k]
            M[j, i] = y / M[i, i]
            square += M[j, i] * M[j, i]
        free[j] = 1.0 / square


@kernel()
def crba_kernel(bodies: Matrix, memory: Matrix, q: Vector, M: Matrix) -> None:
    nv = body.velocity_count(bodies)
    require(fit_position(bodies, memory, q) and M.shape == (nv, nv))
    mass_matrix(bodies, memory, q, M)
