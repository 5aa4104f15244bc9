r"""Task space: pose of the tip, its Jacobian J and inertia, and the terms of the laws that move it.

With the factor L of the mass matrix, M = L L^T, the columns of :math:`Y = L^{-1} J^T` are made
orthonormal, Y = Q R. Then

- the inertia that the tip feels is :math:`\Lambda = (J M^{-1} J^T)^{-1} = (R^T R)^{-1}`
  [Khatib 1987],
- the dynamically consistent inverse of J is :math:`\bar J = M^{-1} J^T \Lambda = L^{-T} Q R^{-T}`,
- a damping with the same damping ratio zeta in each mode of stiffness K and inertia Lambda is, by
  double diagonalization [Albu-Schaeffer, Ott, Frese, Hirzinger 2003],

.. math::

    D = 2 \zeta R^{-1} (R K R^T)^{1/2} R^{-T}, \qquad
    J^T D J = 2 \zeta L Q (R K R^T)^{1/2} Q^T L^T.

The torque of the damping needs no inverse, and is therefore bounded and continuous through singular
postures. Where an inverse of :math:`R^T R` is needed, and the smallest singular value of J is below
SINGULAR, a multiple of the identity is added to it, which grows smoothly from 0
[Nakamura, Hanafusa 1986].

The error of the orientation is the rotation vector phi of R_d R^T. The stiffness is the gradient of
the energy e^T K e / 2: its moment is :math:`J_r^{-T}(\phi) K \phi`, with the right Jacobian J_r of
the exponential map.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.dynamics import body
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.kinematics import (
    acceleration_of_link,
    jacobian_by_levers,
    link_jacobian,
    link_pose,
    pose_pass,
)
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.rotation import (
    Quaternion,
    conjugate,
    normalized,
    product,
    quaternion_of_rotation,
    screw_velocity,
    vector_of_quaternion,
)
from rnea_control.spatial.symmetric import (
    SIZE,
    cholesky,
    diagonalize,
    set_identity,
    solve_by_cholesky,
)
from rnea_control.spatial.vectors import Vector3, add, cross, dot, scale, subtract

SINGULAR = 0.08  # singular value of J below which inverses are regularized
IMMOVABLE = 1e-6  # the same, as a part of the root of their squares' sum, that counts as zero
SLOW_CONDITION = 17.0  # condition number of J from which motions slow down
LARGEST_DAMPING = 0.04  # the root of the regularization, by singular values of J, at a singularity
DEPENDENT = 1e-6  # length of a column of Y, as a part of the longest, that counts as zero
LEAST_STIFFNESS = 20.0  # stiffness for which directions with less are damped [N/m]
LEAST_ROTATIONAL_STIFFNESS = 1.0  # the same for rotations [Nm/rad]
STIFFNESS_TIME = 0.03  # time constant with which stiffness and wrench follow what is asked [s]
SAME_STIFFNESS = 1e-6  # difference from what is asked, as a part, below which it is reached
SYMMETRY = 1e-6  # rounding of a stiffness matrix, as a part of its trace
NULL_DAMPING = 2.0  # least damping of motions that leave the tip where it is, per inertia [1/s]
LIMIT_ZONE = 0.1  # part of a joint's range before a soft limit from which its posture is repelled
LIMIT_STIFFNESS = 100.0  # stiffness of that repulsion, per inertia [1/s^2]


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
    link_jacobian(robot.bodies, robot.links, robot.memory, link, J)
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
def _solve_lower(L: Matrix, x: Vector) -> None:
    """x = L^-1 x"""
    for i in range(x.shape[0]):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]


@inlined
def _solve_upper(L: Matrix, x: Vector) -> None:
    """x = L^-T x"""
    n = x.shape[0]
    for back in range(n):
        i = n - 1 - back
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]
        x[i] /= L[i, i]


@inlined
def _times_lower(L: Matrix, x: Vector) -> None:
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
def _into_basis(state: State, x: Vector) -> None:
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
def _out_of_basis(state: State, x: Vector) -> None:
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
    R_WL, p_WL = jacobian_by_levers(bodies, robot.links, memory, link, J)
    store_pose(state.pose, p_WL, quaternion_of_rotation(R_WL))
    _factor_mass_matrix(L)
    for r in range(SIZE):
        total = 0.0
        for j in range(nv):
            total += J[r, j] * v[j]
            Y[r, j] = J[r, j]
        state.twist[r] = total
        _solve_lower(L, Y[r])
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
    _solve_lower(robot.matrix, gradient)
    for r in range(SIZE):
        total = 0.0
        for j in range(gradient.shape[0]):
            total += state.basis[r, j] * gradient[j]
        state.singular_gradient[r] = total
    _out_of_basis(state, state.singular_gradient)


@inlined
def _combine(state: State, x: Vector, out: Vector) -> None:
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
    _into_basis(state, x)
    _combine(state, x, out)
    _solve_upper(robot.matrix, out)


# Terms of the laws.


@inlined
def find_error(settings: Settings, state: State) -> None:
    """Fills in the error of the pose, clipped to `task_error_clip`."""
    way, turn = way_between(state.pose, state.desired_pose)
    clip = settings.task_error_clip
    store_six(state.task_error, clipped(way, clip[0]), clipped(turn, clip[1]))


@inlined
def take_settings(settings: Settings, state: State) -> None:
    """Makes the stiffness of the settings that which is approached."""
    for k in range(SIZE):
        state.stiffness_setting[k] = settings.task_stiffness[k]
        for m in range(SIZE):
            entry = settings.task_stiffness[k] if k == m else 0.0
            state.target_stiffness[SIZE * k + m] = entry


@inlined
def forget_messages(settings: Settings, state: State) -> None:
    """The stiffness of the settings is approached, and no wrench."""
    take_settings(settings, state)
    state.asked_wrench[:] = 0.0


@inlined
def follow_stiffness(settings: Settings, state: State, dt: float) -> None:
    """The stiffness in force approaches that of the last message, or of the settings where they
    have changed since. The change adds energy to the spring by at most `task_max_power`."""
    changed = False
    for k in range(SIZE):
        changed |= settings.task_stiffness[k] != state.stiffness_setting[k]
    if changed:
        take_settings(settings, state)
    K, target, e = state.stiffness, state.target_stiffness, state.task_error
    energy, missing, largest = 0.0, 0.0, LEAST_STIFFNESS
    for k in range(SIZE):
        for m in range(SIZE):
            change = target[SIZE * k + m] - K[SIZE * k + m]
            energy += 0.5 * e[k] * change * e[m]
            missing = max(missing, abs(change))
            largest = max(largest, abs(target[SIZE * k + m]))
    share, most = -math.expm1(-dt / STIFFNESS_TIME), settings.task_max_power * dt
    if share * energy > most:
        share = most / energy
    elif missing <= SAME_STIFFNESS * largest:
        share = 1.0
    for k in range(SIZE * SIZE):
        K[k] += share * (target[k] - K[k])


@inlined
def follow_wrench(settings: Settings, state: State, t: float, dt: float) -> None:
    """The wrench in force approaches that of the last message, and zero where messages are missing
    at time `t` [s]."""
    share = -math.expm1(-dt / STIFFNESS_TIME)
    fresh = t - state.wrench_at <= settings.stream_timeout
    for k in range(SIZE):
        asked = state.asked_wrench[k] if fresh else 0.0
        state.target_wrench[k] += share * (asked - state.target_wrench[k])


@inlined
def find_wrench(settings: Settings, state: State) -> None:
    """Fills in the wrench of the stiffness and of the target wrench, at most `task_max_force`."""
    K, e, wrench, target = state.stiffness, state.task_error, state.wrench, state.target_wrench
    for k in range(SIZE):
        total = 0.0
        for m in range(SIZE):
            total += K[SIZE * k + m] * e[m]
        wrench[k] = total
    moment = screw_velocity(rotation_part(e), rotation_part(wrench))
    most = settings.task_max_force
    force = clipped(add(position_in(wrench), position_in(target)), most[0])
    moment = clipped(add(moment, rotation_part(target)), most[1])
    store_six(wrench, force, moment)


@inlined
def _scale_by_inertia(state: State, K: Vector, B: Vector) -> None:
    """B = R K R^T, whose eigenvalues are the squares of the natural frequencies of the tip."""
    R, T = state.factor, state.work
    for r in range(SIZE):
        for c in range(SIZE):
            total = 0.0
            for k in range(r, SIZE):
                total += R[SIZE * r + k] * K[SIZE * k + c]
            T[SIZE * r + c] = total
    for r in range(SIZE):
        for c in range(r + 1):
            total = 0.0
            for k in range(c, SIZE):
                total += T[SIZE * r + k] * R[SIZE * c + k]
            B[SIZE * r + c] = B[SIZE * c + r] = total


@shared
def is_stiffness(state: State, K: Vector) -> bool:
    """True for a symmetric matrix without a negative eigenvalue, but for rounding, with a finite
    trace. Overwrites the scratch memory."""
    trace, same = 0.0, True
    for k in range(SIZE):
        trace += K[SIZE * k + k]
    for k in range(SIZE):
        for m in range(SIZE):
            same &= abs(K[SIZE * k + m] - K[SIZE * m + k]) <= SYMMETRY * trace
            state.scaled_stiffness[SIZE * k + m] = K[SIZE * k + m]
        state.scaled_stiffness[SIZE * k + k] += SYMMETRY * trace
    if not (same and trace < math.inf):
        return False
    return trace == 0.0 or cholesky(state.scaled_stiffness, state.work, 0.0)


@shared
def largest_frequency(robot: Robot, settings: Settings, state: State, K: Vector) -> float:
    """Largest natural frequency of the tip with stiffness K at the last state [rad/s]. Overwrites
    what `observe_tip` fills in, and the scratch memory."""
    observe_tip(robot, settings, state, state.last_position, state.last_velocity)
    B, V = state.scaled_stiffness, state.inverse_inertia
    _scale_by_inertia(state, K, B)
    set_identity(V)
    diagonalize(B, V, state.work)
    largest = 0.0
    for k in range(SIZE):
        largest = max(largest, B[SIZE * k + k])
    return math.sqrt(largest)


@inlined
def _scaled_stiffness(state: State) -> None:
    """R K R^T, with the stiffness that the damping is for: free directions are damped, too."""
    K = state.damped_stiffness
    for k in range(SIZE * SIZE):
        K[k] = state.stiffness[k]
    for k in range(SIZE):
        least = LEAST_STIFFNESS if k < 3 else LEAST_ROTATIONAL_STIFFNESS
        K[SIZE * k + k] = max(K[SIZE * k + k], least)
    _scale_by_inertia(state, K, state.scaled_stiffness)


@shared
def add_impedance_torque(robot: Robot, settings: Settings, state: State, v: Vector) -> None:
    """Adds J^T W + J^T D (x'_d - J v) to the torque: the wrench, and the damping with the same
    ratio for all modes."""
    x, out, L = state.coordinates, state.null_torque, robot.matrix
    for r in range(SIZE):
        x[r] = state.desired_twist[r]
    _into_basis(state, x)  # R^-T x'_d
    for j in range(v.shape[0]):  # L^T v
        total = 0.0
        for k in range(j, v.shape[0]):
            total += L[k, j] * v[k]
        out[j] = total
    for r in range(SIZE):
        for j in range(v.shape[0]):
            x[r] -= state.basis[r, j] * out[j]
    _scaled_stiffness(state)
    B, V = state.scaled_stiffness, state.modes
    diagonalize(B, V, state.work)
    for c in range(SIZE):  # B^1/2 x
        along = 0.0
        for r in range(SIZE):
            along += V[SIZE * r + c] * x[r]
        frequency = math.sqrt(max(B[SIZE * c + c], 0.0))
        state.work[c] = 2.0 * settings.task_damping_ratio * frequency * along
    for r in range(SIZE):
        total = 0.0
        for c in range(SIZE):
            total += V[SIZE * r + c] * state.work[c]
        x[r] = total
    _combine(state, x, out)
    _times_lower(L, out)
    for j in range(v.shape[0]):
        for r in range(SIZE):
            out[j] += state.jacobian[r, j] * state.wrench[r]
        state.torque[j] += out[j]


@shared
def find_null_torque(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector, moves: bool
) -> None:
    """Fills in the torque toward the posture, which `moves` with the desired velocity or rests, and
    away from joint limits, before its projection."""
    L = robot.matrix
    for j in range(q.shape[0]):
        inertia = 0.0
        for k in range(j + 1):
            inertia += L[j, k] * L[j, k]
        stiffness = settings.nullspace_stiffness * settings.nullspace_weight[j]
        lower, upper = settings.soft_lower[j], settings.soft_upper[j]
        zone = LIMIT_ZONE * (upper - lower)
        outside = 0.0
        if zone < math.inf:
            outside = max(q[j] - (upper - zone), 0.0) - max(lower + zone - q[j], 0.0)
        if outside != 0.0:
            stiffness += LIMIT_STIFFNESS * inertia
        damping = 2.0 * math.sqrt(stiffness * inertia)
        torque = settings.nullspace_stiffness * settings.nullspace_weight[j]
        torque *= state.posture[j] - q[j]
        torque -= LIMIT_STIFFNESS * inertia * outside
        rate = v[j] - state.desired_velocity[j] if moves else v[j]
        state.null_torque[j] = torque - max(damping, NULL_DAMPING * inertia) * rate


@shared
def add_null_torque(robot: Robot, state: State) -> None:
    """Adds (1 - J^T Jbar^T) times `null_torque` to the torque: the part that leaves the tip where
    it is."""
    x, out, L = state.coordinates, state.null_torque, robot.matrix
    for j in range(out.shape[0]):
        state.torque[j] += out[j]
    _solve_lower(L, out)
    for r in range(SIZE):
        total = 0.0
        for j in range(out.shape[0]):
            total += state.basis[r, j] * out[j]
        state.work[r] = total
    for r in range(SIZE):  # R^T Q^T L^-1 tau
        total = 0.0
        for k in range(r + 1):
            total += state.factor[SIZE * k + r] * state.work[k]
        x[r] = total
    _into_basis(state, x)
    _combine(state, x, out)
    _times_lower(L, out)
    for j in range(out.shape[0]):
        state.torque[j] -= out[j]


@shared
def accelerate_tip(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector, a: Vector
) -> None:
    """Fills `a` with the accelerations of the joints under which the error e of the tip obeys
    e'' + d e' + p e = 0, with p = w^2 and d = 2 w; `null_torque`, over the inertia of each joint,
    accelerates the motions that leave the tip where it is [Siciliano et al. 2009, sec. 8.6]."""
    bodies, memory, L = robot.bodies, robot.memory, robot.matrix
    x, out, w = state.coordinates, state.null_torque, settings.task_bandwidth
    for j in range(a.shape[0]):
        inertia = 0.0
        for k in range(j + 1):
            inertia += L[j, k] * L[j, k]
        a[j], out[j] = out[j] / inertia, 0.0
    for r in range(SIZE):  # the own acceleration of the projected motion is taken out
        total = 0.0
        for j in range(a.shape[0]):
            total += state.jacobian[r, j] * a[j]
        state.work[r] = total
    outward_pass(bodies, memory, q, v, out)
    pose_pass(bodies, memory, q)
    linear, angular = acceleration_of_link(bodies, robot.links, memory, int(settings.task_link))
    for r in range(SIZE):
        own = linear[r] if r < 3 else angular[r - 3]  # J' v
        x[r] = state.desired_twist_rate[r] + w * w * state.task_error[r] - own - state.work[r]
        x[r] += 2.0 * w * (state.desired_twist[r] - state.twist[r])
    consistent_inverse(robot, state, x, out)
    for j in range(a.shape[0]):
        a[j] += out[j]


@inlined
def torque_of_largest_wrench(settings: Settings, state: State, j: int) -> float:
    """Largest torque at joint j by a wrench on the tip within `task_max_force`, [Nm] or [N]."""
    force = moment = 0.0
    for r in range(3):
        force += state.jacobian[r, j] * state.jacobian[r, j]
        moment += state.jacobian[3 + r, j] * state.jacobian[3 + r, j]
    most = settings.task_max_force
    return math.sqrt(force) * most[0] + math.sqrt(moment) * most[1]
