"""One control step as one compiled call: sample, feedback, law, output stage, checks."""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.laws import (
    control_torque,
    gravity_torque,
    predict_state,
    update_feedback,
)
from rnea_control.control.output_stage import (
    add_limit_torques,
    blend,
    fall_back,
    limit_acceleration,
    output_stage,
    torques_are_finite,
)
from rnea_control.control.path import advance_scaling, scale
from rnea_control.control.state_check import (
    is_finite,
    is_frozen,
    jumping_joint,
    remember,
    watch_rest,
)
from rnea_control.control.tolerances import REACHED, UNDER_WAY, check
from rnea_control.control.trajectory import sample
from rnea_control.dynamics.body import velocity_count
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel

# A gap between ticks longer than this counts as this long for the integral, [s].
LONGEST_INTEGRATION_STEP = 0.1
# A joint shakes when its velocity error, beyond this part of the velocity limit, has changed sides
# so often; so many changes a second are forgotten.
SHAKING_SPEED, MOST_REVERSALS, FORGOTTEN_REVERSALS = 0.2, 10.0, 4.0

# The result of a step: whether a torque was clamped, plus FOUND times the finding of tolerances.py
# or one of these; or, from BAD_STATE on, the fault of the state.
SATURATED, FOUND = 1, 2
TORN_AWAY, PRESSED, SHAKEN = 4, 5, 6
BAD_STATE, BAD_JUMP, FROZEN, BAD_SIZE, BAD_TORQUE, NO_TRAJECTORY = range(16, 22)


@inlined
def _torn_away(settings: FloatArray, state: FloatArray) -> bool:
    """Whether a joint is further from where it should be than allowed; which, in `state`."""
    torn, worst = False, 1.0
    for j in range(settings.shape[1]):
        bound = settings[layout.MAX_POSITION_ERROR, j]
        error = abs(state[layout.POSITION_ERROR, j])
        if not error <= worst * bound:  # NaN is not within
            torn, worst = True, error / bound
            state[layout.VIOLATING_JOINT, 0] = j
            state[layout.VIOLATING_QUANTITY, 0] = 0.0
            state[layout.VIOLATION, 0] = error
            state[layout.VIOLATED_TOLERANCE, 0] = bound
    return torn


@inlined
def _shaken(settings: FloatArray, state: FloatArray, dt: float) -> bool:
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


SIGNATURE = (
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
    "f8, f8[::1], f8[::1], f8[::1], b1)"
)


@kernel(SIGNATURE)
def step(
    bodies: FloatArray,
    memory: FloatArray,
    matrix: FloatArray,
    starts: FloatArray,
    coefficients: FloatArray,
    settings: FloatArray,
    tolerances: FloatArray,
    state: FloatArray,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    predicted: bool,
) -> int:
    """Fills `tau`, but for a bad state or size. A predicted state is filled into `q` and `v`."""
    nv = velocity_count(bodies)
    if q.shape[0] != nv or v.shape[0] != nv or tau.shape[0] != nv or coefficients.shape[1] != nv:
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
    segment = int(state[layout.SEGMENT, 0])
    state[layout.SEGMENT, 0] = sample(starts, coefficients, segment, s, state)
    scale(state)
    if predicted:
        predict_state(settings, state, q, v, dt)
        watch_rest(state, t, v)
    else:
        update_feedback(settings, state, q, v, min(dt, LONGEST_INTEGRATION_STEP))
        q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
    limited = limit_acceleration(settings, state, q, v, dt)
    control_torque(bodies, memory, matrix, settings, state, q, v, predicted)
    if limited:
        add_limit_torques(bodies, memory, matrix, settings, state, q, v, dt)
    blend(settings, state, t)
    finite = torques_are_finite(state)
    if limited or not finite:
        gravity_torque(bodies, memory, settings, state, q)
        fall_back(settings, state, v)
    saturated, pressed = output_stage(settings, state, dt, tau)
    if not finite:
        return BAD_TORQUE
    found = UNDER_WAY
    if not predicted:
        if state[layout.CHECKED, 0] != 0.0:
            found = check(tolerances, state, s)
        if found in (UNDER_WAY, REACHED):
            # A goal without tolerances is not reached by an arm that is held elsewhere.
            if _torn_away(settings, state):
                found = TORN_AWAY
            elif pressed:
                found = PRESSED
        if state[layout.GUIDED, 0] == 0.0 and _shaken(settings, state, dt):
            found = SHAKEN
    return int(saturated) + FOUND * found
