"""Bounds of the motion that no healthy arm reaches, whatever it is told to do.

Each is a sign that the arm is not the one in the URDF, that a wire is crossed, or that somebody or
something acts on it. In this order; parts are those of each joint's velocity or effort limit:

1. **Positions against velocities**: what a joint has moved by its positions, and by its velocities.
2. **Velocity**, beyond its limit.
3. **Velocity error**, smoothed.
4. **Driving torque**: an external torque (momentum_observer.py) that acts along the motion.
5. **Driving power**: the same of all joints together.
6. **Contact torque**: an external torque against the desired motion that has grown since the joint
   began to slide that way, so that friction is none, up to half of the effort limit.
7. **External torque**, in any direction, beyond the threshold of a joint.

Those of an external torque, from 4 on, must be violated by two states in a row, as one wrong
velocity looks like a large torque. They need the model: a law without one does not have them. A
violation begins an arrest (arrest.py).
"""

from __future__ import annotations

import math

from rnea_control.array_types import IntVector, Matrix, Vector
from rnea_control.control import arrest, layout, momentum_observer, unrest
from rnea_control.control.laws import MODEL_OF, NO_MODEL, robot_of, shortest_way
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import array_at

# Values of the number WATCH.
UNWATCHED = 0  # nobody applies the torques, or the controller has not started
FREE = 1  # all bounds
STOPPED = 2  # emergency stop or fault: the arm may be pushed, and is not blocked by holding

SMOOTHING = 0.005  # time constant of the velocity error [s]
RATE_SMOOTHING = 0.01  # time constant of the velocity by positions [s]
MEMORY = 0.1  # time over which positions and velocities are compared [s]
CONTRADICTION = 0.02  # difference of the two that is too much, at most [rad] or [m]
CONTRADICTING_SHARE = 0.1  # the same, as a part of what the fastest motion covers in that time
GAP_MARGIN = 4.0  # standard deviations of the noise of that difference that it may be off
LONGEST_STEP = 0.05  # velocities are not integrated over a longer gap between states [s]
LASTING = 0.015  # time that a contradiction must last, and in more than one state [s]
FASTEST_CONTRADICTION = 2.0  # speed beyond which positions and velocities cannot differ
MOVING = 0.02  # speed above which a joint is driven along its motion
HAND_FACTOR = 2.0  # factor of the driving torque that a guiding hand may apply
SETTLING = 0.15  # time in which the residual of a sliding joint settles [s]
FRICTION_DRIFT = 1.0  # rate at which the settled residual follows [1/s]
GROWTH = 0.6  # part of the contact torque that must have grown since
UNKNOWN_NOISE = 0.1  # noise that is not measured yet, as a part of the velocity limit
RESIDUAL_MARGIN = 4.0  # standard deviations of its noise that a residual may be off
UNSETTLED = 2.0  # factor of the contact torque before the residual has settled


@inlined
def _follow(settings: Matrix, state: Matrix, h: float, q: Vector, v: Vector) -> None:
    """Updates the rows that bounds read, `h` [s] after the last state; NaN starts anew."""
    starts = not h > 0.0
    smooth = rate_smooth = 1.0
    if not starts:
        smooth, rate_smooth = -math.expm1(-h / SMOOTHING), -math.expm1(-h / RATE_SMOOTHING)
    left = math.exp(-h / MEMORY) if 0.0 < h <= LONGEST_STEP else 0.0
    for j in range(q.shape[0]):
        change = shortest_way(settings, j, q[j] - state[layout.WATCHED_POSITION, j])
        by_velocity = 0.5 * h * (v[j] + state[layout.WATCHED_VELOCITY, j])
        state[layout.WATCHED_POSITION, j], state[layout.WATCHED_VELOCITY, j] = q[j], v[j]
        error = state[layout.VELOCITY_ERROR, j]
        if starts:
            state[layout.CONTRADICTING_FOR, j] = 0.0
            state[layout.SMOOTH_VELOCITY_ERROR, j] = error
            state[layout.POSITION_RATE, j] = v[j]
            state[layout.MOVED_BY_POSITION, j] = state[layout.MOVED_BY_VELOCITY, j] = 0.0
        else:
            before = state[layout.SMOOTH_VELOCITY_ERROR, j]
            state[layout.SMOOTH_VELOCITY_ERROR, j] = before + smooth * (error - before)
            before = state[layout.POSITION_RATE, j]
            state[layout.POSITION_RATE, j] = before + rate_smooth * (change / h - before)
            # One position that is far off contradicts by no more than the arm can move.
            most = FASTEST_CONTRADICTION * settings[layout.REFERENCE_SPEED, j] * h
            moved = min(max(change, by_velocity - most), by_velocity + most)
            before = state[layout.MOVED_BY_POSITION, j]
            state[layout.MOVED_BY_POSITION, j] = left * (before + moved)
            before = state[layout.MOVED_BY_VELOCITY, j]
            state[layout.MOVED_BY_VELOCITY, j] = left * (before + by_velocity)
            state[layout.CONTRADICTING_FOR, j] = _contradicting_for(settings, state, h, j)
        _slide(settings, state, h, j)


@inlined
def _contradicting_for(settings: Matrix, state: Matrix, h: float, j: int) -> float:
    """For how long positions and velocities of joint j have contradicted each other [s]."""
    gap = abs(state[layout.MOVED_BY_POSITION, j] - state[layout.MOVED_BY_VELOCITY, j])
    most = CONTRADICTING_SHARE * MEMORY * settings[layout.REFERENCE_SPEED, j]
    noise = state[layout.VELOCITY_NOISE, j]
    # Noise of independent velocities adds up to this over the time of the memory.
    off = 0.0 if math.isnan(noise) else noise * math.sqrt(0.5 * h * MEMORY)
    if not gap > min(most, CONTRADICTION) + GAP_MARGIN * off:
        return 0.0
    lasted = state[layout.CONTRADICTING_FOR, j]
    return lasted + (h if lasted > 0.0 else min(h, LASTING))


@inlined
def _slide(settings: Matrix, state: Matrix, h: float, j: int) -> None:
    """Keeps which way joint j is desired to slide, whether it does, and the residual then."""
    least = MOVING * settings[layout.REFERENCE_SPEED, j]
    desired, way = state[layout.DESIRED_VELOCITY, j], 0.0
    if abs(desired) > least:
        way = math.copysign(1.0, desired)
    if way != state[layout.SLIDING_WAY, j] or not h > 0.0:
        state[layout.SLIDING_WAY, j], state[layout.SLIDING_FOR, j] = way, 0.0
    elif way * arrest.smooth_velocity(state, j) > least:
        state[layout.SLIDING_FOR, j] += h
    residual, settled = state[layout.RESIDUAL, j], state[layout.SLIDING_RESIDUAL, j]
    if state[layout.SLIDING_FOR, j] > SETTLING:
        settled += -math.expm1(-FRICTION_DRIFT * h) * (residual - settled)
    else:
        settled = residual
    state[layout.SLIDING_RESIDUAL, j] = settled


@inlined
def _record(n: IntVector, state: Matrix, t: float, q: Vector, v: Vector) -> None:
    """Keeps a state and the command that answers it."""
    nv = q.shape[0]
    rows = array_at(n[layout.RECORD_AT], (layout.RECORD_ROWS, 1 + 3 * nv))
    row = rows[n[layout.RECORDED] % layout.RECORD_ROWS]
    row[layout.RECORD_TIME] = t
    for j in range(nv):
        row[layout.RECORD_STATE + j] = q[j]
        row[layout.RECORD_STATE + nv + j] = v[j]
        row[layout.RECORD_STATE + 2 * nv + j] = state[layout.COMMAND, j]
    n[layout.RECORDED] += 1


@inlined
def _note(state: Matrix, j: int, value: float, bound: float) -> None:
    """Writes which bound was violated, where, and by how much."""
    state[layout.VIOLATING_JOINT, 0] = j
    state[layout.VIOLATION, 0] = value
    state[layout.VIOLATED_TOLERANCE, 0] = bound
    for k in range(state.shape[1]):
        state[layout.FOUND_RESIDUAL, k] = state[layout.RESIDUAL, k]
        state[layout.FOUND_COMMAND, k] = state[layout.FILTERED_COMMAND, k]


@inlined
def _contradicted(state: Matrix) -> bool:
    """Bound 1."""
    for j in range(state.shape[1]):
        if state[layout.CONTRADICTING_FOR, j] > LASTING:
            moved = state[layout.MOVED_BY_POSITION, j]
            _note(state, j, moved, state[layout.MOVED_BY_VELOCITY, j])
            return True
    return False


@inlined
def _unmodeled(settings: Matrix, state: Matrix) -> int:
    """Bounds 2 and 3, without a model."""
    for j in range(state.shape[1]):
        reference = settings[layout.REFERENCE_SPEED, j]
        margin = arrest.noise_margin(state, j, UNKNOWN_NOISE * reference)
        velocity = arrest.smooth_velocity(state, j)
        bound = settings[layout.MAX_VELOCITY, 0] * reference
        if abs(velocity) > bound + margin:
            _note(state, j, velocity, bound)
            return layout.TOO_FAST
        error = state[layout.SMOOTH_VELOCITY_ERROR, j]
        bound = settings[layout.MAX_VELOCITY_ERROR, 0] * reference
        if abs(error) > bound + margin:
            _note(state, j, error, bound)
            return layout.RUNAWAY
    return layout.UNDER_WAY


@inlined
def _surely(state: Matrix, j: int) -> float:
    """What of the residual of joint j is more than noise, [Nm] or [N]."""
    residual, noise = state[layout.RESIDUAL, j], state[layout.RESIDUAL_NOISE, j]
    margin = 0.0 if math.isnan(noise) else RESIDUAL_MARGIN * noise
    return math.copysign(max(abs(residual) - margin, 0.0), residual)


@inlined
def _driven(settings: Matrix, state: Matrix, guided: bool) -> int:
    """Bounds 4 and 5: something drives the arm."""
    power, strongest, most = 0.0, 0, 0.0
    factor = HAND_FACTOR if guided else 1.0
    for j in range(state.shape[1]):
        residual = _surely(state, j)
        velocity = arrest.smooth_velocity(state, j)
        part = residual * velocity
        power += part
        if part > most:
            strongest, most = j, part
        bound = factor * settings[layout.MAX_DRIVING_TORQUE, 0] * settings[layout.EFFORT_LIMIT, j]
        moves = abs(velocity) > MOVING * settings[layout.REFERENCE_SPEED, j]
        if moves and part > 0.0 and abs(residual) > bound:
            _note(state, j, residual, bound)
            return layout.DRIVEN
    if not guided and power > settings[layout.MAX_DRIVING_POWER, 0]:
        _note(state, strongest, power, settings[layout.MAX_DRIVING_POWER, 0])
        return layout.POWERED
    return layout.UNDER_WAY


@inlined
def _touched(settings: Matrix, state: Matrix) -> int:
    """Bounds 6 and 7: something is in the way of the arm, or acts on it in any direction."""
    for j in range(state.shape[1]):
        residual, way = _surely(state, j), state[layout.SLIDING_WAY, j]
        bound = settings[layout.MAX_CONTACT_TORQUE, 0] * settings[layout.EFFORT_LIMIT, j]
        against, grown = -way * residual, -way * (residual - state[layout.SLIDING_RESIDUAL, j])
        if state[layout.SLIDING_FOR, j] <= SETTLING:
            against, grown = against / UNSETTLED, bound
        if against > bound and grown >= GROWTH * bound:
            _note(state, j, residual, bound)
            return layout.BLOCKED
        residual, bound = state[layout.RESIDUAL, j], settings[layout.MAX_EXTERNAL_TORQUE, j]
        if abs(residual) > bound:
            _note(state, j, residual, bound)
            return layout.COLLIDED
    return layout.UNDER_WAY


@inlined
def _violated(n: IntVector, settings: Matrix, state: Matrix) -> int:
    """The first bound that is violated, as a kind of finding."""
    if _contradicted(state):
        return layout.CONTRADICTED
    found = _unmodeled(settings, state)
    if found != layout.UNDER_WAY or MODEL_OF[int(settings[layout.LAW, 0])] == NO_MODEL:
        return found
    guided = state[layout.GUIDED, 0] != 0.0
    found = _driven(settings, state, guided)
    if found == layout.UNDER_WAY and n[layout.WATCH] == FREE and not guided:
        found = _touched(settings, state)
    suspected, n[layout.SUSPECTED] = n[layout.SUSPECTED], int(found != layout.UNDER_WAY)
    return found if suspected else layout.UNDER_WAY


@kernel()
def watch(n: IntVector, settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> int:
    """Checks the motion after the step for a measured state. Performs no allocation.

    Args:
        n, settings, state: see layout.py; the settings are those in force.
        t, q, v: time [s], positions and velocities of the state, shape (nv,).

    Returns:
        UNDER_WAY, or the kind of what was found: a violated bound, with which an arrest has begun,
        LET_GO, RESTLESS or CALM.
    """
    h = momentum_observer.observe(robot_of(n, state.shape[1]), settings, state, t, q, v)
    if h == 0.0:
        return layout.UNDER_WAY
    _follow(settings, state, h, q, v)
    if n[layout.POWERLESS] == 0:
        _record(n, state, t, q, v)
    if n[layout.WATCH] == UNWATCHED or n[layout.POWERLESS] != 0:
        state[layout.BRAKED_SINCE, 0] = math.nan
        return layout.UNDER_WAY
    unresting = unrest.find_unrest(n, settings, state, h, v)
    if not math.isnan(state[layout.BRAKED_SINCE, 0]):
        helps = arrest.helps(settings, state, t)
        return layout.UNDER_WAY if helps else layout.LET_GO
    found = _violated(n, settings, state)
    if found not in (layout.UNDER_WAY, layout.BLOCKED):
        arrest.begin(settings, state, t)
        if n[layout.WATCH] == STOPPED:
            return layout.UNDER_WAY  # it brakes already
    return unresting if found == layout.UNDER_WAY else found


@inlined
def start_anew(state: Matrix) -> None:
    """Forgets all states and an arrest."""
    momentum_observer.start_anew(state)
    state[layout.BRAKED_SINCE, 0] = math.nan
    state[layout.FEEDBACK_SHARE, 0] = 1.0
    state[layout.VELOCITY_NOISE, :] = state[layout.RESIDUAL_NOISE, :] = math.nan
