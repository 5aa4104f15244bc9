"""Whether an arm that is held stands still.

The mode `holding` would be untrue of an arm whose joints move all the same: by friction that sticks
and slips, by gains that are too high, by torques in another unit. The share of the last second in
which a joint moved decides when the arm is restless, and when it is calm again.
"""

from __future__ import annotations

import math

from rnea_control.array_types import IntVector, Matrix, Vector
from rnea_control.control import layout
from rnea_control.jit.inlining import inlined

RESTING_SPEED = 0.05  # speed of a joint that is held, at most [rad/s] or [m/s]
RESTING_SHARE = 0.1  # the same, as a part of the velocity limit, for slow joints
NOISE_FACTOR = 4.0  # standard deviations of the velocity noise that count as rest
AVERAGED = 1.0  # time constant of the share of time in motion [s]
RESTLESS_SHARE = 0.6  # share of time in motion above which the arm is restless
CALM_SHARE = 0.1  # share of time in motion below which it is calm again


@inlined
def is_held(n: IntVector, state: Matrix) -> bool:
    """True while the desired position stands still and belongs to no motion and no hand."""
    if n[layout.MOTION] != 0 or state[layout.GUIDED, 0] != 0.0:
        return False
    fastest = 0.0
    for j in range(state.shape[1]):
        fastest = max(fastest, abs(state[layout.DESIRED_VELOCITY, j]))
    return fastest == 0.0


@inlined
def moving_joint(settings: Matrix, state: Matrix, v: Vector) -> int:
    """The fastest joint that is not at rest; -1 if all are."""
    fastest, most = -1, 1.0
    for j in range(v.shape[0]):
        noise = state[layout.VELOCITY_NOISE, j]
        if math.isnan(noise):
            continue
        rest = min(RESTING_SPEED, RESTING_SHARE * settings[layout.REFERENCE_SPEED, j])
        excess = abs(v[j]) / (rest + NOISE_FACTOR * noise)
        if excess > most:
            fastest, most = j, excess
    return fastest


@inlined
def find_unrest(n: IntVector, settings: Matrix, state: Matrix, h: float, v: Vector) -> int:
    """Takes the velocities of a state, shape (nv,), `h` [s] after the last one; returns RESTLESS or
    CALM where that has changed, with the joint and its speed, else UNDER_WAY."""
    if not h > 0.0 or not is_held(n, state):
        state[layout.UNREST, 0] = 0.0
        n[layout.IS_RESTLESS] = 0
        return layout.UNDER_WAY
    j = moving_joint(settings, state, v)
    now = 1.0 if j >= 0 else 0.0
    share = state[layout.UNREST, 0]
    share += min(h / AVERAGED, 1.0) * (now - share)
    state[layout.UNREST, 0] = share
    if n[layout.IS_RESTLESS] == 0 and j >= 0 and share > RESTLESS_SHARE:
        n[layout.IS_RESTLESS] = 1
        state[layout.VIOLATING_JOINT, 0] = j
        state[layout.VIOLATION, 0] = abs(v[j])
        return layout.RESTLESS
    if n[layout.IS_RESTLESS] != 0 and share < CALM_SHARE:
        n[layout.IS_RESTLESS] = 0
        return layout.CALM
    return layout.UNDER_WAY
