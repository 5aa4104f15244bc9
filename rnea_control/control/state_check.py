"""Whether a measured state can be true: finite, not further from the last one than the arm moves,
and not where it was while its own velocities say that it moves.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.kernels.kernel import inlined

# How much further than its velocity allows a joint may seem to move from state to state: as a
# factor, and on top for coarse sensors and stamps, [rad] or [m].
JUMP_FACTOR, JUMP_SLACK = 2.0, 0.05
# How far a joint moves by its measured velocity before positions that stand still are not believed,
# [rad] or [m]: more than the coarsest encoder resolves.
LONGEST_STANDSTILL = 0.02
# Slower than this is noise of an arm at rest, [rad/s] or [m/s].
MOVING = 0.05


@inlined
def is_finite(t: float, q: FloatArray, v: FloatArray) -> bool:
    """Whether all of a state is finite."""
    finite = math.isfinite(t)
    for j in range(q.shape[0]):
        finite &= math.isfinite(q[j]) & math.isfinite(v[j])
    return finite


@inlined
def jumping_joint(
    settings: FloatArray, state: FloatArray, t: float, q: FloatArray, v: FloatArray
) -> int:
    """The first joint that is further from the last measured state than it can have moved, or -1.

    It can move at its velocity limit, or as fast as either state says: an arm that falls is faster
    than its limit.
    """
    dt = t - state[layout.LAST_MEASURED, 0]
    if settings[layout.CHECK_JUMPS, 0] == 0.0 or not dt >= 0.0:
        return -1
    for j in range(q.shape[0]):
        distance = q[j] - state[layout.LAST_POSITION, j]
        if settings[layout.CONTINUOUS, j] != 0.0:
            distance -= 2.0 * math.pi * math.floor(distance / (2.0 * math.pi) + 0.5)
        speed = max(abs(v[j]), abs(state[layout.LAST_VELOCITY, j]))
        speed = max(speed, settings[layout.STATE_VELOCITY_LIMIT, j])
        if abs(distance) > JUMP_SLACK + JUMP_FACTOR * speed * dt:
            return j
    return -1


@inlined
def is_frozen(
    settings: FloatArray, state: FloatArray, t: float, q: FloatArray, v: FloatArray
) -> bool:
    """Whether no position has changed for so long that a joint must have moved."""
    dt = t - state[layout.LAST_MEASURED, 0]
    if settings[layout.CHECK_JUMPS, 0] == 0.0 or not dt >= 0.0:
        return False
    fastest = 0.0
    for j in range(q.shape[0]):
        if q[j] != state[layout.LAST_POSITION, j]:
            state[layout.STANDSTILL, 0] = 0.0
            return False
        fastest = max(fastest, abs(v[j]))
    if fastest < MOVING:
        state[layout.STANDSTILL, 0] = 0.0
        return False
    state[layout.STANDSTILL, 0] += fastest * dt
    return state[layout.STANDSTILL, 0] > LONGEST_STANDSTILL


@inlined
def remember(state: FloatArray, t: float, q: FloatArray, v: FloatArray) -> None:
    """Keeps a measured state for the next check."""
    state[layout.LAST_MEASURED, 0] = t
    for j in range(q.shape[0]):
        state[layout.LAST_POSITION, j] = q[j]
        state[layout.LAST_VELOCITY, j] = v[j]
