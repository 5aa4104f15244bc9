"""Decides whether braking helps an arm that is being arrested, and lets go of the arm if not.

An arrest begins when a bound of the motion is violated (motion_watch.py), or when a moving arm is
taken over. It is over when all joints are slow. If a joint gets faster instead, the cause may be
the very torque that should brake it: a wire, a sign or an encoder is wrong. Then the controller
lets go of the arm, as no torque is better than a wrong one: the torque fades to zero, or to damping
where the direction of the joints' answers has been verified.

All speeds are parts of REFERENCE_SPEED, which is the joint's velocity limit.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.layout import Settings, State
from rnea_control.jit.inlining import inlined

SLOW = 0.1  # speed below which a joint has been arrested
LIVELY = 0.3  # speed above which a joint that gets faster is let go
GAIN = 0.4  # speed that a joint may gain until braking acts
REACTION = 0.03  # time until braking acts [s]
FIRST_REACTION = 0.2  # REACTION after a take-over: the first commands may be on their way [s]
UNHURRIED = 0.2  # speed below which a joint may still be as fast as it was
EFFECT = 0.07  # time in which braking must then have slowed every faster joint [s]
COUPLING = 0.5  # part of the fastest joint's speed that its braking may give a joint
LONGEST_ARREST = 0.5  # time after which no joint may be lively any more [s]
RELEASE_TIME = 0.02  # time in which a torque at the effort limit fades to zero [s]
MOST_NOISE = 0.06  # noise of velocities; what is beyond it is motion [rad/s] or [m/s]
NOISE_MARGIN = 2.0  # standard deviations of the velocity noise that a smoothed speed may be off


@inlined
def smooth_velocity(state: State, j: int) -> float:
    """Smoothed velocity of joint j [rad/s] or [m/s]."""
    return state.desired_velocity[j] - state.smooth_velocity_error[j]


@inlined
def noise_margin(state: State, j: int, unknown: float = 0.0) -> float:
    """Speed of joint j that may be noise [rad/s] or [m/s]; `unknown`: the noise to use while it is
    not measured, in the same unit."""
    noise = state.velocity_noise[j]
    return NOISE_MARGIN * (unknown if math.isnan(noise) else noise)


@inlined
def speed_of(settings: Settings, state: State, j: int) -> float:
    """Speed of joint j by its velocities, and by its positions if they contradict the velocities.
    The larger one counts."""
    fastest = abs(smooth_velocity(state, j)) - noise_margin(state, j)
    if state.contradicting_for[j] > 0.0:
        fastest = max(fastest, abs(state.position_rate[j]))
    return max(fastest, 0.0) / settings.reference_speed[j]


@inlined
def begin(settings: Settings, state: State, t: float) -> None:
    """Begins an arrest at time `t` [s], from the present speeds."""
    state.braked_since = t + REACTION
    for j in range(state.shape[1]):
        state.arrest_speed[j] = speed_of(settings, state, j)
        state.arrest_peak[j] = state.arrest_speed[j]


@inlined
def begin_from(settings: Settings, state: State, t: float, v: Vector) -> None:
    """Begins an arrest at time `t` [s] of an arm caught with velocities `v`, shape (nv,)."""
    state.braked_since = t + FIRST_REACTION
    for j in range(state.shape[1]):
        state.arrest_speed[j] = abs(v[j]) / settings.reference_speed[j]
        state.arrest_peak[j] = state.arrest_speed[j]


@inlined
def helps(settings: Settings, state: State, t: float) -> bool:
    """Checks an arrest at time `t` [s], and ends it when all joints are slow. Returns False if
    braking does not help; `state` then has the joint, its speed, and its speed at the beginning."""
    since, over = t - state.braked_since, True
    fastest = 0.0
    for j in range(state.shape[1]):
        fastest = max(fastest, state.arrest_peak[j])
    # A joint may be moved by the braking of a faster one.
    coupled = COUPLING * fastest
    for j in range(state.shape[1]):
        speed, before = speed_of(settings, state, j), state.arrest_speed[j]
        peak = state.arrest_peak[j]
        over &= speed <= SLOW
        bound = max(LIVELY, coupled, before + GAIN if since < 0.0 else peak)
        not_slower = since > EFFECT and speed >= max(UNHURRIED, coupled, peak)
        too_long = since > LONGEST_ARREST and speed > LIVELY
        if speed > bound or not_slower or too_long:
            state.violating_joint = j
            state.violation = speed
            state.violated_tolerance = before
            return False
        if since < 0.0:
            state.arrest_peak[j] = max(peak, speed)
    if over:
        state.braked_since = math.nan
    return True
