r"""Compensation of what the arm does not do as its model says.

The torque that the model lacks or has too much of - wrong masses, a payload, friction, a rotor - is
what the momentum observer (momentum_observer.py) sees as a torque from outside. The estimate d of
it follows with a bandwidth K of its own, and the laws that hold positions take it off:

.. math::

    \dot d = K (\tau_{ext} - d), \quad |d| \le d_{max}, \quad \tau = \tau_{law} - d

So a constant or slow error of the model costs nothing [Ohnishi 1987; Chen et al. 2000]. The
estimate begins with zero, and fades where a push shall move the arm: under a hand, an impedance or
a planner's gains. It fades faster while the arm brakes by the model, without states: what friction
has needed would drive a joint on that rests. So it does while states are older than the delay for
which bandwidth and added inertia were judged (observer_margin.py), and the added inertia with it:
the loop might swing. It stays as it is while

- a torque is at its limit, a state is missing, or positions may be frozen (belief.py);
- the arm is stopped, and may be pushed;
- the joint is desired to rest, and is within `error_deadband` of its place.

A joint that stands although its estimate grows presses on something, or sticks: the estimate
changes by no more than `STANDING_SHARE` of the effort limit until it moves. A joint that shall rest
and is near its place would hunt about it if it sticks. The estimate of a free joint changes by no
more than it is off, tau_ext - d, and that of a joint that sticks is off by the same all the time:
it may change by little more than that. The zone that counts as near grows each time that the joint
slips to the other side of its place.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.laws import compensates_disturbance, gravity_torque
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.jit.inlining import inlined

FADING = 0.2  # time constant with which an estimate that is not wanted fades [s]
FADING_BLIND = 0.03  # the same while states are predicted or too old [s]
FAINT = 1e-9  # estimate that has faded [Nm] or [N]
LONGEST_GAP = 0.02  # longest time between two states that tells of disturbances [s]
STANDING_SHARE = 0.1  # change of the estimate of a standing joint, as a part of its effort limit
NEAR = 2e-3  # position error of a joint that is near its place [rad] or [m]
HUNTING = 1.5  # factor of it each time that the joint has slipped to the other side of its place
SURPLUS = 1.5  # change of its estimate while it stands, as a multiple of what that is off
MOVED = 5e-4  # distance after which a joint has moved, at least [rad] or [m]
FREE_SHARE = 0.25  # the same, as a part of the distance that a free joint would move
DOUBTED_STANDSTILL = 0.002  # `standstill` from which positions may be frozen [rad] or [m]
LEAST_GAP = 1e-6  # [Nm] or [N]


@inlined
def estimate(settings: Settings, state: State, h: float, q: Vector, frozen: bool) -> None:
    """Brings the estimates up to date, `h` [s] after the last state; NaN where the momentum
    observer starts anew.

    Args:
        settings, state: see layout.py.
        q: measured positions, shape (nv,), [rad] or [m].
        frozen: True while the arm may be pushed out of its place.
    """
    if not h > 0.0:
        return
    late = state.state_age > state.longest_age  # false for NaN
    doubted = state.standstill > DOUBTED_STANDSTILL
    _adapt_added_inertia(state, h, late)
    wanted = settings.disturbance_bandwidth != 0.0 and compensates_disturbance(settings, state)
    filtered = at_bandwidth = 0.0
    for j in range(q.shape[0]):
        bandwidth = state.bandwidth[j] * state.feedback_share
        if not wanted or bandwidth == 0.0:
            _fade(state, j, h, FADING)
            continue
        if late:
            _fade(state, j, h, FADING_BLIND)
            continue
        if frozen or doubted or h > LONGEST_GAP:
            continue
        before, limit = state.disturbance[j], settings.max_disturbance[j]
        if _has_moved(state, q[j], j):
            state.standing_position[j], state.standing_disturbance[j] = q[j], before
            state.standing_gap[j] = 0.0
        state.standing_gap[j] = max(state.standing_gap[j], abs(state.residual[j] - before))
        if state.saturated_since[j] > 0.0 or _rests_in_place(settings, state, j):
            continue
        if bandwidth != at_bandwidth:  # mostly that of the joint before
            filtered, at_bandwidth = -math.expm1(-bandwidth * h), bandwidth
        follows = before + filtered * (state.raw_residual[j] - before)
        slack, begin = STANDING_SHARE * settings.effort_limit[j], state.standing_disturbance[j]
        if _is_near(state, j):
            slack = min(slack, SURPLUS * state.standing_gap[j])
        follows = min(max(follows, min(begin - slack, before)), max(begin + slack, before))
        state.disturbance[j] = min(max(follows, -limit), limit)


@inlined
def _adapt_added_inertia(state: State, h: float, late: bool) -> None:
    """Fades the added inertia for `h` [s] if states are `late`, and brings it back if they are
    not."""
    share = 0.0 if late else 1.0
    if state.added_share != share:
        time = FADING_BLIND if late else FADING
        state.added_share = share + (state.added_share - share) * math.exp(-h / time)


@inlined
def _fade(state: State, j: int, h: float, time: float) -> None:
    """The estimate of joint j fades for `h` [s] with a time constant [s]."""
    faint = abs(state.disturbance[j]) < FAINT
    state.disturbance[j] *= 0.0 if faint else math.exp(-h / time)


@inlined
def fade_blind(state: State, h: float) -> None:
    """Fades the estimates for `h` [s] in which the states are predicted."""
    for j in range(state.shape[1]):
        _fade(state, j, h, FADING_BLIND)


@inlined
def _has_moved(state: State, position: float, j: int) -> bool:
    """True if joint j has moved since it stood, as far as the change of its estimate moves a joint
    that is free: the feedback is the torque that the estimate is off by, at the position error."""
    change = abs(state.disturbance[j] - state.standing_disturbance[j])
    compliance = abs(state.position_error[j]) / max(state.standing_gap[j], LEAST_GAP)
    least = max(MOVED, FREE_SHARE * change * compliance)
    return not abs(position - state.standing_position[j]) <= least


@inlined
def _should_rest(state: State, j: int) -> bool:
    """True if joint j is desired to rest."""
    return state.desired_velocity[j] == 0.0 and state.desired_acceleration[j] == 0.0


@inlined
def _rests_in_place(settings: Settings, state: State, j: int) -> bool:
    """True if joint j is desired to rest, and is within the deadband of its place."""
    return _should_rest(state, j) and abs(state.position_error[j]) < settings.error_deadband[j]


@inlined
def _is_near(state: State, j: int) -> bool:
    """True if joint j is desired to rest, and is near its place, or hunts about it."""
    if not _should_rest(state, j):
        state.resting_side[j], state.near[j] = 0.0, NEAR
        return False
    error = state.position_error[j]
    if abs(error) > state.near[j]:
        side = math.copysign(1.0, error)
        if side == -state.resting_side[j]:
            state.near[j] *= HUNTING
        state.resting_side[j] = side
    return abs(error) < state.near[j]


@inlined
def change_model(before: Robot, after: Robot, settings: Settings, state: State) -> None:
    """Takes out of the estimates what the model has just been told and they carry already, such as
    a payload."""
    q = state.last_position
    gravity_torque(before, settings, state, q)
    for j in range(q.shape[0]):
        state.compensation[j] = state.gravity_torque[j]
    gravity_torque(after, settings, state, q)
    for j in range(q.shape[0]):
        left = state.disturbance[j] + state.gravity_torque[j] - state.compensation[j]
        if abs(left) < abs(state.disturbance[j]):
            state.disturbance[j] = left
            state.standing_disturbance[j] = left


@inlined
def start_anew(state: State) -> None:
    """Forgets the estimates."""
    state.disturbance[:] = 0.0
    state.standing_disturbance[:] = 0.0
    state.standing_position[:] = math.nan
    state.added_share = 1.0
    state.resting_side[:] = 0.0
    state.near[:] = NEAR
