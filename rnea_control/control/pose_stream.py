r"""The pose stream: target poses of the tip, one after the other, followed within limits.

As in joint_stream.py, a target is carried on by its twist until the next one comes, and the desired
pose follows it by a critically damped filter of bandwidth `stream_bandwidth`: in the position, and
in the rotation vector from the desired orientation to the target. The length of the acceleration
and of the velocity is bounded, linear and angular separately. A stop toward the target takes at
most a part of the largest acceleration.

Near a singular posture the desired motion slows down: with the condition number of J from
SLOW_CONDITION to STOP_CONDITION the largest velocity goes to zero, unless the motion leads away
from the singularity. moveit_servo has the same thresholds.

When targets are missing for `stream_timeout`, or states are, the tip comes to rest.
"""

from __future__ import annotations

import math

from rnea_control.control.joint_stream import BRAKING_SHARE, HARDEST_BRAKING, LONGEST_STEP
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.control.task_space import (
    take_settings,
)
from rnea_control.control.tip import (
    SLOW_CONDITION,
    clipped,
    find_pose,
    position_in,
    quaternion_in,
    rotation_part,
    store_pose,
    store_six,
    way_between,
)
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.rotation import normalized, product, quaternion_of_vector
from rnea_control.spatial.symmetric import SIZE
from rnea_control.spatial.vectors import ORIGIN, Vector3, add, dot, scale, subtract

STOP_CONDITION = 30.0  # condition number at which it stops
STANDSTILL = 1e-6  # velocity at rest, as a part of the largest velocity


@inlined
def _approach(e: Vector3, rate: Vector3, v: Vector3, w: float, most: float, h: float) -> Vector3:
    """Acceleration over the next `h` [s] by the filter.

    Args:
        e: way to the target.
        rate, v: velocity of the target, and of the desired motion.
        w: bandwidth [rad/s].
        most: length of the largest acceleration.
        h: duration of the step [s].
    """
    e_rate = subtract(rate, v)
    distance, braking = math.sqrt(dot(e, e)), BRAKING_SHARE * most
    linear = 4.0 * braking / (w * w)
    if distance <= linear:
        decay = math.exp(-w * h)
        after = subtract(e_rate, scale(w * h, add(e_rate, scale(w, e))))
        return scale(1.0 / h, subtract(e_rate, scale(decay, after)))
    speed = math.sqrt(2.0 * braking * (distance - 0.5 * linear))
    toward = add(e_rate, scale(speed / distance, e))
    return scale(-math.expm1(-2.0 * w * h) / h, toward)


@shared
def _accelerate(
    e: Vector3, rate: Vector3, v: Vector3, w: float, fastest: float, most: float, h: float
) -> Vector3:
    """Acceleration for `h` [s] within its bound and that of the velocity, `fastest`."""
    a = clipped(_approach(e, rate, v, w, most, h), most)
    bounded = clipped(add(v, scale(h, a)), fastest)
    return clipped(scale(1.0 / h, subtract(bounded, v)), HARDEST_BRAKING * most)


@inlined
def _pace(state: State, velocity: Vector3, turning: Vector3) -> float:
    """Factor of the velocity near a singularity, 0 to 1; 1 for a motion away from it. `velocity`,
    `turning`: direction of the motion."""
    excess, gradient = state.condition - SLOW_CONDITION, state.singular_gradient
    if excess <= 0.0:
        return 1.0
    if dot(position_in(gradient), velocity) + dot(rotation_part(gradient), turning) >= 0.0:
        return 1.0
    return max(1.0 - excess / (STOP_CONDITION - SLOW_CONDITION), 0.0)


@inlined
def _within_box(settings: Settings, p: Vector3) -> Vector3:
    """The nearest position within `task_box`."""
    box = settings.task_box
    return (
        min(max(p[0], box[0]), box[3]),
        min(max(p[1], box[1]), box[4]),
        min(max(p[2], box[2]), box[5]),
    )


@inlined
def time_carried(state: State, t: float) -> float:
    """Time for which the twist has moved the target at time `t` [s], at most its span."""
    return min(max(t - state.pose_at, 0.0), max(state.pose_span, 0.0))


@inlined
def _time_carried_and_faded(state: State, w: float, t: float) -> tuple[float, float]:
    """The same with the time after the span, in which the twist fades out; and the part of the
    twist that is left."""
    passed, span = max(t - state.pose_at, 0.0), max(state.pose_span, 0.0)
    if span == 0.0:
        return 0.0, 0.0
    if passed <= span:
        return time_carried(state, t), 1.0
    left = math.exp(-w * (passed - span))
    return span + (1.0 - left) / w, left


@inlined
def _rest_at(v: Vector3, w: float, most: float, h: float) -> Vector3:
    """Acceleration toward rest for `h` [s]."""
    return clipped(scale(math.expm1(-2.0 * w * h) / h, v), most)


@shared
def begin_poses(robot: Robot, settings: Settings, state: State, t: float) -> None:
    """Starts at rest from the measured pose at time `t` [s]; the measured position is the
    posture."""
    find_pose(robot, settings, state.last_position, state.desired_pose)
    pose = state.desired_pose
    store_pose(state.target_pose, position_in(pose), quaternion_in(pose))
    for six in (state.desired_twist, state.desired_twist_rate, state.target_twist):
        six[:] = 0.0
    for six in (state.target_wrench, state.asked_wrench, state.task_error):
        six[:] = 0.0
    take_settings(settings, state)
    for k in range(SIZE * SIZE):
        state.stiffness[k] = state.target_stiffness[k]
    state.pose_at, state.pose_span, state.wrench_at = t, 0.0, -math.inf
    for j in range(state.shape[1]):
        state.posture[j] = state.last_position[j]
        state.desired_velocity[j] = 0.0


@shared
def follow_poses(settings: Settings, state: State, t: float, dt: float, predicted: bool) -> bool:
    """Fills in desired pose, twist and its rate at time `t` [s], `dt` after the last step; returns
    True once the tip is at rest as targets are missing.

    The joints have no desired motion: their desired velocity, which moves the tip with its twist,
    is that of the last step, and zero while states are missing.
    """
    state.desired_acceleration[:] = 0.0
    state.desired_effort[:] = 0.0
    fresh = t - state.stream_at <= settings.stream_timeout
    follows = fresh and not predicted
    if predicted:
        for j in range(state.shape[1]):
            state.velocity_error[j] -= state.desired_velocity[j]
            state.desired_velocity[j] = 0.0
    h = min(dt, LONGEST_STEP)
    velocity, turning = position_in(state.desired_twist), rotation_part(state.desired_twist)
    a, turning_rate = position_in(state.desired_twist_rate), rotation_part(state.desired_twist_rate)
    p, e = position_in(state.desired_pose), quaternion_in(state.desired_pose)
    p = add(p, scale(h, add(velocity, scale(0.5 * h, a))))
    turn = scale(h, add(turning, scale(0.5 * h, turning_rate)))
    e = normalized(product(quaternion_of_vector(turn), e))
    velocity, turning = add(velocity, scale(h, a)), add(turning, scale(h, turning_rate))
    store_pose(state.desired_pose, p, e)
    if h > 0.0:
        w = settings.stream_bandwidth
        fastest, most = settings.task_max_velocity, settings.task_max_acceleration
        if follows:
            passed, left = _time_carried_and_faded(state, w, t + settings.dead_time)
            way, turn = way_between(state.desired_pose, state.target_pose)
            rate, turn_rate = position_in(state.target_twist), rotation_part(state.target_twist)
            target = _within_box(settings, add(add(p, way), scale(passed, rate)))
            way, turn = subtract(target, p), add(turn, scale(passed, turn_rate))
            rate, turn_rate = scale(left, rate), scale(left, turn_rate)
            wanted, turns = add(rate, scale(w, way)), add(turn_rate, scale(w, turn))
            pace = _pace(state, wanted, turns) * state.scaling
            a = _accelerate(way, rate, velocity, w, pace * fastest[0], most[0], h)
            turning_rate = _accelerate(turn, turn_rate, turning, w, pace * fastest[1], most[1], h)
        else:
            a = _rest_at(velocity, w, most[0], h)
            turning_rate = _rest_at(turning, w, most[1], h)
            speed, angular = math.sqrt(dot(velocity, velocity)), math.sqrt(dot(turning, turning))
            if speed <= STANDSTILL * fastest[0] and angular <= STANDSTILL * fastest[1]:
                velocity = turning = a = turning_rate = ORIGIN
        store_six(state.desired_twist_rate, a, turning_rate)
    store_six(state.desired_twist, velocity, turning)
    rests = dot(velocity, velocity) + dot(turning, turning) == 0.0
    return rests and not fresh
