"""Requests to a controller between two steps: to brake, to follow another trajectory, to take other
settings.

A request is a box of numbers that `serve` carries out: at once, or in the loop that steps without
Python, which looks into the box between two ticks. Performs no allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control import layout
from rnea_control.control.advance import brake, catch
from rnea_control.control.laws import is_hand_law
from rnea_control.control.path import follow, settle
from rnea_control.control.tolerances import ROWS
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel

# The requests: to end the motion, and then nothing, to brake along the path (straight on where a
# hand guides the arm), to brake straight on from a state, to let a hand guide the arm; to follow a
# trajectory; to take other settings; to go by those that hold any arm, or by the others.
FINISH, BRAKE, CATCH, GUIDE, ADOPT, CHANGE, BRACE = range(1, 8)
# Numbers of the box: the request, whether it was carried out, and the motion that it ended; then
# those of a trajectory and of the model, whether to brace, whether a hand has guided the arm, and
# whether its state is predicted.
REQUEST, DONE, ENDED, STARTS_AT, COEFFICIENTS_AT, SEGMENTS, REVISION, MOTION = range(8)
BODIES_AT, BODY_COUNT, BODY_SIZE, BRACED, GUIDED, PREDICTED = range(8, 14)
NUMBERS = 14
# Values: the time now; of a trajectory, when it takes over, is at rest, begins and ends.
NOW, BEGIN, REST, START, END = range(5)
VALUES = 5


class Box(NamedTuple):
    """One request.

    Attributes:
        numbers, values: see above.
        measured: position and velocity, shape (2, nv).
        settings, tolerances: as of `advance`.
    """

    numbers: IntArray
    values: FloatArray
    measured: FloatArray
    settings: FloatArray
    tolerances: FloatArray

    @classmethod
    def empty(cls, nv: int) -> Box:
        """One for a robot with so many velocities."""
        return cls(
            np.zeros(NUMBERS, dtype=np.int64),
            np.zeros(VALUES),
            np.zeros((2, nv)),
            np.zeros((2, layout.SETTINGS_ROWS, nv)),
            np.zeros((ROWS, nv)),
        )


@inlined
def _copy(rows: FloatArray, into: FloatArray) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            into[i, j] = rows[i, j]


@inlined
def _adopt(
    n: IntArray,
    state: FloatArray,
    tolerances: FloatArray,
    box: IntArray,
    values: FloatArray,
    of_box: FloatArray,
) -> bool:
    late = state[layout.LAST_TRAJECTORY_TIME, 0] > values[BEGIN]
    if box[REVISION] != n[layout.REVISION] or late:
        return False
    if state[layout.LAST_TRAJECTORY_TIME, 0] >= state[layout.PATH_END, 0]:
        settle(state)  # a stop leaves it at full speed
    follow(n, state, box[STARTS_AT], box[COEFFICIENTS_AT], box[SEGMENTS], values[REST])
    state[layout.START_TIME, 0], state[layout.END_TIME, 0] = values[START], values[END]
    _copy(of_box, tolerances)
    return True


@inlined
def serve(
    n: IntArray,
    settings: FloatArray,
    tolerances: FloatArray,
    state: FloatArray,
    box: IntArray,
    values: FloatArray,
    measured: FloatArray,
    new_settings: FloatArray,
    new_tolerances: FloatArray,
) -> None:
    """Carries out a request; the first arguments are as of `advance`, the others a `Box`'s."""
    request = box[REQUEST]
    box[DONE], box[ENDED] = 1, 0
    if request == ADOPT and not _adopt(n, state, tolerances, box, values, new_tolerances):
        box[DONE] = 0
        return
    if request <= ADOPT:
        box[ENDED], n[layout.MOTION] = n[layout.MOTION], 0
        state[layout.CHECKED, 0] = 0.0
    if request == ADOPT:
        n[layout.MOTION], state[layout.CHECKED, 0] = box[MOTION], 1.0
    elif request == BRAKE:
        guided, predicted = box[GUIDED] != 0, box[PREDICTED] != 0
        brake(n, settings[n[layout.BRACED]], state, guided, predicted)
    elif request == CATCH:
        catch(n, settings[n[layout.BRACED]], state, values[NOW], measured[0], measured[1])
    elif request == GUIDE:
        state[layout.GUIDED, 0] = 1.0
    elif request == CHANGE:
        for which in range(2):
            _copy(new_settings[which], settings[which])
        _copy(new_tolerances, tolerances)
        n[layout.BODIES_AT], n[layout.BODY_COUNT] = box[BODIES_AT], box[BODY_COUNT]
        n[layout.BODY_SIZE] = box[BODY_SIZE]
        state[layout.RESTS_SINCE, 0] = math.nan
    elif request == BRACE:
        n[layout.BRACED] = box[BRACED]
    if request >= CHANGE:
        by_hand = is_hand_law(settings[n[layout.BRACED]])
        if by_hand or n[layout.BRACED] != 0:
            state[layout.GUIDED, 0] = 1.0 if by_hand else 0.0


# `serve` by itself, for Python.
serve_now = kernel(
    "void(i8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1], f8[:,:,::1], "
    "f8[:,::1])"
)(serve)
