"""References: the motion that the arm is to follow, and the messages that give its targets.

A reference is a row of one table, and a function that fills in the desired motion at each step;
`desired_motion` calls the function of the reference in force. All other code asks the row. A topic
of targets is a row of `TargetKind`.

Each reference has a law of its own, see `law_in_force` in laws.py. When the law changes, with the
reference or in the settings, the torque of the law before fades out over `blend_time`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from rnea_control.control.gains_stream import follow_gains
from rnea_control.control.joint_stream import follow_stream
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.pose_stream import follow_poses
from rnea_control.control.trajectory import path_of, sample, scale
from rnea_control.jit.inlining import inlined


class Reference(IntEnum):
    """The references.

    Attributes:
        is_stream: True for single targets that come one after the other.
        moves_joints: True for a desired motion of the joints. Otherwise the desired position is the
            measured one, and the arm yields to a hand or an obstacle.
        of_task: True for a motion of the tip, by a law of task space.
        has_path: True if the desired position is the place of the arm, up to errors: a stop begins
            there, and no soft limit pushes the arm away from there.
    """

    trajectory = False, True, False, True
    """Polynomials of time: a trajectory of a goal or a message, a stop, or a position that is
    held."""
    hand = False, False, False, False
    """No desired motion: a hand guides the arm."""
    joint_stream = True, True, False, True
    """Targets of joints, see joint_stream.py."""
    pose_stream = True, False, True, False
    """Target poses of the tip, see pose_stream.py."""
    feedback_gains = True, True, False, False
    """Gains of a planner, and the state about which they are, see gains_stream.py."""

    is_stream: bool
    moves_joints: bool
    of_task: bool
    has_path: bool

    def __new__(cls, *row: Any) -> Reference:
        reference = int.__new__(cls, len(cls.__members__))
        reference._value_ = len(cls.__members__)
        reference.is_stream, reference.moves_joints, reference.of_task, reference.has_path = row
        return reference


# The rows for kernels, by the numbers of the references.
_IS_STREAM = tuple(reference.is_stream for reference in Reference)
_MOVES_JOINTS = tuple(reference.moves_joints for reference in Reference)
_OF_TASK = tuple(reference.of_task for reference in Reference)
_HAS_PATH = tuple(reference.has_path for reference in Reference)
TRAJECTORY, HAND, JOINT_STREAM, POSE_STREAM, FEEDBACK_GAINS = map(int, Reference)


class Form(IntEnum):
    """Forms of messages with targets; other_inputs.py decodes each."""

    joints = 0  # a JointState
    positions = 1  # a Float64MultiArray with the positions of all joints
    jog = 2  # a JointJog
    pose = 3  # a PoseStamped of the tip
    twist = 4  # a TwistStamped of the tip
    stiffness = 5  # a Float64MultiArray with the stiffness of the tip
    wrench = 6  # a WrenchStamped that the tip exerts
    gains = 7  # a Control with a planner's gains


FIRST_TARGET = 3  # number of the first kind of targets; other_inputs.py has the kinds before


class TargetKind(IntEnum):
    """Kinds of messages with targets; each has its topic in node/interfaces.py.

    Attributes:
        form: form of the message.
        reference: reference that the targets begin; None if they only change the motion that a
            reference has begun.
    """

    target_joint = Form.joints, Reference.joint_stream
    positions = Form.positions, Reference.joint_stream
    jog = Form.jog, Reference.joint_stream
    target_pose = Form.pose, Reference.pose_stream
    twist = Form.twist, Reference.pose_stream
    target_stiffness = Form.stiffness, None
    target_wrench = Form.wrench, None
    control = Form.gains, Reference.feedback_gains

    form: Form
    reference: Reference | None

    def __new__(cls, *row: Any) -> TargetKind:
        number = FIRST_TARGET + len(cls.__members__)
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.form, kind.reference = row
        return kind


# The rows for kernels, by the numbers of the kinds from FIRST_TARGET on.
_FORM = tuple(int(kind.form) for kind in TargetKind)
_BEGINS = tuple(-1 if kind.reference is None else int(kind.reference) for kind in TargetKind)


@inlined
def form_of(kind: int) -> int:
    """Number of the form of a kind of targets."""
    return _FORM[kind - FIRST_TARGET]


@inlined
def begun_by(kind: int) -> int:
    """Number of the reference that a kind of targets begins; -1 for none."""
    return _BEGINS[kind - FIRST_TARGET]


@inlined
def is_guided(state: State) -> bool:
    """True while a hand guides the arm."""
    return int(state.reference) == HAND


@inlined
def is_streamed(state: State) -> bool:
    """True while the arm follows a stream."""
    return _IS_STREAM[int(state.reference)]


@inlined
def moves_joints(state: State) -> bool:
    """True if the reference in force is a desired motion of the joints."""
    return _MOVES_JOINTS[int(state.reference)]


@inlined
def is_of_task(state: State) -> bool:
    """True if the reference in force is a motion of the tip."""
    return _OF_TASK[int(state.reference)]


@inlined
def is_of_gains(state: State) -> bool:
    """True if the reference in force is a planner's gains."""
    return int(state.reference) == FEEDBACK_GAINS


@inlined
def has_path(state: State) -> bool:
    """True if the desired position of the reference in force is the place of the arm."""
    return _HAS_PATH[int(state.reference)]


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
    reference = int(state.reference)
    if reference == JOINT_STREAM:
        return follow_stream(settings, state, t, dt, predicted)
    if reference == POSE_STREAM:
        return follow_poses(settings, state, t, dt, predicted)
    if reference == FEEDBACK_GAINS:
        return follow_gains(settings, state, t, predicted)
    if reference == HAND:
        _rest(state)
    else:
        _follow_trajectory(arm, state, s)
    return False
