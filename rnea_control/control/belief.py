"""Decides whether a measured state can be true.

A state is credible if it is finite, within reach of the last state, and not frozen while its own
velocities report a motion. A position that no motion leads to does not become credible by lasting:
the states that continue from it are doubted too, until the states come back to where a motion
leads, or an operator accepts them.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control import feedback
from rnea_control.control.layout import Settings, State
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel

JUMP_FACTOR = 2.0  # distance between states relative to the distance by the velocity, at most
JUMP_SLACK = 0.05  # additional distance, for coarse sensors and stamps [rad] or [m]
# Distance of a joint by its measured velocity from which unchanged positions are doubted, [rad] or
# [m]: more than the coarsest encoder resolves.
LONGEST_STANDSTILL = 0.02
MOVING = 0.05  # speed above which a joint moves, and not only shows noise [rad/s] or [m/s]


@inlined
def is_finite(t: float, q: Vector, v: Vector) -> bool:
    """True if the time and all numbers of a state are finite."""
    finite = math.isfinite(t)
    for j in range(q.shape[0]):
        finite &= math.isfinite(q[j]) & math.isfinite(v[j])
    return finite


@inlined
def jumping_joint(settings: Settings, state: State, t: float, q: Vector, v: Vector) -> int:
    """The first joint that is further from the last credible state than it can have moved, or that
    continues from a doubted state; -1 for none.

    A joint can move at its velocity limit, or as fast as either state reports: an arm that falls is
    faster than its limit. From a doubted state it can move as fast as the new state reports.
    """
    dt = t - state.last_measured
    if settings.check_jumps == 0.0 or not dt >= 0.0:
        return -1
    since = t - state.doubted_at
    jumping, goes_on = -1, since >= 0.0
    for j in range(q.shape[0]):
        speed = max(abs(v[j]), abs(state.last_velocity[j]))
        speed = max(speed, settings.state_velocity_limit[j])
        moved = abs(feedback.shortest_way(settings, j, q[j] - state.last_position[j]))
        if jumping < 0 and moved > JUMP_SLACK + JUMP_FACTOR * speed * dt:
            jumping = j
        moved = abs(feedback.shortest_way(settings, j, q[j] - state.doubted_position[j]))
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
    """True if the positions stay unchanged for longer than the measured velocities allow."""
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
    """Keeps the time since which a predicted arm has been at rest at the end of its path."""
    rests = state.last_trajectory_time >= state.path_end
    for j in range(v.shape[0]):
        rests &= not abs(v[j]) > MOVING
    if not rests:
        state.rests_since = math.nan
    elif math.isnan(state.rests_since):
        state.rests_since = t


@inlined
def believe(state: State) -> None:
    """Accepts the next state, wherever it is."""
    state.last_measured = state.doubted_at = math.nan
    state.rests_since = math.nan


# `jumping_joint` as a kernel of its own, for a state that is not stepped.
doubt = kernel()(jumping_joint)
