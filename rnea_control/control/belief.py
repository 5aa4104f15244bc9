"""Whether a measured state can be true.

It can if it is finite, not further from the last one than the arm moves, and not where it was while
its own velocities say that it moves. A position that no motion leads to does not become true by
lasting: what goes on from it is not believed either, until the states come back to where a motion
leads, or an operator says so.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control import laws
from rnea_control.control.layout import Settings, State
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel

# How much further than its velocity allows a joint may seem to move from state to state: as a
# factor, and on top for coarse sensors and stamps, [rad] or [m].
JUMP_FACTOR, JUMP_SLACK = 2.0, 0.05
# How far a joint moves by its measured velocity before positions that stand still are not believed,
# [rad] or [m]: more than the coarsest encoder resolves.
LONGEST_STANDSTILL = 0.02
# An arm moves that is faster than this, and is not only measured with noise, [rad/s] or [m/s].
MOVING = 0.05


@inlined
def is_finite(t: float, q: Vector, v: Vector) -> bool:
    """Whether all of a state is finite."""
    finite = math.isfinite(t)
    for j in range(q.shape[0]):
        finite &= math.isfinite(q[j]) & math.isfinite(v[j])
    return finite


@inlined
def jumping_joint(settings: Settings, state: State, t: float, q: Vector, v: Vector) -> int:
    """The first joint that is further from the last believed state than it can have moved, or that
    goes on from one that was not believed; -1 for none.

    It can move at its velocity limit, or as fast as either state says: an arm that falls is faster
    than its limit. From a state that was not believed it goes on as fast as it says.
    """
    dt = t - state.last_measured
    if settings.check_jumps == 0.0 or not dt >= 0.0:
        return -1
    since = t - state.doubted_at
    jumping, goes_on = -1, since >= 0.0
    for j in range(q.shape[0]):
        speed = max(abs(v[j]), abs(state.last_velocity[j]))
        speed = max(speed, settings.state_velocity_limit[j])
        moved = abs(laws.shortest_way(settings, j, q[j] - state.last_position[j]))
        if jumping < 0 and moved > JUMP_SLACK + JUMP_FACTOR * speed * dt:
            jumping = j
        moved = abs(laws.shortest_way(settings, j, q[j] - state.doubted_position[j]))
        goes_on &= moved <= JUMP_SLACK + JUMP_FACTOR * abs(v[j]) * since
    if jumping < 0 and goes_on:
        jumping = int(state.jumping_joint)
    if jumping >= 0:
        state.jumping_joint = jumping
        state.doubted_at = t
        for j in range(q.shape[0]):
            state.doubted_position[j] = q[j]
    return jumping


@inlined
def is_frozen(settings: Settings, state: State, t: float, q: Vector, v: Vector) -> bool:
    """Whether no position has changed for so long that a joint must have moved."""
    dt = t - state.last_measured
    if settings.check_jumps == 0.0 or not dt >= 0.0:
        return False
    moved, fastest = False, 0.0
    for j in range(q.shape[0]):
        moved |= q[j] != state.last_position[j]
        fastest = max(fastest, abs(v[j]))
    if moved or fastest < MOVING:
        state.standstill = 0.0
        return False
    state.standstill += fastest * dt
    return state.standstill > LONGEST_STANDSTILL


@inlined
def remember(state: State, t: float, q: Vector, v: Vector) -> None:
    """Keeps a believed state for the next check."""
    state.last_measured = t
    state.doubted_at = state.rests_since = math.nan
    for j in range(q.shape[0]):
        state.last_position[j] = q[j]
        state.last_velocity[j] = v[j]


@inlined
def watch_rest(state: State, t: float, v: Vector) -> None:
    """Keeps since when an arm that is only predicted has been at rest, at the end of its path."""
    rests = state.last_trajectory_time >= state.path_end
    for j in range(v.shape[0]):
        rests &= not abs(v[j]) > MOVING
    if not rests:
        state.rests_since = math.nan
    elif math.isnan(state.rests_since):
        state.rests_since = t


@inlined
def believe(state: State) -> None:
    """Takes the next state for true, wherever it is."""
    state.last_measured = state.doubted_at = math.nan
    state.rests_since = math.nan


# `jumping_joint` by itself, for a state that is not stepped.
doubt = kernel()(jumping_joint)
