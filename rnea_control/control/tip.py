r"""The tip of the arm: its pose, Jacobian J and inertia, and inverses of J.

With the factor L of the mass matrix, M = L L^T, the columns of :math:`Y = L^{-1} J^T` are made
orthonormal, Y = Q R. Then

- the inertia that the tip feels is :math:`\Lambda = (J M^{-1} J^T)^{-1} = (R^T R)^{-1}`
  [Khatib 1987],
- the dynamically consistent inverse of J is :math:`\bar J = M^{-1} J^T \Lambda = L^{-T} Q R^{-T}`.

Where an inverse of :math:`R^T R` is needed, and the smallest singular value of J is below
SINGULAR, a multiple of the identity is added to it, which grows smoothly from 0
[Nakamura, Hanafusa 1986].
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.dynamics import body
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.kinematics import (
    jacobian_after_mass_matrix,
    jacobian_after_poses,
    link_pose,
    pose_pass,
)
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.rotation import (
    Quaternion,
    conjugate,
    normalized,
    product,
    quaternion_of_rotation,
    vector_of_quaternion,
)
from rnea_control.spatial.symmetric import (
    SIZE,
    cholesky,
    diagonalize,
    set_identity,
    solve_by_cholesky,
)
from rnea_control.spatial.vectors import Vector3, cross, dot, scale, subtract

SINGULAR = 0.08  # singular value of J below which inverses are regularized
IMMOVABLE = 1e-6  # the same, as a part of the root of their squares' sum, that counts as zero
SLOW_CONDITION = 17.0  # condition number of J from which motions slow down
LARGEST_DAMPING = 0.04  # the root of the regularization, by singular values of J, at a singularity
DEPENDENT = 1e-6  # length of a column of Y, as a part of the longest, that counts as zero


# Poses and six numbers in vectors.


@inlined
def position_in(pose: Vector) -> Vector3:
    """Position of a pose, or the first three of six numbers."""
    return (pose[0], pose[1], pose[2])


@inlined
def quaternion_in(pose: Vector) -> Quaternion:
    """Orientation of a pose."""
    return (pose[3], pose[4], pose[5], pose[6])


@inlined
def rotation_part(six: Vector) -> Vector3:
    """The last three of six numbers."""
    return (six[3], six[4], six[5])


@inlined
def store_pose(pose: Vector, position: Vector3, orientation: Quaternion) -> None:
    """Fills a vector of seven numbers."""
    for k in range(3):
        pose[k] = position[k]
    for k in range(4):
        pose[3 + k] = orientation[k]


@inlined
def store_six(six: Vector, first: Vector3, last: Vector3) -> None:
    """Fills a vector of six numbers."""
    for k in range(3):
        six[k], six[3 + k] = first[k], last[k]


@inlined
def way_between(pose: Vector, target: Vector) -> tuple[Vector3, Vector3]:
    """Way from a pose to a target, and rotation vector, in the root link's frame."""
    turn = product(quaternion_in(target), conjugate(quaternion_in(pose)))
    way = subtract(position_in(target), position_in(pose))
    return way, vector_of_quaternion(normalized(turn))


@inlined
def clipped(a: Vector3, most: float) -> Vector3:
    """The vector, at most this long."""
    length = math.sqrt(dot(a, a))
    return scale(most / length, a) if length > most else a


# Kinematics and inertia.


@shared
def find_pose(robot: Robot, settings: Settings, q: Vector, pose: Vector) -> None:
    """Fills `pose` with that of the tip at positions `q`."""
    pose_pass(robot.bodies, robot.memory, q)
    R, p = link_pose(robot.links, robot.memory, int(settings.task_link))
    store_pose(pose, p, quaternion_of_rotation(R))


@shared
def aim_with_joints(robot: Robot, settings: Settings, state: State) -> None:
    """Fills in the desired pose and twist of the tip, and the posture, by the desired motion of the
    joints. Overwrites the Jacobian."""
    J, link = state.jacobian, int(settings.task_link)
    find_pose(robot, settings, state.desired_position, state.desired_pose)
    jacobian_after_poses(robot.bodies, robot.links, robot.memory, link, J)
    for r in range(SIZE):
        total = 0.0
        for j in range(J.shape[1]):
            total += J[r, j] * state.desired_velocity[j]
        state.desired_twist[r] = total
    for j in range(J.shape[1]):
        state.posture[j] = state.desired_position[j]


@inlined
def _factor_mass_matrix(M: Matrix) -> None:
    """Replaces the lower triangle of M by L."""
    for i in range(M.shape[0]):
        for k in range(i + 1):
            left = M[i, k]
            for m in range(k):
                left -= M[i, m] * M[k, m]
            M[i, k] = math.sqrt(max(left, 1e-12)) if i == k else left / M[k, k]


@inlined
def solve_lower(L: Matrix, x: Vector) -> None:
    """x = L^-1 x"""
    for i in range(x.shape[0]):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]


@inlined
def solve_upper(L: Matrix, x: Vector) -> None:
    """x = L^-T x"""
    n = x.shape[0]
    for back in range(n):
        i = n - 1 - back
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]
        x[i] /= L[i, i]


@inlined
def times_lower(L: Matrix, x: Vector) -> None:
    """x = L x"""
    n = x.shape[0]
    for back in range(n):
        i = n - 1 - back
        total = 0.0
        for k in range(i + 1):
            total += L[i, k] * x[k]
        x[i] = total


@shared
def _orthogonalize(state: State) -> None:
    """Replaces the rows of `basis`, Y^T, by Q^T, and fills R. A row that depends on the rows before
    becomes zero. Each row is orthogonalized twice, so that rounding leaves no trace."""
    Q, R = state.basis, state.factor
    longest = 0.0
    for c in range(SIZE):
        length = 0.0
        for j in range(Q.shape[1]):
            length += Q[c, j] * Q[c, j]
        longest = max(longest, length)
    for c in range(SIZE):
        for r in range(SIZE):
            R[SIZE * r + c] = 0.0
        for _ in range(2):
            for r in range(c):
                share = 0.0
                for j in range(Q.shape[1]):
                    share += Q[r, j] * Q[c, j]
                R[SIZE * r + c] += share
                for j in range(Q.shape[1]):
                    Q[c, j] -= share * Q[r, j]
        length = 0.0
        for j in range(Q.shape[1]):
            length += Q[c, j] * Q[c, j]
        if not length > DEPENDENT * DEPENDENT * longest:
            Q[c, :] = 0.0
            continue
        length = math.sqrt(length)
        R[SIZE * c + c] = length
        for j in range(Q.shape[1]):
            Q[c, j] /= length


@inlined
def _column(J: Matrix, j: int) -> tuple[Vector3, Vector3]:
    """Column j of J, linear and angular."""
    return (J[0, j], J[1, j], J[2, j]), (J[3, j], J[4, j], J[5, j])


@shared
def _find_singularity(state: State) -> None:
    """Fills in the condition of J, the direction of the tip that it moves least, and the addition
    to the inverse inertia; 1 and 0 far from a singularity.

    A direction in which it does not move the tip at all has no condition: arms of fewer than six
    joints have such directions everywhere.
    """
    J, G, work = state.jacobian, state.scaled_stiffness, state.work
    trace = inertia_trace = 0.0
    for r in range(SIZE):
        for c in range(r + 1):
            total = 0.0
            for j in range(J.shape[1]):
                total += J[r, j] * J[c, j]
            G[SIZE * r + c] = G[SIZE * c + r] = total
        trace += G[SIZE * r + r]
        for c in range(r, SIZE):
            inertia_trace += state.factor[SIZE * r + c] * state.factor[SIZE * r + c]
    # The trace is at least the square of the largest singular value.
    least = max(SINGULAR * SINGULAR, trace / (SLOW_CONDITION * SLOW_CONDITION))
    for r in range(SIZE):
        G[SIZE * r + r] -= least
    state.regularization, state.condition = 0.0, 1.0
    if cholesky(G, work, 0.0):
        return
    set_identity(work)
    diagonalize(G, work, state.inverse_inertia)
    smallest, largest = math.inf, 0
    for r in range(SIZE):
        value = G[SIZE * r + r] = G[SIZE * r + r] + least
        smallest = min(smallest, max(value, 0.0))
        if value > G[SIZE * largest + largest]:
            largest = r
    weakest = largest
    for r in range(SIZE):
        value = G[SIZE * r + r]
        if IMMOVABLE * IMMOVABLE * trace < value < G[SIZE * weakest + weakest]:
            weakest = r
    for r in range(SIZE):
        state.weak_direction[r] = work[SIZE * r + weakest]
    state.condition = math.sqrt(G[SIZE * largest + largest] / G[SIZE * weakest + weakest])
    share = max(1.0 - smallest / (SINGULAR * SINGULAR), 0.0)
    state.regularization = (LARGEST_DAMPING * share) ** 2 * inertia_trace / max(trace, 1e-12)


@shared
def into_basis(state: State, x: Vector) -> None:
    """x = R^-T x, for a vector of six numbers; regularized."""
    R = state.factor
    if state.regularization == 0.0:
        for i in range(SIZE):
            for k in range(i):
                x[i] -= R[SIZE * k + i] * x[k]
            x[i] /= R[SIZE * i + i]
        return
    solve_by_cholesky(state.inverse_inertia, x)
    for i in range(SIZE):
        total = 0.0
        for k in range(i, SIZE):
            total += R[SIZE * i + k] * x[k]
        x[i] = total


@shared
def out_of_basis(state: State, x: Vector) -> None:
    """x = R^-1 x, for a vector of six numbers; regularized."""
    R = state.factor
    if state.regularization == 0.0:
        for back in range(SIZE):
            i = SIZE - 1 - back
            for k in range(i + 1, SIZE):
                x[i] -= R[SIZE * i + k] * x[k]
            x[i] /= R[SIZE * i + i]
        return
    for back in range(SIZE):  # R^T x
        i = SIZE - 1 - back
        total = 0.0
        for k in range(i + 1):
            total += R[SIZE * k + i] * x[k]
        x[i] = total
    solve_by_cholesky(state.inverse_inertia, x)


@shared
def observe_tip(robot: Robot, settings: Settings, state: State, q: Vector, v: Vector) -> None:
    """Fills in pose, twist, Jacobian, L (in the matrix of the workspace), Q, R and the regularized
    inverse inertia at the state `q`, `v`."""
    bodies, memory, L = robot.bodies, robot.memory, robot.matrix
    J, Y, nv = state.jacobian, state.basis, q.shape[0]
    link = int(settings.task_link)
    mass_matrix(bodies, memory, q, L)
    R_WL, p_WL = jacobian_after_mass_matrix(bodies, robot.links, memory, link, J)
    store_pose(state.pose, p_WL, quaternion_of_rotation(R_WL))
    _factor_mass_matrix(L)
    for r in range(SIZE):
        total = 0.0
        for j in range(nv):
            total += J[r, j] * v[j]
            Y[r, j] = J[r, j]
        state.twist[r] = total
        solve_lower(L, Y[r])
    _orthogonalize(state)
    _find_singularity(state)
    if state.regularization != 0.0:
        _regularize(state)
    if state.condition > SLOW_CONDITION:
        _find_singular_gradient(robot, link, state)


@inlined
def _regularize(state: State) -> None:
    """Fills in the Cholesky factor of the regularized inverse inertia."""
    R, A = state.factor, state.inverse_inertia
    for r in range(SIZE):
        for c in range(r + 1):
            total = state.regularization if r == c else 0.0
            for k in range(c + 1):
                total += R[SIZE * k + r] * R[SIZE * k + c]
            A[SIZE * r + c] = total
    cholesky(A, A, 0.0)


@shared
def _find_singular_gradient(robot: Robot, link: int, state: State) -> None:
    """Fills in the gradient of the smallest singular value of J by the motion of the tip, times the
    value.

    With its left singular vector u, the rate of the value, times the value, is u^T J' J^T u. The
    derivative of column i of J by the position of joint k is z_k x J_i if k moves i, and z_i x the
    linear part of J_k if i moves k.
    """
    bodies, J, u, gradient = robot.bodies, state.jacobian, state.weak_direction, state.null_torque
    way, turn = position_in(u), rotation_part(u)
    gradient[:] = 0.0
    i = body.link_body(robot.links, link)
    while i != 0:
        of_i = body.velocity_index(bodies, i)
        linear, z = _column(J, of_i)
        along_i = dot(way, linear) + dot(turn, z)
        k = i
        while k != 0:
            of_k = body.velocity_index(bodies, k)
            linear_k, z_k = _column(J, of_k)
            changed = dot(way, cross(z_k, linear))
            gradient[of_k] += along_i * (changed + dot(turn, cross(z_k, z)))
            if k != i:
                gradient[of_i] += (dot(way, linear_k) + dot(turn, z_k)) * changed
            k = body.parent(bodies, k)
        i = body.parent(bodies, i)
    solve_lower(robot.matrix, gradient)
    for r in range(SIZE):
        total = 0.0
        for j in range(gradient.shape[0]):
            total += state.basis[r, j] * gradient[j]
        state.singular_gradient[r] = total
    out_of_basis(state, state.singular_gradient)


@inlined
def combine(state: State, x: Vector, out: Vector) -> None:
    """out = Q x"""
    for j in range(out.shape[0]):
        total = 0.0
        for r in range(SIZE):
            total += state.basis[r, j] * x[r]
        out[j] = total


@shared
def consistent_inverse(robot: Robot, state: State, x: Vector, out: Vector) -> None:
    """out = Jbar x, regularized: the joint velocities or accelerations that move the tip by `x`
    with the least kinetic energy. Overwrites `x`, six numbers."""
    into_basis(state, x)
    combine(state, x, out)
    solve_upper(robot.matrix, out)
