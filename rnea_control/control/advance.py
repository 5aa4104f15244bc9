"""A step, what follows from it at once, and what is asked for between two steps.

The finding of a step is a row of `findings`; it ends the motion, and the arm may have to stop. A
request is a `Box` of numbers that `serve` carries out: at once, or in the loop that steps without
Python, which looks into the box between two ticks. Performs no allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rnea_control.array_types import FloatArray, IntArray, IntVector, Matrices, Matrix, Vector
from rnea_control.control import layout, path, step
from rnea_control.control.laws import is_hand_law
from rnea_control.control.motion import Act
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.linking import linked

# The requests: to end the motion, with what the arm does then; to follow a trajectory; to take
# other settings; to go by those that hold any arm, or by the others.
FINISH, BRAKE, CATCH, GUIDE = (int(act) for act in Act)
ADOPT, CHANGE, BRACE = range(5, 8)
# Numbers of the box: the request, whether it was carried out, and the motion that it ended; then
# those of a trajectory, where the model's bodies are, whether to brace, whether a hand has guided
# the arm, and whether its state is predicted.
REQUEST, DONE, ENDED, STARTS_AT, COEFFICIENTS_AT, SEGMENTS, REVISION, MOTION = range(8)
BODIES_AT, BRACED, GUIDED, PREDICTED = range(8, 12)
NUMBERS = 12
# Values: the time now; of a trajectory, when it takes over, is at rest, begins and ends.
NOW, BEGIN, REST, START, END = range(5)
VALUES = 5

_step = linked(step.step, step.SIGNATURE)


class Box(NamedTuple):
    """One request."""

    numbers: IntArray  # see above
    values: FloatArray  # see above
    measured: FloatArray  # position and velocity, shape (2, nv)
    settings: FloatArray  # as of `advance`
    tolerances: FloatArray  # as of `advance`


@inlined
def believe(state: Matrix) -> None:
    """Takes the next state for true, wherever it is."""
    state[layout.LAST_MEASURED, 0] = state[layout.DOUBTED_AT, 0] = math.nan
    state[layout.RESTS_SINCE, 0] = math.nan


@inlined
def catch(n: IntVector, settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> None:
    """Takes the desired position and velocity from the arm, and brakes from there."""
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = t - state[layout.BEHIND, 0]
    state[layout.GUIDED, 0] = 1.0 if is_hand_law(settings) else 0.0
    state[layout.SATURATED_SINCE, :] = 0.0
    believe(state)
    path.brake_straight(n, settings, state, q, v)


@inlined
def brake(n: IntVector, settings: Matrix, state: Matrix, guided: bool, predicted: bool) -> None:
    """Brakes along the path; where a hand guides the arm, straight on from its last state."""
    s = state[layout.LAST_TRAJECTORY_TIME, 0]
    if guided:
        q, v = state[layout.LAST_POSITION], state[layout.LAST_VELOCITY]
        if predicted:
            q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
        catch(n, settings, state, state[layout.LAST_TIME, 0], q, v)
    elif s < state[layout.PATH_END, 0] and state[layout.UNSCALED_UNTIL, 0] <= s:
        path.brake_along(n, settings, state, False)


@inlined
def end_motion(n: IntVector, state: Matrix, findings: Matrix, kind: int) -> None:
    """Ends the motion, and keeps why."""
    row = findings[n[layout.FINDINGS] % layout.MOST_FINDINGS]
    row[layout.KIND], row[layout.ENDED] = kind, n[layout.MOTION]
    row[layout.FOUND_AT] = state[layout.LAST_TRAJECTORY_TIME, 0]
    for k in range(layout.FOUND_AT - layout.JOINT):
        row[layout.JOINT + k] = state[layout.VIOLATING_JOINT + k, 0]
    if kind == layout.PRESSED:
        since = state[layout.SATURATED_SINCE]
        row[layout.JOINT] = j = since.argmax()
        row[layout.EXCESS] = since[j]
    n[layout.FINDINGS] += 1
    n[layout.MOTION] = 0


@inlined
def emergency_stop(
    n: IntVector, settings: Matrices, state: Matrix, findings: Matrix, predicted: bool
) -> None:
    """Brakes, and goes by a law that holds the arm; arguments as of `advance`."""
    guided = state[layout.GUIDED, 0] != 0.0
    if is_hand_law(settings[n[layout.BRACED]]):
        n[layout.BRACED] = 1
        state[layout.GUIDED, 0] = 0.0
    end_motion(n, state, findings, layout.STOPPED)
    brake(n, settings[n[layout.BRACED]], state, guided, predicted)


@inlined
def advance(
    n: IntVector,
    settings: Matrices,
    tolerances: Matrix,
    state: Matrix,
    findings: Matrix,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """A step; one that finds something ends the motion, and if a bound was violated, the arm brakes
    from where it is, so that it does not press on. Returns what `step` does.

    Args:
        n, state: see layout.py.
        settings: those of the controller and those that hold any arm, shape (2, SETTINGS_ROWS, nv).
        tolerances: of the motion, as of `check`.
        findings: shape (MOST_FINDINGS, FINDING_SIZE).
        t, q, v, tau: as of `Controller.step`.
        predicted: whether the state is to be predicted; it is filled into `q` and `v` then.
    """
    in_force = settings[n[layout.BRACED]]
    of_step = n, in_force, tolerances, state, t, q, v, tau, predicted
    outcome = _step(n[layout.STEP_CODE], of_step)
    if predicted or outcome >= step.BAD_STATE:
        return outcome
    n[layout.OUTCOME] = outcome
    found = outcome // step.FOUND
    if outcome > step.SATURATED:
        end_motion(n, state, findings, found)
    if found in (layout.PATH_VIOLATED, layout.GOAL_VIOLATED):
        path.brake_along(n, in_force, state, True)
    elif found > layout.REACHED:
        n[layout.GAVE_WAY] += 1
        catch(n, in_force, state, t, q, v)
    return outcome


# `advance` by itself, for Python.
step_once = kernel()(advance)


@inlined
def _copy(rows: Matrix, into: Matrix) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            into[i, j] = rows[i, j]


@inlined
def serve(
    n: IntVector,
    settings: Matrices,
    tolerances: Matrix,
    state: Matrix,
    box: IntVector,
    values: Vector,
    measured: Matrix,
    new_settings: Matrices,
    new_tolerances: Matrix,
) -> None:
    """Carries out a request; the first arguments are as of `advance`, the others a `Box`'s."""
    request, in_force = box[REQUEST], settings[n[layout.BRACED]]
    s = state[layout.LAST_TRAJECTORY_TIME, 0]
    box[DONE], box[ENDED] = 1, 0
    if request == ADOPT and (box[REVISION] != n[layout.REVISION] or s > values[BEGIN]):
        box[DONE] = 0  # another trajectory has come between, or it is too late
        return
    if request <= ADOPT:
        box[ENDED], n[layout.MOTION] = n[layout.MOTION], 0
    if request == BRAKE:
        brake(n, in_force, state, box[GUIDED] != 0, box[PREDICTED] != 0)
    elif request == CATCH:
        catch(n, in_force, state, values[NOW], measured[0], measured[1])
    elif request == GUIDE:
        state[layout.GUIDED, 0] = 1.0
    elif request == ADOPT:
        if s >= state[layout.PATH_END, 0]:
            path.settle(state)  # a stop leaves it at full speed
        path.follow(n, state, box[STARTS_AT], box[COEFFICIENTS_AT], box[SEGMENTS], values[REST])
        state[layout.START_TIME, 0], state[layout.END_TIME, 0] = values[START], values[END]
        n[layout.MOTION] = box[MOTION]
    elif request == CHANGE:
        for which in range(2):
            _copy(new_settings[which], settings[which])
        n[layout.BODIES_AT] = box[BODIES_AT]
        state[layout.RESTS_SINCE, 0] = math.nan
    elif request == BRACE:
        n[layout.BRACED] = box[BRACED]
    if request in (ADOPT, CHANGE):
        _copy(new_tolerances, tolerances)
    if request in (CHANGE, BRACE):
        by_hand = is_hand_law(settings[n[layout.BRACED]])
        if by_hand or n[layout.BRACED] != 0:
            state[layout.GUIDED, 0] = 1.0 if by_hand else 0.0


# `serve` by itself, for Python.
serve_now = kernel()(serve)
