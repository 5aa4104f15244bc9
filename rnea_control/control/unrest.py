"""Decides whether an arm that is held stands still.

The mode `holding` would be wrong for an arm whose joints move all the same: by friction that sticks
and slips, by gains that are too high, by torques in another unit. The share of the last second in
which a joint moved decides when the arm is restless, and when it is calm again.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control import layout
from rnea_control.control.laws import yields
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.references import TRAJECTORY
from rnea_control.jit.inlining import inlined

RESTING_SPEED = 0.05  # speed of a joint that is held, at most [rad/s] or [m/s]
RESTING_SHARE = 0.1  # the same, as a part of the velocity limit, for slow joints
NOISE_FACTOR = 4.0  # standard deviations of the velocity noise that count as rest
AVERAGED = 1.0  # time constant of the share of time in motion [s]
RESTLESS_SHARE = 0.6  # share of time in motion above which the arm is restless
CALM_SHARE = 0.1  # share of time in motion below which it is calm again


@inlined
def is_held(arm: Arm, settings: Settings, state: State) -> bool:
    """True while the desired position stands still and belongs to no motion and no hand, and a push
    does not move the arm."""
    if arm.motion != 0 or int(state.reference) != TRAJECTORY or yields(settings, state):
        return False
    fastest = 0.0
    for j in range(state.shape[1]):
        fastest = max(fastest, abs(state.desired_velocity[j]))
    return fastest == 0.0


@inlined
def moving_joint(settings: Settings, state: State, v: Vector) -> int:
    """The fastest joint that is not at rest; -1 if all joints are at rest."""
    fastest, most = -1, 1.0
    for j in range(v.shape[0]):
        noise = state.velocity_noise[j]
        if math.isnan(noise):
            continue
        rest = min(RESTING_SPEED, RESTING_SHARE * settings.reference_speed[j])
        excess = abs(v[j]) / (rest + NOISE_FACTOR * noise)
        if excess > most:
            fastest, most = j, excess
    return fastest


@inlined
def find_unrest(arm: Arm, settings: Settings, state: State, h: float, v: Vector) -> int:
    """Takes the velocities of a state, shape (nv,), `h` [s] after the last state. Returns RESTLESS,
    with the joint and its speed in `state`, or CALM, when that changes; otherwise UNDER_WAY."""
    if not h > 0.0 or not is_held(arm, settings, state):
        state.unrest = 0.0
        arm.is_restless = False
        return layout.UNDER_WAY
    j = moving_joint(settings, state, v)
    now = 1.0 if j >= 0 else 0.0
    share = state.unrest
    share += min(h / AVERAGED, 1.0) * (now - share)
    state.unrest = share
    if not arm.is_restless and j >= 0 and share > RESTLESS_SHARE:
        arm.is_restless = True
        state.violating_joint = j
        state.violation = abs(v[j])
        return layout.RESTLESS
    if arm.is_restless and share < CALM_SHARE:
        arm.is_restless = False
        return layout.CALM
    return layout.UNDER_WAY
