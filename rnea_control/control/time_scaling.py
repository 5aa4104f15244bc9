r"""Speed scaling: trajectory time `s` runs slower than the controller's time `t`.

The scaling :math:`\sigma = ds/dt` follows its target through two equal first-order lags, so that it
and its rate are continuous, and it never leaves the range of its targets, 0 to 1. With
:math:`\dot q = q' \sigma` and :math:`\ddot q = q'' \sigma^2 + q' \dot\sigma` the desired velocity
and acceleration are continuous too. Each step solves the lags exactly.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.kernels.inlining import inlined

# Of each lag, [s]: after 0.5 s, 96 % of a change are done.
LAG_TIME = 0.1
# A difference to the target that no arm notices.
_SETTLED = 1e-9


@inlined
def advance(state: FloatArray, dt: float, slows: bool) -> None:
    """Brings the scaling `dt` further, and `BEHIND`, by which trajectory time is behind.

    `slows`: whether its target is 0 for now.
    """
    target = 0.0 if slows else state[layout.TARGET_SCALING, 0]
    if state[layout.LAST_TRAJECTORY_TIME, 0] < state[layout.UNSCALED_UNTIL, 0]:
        target = 1.0
    first = state[layout.LEADING_SCALING, 0] - target
    second = state[layout.SCALING, 0] - target
    if abs(first) < _SETTLED and abs(second) < _SETTLED:
        state[layout.LEADING_SCALING, 0] = target
        state[layout.SCALING, 0] = target
        state[layout.SCALING_RATE, 0] = 0.0
        state[layout.BEHIND, 0] += (1.0 - target) * dt
        return
    x = dt / LAG_TIME
    decay = math.exp(-x)
    passed = LAG_TIME * ((first + second) * (1.0 - decay) - first * x * decay)
    state[layout.BEHIND, 0] += (1.0 - target) * dt - passed
    second = (second + first * x) * decay
    first *= decay
    state[layout.LEADING_SCALING, 0] = target + first
    state[layout.SCALING, 0] = target + second
    state[layout.SCALING_RATE, 0] = (first - second) / LAG_TIME


@inlined
def settle(state: FloatArray) -> None:
    """Brings the scaling to its target at once, while the arm stands."""
    target = state[layout.TARGET_SCALING, 0]
    state[layout.LEADING_SCALING, 0] = state[layout.SCALING, 0] = target
    state[layout.SCALING_RATE, 0] = 0.0


@inlined
def scale(state: FloatArray) -> None:
    """Turns the desired derivatives by trajectory time into those by time."""
    scaling, rate = state[layout.SCALING, 0], state[layout.SCALING_RATE, 0]
    for j in range(state.shape[1]):
        derivative = state[layout.DESIRED_VELOCITY, j]
        state[layout.DESIRED_VELOCITY, j] = derivative * scaling
        state[layout.DESIRED_ACCELERATION, j] = (
            state[layout.DESIRED_ACCELERATION, j] * scaling * scaling + derivative * rate
        )
