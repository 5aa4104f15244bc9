"""A step, and what follows from it at once: the end of a motion, and the stop that it takes.

The finding of a step is a row of `findings`; controller_state.py puts it into words. Performs no
allocation.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control import layout
from rnea_control.control.laws import is_hand_law
from rnea_control.control.path import brake_along, brake_straight
from rnea_control.control.step import (
    BAD_STATE,
    FOUND,
    NO_TRAJECTORY,
    PRESSED,
    SATURATED,
    SIGNATURE,
    step,
)
from rnea_control.control.tolerances import GOAL_VIOLATED, PATH_VIOLATED, REACHED
from rnea_control.control.trajectory import COEFFICIENTS
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.linking import array_at, linked

# Reasons that come from outside a step: an emergency stop, or an interpreter that stands still.
STOPPED, HUNG = 7, 8

_step = linked(step, SIGNATURE)


@inlined
def believe(state: FloatArray) -> None:
    """Takes the next state for true, wherever it is."""
    state[layout.LAST_MEASURED, 0] = state[layout.DOUBTED_AT, 0] = math.nan
    state[layout.RESTS_SINCE, 0] = math.nan


@inlined
def catch(
    n: IntArray, settings: FloatArray, state: FloatArray, t: float, q: FloatArray, v: FloatArray
) -> None:
    """Takes the desired position and velocity from the arm, and brakes from there."""
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = t - state[layout.BEHIND, 0]
    state[layout.GUIDED, 0] = 1.0 if is_hand_law(settings) else 0.0
    for j in range(state.shape[1]):
        state[layout.SATURATED_SINCE, j] = 0.0
    believe(state)
    brake_straight(n, settings, state, q, v)


@inlined
def end_motion(n: IntArray, state: FloatArray, findings: FloatArray, kind: int) -> None:
    """Ends the motion, and keeps why."""
    row = findings[n[layout.FINDINGS] % layout.MOST_FINDINGS]
    row[layout.KIND], row[layout.ENDED] = kind, n[layout.MOTION]
    j = int(state[layout.VIOLATING_JOINT, 0])
    row[layout.QUANTITY] = state[layout.VIOLATING_QUANTITY, 0]
    row[layout.EXCESS] = state[layout.VIOLATION, 0]
    row[layout.ALLOWED] = state[layout.VIOLATED_TOLERANCE, 0]
    if kind == PRESSED:
        j = 0
        for i in range(1, state.shape[1]):
            if state[layout.SATURATED_SINCE, i] > state[layout.SATURATED_SINCE, j]:
                j = i
        row[layout.EXCESS] = state[layout.SATURATED_SINCE, j]
    row[layout.JOINT], row[layout.FOUND_AT] = j, state[layout.LAST_TRAJECTORY_TIME, 0]
    n[layout.FINDINGS] += 1
    n[layout.MOTION] = 0
    state[layout.CHECKED, 0] = 0.0


@inlined
def _react(
    n: IntArray,
    settings: FloatArray,
    state: FloatArray,
    findings: FloatArray,
    found: int,
    t: float,
    q: FloatArray,
    v: FloatArray,
) -> None:
    """Ends the motion because of a finding; if a bound was violated, the arm brakes from where it
    is, so that it does not press on."""
    end_motion(n, state, findings, found)
    if found in (PATH_VIOLATED, GOAL_VIOLATED):
        brake_along(n, settings, state, True)
    elif found != REACHED:
        n[layout.GAVE_WAY] += 1
        catch(n, settings, state, t, q, v)


@inlined
def brake(
    n: IntArray, settings: FloatArray, state: FloatArray, guided: bool, predicted: bool
) -> None:
    """Brakes along the path; where a hand guides the arm, straight on from its last state."""
    s = state[layout.LAST_TRAJECTORY_TIME, 0]
    if guided:
        q, v = state[layout.LAST_POSITION], state[layout.LAST_VELOCITY]
        if predicted:
            q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
        catch(n, settings, state, state[layout.LAST_TIME, 0], q, v)
    elif s < state[layout.PATH_END, 0] and state[layout.UNSCALED_UNTIL, 0] <= s:
        brake_along(n, settings, state, False)


@inlined
def emergency_stop(
    n: IntArray, settings: FloatArray, state: FloatArray, findings: FloatArray, predicted: bool
) -> None:
    """Brakes, and goes by a law that holds the arm.

    `settings`: shape (2, SETTINGS_ROWS, nv), as of `advance`.
    """
    guided = state[layout.GUIDED, 0] != 0.0
    if is_hand_law(settings[n[layout.BRACED]]):
        n[layout.BRACED] = 1
        state[layout.GUIDED, 0] = 0.0
    end_motion(n, state, findings, STOPPED)
    brake(n, settings[n[layout.BRACED]], state, guided, predicted)


@inlined
def advance(
    n: IntArray,
    settings: FloatArray,
    tolerances: FloatArray,
    state: FloatArray,
    findings: FloatArray,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    predicted: bool,
) -> int:
    """A step with what follows from it; returns what `step` does.

    Args:
        n, state: see layout.py.
        settings: those of the controller and those that hold any arm, shape (2, SETTINGS_ROWS, nv).
        tolerances, t, q, v, tau, predicted: as of `step`.
        findings: shape (MOST_FINDINGS, FINDING_SIZE).
    """
    if n[layout.SEGMENTS] == 0:
        return NO_TRAJECTORY
    nv = state.shape[1]
    in_force = settings[n[layout.BRACED]]
    outcome = _step(
        n[layout.STEP_CODE],
        (
            array_at(n[layout.BODIES_AT], (n[layout.BODY_COUNT], n[layout.BODY_SIZE])),
            array_at(n[layout.MEMORY_AT], (n[layout.MEMORY_ROWS], n[layout.MEMORY_COLUMNS])),
            array_at(n[layout.MATRIX_AT], (nv, nv)),
            array_at(n[layout.STARTS_AT], (n[layout.SEGMENTS],)),
            array_at(n[layout.COEFFICIENTS_AT], (n[layout.SEGMENTS], nv, COEFFICIENTS)),
            in_force,
            tolerances,
            state,
            t,
            q,
            v,
            tau,
            predicted,
        ),
    )
    if not predicted and outcome < BAD_STATE:
        n[layout.OUTCOME] = outcome
    if not predicted and SATURATED < outcome < BAD_STATE:
        _react(n, in_force, state, findings, outcome // FOUND, t, q, v)
    return outcome


# `advance` by itself, for Python.
step_once = kernel(
    "i8(i8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, f8[::1], f8[::1], f8[::1], b1)"
)(advance)
