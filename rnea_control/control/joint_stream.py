r"""The joint stream: single targets of joints, which come one after the other from a joystick, a
servo loop or a policy, followed within limits.

A target is carried on by its velocity until the next one comes, for at most `target_span`. With y
the carried target, y' its velocity, and e = y - x, the desired position x follows it by a
critically damped filter of bandwidth w,

.. math:: \ddot e + 2 w \dot e + w^2 e = 0,

and each step solves this exactly. Beyond the distance from which the filter would brake harder than
a part A of the largest acceleration, the velocity toward the target is the one from which A stops
there,

.. math:: g(e) = \sqrt{2 A (|e| - 2 A / w^2)}.

Acceleration, velocity and, where it is limited, jerk J are bounded for each joint. The bounds of
the velocity and of the position are those from which the joint can still stop [Del Prete 2018]: the
acceleration is reduced to the largest one after which that is so.

Each step chooses one acceleration, which is commanded, and position and velocity are integrated
with it until the next step. When targets are missing for `stream_timeout`, or states are, the
joints come to rest.
"""

from __future__ import annotations

import math

from rnea_control.control.layout import Settings, State
from rnea_control.jit.inlining import inlined

LONGEST_SPAN = 0.06  # longest time for which a target is carried on by its velocity [s]
# Braking of a motion that began too fast for its limit, as a factor of the largest acceleration.
HARDEST_BRAKING = 4.0
# Braking toward a target, as a part of the largest acceleration: the rest corrects the lag.
BRAKING_SHARE = 0.8
ROUNDING = 1e-7  # distance beyond a position limit that is no reason to brake harder [rad] or [m]
STANDSTILL = 1e-6  # velocity at rest, as a part of the largest velocity
EFFORT_TIME = 0.1  # time in which the effort of a target changes by the effort limit [s]
LONGEST_STEP = 0.02  # step for which an acceleration is chosen, at most [s]
MOST_STEPS = 50  # steps in which the desired motion goes on after a gap, at most
_HALVINGS = 40  # number of halvings of an interval of accelerations


@inlined
def approach(x: float, v: float, y: float, rate: float, w: float, most: float, h: float) -> float:
    """Acceleration over the next `h` [s] by the filter, without the other bounds.

    Args:
        x, v: desired position and velocity, [rad] or [m], and per second.
        y, rate: target and its velocity.
        w: bandwidth [rad/s].
        most: largest acceleration.
        h: duration of the step [s].
    """
    e, e_rate = y - x, rate - v
    most *= BRAKING_SHARE
    linear = 4.0 * most / (w * w)
    if abs(e) <= linear:
        decay = math.exp(-w * h)
        return (e_rate - (e_rate - w * (e_rate + w * e) * h) * decay) / h
    toward = math.copysign(math.sqrt(2.0 * most * (abs(e) - 0.5 * linear)), e)
    return (e_rate + toward) * -math.expm1(-2.0 * w * h) / h


@inlined
def _stop_from(v: float, most: float, jerk: float) -> float:
    """Distance of the stop from velocity `v` >= 0 and acceleration 0."""
    if v * jerk >= most * most:
        return 0.5 * v * (v / most + most / jerk)
    return v * math.sqrt(v / jerk)


@inlined
def stopping_distance(v: float, a: float, most: float, jerk: float) -> float:
    """Distance that a joint with velocity `v` and acceleration `a` still moves in the positive
    direction, if it stops with the acceleration `most` and `jerk`."""
    if a >= 0.0:
        time, peak = a / jerk, v + 0.5 * a * a / jerk
        if peak <= 0.0:
            return 0.0
        return time * (v + a * time / 3.0) + _stop_from(peak, most, jerk)
    if v <= 0.0:
        return 0.0
    braking = min(-a, most)
    time, before = braking / jerk, v + 0.5 * braking * braking / jerk
    if v <= 0.5 * braking * time:  # it stands before the braking has faded out
        time -= math.sqrt(max(braking * braking - 2.0 * jerk * v, 0.0)) / jerk
        return time * (v - time * (0.5 * braking - jerk * time / 6.0))
    return _stop_from(before, most, jerk) - time * (before - jerk * time * time / 6.0)


@inlined
def _is_viable(
    gap: float, v: float, a: float, fastest: float, most: float, jerk: float, h: float
) -> bool:
    """True if a joint that has acceleration `a` for `h` [s] can still stop within `gap`, and keep
    the velocity within `fastest`."""
    v_next = v + a * h
    if a > 0.0 and v_next + 0.5 * a * a / jerk > fastest:
        return False
    if v_next <= 0.0 < v:  # it stops within the step
        return -0.5 * v * v / a <= gap
    return h * (v + 0.5 * a * h) + stopping_distance(v_next, a, most, jerk) <= gap


@inlined
def most_acceleration(
    gap: float,
    v: float,
    a_before: float,
    wanted: float,
    fastest: float,
    most: float,
    jerk: float,
    h: float,
) -> float:
    """The largest acceleration up to `wanted` for `h` [s] after which a joint can still stop.

    Args:
        gap: distance to the position limit in the positive direction, [rad] or [m].
        v, a_before: velocity, and acceleration in the last step.
        fastest, most, jerk: bounds; `jerk` may be infinite.
    """
    if jerk < math.inf:
        least = max(a_before - jerk * h, -most)
        if wanted <= least or _is_viable(gap, v, wanted, fastest, most, jerk, h):
            return wanted
        low, high = least, wanted
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if _is_viable(gap, v, middle, fastest, most, jerk, h):
                low = middle
            else:
                high = middle
        return low
    by_velocity = max((fastest - v) / h, -most)
    # The root of h (v + stops) / 2 + stops^2 / (2 most) = gap: from this velocity, after the step,
    # the joint stops at the limit.
    root = most * most * h * h + 8.0 * most * gap - 4.0 * most * h * v
    stops = 0.5 * (math.sqrt(max(root, 0.0)) - most * h)
    if gap <= 0.0:
        by_position = -v / h
    elif stops > 0.0:
        by_position = (stops - v) / h
    else:  # it stops within the step
        by_position = -0.5 * v * v / (gap + ROUNDING)
    too_fast = v > 0.0 and v * v > 2.0 * most * (max(gap, 0.0) + ROUNDING)
    by_position = max(by_position, -most * (HARDEST_BRAKING if too_fast else 1.0))
    return min(wanted, by_velocity, by_position)


@inlined
def _accelerate(
    settings: Settings, state: State, j: int, y: float, rate: float, follows: bool, h: float
) -> None:
    """Chooses the acceleration of joint j for `h` [s]; a joint that does not follow `y` and `rate`
    comes to rest."""
    x, v = state.desired_position[j], state.desired_velocity[j]
    a_before = state.desired_acceleration[j]
    w, jerk = settings.stream_bandwidth, settings.stream_max_jerk[j]
    # Reached by the jerk within the time constant of the filter; with more the joint swings.
    most = min(settings.stream_max_acceleration[j], jerk / w)
    fastest = settings.stream_max_velocity[j] * state.scaling
    wanted = v * math.expm1(-2.0 * w * h) / h  # to rest
    if follows:
        wanted = approach(x, v, y, rate, w, most, h)
    wanted = min(max(wanted, -most), most)
    wanted = min(max(wanted, a_before - jerk * h), a_before + jerk * h)
    up, down = settings.upper_limit[j] - x, x - settings.lower_limit[j]
    wanted = most_acceleration(up, v, a_before, wanted, fastest, most, jerk, h)
    wanted = -most_acceleration(down, -v, -a_before, -wanted, fastest, most, jerk, h)
    if jerk == math.inf and abs(v) <= fastest:  # also where it must turn round within a long step
        wanted = min(max(wanted, (-fastest - v) / h), (fastest - v) / h)
    stands = abs(v) <= STANDSTILL * settings.stream_max_velocity[j]
    if not follows and stands and abs(a_before) <= jerk * h:
        state.desired_velocity[j] = wanted = 0.0
    state.desired_acceleration[j] = wanted


@inlined
def _advance(state: State, j: int, h: float) -> None:
    """The desired motion of joint j goes on for `h` [s] with its acceleration."""
    v, a = state.desired_velocity[j], state.desired_acceleration[j]
    state.desired_position[j] += h * (v + 0.5 * a * h)
    state.desired_velocity[j] = v + a * h


@inlined
def carried(settings: Settings, state: State, j: int, t: float) -> tuple[float, float]:
    """Target of joint j at time `t` [s], and its velocity, which fades out after the span: a target
    that is only late must not brake the arm hard."""
    w, rate, span = settings.stream_bandwidth, state.target_rate[j], state.target_span[j]
    passed = t - state.target_at[j]
    y = state.target[j] + rate * min(max(passed, 0.0), max(span, 0.0))
    if span <= 0.0:
        rate = 0.0
    elif passed > span:
        left = math.exp(-w * (passed - span))
        y += rate * (1.0 - left) / w
        rate *= left
    bounded = min(max(y, settings.lower_limit[j]), settings.upper_limit[j])
    return bounded, rate if bounded == y else 0.0


@inlined
def follow_stream(settings: Settings, state: State, t: float, dt: float, predicted: bool) -> bool:
    """Fills in the desired motion at time `t` [s], `dt` after the last step; returns True once the
    arm is at rest as targets are missing.

    While states are missing the arm comes to rest, too. An acceleration lasts for the time that it
    was chosen for, at most: a longer step is several.
    """
    fresh = t - state.stream_at <= settings.stream_timeout
    now, follows = t + settings.dead_time, fresh and not predicted
    held = state.stream_step if state.stream_step > 0.0 else dt
    next_step = min(dt, LONGEST_STEP) if dt > 0.0 else held
    rests = not fresh
    for j in range(state.shape[1]):
        left, h = dt, min(dt, held)
        _advance(state, j, h)
        for _ in range(MOST_STEPS):
            left -= h
            if not left > 1e-9:
                break
            h = min(left, held)
            y, rate = carried(settings, state, j, now - left)
            _accelerate(settings, state, j, y, rate, follows, h)
            _advance(state, j, h)
        if next_step > 0.0:
            y, rate = carried(settings, state, j, now)
            _accelerate(settings, state, j, y, rate, follows, next_step)
        change = settings.effort_limit[j] * dt / EFFORT_TIME
        effort, wanted = state.desired_effort[j], state.target_effort[j] if fresh else 0.0
        state.desired_effort[j] = min(max(wanted, effort - change), effort + change)
        rests &= state.desired_velocity[j] == 0.0 and state.desired_effort[j] == 0.0
    state.stream_step = next_step
    return rests
