"""Bounds of the motion that no healthy arm reaches, whatever its commands.

A violation is a sign that the arm is not the one in the URDF, that a wire is crossed, or that a
person or an object acts on the arm. The bounds are checked in this order; parts are those of each
joint's velocity or effort limit:

1. **Positions against velocities**: distances of a joint by its positions, and by its velocities.
2. **Velocity**, beyond its limit.
3. **Velocity error**, smoothed.
4. **Driving torque**: an external torque (momentum_observer.py) that acts along the motion.
5. **Driving power**: the power of the external torques of all joints together.
6. **Contact torque**: an external torque against the desired motion that has grown since the joint
   began to slide that way, so that friction is excluded, up to half of the effort limit.
7. **External torque**, in any direction, beyond the threshold of a joint.

Where a payload that the model lacks explains the external torques (unmodeled_payload.py), the
bounds 4 to 6 are for the rest.

While a law of task space is in force, the tip yields to a push: bound 4 leaves room for the largest
wrench of `task_max_force`, and the bounds 3, 5 and 6 do not apply.

The bounds of an external torque, from 4 on, must be violated in two successive states, as one wrong
velocity looks like a large torque. They need the model: a law without a model does not have them. A
violation begins an arrest (arrest.py).
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control import (
    arrest,
    disturbance_observer,
    layout,
    momentum_observer,
    task_space,
    unmodeled_payload,
    unrest,
)
from rnea_control.control.feedback import shortest_way
from rnea_control.control.laws import uses_model, yields, yields_at_tip
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.robot import robot_of
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import array_at

# Values of `Arm.watch`.
UNWATCHED = 0  # no subscriber applies the torques, or the controller has not started
FREE = 1  # all bounds
STOPPED = 2  # emergency stop or fault: the arm may be pushed, and is not blocked by holding

SMOOTHING = 0.005  # time constant of the velocity error [s]
RATE_SMOOTHING = 0.01  # time constant of the velocity by positions [s]
MEMORY = 0.1  # time over which positions and velocities are compared [s]
CONTRADICTION = 0.02  # largest difference of the two distances [rad] or [m]
CONTRADICTING_SHARE = 0.1  # the same, as a part of the distance of the fastest motion in that time
GAP_MARGIN = 4.0  # standard deviations of the difference's noise that are added to its bound
LONGEST_STEP = 0.05  # velocities are not integrated over a longer gap between states [s]
LASTING = 0.015  # time that a contradiction must last, and in more than one state [s]
FASTEST_CONTRADICTION = 2.0  # speed beyond which positions and velocities cannot differ
MOVING = 0.02  # speed above which a joint is driven along its motion
HAND_FACTOR = 2.0  # factor of the driving torque that a guiding hand may apply
SETTLING = 0.15  # time in which the residual of a sliding joint settles [s]
FRICTION_DRIFT = 1.0  # rate at which the settled residual follows [1/s]
GROWTH = 0.6  # part of the contact torque that must have grown since the joint began to slide
UNKNOWN_NOISE = 0.1  # noise that is not measured yet, as a part of the velocity limit
RESIDUAL_MARGIN = 4.0  # standard deviations of its noise that a residual may be off
UNSETTLED = 2.0  # factor of the contact torque before the residual has settled


@inlined
def _follow(settings: Settings, state: State, h: float, q: Vector, v: Vector) -> None:
    """Updates the rows for the bounds, `h` [s] after the last state; NaN starts anew."""
    starts = not h > 0.0
    smooth = rate_smooth = 1.0
    if not starts:
        smooth, rate_smooth = -math.expm1(-h / SMOOTHING), -math.expm1(-h / RATE_SMOOTHING)
    left = math.exp(-h / MEMORY) if 0.0 < h <= LONGEST_STEP else 0.0
    for j in range(q.shape[0]):
        change = shortest_way(settings, j, q[j] - state.watched_position[j])
        by_velocity = 0.5 * h * (v[j] + state.watched_velocity[j])
        state.watched_position[j], state.watched_velocity[j] = q[j], v[j]
        error = state.velocity_error[j]
        if starts:
            state.contradicting_for[j] = 0.0
            state.smooth_velocity_error[j] = error
            state.position_rate[j] = v[j]
            state.moved_by_position[j] = state.moved_by_velocity[j] = 0.0
        else:
            before = state.smooth_velocity_error[j]
            state.smooth_velocity_error[j] = before + smooth * (error - before)
            before = state.position_rate[j]
            state.position_rate[j] = before + rate_smooth * (change / h - before)
            # One position that is far off contradicts by no more than the arm can move.
            most = FASTEST_CONTRADICTION * settings.reference_speed[j] * h
            moved = min(max(change, by_velocity - most), by_velocity + most)
            before = state.moved_by_position[j]
            state.moved_by_position[j] = left * (before + moved)
            before = state.moved_by_velocity[j]
            state.moved_by_velocity[j] = left * (before + by_velocity)
            state.contradicting_for[j] = _contradicting_for(settings, state, h, j)
        _slide(settings, state, h, j)


@inlined
def _contradicting_for(settings: Settings, state: State, h: float, j: int) -> float:
    """For how long positions and velocities of joint j have contradicted each other [s]."""
    gap = abs(state.moved_by_position[j] - state.moved_by_velocity[j])
    most = CONTRADICTING_SHARE * MEMORY * settings.reference_speed[j]
    noise = state.velocity_noise[j]
    # Noise of independent velocities adds up to this over the time of the memory.
    off = 0.0 if math.isnan(noise) else noise * math.sqrt(0.5 * h * MEMORY)
    if not gap > min(most, CONTRADICTION) + GAP_MARGIN * off:
        return 0.0
    lasted = state.contradicting_for[j]
    return lasted + (h if lasted > 0.0 else min(h, LASTING))


@inlined
def _slide(settings: Settings, state: State, h: float, j: int) -> None:
    """Updates the direction in which joint j is desired to slide, the time for which it has slid,
    and its residual then."""
    least = MOVING * settings.reference_speed[j]
    desired, way = state.desired_velocity[j], 0.0
    if abs(desired) > least:
        way = math.copysign(1.0, desired)
    if way != state.sliding_way[j] or not h > 0.0:
        state.sliding_way[j], state.sliding_for[j] = way, 0.0
    elif way * arrest.smooth_velocity(state, j) > least:
        state.sliding_for[j] += h
    residual, settled = state.residual[j], state.sliding_residual[j]
    if state.sliding_for[j] > SETTLING:
        settled += -math.expm1(-FRICTION_DRIFT * h) * (residual - settled)
    else:
        settled = residual
    state.sliding_residual[j] = settled


@inlined
def _record(arm: Arm, state: State, t: float, q: Vector, v: Vector) -> None:
    """Keeps a state and the command computed for it."""
    nv = q.shape[0]
    rows = array_at(arm.record_at, (layout.RECORD_ROWS, 1 + 3 * nv))
    row = rows[arm.recorded % layout.RECORD_ROWS]
    row[layout.RECORD_TIME] = t
    for j in range(nv):
        row[layout.RECORD_STATE + j] = q[j]
        row[layout.RECORD_STATE + nv + j] = v[j]
        row[layout.RECORD_STATE + 2 * nv + j] = state.command[j]
    arm.recorded += 1


@inlined
def _note(state: State, j: int, value: float, bound: float) -> None:
    """Writes the joint of a violated bound, the value and the bound."""
    state.violating_joint = j
    state.violation = value
    state.violated_tolerance = bound
    for k in range(state.shape[1]):
        state.found_residual[k] = state.residual[k]
        state.found_command[k] = state.filtered_command[k]


@inlined
def _contradicted(state: State) -> bool:
    """Checks bound 1."""
    for j in range(state.shape[1]):
        if state.contradicting_for[j] > LASTING:
            moved = state.moved_by_position[j]
            _note(state, j, moved, state.moved_by_velocity[j])
            return True
    return False


@inlined
def _unmodeled(settings: Settings, state: State) -> int:
    """Checks bounds 2 and 3, which need no model."""
    for j in range(state.shape[1]):
        reference = settings.reference_speed[j]
        margin = arrest.noise_margin(state, j, UNKNOWN_NOISE * reference)
        velocity = arrest.smooth_velocity(state, j)
        bound = settings.max_velocity * reference
        if abs(velocity) > bound + margin:
            _note(state, j, velocity, bound)
            return layout.TOO_FAST
        error = state.smooth_velocity_error[j]
        bound = settings.max_velocity_error * reference
        # A push moves a tip that yields; it moves within its velocity limit.
        if abs(error) > bound + margin and not yields_at_tip(settings, state):
            _note(state, j, error, bound)
            return layout.RUNAWAY
    return layout.UNDER_WAY


@inlined
def _explained(state: State, j: int) -> float:
    """Part of the residual of joint j that a payload explains, [Nm] or [N]."""
    weight = state.payload_weight[j]
    return min(max(state.residual[j], min(weight, 0.0)), max(weight, 0.0))


@inlined
def _surely(state: State, j: int) -> float:
    """Residual of joint j beyond what a payload explains and its noise, [Nm] or [N]."""
    residual, noise = state.residual[j] - _explained(state, j), state.residual_noise[j]
    margin = 0.0 if math.isnan(noise) else RESIDUAL_MARGIN * noise
    return math.copysign(max(abs(residual) - margin, 0.0), residual)


@inlined
def _note_torque(state: State, j: int, residual: float, bound: float) -> None:
    """Writes the external torque of joint j; `residual`: the part that no payload explains, which
    is beyond the bound."""
    explained = _explained(state, j)
    _note(state, j, residual + explained, bound + abs(explained))


@inlined
def _driven(settings: Settings, state: State, pushed: bool) -> int:
    """Checks bounds 4 and 5: something drives the arm."""
    power, strongest, most = 0.0, 0, 0.0
    factor = HAND_FACTOR if pushed else 1.0
    for j in range(state.shape[1]):
        residual = _surely(state, j)
        velocity = arrest.smooth_velocity(state, j)
        part = residual * velocity
        power += part
        if part > most:
            strongest, most = j, part
        bound = factor * settings.max_driving_torque * settings.effort_limit[j]
        if yields_at_tip(settings, state):
            bound += task_space.torque_of_largest_wrench(settings, state, j)
        moves = abs(velocity) > MOVING * settings.reference_speed[j]
        if moves and part > 0.0 and abs(residual) > bound:
            _note_torque(state, j, residual, bound)
            return layout.DRIVEN
    if not pushed and power > settings.max_driving_power:
        _note(state, strongest, power, settings.max_driving_power)
        return layout.POWERED
    return layout.UNDER_WAY


@inlined
def _touched(settings: Settings, state: State) -> int:
    """Checks bounds 6 and 7: something is in the way of the arm, or acts on it in any direction."""
    for j in range(state.shape[1]):
        residual, way = _surely(state, j), state.sliding_way[j]
        bound = settings.max_contact_torque * settings.effort_limit[j]
        against = -way * residual
        grown = -way * (residual + _explained(state, j) - state.sliding_residual[j])
        if state.sliding_for[j] <= SETTLING:
            against, grown = against / UNSETTLED, bound
        if against > bound and grown >= GROWTH * bound:
            _note_torque(state, j, residual, bound)
            return layout.BLOCKED
        residual, bound = state.residual[j], settings.max_external_torque[j]
        if abs(residual) > bound:
            _note(state, j, residual, bound)
            return layout.COLLIDED
    return layout.UNDER_WAY


@inlined
def _is_large(settings: Settings, state: State) -> bool:
    """True if external torques may violate a bound, so that they are to be explained."""
    least, power = min(settings.max_driving_torque, settings.max_contact_torque), 0.0
    for j in range(state.shape[1]):
        power += state.residual[j] * arrest.smooth_velocity(state, j)
        if abs(state.residual[j]) > least * settings.effort_limit[j]:
            return True
    return power > settings.max_driving_power


@inlined
def _violated(arm: Arm, settings: Settings, state: State, q: Vector) -> int:
    """The first bound that is violated, as a kind of finding."""
    if _contradicted(state):
        return layout.CONTRADICTED
    found = _unmodeled(settings, state)
    if found != layout.UNDER_WAY or not uses_model(settings, state):
        return found
    state.payload_weight[:] = 0.0
    if settings.unmodeled_payload > 0.0 and _is_large(settings, state):
        unmodeled_payload.explain(robot_of(arm, state.shape[1]), settings, state, q)
    pushed = yields(settings, state)
    found = _driven(settings, state, pushed)
    if found == layout.UNDER_WAY and arm.watch == FREE and not pushed:
        found = _touched(settings, state)
    suspected, arm.suspected = arm.suspected, found != layout.UNDER_WAY
    return found if suspected else layout.UNDER_WAY


@kernel()
def watch(arm: Arm, settings: Settings, state: State, t: float, q: Vector, v: Vector) -> int:
    """Checks the motion after the step for a measured state. Performs no allocation.

    Args:
        arm, settings, state: see layout.py; the settings are those in force.
        t, q, v: time [s], positions and velocities of the state, shape (nv,).

    Returns:
        UNDER_WAY, or the kind of the finding: a violated bound, with which an arrest has begun,
        LET_GO, RESTLESS or CALM.
    """
    h = momentum_observer.observe(robot_of(arm, state.shape[1]), settings, state, t, q, v)
    if h == 0.0:
        return layout.UNDER_WAY
    disturbance_observer.estimate(settings, state, h, q, arm.watch != FREE)
    _follow(settings, state, h, q, v)
    if not arm.powerless:
        _record(arm, state, t, q, v)
    if arm.watch == UNWATCHED or arm.powerless:
        state.braked_since = math.nan
        return layout.UNDER_WAY
    unresting = unrest.find_unrest(arm, settings, state, h, v)
    if not math.isnan(state.braked_since):
        helps = arrest.helps(settings, state, t)
        return layout.UNDER_WAY if helps else layout.LET_GO
    found = _violated(arm, settings, state, q)
    if found not in (layout.UNDER_WAY, layout.BLOCKED):
        arrest.begin(settings, state, t)
        if arm.watch == STOPPED:
            return layout.UNDER_WAY  # the arm brakes already
    return unresting if found == layout.UNDER_WAY else found


@inlined
def start_anew(state: State) -> None:
    """Forgets all states and an arrest."""
    momentum_observer.start_anew(state)
    disturbance_observer.start_anew(state)
    state.braked_since = math.nan
    state.feedback_share = 1.0
    state.velocity_noise[:] = state.residual_noise[:] = math.nan
