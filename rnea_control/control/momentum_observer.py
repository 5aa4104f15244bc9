r"""External joint torques without a force sensor, by the generalized momentum of the arm.

With the momentum p = M v, its rate of change without external torques is
:math:`\beta = \tau + C^T v - g` [dynamics/energy_and_momentum.py]. The residual

.. math::

    r = K_O \left( p - p(0) - \int (\beta + r) \, dt \right), \quad
    \dot r = K_O (\tau_{ext} - r)

follows the external torque as a first-order filter, joint by joint, without accelerations and
without an inverse of M [De Luca, Mattone 2005; De Luca et al. 2006]. Its cause is a collision, a
person, a torque that did not arrive as it was commanded, or an error of the model: other masses,
friction, a payload.

Discretized so that a constant external torque gives the exact filter, whatever the step h:

.. math::

    r_{k+1} = e^{-K_O h} r_k
        + \frac{1 - e^{-K_O h}}{h} \left( p_{k+1} - p_k - h \bar\beta \right)

with :math:`\bar\beta` the mean of both ends, except for the torque. The filter is stable for every
gain and step. The torque that acts follows the commands with a first-order lag of the dead time:
over the time of the filter a lag and a delay of the same length have the same effect.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.dynamics.energy_and_momentum import momentum_passes
from rnea_control.dynamics.friction import friction_torque
from rnea_control.jit.inlining import inlined

LONGEST_GAP = 0.1  # the observer starts anew after a longer gap between states [s]


@inlined
def observe(
    robot: Robot, settings: Settings, state: State, t: float, q: Vector, v: Vector
) -> float:
    """Brings the rows of the residual up to date with a state that was measured at time `t` and
    answered by `command`.

    After a stamp that runs backward or jumps, or a residual that is not finite, the observer starts
    anew. Performs no allocation.

    Args:
        robot: the model and its workspace, which is overwritten.
        settings, state: see layout.py.
        t: time of the measurement [s].
        q, v: measured positions and velocities, finite, shape (nv,), [rad] or [m], and per second.

    Returns:
        The time since the last observed state [s]; 0 for the same stamp, NaN where it starts anew.
    """
    h = t - state.observed_at
    if h == 0.0:
        return h
    bodies, memory = robot.bodies, robot.memory
    momentum, rate = state.next_momentum, state.next_rate
    gravity_share = 1.0 - settings.hardware_adds_gravity
    momentum_passes(bodies, memory, q, v, gravity_share, momentum, rate)
    goes_on = 0.0 < h <= LONGEST_GAP
    filtered, lag, lag_left = 0.0, 0.0, 0.0
    if goes_on:
        filtered = -math.expm1(-settings.observer_gain * h)
        dead_time = settings.dead_time
        if dead_time > 0.0:
            lag_left = math.exp(-h / dead_time)
            lag = dead_time / h * (1.0 - lag_left)
    friction = settings.friction
    finite = True
    for j in range(q.shape[0]):
        rate[j] -= friction_torque(friction, v, j)
        command = state.last_command[j]
        if goes_on:
            behind = state.acting_torque[j] - command
            acting = command + lag * behind
            state.acting_torque[j] = command + lag_left * behind
            own = acting + 0.5 * (state.momentum_rate[j] + rate[j])
            seen = (momentum[j] - state.momentum[j]) / h - own
            state.raw_residual[j] = seen
            state.residual[j] += filtered * (seen - state.residual[j])
            before = state.filtered_command[j]
            state.filtered_command[j] += filtered * (acting - before)
        else:
            state.residual[j] = 0.0
            state.acting_torque[j] = state.command[j]
            state.filtered_command[j] = state.command[j]
        state.momentum[j], state.momentum_rate[j] = momentum[j], rate[j]
        state.last_command[j] = state.command[j]
        finite &= math.isfinite(state.residual[j] + momentum[j] + rate[j])
    state.observed_at = t if finite else math.nan
    if not finite:
        state.residual[:] = 0.0
        return math.nan
    return h if goes_on else math.nan


@inlined
def start_anew(state: State) -> None:
    """Forgets all states: the next state starts with a residual of 0."""
    state.observed_at = math.nan
