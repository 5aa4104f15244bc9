"""References: the motion that the arm is to follow.

A reference is a row of one table, and a function that fills in the desired motion at each step;
`desired_motion` calls the function of the reference in force. All other code asks the row.

The law that follows the references is `law_in_force` in laws.py. When the settings change it, the
torque of the law before fades out over `blend_time`.
"""

from __future__ import annotations

from enum import IntEnum

from rnea_control.control.joint_stream import follow_stream
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.trajectory import path_of, sample, scale
from rnea_control.jit.inlining import inlined


class Reference(IntEnum):
    """The references."""

    trajectory = 0
    """Polynomials of time: a trajectory of a goal or a message, a stop, or a position that is
    held."""
    hand = 1
    """No desired motion: a hand guides the arm, and the desired position is the measured one."""
    joint_stream = 2
    """Single targets of joints that come one after the other, see joint_stream.py."""


TRAJECTORY, HAND, JOINT_STREAM = (int(reference) for reference in Reference)


@inlined
def is_guided(state: State) -> bool:
    """True while a hand guides the arm."""
    return int(state.reference) == HAND


@inlined
def is_streamed(state: State) -> bool:
    """True while the arm follows a stream."""
    return int(state.reference) == JOINT_STREAM


@inlined
def _rest(state: State) -> None:
    """Desired motion of an arm that a hand guides. The feedback sets the desired position."""
    state.desired_velocity[:] = 0.0
    state.desired_acceleration[:] = 0.0
    state.desired_effort[:] = 0.0


@inlined
def _follow_trajectory(arm: Arm, state: State, s: float) -> None:
    """Desired motion of a trajectory at trajectory time `s` [s]."""
    starts, coefficients = path_of(arm, state.shape[1])
    state.segment = sample(starts, coefficients, int(state.segment), s, 0.0, state)
    scale(state)


@inlined
def desired_motion(
    arm: Arm, settings: Settings, state: State, t: float, dt: float, s: float, predicted: bool
) -> bool:
    """Fills in the desired motion of the reference in force; returns True if the reference has
    ended, and the arm rests.

    Args:
        t, s: time and trajectory time [s].
        dt: time since the last step [s].
        predicted: True while no state comes.
    """
    if is_streamed(state):
        return follow_stream(settings, state, t, dt, predicted)
    if is_guided(state):
        _rest(state)
    else:
        _follow_trajectory(arm, state, s)
    return False
