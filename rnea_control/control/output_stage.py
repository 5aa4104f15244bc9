r"""The output stage: every torque passes it on its way to the motors.

Its stages, in this order, for each joint separately:

1. **Soft position limits** push a joint back that is in the margin before its position limit and
   further out than its desired position. With x the distance to the nearer of the two, they demand
   the acceleration :math:`\omega^2 x + 2 \omega \dot x` back inside, and never an acceleration
   outward. A trajectory inside the margin is followed without a push.
2. The **velocity limit** demands a deceleration beyond it. From 1.1 times the limit on, only the
   gravity torque may drive the joint on in its direction.
3. The **blend**: after a start, the difference between the torque in force before it and the
   torque of the control law fades out.
4. A torque that is **not finite** is replaced by the gravity torque, or else by the last torque.
5. **Saturation**: the effort limit.
6. The **rate limit**: the torque that left last, plus or minus the rate times the time since.

The accelerations of 1 and 2 become torques by the inertia that the joint feels, at this joint
alone: they are passive, whatever the other joints do. Torques that keep the other joints still
meanwhile would push the joint on once its own torque is saturated.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.arrest import RELEASE_TIME
from rnea_control.control.layout import Settings, State
from rnea_control.control.references import has_path
from rnea_control.control.robot import Robot
from rnea_control.dynamics.crba import felt_inertias
from rnea_control.jit.inlining import inlined

BRAKING_RATE = 150.0  # rate of the deceleration beyond the velocity limit [1/s]
# Dampers take at most this part of the velocity of a joint from state to state, even if all other
# joints are free, and are therefore stable at any rate of states.
MOST_DAMPING = 0.5
FADE_OUT = 0.1  # part of the velocity limit over which the driving torque fades out beyond it
DAMPER_FADE_IN = 0.25  # part of the margin over which the damper of a soft limit fades in
LONGEST_RATE_STEP = 0.005  # longest time that the rate limit counts after missing states [s]
# Since the last torque, stamps may have advanced further than the steady clock by this time, as
# states come late. Beyond it the rate limit uses the steady clock [s].
LATENESS = 0.0005


@inlined
def _push(x: float, speed: float, margin: float, stiffness: float) -> float:
    """Acceleration back inside, for a joint that is `x` too far out and moves out at `speed`."""
    damper = 2.0 * math.sqrt(stiffness) * min(x / (DAMPER_FADE_IN * margin), 1.0)
    return max(stiffness * x + damper * speed, 0.0)


@inlined
def limit_acceleration(settings: Settings, state: State, q: Vector, v: Vector, dt: float) -> bool:
    """Fills `limit_acceleration`, stages 1 and 2; returns True if a joint is beyond a limit."""
    found = False
    stiffness = settings.limit_stiffness
    yields = not has_path(state)
    for j in range(q.shape[0]):
        acceleration = 0.0
        upper, lower = settings.soft_upper[j], settings.soft_lower[j]
        margin = settings.margin[j]
        if (q[j] > upper or q[j] < lower) and margin > 0.0:
            outward, inward = v[j], v[j]
            if not yields:
                desired, rate = state.desired_position[j], state.desired_velocity[j]
                if desired > upper:
                    upper, outward = desired, v[j] - max(rate, 0.0)
                if desired < lower:
                    lower, inward = desired, v[j] - min(rate, 0.0)
            if q[j] > upper:
                acceleration -= _push(q[j] - upper, outward, margin, stiffness)
            if q[j] < lower:
                acceleration += _push(lower - q[j], -inward, margin, stiffness)
            if acceleration != 0.0:
                state.position_limited[j] += dt
        excess = abs(v[j]) - settings.velocity_limit[j]
        if excess > 0.0:
            acceleration -= math.copysign(BRAKING_RATE * excess, v[j])
            state.velocity_limited[j] += dt
        state.limit_acceleration[j] = acceleration
        found |= (acceleration != 0.0) | (excess > 0.0)
    return found


@inlined
def blend(settings: Settings, state: State, t: float) -> None:
    """Adds to `torque` the part of the torque before the start that has not faded out at time
    `t`, stage 3."""
    duration, begin = settings.blend_time, state.blend_start
    if t - begin >= duration:
        return
    if math.isnan(begin):
        state.blend_start = begin = t
        for j in range(state.shape[1]):
            offset = state.command[j] - state.torque[j]
            state.blend_offset[j] = offset if math.isfinite(offset) else 0.0
    if not duration > 0.0:
        return
    x = max(t - begin, 0.0) / duration
    left = 1.0 - x * x * (3.0 - 2.0 * x)
    for j in range(state.shape[1]):
        state.torque[j] += left * state.blend_offset[j]


@inlined
def add_limit_torques(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector, dt: float
) -> None:
    """Adds to `torque` the torques for `limit_acceleration`."""
    bodies, memory, matrix = robot.bodies, robot.memory, robot.matrix
    held, free = state.held_inertia, state.free_inertia
    felt_inertias(bodies, memory, q, matrix, held, free)
    damping = 2.0 * math.sqrt(settings.limit_stiffness)
    for j in range(q.shape[0]):
        rate = damping
        if abs(v[j]) > settings.velocity_limit[j]:
            rate += BRAKING_RATE
        inertia = min(held[j], free[j] * MOST_DAMPING / (rate * dt))
        state.torque[j] += inertia * state.limit_acceleration[j]


@inlined
def torques_are_finite(state: State) -> bool:
    """True if all of `torque` is finite."""
    finite = True
    for j in range(state.shape[1]):
        finite &= math.isfinite(state.torque[j])
    return finite


@inlined
def fall_back(settings: Settings, state: State, v: Vector) -> None:
    """Puts `gravity_torque` in the place of torques in `torque` that are not finite, stage 4,
    and of torques that drive a joint on beyond its velocity limit, stage 2."""
    for j in range(v.shape[0]):
        torque, holding = state.torque[j], state.gravity_torque[j]
        last = state.command[j]
        if not math.isfinite(holding):
            holding = last if math.isfinite(last) else 0.0
        if not math.isfinite(torque):
            torque = holding
        limit = settings.velocity_limit[j]
        if abs(v[j]) > limit:
            driving = (torque - holding) * math.copysign(1.0, v[j])
            if driving > 0.0:
                part_left = max(1.0 - (abs(v[j]) - limit) / (FADE_OUT * limit), 0.0)
                torque = holding + (torque - holding) * part_left
        state.torque[j] = torque


@inlined
def output_stage(settings: Settings, state: State, dt: float, tau: Vector) -> tuple[bool, bool]:
    """Fills `tau` from `torque`, stages 5 and 6.

    Returns:
        True if a torque is at its limit, and True if one has been for the saturation timeout.
    """
    saturated, too_long = False, False
    dt_rate = min(dt, state.rate_step)
    state.rate_step = LONGEST_RATE_STEP
    for j in range(tau.shape[0]):
        torque, last = state.torque[j], state.command[j]
        state.previous_command[j] = last
        limit = settings.effort_limit[j]
        limited = min(max(torque, -limit), limit)
        if limited != torque:
            saturated = True
            state.saturated[j] += dt
            state.saturated_since[j] += dt
            too_long |= state.saturated_since[j] > settings.saturation_timeout
        else:
            state.saturated_since[j] = 0.0
        change = settings.torque_rate_limit[j] * dt_rate
        # Nothing is limited where the last torque is NaN, or the rate infinite and the time 0.
        low, high = last - change, last + change
        if limited > high or limited < low:
            limited = high if limited > high else low
            state.rate_limited[j] += dt
        tau[j] = limited
        state.command[j] = limited
    return saturated, too_long


@inlined
def withdraw(state: State) -> None:
    """Takes back the torques of the last step, as they were not published: the torques before them
    are still in force."""
    for j in range(state.shape[1]):
        state.command[j] = state.previous_command[j]


@inlined
def release(
    settings: Settings, state: State, v: Vector, dt: float, tau: Vector, predicted: bool
) -> None:
    """Fills `tau` after the controller has let go of the arm: between the last torque and zero, or
    the damping of velocities `v` that are not `predicted`. Faster than any rate limit."""
    for j in range(tau.shape[0]):
        last, limit = state.command[j], settings.effort_limit[j]
        state.previous_command[j] = last
        target = 0.0
        if not predicted:
            target = min(max(-state.let_go_damping[j] * v[j], -limit), limit)
        change = limit * dt / RELEASE_TIME
        if not math.isfinite(last):
            last = 0.0
        tau[j] = min(max(target, last - change), last + change)
        state.command[j] = state.torque[j] = tau[j]
