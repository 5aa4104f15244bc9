"""One control step as one compiled call: whether the state can be true, sample, feedback, law,
output stage, checks.

A measured state can be true if it is finite, not further from the last one than the arm moves, and
not where it was while its own velocities say that it moves. A position that no motion leads to does
not become true by lasting: what goes on from it is not believed either, until the states come back
to where a motion leads, or an operator says so.
"""

from __future__ import annotations

import math

from rnea_control.array_types import IntVector, Matrix, Vector
from rnea_control.control import laws, layout, output_stage
from rnea_control.control.motion import check, violated
from rnea_control.control.path import advance_scaling, path_of, robot_of, scale
from rnea_control.control.trajectory import sample
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel

# How much further than its velocity allows a joint may seem to move from state to state: as a
# factor, and on top for coarse sensors and stamps, [rad] or [m].
JUMP_FACTOR, JUMP_SLACK = 2.0, 0.05
# How far a joint moves by its measured velocity before positions that stand still are not believed,
# [rad] or [m]: more than the coarsest encoder resolves.
LONGEST_STANDSTILL = 0.02
# An arm moves that is faster than this, and is not only measured with noise, [rad/s] or [m/s].
MOVING = 0.05
# A gap between ticks longer than this counts as this long for the integral, [s].
LONGEST_INTEGRATION_STEP = 0.1
# A joint shakes when its velocity error, beyond this part of the velocity limit, has changed sides
# so often; so many changes a second are forgotten.
SHAKING_SPEED, MOST_REVERSALS, FORGOTTEN_REVERSALS = 0.2, 10.0, 4.0

# The result of a step: whether a torque was clamped, plus FOUND times what was found, as in
# layout.py; or, from BAD_STATE on, the fault of the state.
SATURATED, FOUND = 1, 2
BAD_STATE, BAD_JUMP, FROZEN, BAD_SIZE, BAD_TORQUE, NO_TRAJECTORY = range(16, 22)


@inlined
def is_finite(t: float, q: Vector, v: Vector) -> bool:
    """Whether all of a state is finite."""
    finite = math.isfinite(t)
    for j in range(q.shape[0]):
        finite &= math.isfinite(q[j]) & math.isfinite(v[j])
    return finite


@inlined
def jumping_joint(settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> int:
    """The first joint that is further from the last believed state than it can have moved, or that
    goes on from one that was not believed; -1 for none.

    It can move at its velocity limit, or as fast as either state says: an arm that falls is faster
    than its limit. From a state that was not believed it goes on as fast as it says.
    """
    dt = t - state[layout.LAST_MEASURED, 0]
    if settings[layout.CHECK_JUMPS, 0] == 0.0 or not dt >= 0.0:
        return -1
    since = t - state[layout.DOUBTED_AT, 0]
    jumping, goes_on = -1, since >= 0.0
    for j in range(q.shape[0]):
        speed = max(abs(v[j]), abs(state[layout.LAST_VELOCITY, j]))
        speed = max(speed, settings[layout.STATE_VELOCITY_LIMIT, j])
        moved = abs(laws.shortest_way(settings, j, q[j] - state[layout.LAST_POSITION, j]))
        if jumping < 0 and moved > JUMP_SLACK + JUMP_FACTOR * speed * dt:
            jumping = j
        moved = abs(laws.shortest_way(settings, j, q[j] - state[layout.DOUBTED_POSITION, j]))
        goes_on &= moved <= JUMP_SLACK + JUMP_FACTOR * abs(v[j]) * since
    if jumping < 0 and goes_on:
        jumping = int(state[layout.JUMPING_JOINT, 0])
    if jumping >= 0:
        state[layout.JUMPING_JOINT, 0] = jumping
        state[layout.DOUBTED_AT, 0] = t
        for j in range(q.shape[0]):
            state[layout.DOUBTED_POSITION, j] = q[j]
    return jumping


@inlined
def is_frozen(settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> bool:
    """Whether no position has changed for so long that a joint must have moved."""
    dt = t - state[layout.LAST_MEASURED, 0]
    if settings[layout.CHECK_JUMPS, 0] == 0.0 or not dt >= 0.0:
        return False
    moved, fastest = False, 0.0
    for j in range(q.shape[0]):
        moved |= q[j] != state[layout.LAST_POSITION, j]
        fastest = max(fastest, abs(v[j]))
    if moved or fastest < MOVING:
        state[layout.STANDSTILL, 0] = 0.0
        return False
    state[layout.STANDSTILL, 0] += fastest * dt
    return state[layout.STANDSTILL, 0] > LONGEST_STANDSTILL


@inlined
def remember(state: Matrix, t: float, q: Vector, v: Vector) -> None:
    """Keeps a believed state for the next check."""
    state[layout.LAST_MEASURED, 0] = t
    state[layout.DOUBTED_AT, 0] = state[layout.RESTS_SINCE, 0] = math.nan
    for j in range(q.shape[0]):
        state[layout.LAST_POSITION, j] = q[j]
        state[layout.LAST_VELOCITY, j] = v[j]


@inlined
def watch_rest(state: Matrix, t: float, v: Vector) -> None:
    """Keeps since when an arm that is only predicted has been at rest, at the end of its path."""
    rests = state[layout.LAST_TRAJECTORY_TIME, 0] >= state[layout.PATH_END, 0]
    for j in range(v.shape[0]):
        rests &= not abs(v[j]) > MOVING
    if not rests:
        state[layout.RESTS_SINCE, 0] = math.nan
    elif math.isnan(state[layout.RESTS_SINCE, 0]):
        state[layout.RESTS_SINCE, 0] = t


@inlined
def _shaken(settings: Matrix, state: Matrix, dt: float) -> bool:
    """Whether a joint swings to and fro about its desired motion; which, in `state`."""
    shaken = False
    for j in range(settings.shape[1]):
        fast = SHAKING_SPEED * settings[layout.STATE_VELOCITY_LIMIT, j]
        error = state[layout.VELOCITY_ERROR, j]
        count = max(state[layout.REVERSALS, j] - FORGOTTEN_REVERSALS * dt, 0.0)
        if abs(error) > fast:
            side = math.copysign(1.0, error)
            if side == -state[layout.SHAKEN_SIDE, j]:
                count += 1.0
            state[layout.SHAKEN_SIDE, j] = side
        if count > MOST_REVERSALS:
            shaken = True
            count = 0.0
            state[layout.VIOLATING_JOINT, 0] = j
        state[layout.REVERSALS, j] = count
    return shaken


SIGNATURE = "i8(i8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, f8[::1], f8[::1], f8[::1], b1)"


@kernel(SIGNATURE)
def step(
    n: IntVector,
    settings: Matrix,
    tolerances: Matrix,
    state: Matrix,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """Fills `tau`, but for a bad state or size; returns what was found, see above. Arguments are as
    of `advance`, but for `settings`: those in force."""
    if n[layout.SEGMENTS] == 0:
        return NO_TRAJECTORY
    nv = state.shape[1]
    if q.shape[0] != nv or v.shape[0] != nv or tau.shape[0] != nv:
        return BAD_SIZE
    if not predicted:
        if not is_finite(t, q, v):
            return BAD_STATE
        if jumping_joint(settings, state, t, q, v) >= 0:
            return BAD_JUMP
        frozen = is_frozen(settings, state, t, q, v)
        remember(state, t, q, v)
        if frozen:
            return FROZEN
    dt = max(t - state[layout.LAST_TIME, 0], 0.0)
    advance_scaling(state, dt, predicted)
    # After a prediction the states' stamps may be a little behind: trajectory time waits for them.
    ahead = settings[layout.DEAD_TIME, 0] * state[layout.SCALING, 0]
    s = max(t + ahead - state[layout.BEHIND, 0], state[layout.LAST_TRAJECTORY_TIME, 0])
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = s
    starts, coefficients = path_of(n, nv)
    segment = int(state[layout.SEGMENT, 0])
    state[layout.SEGMENT, 0] = sample(starts, coefficients, segment, s, 0.0, state)
    scale(state)
    if predicted:
        laws.predict_state(settings, state, q, v, dt)
        watch_rest(state, t, v)
    else:
        laws.update_feedback(settings, state, q, v, min(dt, LONGEST_INTEGRATION_STEP))
        q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
    limited = output_stage.limit_acceleration(settings, state, q, v, dt)
    robot = robot_of(n, nv)
    laws.control_torque(robot, settings, state, q, v, predicted)
    if limited:
        output_stage.add_limit_torques(robot, settings, state, q, v, dt)
    output_stage.blend(settings, state, t)
    finite = output_stage.torques_are_finite(state)
    if limited or not finite:
        laws.gravity_torque(robot, settings, state, q)
        output_stage.fall_back(settings, state, v)
    saturated, pressed = output_stage.output_stage(settings, state, dt, tau)
    if not finite:
        return BAD_TORQUE
    found = layout.UNDER_WAY
    if not predicted:
        if n[layout.MOTION] != 0:
            found = check(tolerances, state, s)
        if found in (layout.UNDER_WAY, layout.REACHED):
            # A goal without tolerances is not reached by an arm that is held elsewhere.
            if violated(state, settings, layout.MAX_POSITION_ERROR, 1):
                found = layout.TORN_AWAY
            elif pressed:
                found = layout.PRESSED
        if state[layout.GUIDED, 0] == 0.0 and _shaken(settings, state, dt):
            found = layout.SHAKEN
    return int(saturated) + FOUND * found


# `jumping_joint` by itself, for a state that is not stepped.
doubt = kernel()(jumping_joint)
