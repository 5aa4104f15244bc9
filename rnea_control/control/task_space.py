r"""The laws of task space: the terms of the torques that move the tip.

A damping with the same damping ratio zeta in each mode of stiffness K and inertia Lambda of the tip
is, by double diagonalization [Albu-Schaeffer, Ott, Frese, Hirzinger 2003], with L, Q and R of
tip.py,

.. math::

    D = 2 \zeta R^{-1} (R K R^T)^{1/2} R^{-T}, \qquad
    J^T D J = 2 \zeta L Q (R K R^T)^{1/2} Q^T L^T.

The torque of the damping needs no inverse, and is therefore bounded and continuous through singular
postures.

The error of the orientation is the rotation vector phi of R_d R^T. The stiffness is the gradient of
the energy e^T K e / 2: its moment is :math:`J_r^{-T}(\phi) K \phi`, with the right Jacobian J_r of
the exponential map.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.control.tip import (
    clipped,
    combine,
    consistent_inverse,
    into_basis,
    observe_tip,
    position_in,
    rotation_part,
    solve_lower,
    store_six,
    times_lower,
    way_between,
)
from rnea_control.dynamics.kinematics import acceleration_of_link, pose_pass
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.rotation import screw_velocity
from rnea_control.spatial.symmetric import SIZE, cholesky, diagonalize, set_identity
from rnea_control.spatial.vectors import add

LEAST_STIFFNESS = 20.0  # stiffness for which directions with less are damped [N/m]
LEAST_ROTATIONAL_STIFFNESS = 1.0  # the same for rotations [Nm/rad]
STIFFNESS_TIME = 0.03  # time constant with which stiffness and wrench follow what is asked [s]
SAME_STIFFNESS = 1e-6  # difference from what is asked, as a part, below which it is reached
SYMMETRY = 1e-6  # rounding of a stiffness matrix, as a part of its trace
NULL_DAMPING = 2.0  # least damping of motions that leave the tip where it is, per inertia [1/s]
LIMIT_ZONE = 0.1  # part of a joint's range before a soft limit from which its posture is repelled
LIMIT_STIFFNESS = 100.0  # stiffness of that repulsion, per inertia [1/s^2]


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
    into_basis(state, x)  # R^-T x'_d
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
    combine(state, x, out)
    times_lower(L, out)
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
    solve_lower(L, out)
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
    into_basis(state, x)
    combine(state, x, out)
    times_lower(L, out)
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
