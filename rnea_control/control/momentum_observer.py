r"""External joint torques without a force sensor, by the generalized momentum of the arm.

With the momentum p = M v, its rate of change without external torques is
:math:`\beta = \tau + C^T v - g` [dynamics/energy_and_momentum.py]. The residual

.. math::

    r = K_O \left( p - p(0) - \int (\beta + r) \, dt \right), \quad
    \dot r = K_O (\tau_{ext} - r)

follows the external torque as a first-order filter, joint by joint, without accelerations and
without an inverse of M [De Luca, Mattone 2005; De Luca et al. 2006]. It is a collision, a person,
a torque that did not arrive as it was commanded, or an error of the model: other masses, friction,
a payload.

Discretized so that a constant external torque gives the exact filter, whatever the step h:

.. math::

    r_{k+1} = e^{-K_O h} r_k
        + \frac{1 - e^{-K_O h}}{h} \left( p_{k+1} - p_k - h \bar\beta \right)

with :math:`\bar\beta` the mean of both ends but for the torque. It is stable for every gain and
step. The torque that acts follows the commands with a lag of first order, the dead time: over the
time of the filter a lag and a delay of the same length are the same.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.control import layout
from rnea_control.control.laws import Robot
from rnea_control.dynamics.energy_and_momentum import momentum_passes
from rnea_control.dynamics.friction import friction_torque
from rnea_control.jit.inlining import inlined

LONGEST_GAP = 0.1  # the observer starts anew after a longer gap between states [s]


@inlined
def observe(robot: Robot, settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> float:
    """Brings the rows of the residual up to date with a state that was measured at time `t` and
    answered by row COMMAND.

    After a stamp that runs backward or jumps, or a residual that is not finite, the observer starts
    anew. Performs no allocation.

    Args:
        robot: the bodies of the model, memory and matrix of a workspace; these are overwritten.
        settings, state: see layout.py.
        t: time of the measurement [s].
        q, v: measured positions and velocities, finite, shape (nv,), [rad] or [m], and per second.

    Returns:
        The time since the last observed state [s]; 0 for the same stamp, NaN where it starts anew.
    """
    h = t - state[layout.OBSERVED_AT, 0]
    if h == 0.0:
        return h
    bodies, memory, _ = robot
    momentum, rate = state[layout.NEXT_MOMENTUM], state[layout.NEXT_RATE]
    gravity_share = 1.0 - settings[layout.HARDWARE_ADDS_GRAVITY, 0]
    momentum_passes(bodies, memory, q, v, gravity_share, momentum, rate)
    goes_on = 0.0 < h <= LONGEST_GAP
    filtered, lag, lag_left = 0.0, 0.0, 0.0
    if goes_on:
        filtered = -math.expm1(-settings[layout.OBSERVER_GAIN, 0] * h)
        dead_time = settings[layout.DEAD_TIME, 0]
        if dead_time > 0.0:
            lag_left = math.exp(-h / dead_time)
            lag = dead_time / h * (1.0 - lag_left)
    friction = settings[layout.FRICTION : layout.FRICTION + 3]
    finite = True
    for j in range(q.shape[0]):
        rate[j] -= friction_torque(friction, v, j)
        command = state[layout.LAST_COMMAND, j]
        if goes_on:
            behind = state[layout.ACTING_TORQUE, j] - command
            acting = command + lag * behind
            state[layout.ACTING_TORQUE, j] = command + lag_left * behind
            own = acting + 0.5 * (state[layout.MOMENTUM_RATE, j] + rate[j])
            seen = (momentum[j] - state[layout.MOMENTUM, j]) / h - own
            state[layout.RESIDUAL, j] += filtered * (seen - state[layout.RESIDUAL, j])
            before = state[layout.FILTERED_COMMAND, j]
            state[layout.FILTERED_COMMAND, j] += filtered * (acting - before)
        else:
            state[layout.RESIDUAL, j] = 0.0
            state[layout.ACTING_TORQUE, j] = state[layout.COMMAND, j]
            state[layout.FILTERED_COMMAND, j] = state[layout.COMMAND, j]
        state[layout.MOMENTUM, j], state[layout.MOMENTUM_RATE, j] = momentum[j], rate[j]
        state[layout.LAST_COMMAND, j] = state[layout.COMMAND, j]
        finite &= math.isfinite(state[layout.RESIDUAL, j] + momentum[j] + rate[j])
    state[layout.OBSERVED_AT, 0] = t if finite else math.nan
    if not finite:
        state[layout.RESIDUAL, :] = 0.0
        return math.nan
    return h if goes_on else math.nan


@inlined
def start_anew(state: Matrix) -> None:
    """Forgets all states: the next one starts with a residual of 0."""
    state[layout.OBSERVED_AT, 0] = math.nan
