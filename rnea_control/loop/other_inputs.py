"""Messages that a loop takes beside the joint states: emergency stops, modes of the sentinel,
commands, targets of streams, and a planner's gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import (
    ByteArray,
    FloatArray,
    IntArray,
    RecordArray,
    Vector,
    WordArray,
)
from rnea_control.control.gains_intake import take_gains
from rnea_control.control.pose_intake import take_tip_message
from rnea_control.control.pose_settings_intake import take_posture, take_stiffness, take_wrench
from rnea_control.control.references import Form, TargetKind, form_of, is_of_task
from rnea_control.control.step import StepArrays
from rnea_control.control.stream_intake import StreamIntake, Targets, take_message
from rnea_control.jit.group import group
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.record import Record
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.state_intake import Intake
from rnea_control.messages import feedback_control, joint_targets, tip_targets

# Kinds of subscriptions beside the joint states.
STOP = 0  # emergency stops
MODE = 1  # the sentinel's mode
COMMAND = 2  # commands
# Kinds with targets, the first one first.
TARGET_JOINT = int(TargetKind.target_joint)
POSITIONS = int(TargetKind.positions)
JOG = int(TargetKind.jog)
TARGET_POSE = int(TargetKind.target_pose)
TWIST = int(TargetKind.twist)
TARGET_STIFFNESS = int(TargetKind.target_stiffness)
TARGET_WRENCH = int(TargetKind.target_wrench)
CONTROL = int(TargetKind.control)
# Forms of messages with targets.
_JOINTS = int(Form.joints)
_POSITIONS = int(Form.positions)
_JOG = int(Form.jog)
_POSE = int(Form.pose)
_TWIST = int(Form.twist)
_STIFFNESS = int(Form.stiffness)
_WRENCH = int(Form.wrench)
_GAINS = int(Form.gains)

MOST_KINDS = 16  # subscriptions beside the joint states
MOST_STOPS = 64  # emergency stops that are kept for Python
LONGEST_FRAME = 64  # characters of a refused frame that are kept
LONGEST_MESSAGE = 4096  # longest message beside the joint states and a planner's gains [bytes]


class Stop(Record):
    """A message on the topic of the emergency stop."""

    pressed: int = -1  # 1 pressed, 0 released, -1 not a Bool
    gid_low: int = 0  # GID of the publisher, in two words
    gid_high: int = 0


@group(
    kinds="i8[::1]",
    message="u1[::1]",
    stops="Stop[::1]",
    stream="StreamIntake[::1]",
    targets="Targets",
    bits="u8[:,::1]",
    names="u1[::1]",
    ends="i8[::1]",
    joints="i8[::1]",
    posture="StreamIntake[::1]",
    stiffness="StreamIntake[::1]",
    wrench="StreamIntake[::1]",
    tip="f8[::1]",
    tip_bits="u8[::1]",
    link_names="u1[::1]",
    link_ends="i8[::1]",
    frame="u1[::1]",
    gains="f8[:,::1]",
    gain_bits="u8[:,::1]",
)
class OtherArrays(NamedTuple):
    """Data of the messages beside the joint states.

    Attributes:
        kinds: kind of each subscription.
        message: the message that was taken last.
        stops: emergency stops for Python.
        stream: intake of the streams.
        targets: values of the last message of a stream; `bits`: the same memory as words.
        names, ends: names of the joints, see `joint_targets.name_table`.
        joints: scratch memory.
        posture, stiffness, wrench: intakes of what may be set while the tip yields.
        tip: numbers of the last pose, twist, wrench or stiffness; `tip_bits`: the same memory as
            words.
        link_names, link_ends: names of the links.
        frame: name of the last frame that was refused; zeros after it.
        gains: gains in the last message of a planner; `gain_bits`: the same memory as words.
    """

    kinds: IntArray
    message: ByteArray
    stops: RecordArray
    stream: RecordArray
    targets: Targets
    bits: WordArray
    names: ByteArray
    ends: IntArray
    joints: IntArray
    posture: RecordArray
    stiffness: RecordArray
    wrench: RecordArray
    tip: Vector
    tip_bits: WordArray
    link_names: ByteArray
    link_ends: IntArray
    frame: ByteArray
    gains: FloatArray
    gain_bits: WordArray


class OtherInputs:
    """Memory for the messages beside the joint states.

    Attributes:
        stream: intake of the streams.
        posture, stiffness, wrench: intakes of what may be set while the tip yields.
        arrays: the data, as kernels take it.
    """

    def __init__(self, joint_names: Sequence[str], link_names: Sequence[str]) -> None:
        self.stream = StreamIntake()
        self.posture, self.stiffness, self.wrench = (StreamIntake() for _ in range(3))
        self.posture.kind, self.stiffness.kind = TARGET_JOINT, TARGET_STIFFNESS
        self.wrench.kind = TARGET_WRENCH
        nv = len(joint_names)
        bits = np.zeros((Targets.count, nv), dtype=np.uint64)
        gain_bits = np.zeros((nv, 2 * nv), dtype=np.uint64)
        room = max(LONGEST_MESSAGE, feedback_control.longest(joint_names))
        names, ends = joint_targets.name_table(joint_names)
        links, link_ends = joint_targets.name_table(link_names)
        tip_bits = np.zeros(tip_targets.MATRIX, dtype=np.uint64)
        self.arrays = OtherArrays(
            kinds=np.zeros(MOST_KINDS, dtype=np.int64),
            message=np.zeros(room, dtype=np.uint8),
            stops=Stop.several(MOST_STOPS),
            stream=self.stream.argument,
            targets=bits.view(np.float64).view(Targets),
            bits=bits,
            names=names,
            ends=ends,
            joints=np.zeros(max(joint_targets.MOST_NAMES, nv), dtype=np.int64),
            posture=self.posture.argument,
            stiffness=self.stiffness.argument,
            wrench=self.wrench.argument,
            tip=tip_bits.view(np.float64),
            tip_bits=tip_bits,
            link_names=links,
            link_ends=link_ends,
            frame=np.zeros(LONGEST_FRAME, dtype=np.uint8),
            gains=gain_bits.view(np.float64),
            gain_bits=gain_bits,
        )


@inlined
def _hear_beside_poses(
    others: OtherArrays,
    arrays: StepArrays,
    kind: int,
    decoded: int,
    count: int,
    frame: int,
    publisher: tuple[int, int],
    t: float,
) -> int:
    """Takes a posture, a stiffness or a wrench.

    Args:
        decoded, count, frame: results of decoding.
        others: see `hear_targets`.
    """
    if kind == TARGET_JOINT:
        return take_posture(others.posture[0], arrays, others.targets, decoded, publisher, t)
    if form_of(kind) == _STIFFNESS:
        of_message = others.tip, count, decoded, publisher, t
        return take_stiffness(others.stiffness[0], arrays, *of_message)
    return take_wrench(others.wrench[0], arrays, others.tip, frame, decoded, publisher, t)


@inlined
def hear_targets(
    loop: LoopState,
    others: OtherArrays,
    arrays: StepArrays,
    intake: Intake,
    kind: int,
    size: int,
    publisher: tuple[int, int],
    clock: int,
    now: float,
) -> int:
    """Takes the targets of a message of a stream.

    Args:
        kind: a `TargetKind`.
        size: size of the message in `others.message` [bytes].
        publisher: its GID, in two words.
        clock: clock of the stamps [ns]; -1 in simulated time.
        now: arrival by the steady clock [s].

    Returns:
        A result of stream_intake.py.
    """
    message, names, ends = others.message, others.names, others.ends
    stamp, frame, count, form = math.nan, 0, 0, form_of(kind)
    if form == _POSITIONS:
        decoded = joint_targets.decode_positions(message, size, others.joints, others.bits)
    elif form == _JOG:
        decoded, stamp = joint_targets.decode_jog(
            message, size, names, ends, others.joints, others.bits
        )
    elif form == _JOINTS:
        decoded, stamp = joint_targets.decode_joint_state(
            message, size, names, ends, others.joints, others.bits
        )
    elif form == _GAINS:
        decoded, stamp = feedback_control.decode_control(
            message, size, names, ends, others.joints, others.bits, others.gain_bits
        )
    elif form == _STIFFNESS:
        decoded, count = tip_targets.decode_stiffness(message, size, others.tip_bits)
    else:
        count = tip_targets.POSE if form == _POSE else tip_targets.SIX
        decoded, stamp, frame = tip_targets.decode_tip(
            message, size, count, others.link_names, others.link_ends, others.tip, others.tip_bits
        )
        if decoded == tip_targets.UNKNOWN_FRAME:
            tip_targets.copy_frame(message, size, others.frame)
    t, present = intake.time, 1e-9 * intake.stamp
    if loop.system_time:
        t, present = t + max(now - intake.came_at, 0.0), 1e-9 * clock
    # An emergency stop that Python has not read sets no mode yet, and while the interpreter stands
    # still ~/hold is not served.
    may_begin = loop.stops_received == loop.stops_read and not loop.hangs
    if form in (_POSE, _TWIST):
        return take_tip_message(
            others.stream[0],
            arrays,
            others.tip,
            frame,
            decoded,
            kind,
            form == _TWIST,
            publisher,
            t,
            stamp,
            present - stamp,
            may_begin,
        )
    if form == _GAINS:
        return take_gains(
            others.stream[0],
            arrays,
            others.targets,
            others.gains,
            decoded,
            kind,
            publisher,
            t,
            stamp,
            present - stamp,
            may_begin,
        )
    if form in (_STIFFNESS, _WRENCH) or (kind == TARGET_JOINT and is_of_task(arrays.state)):
        return _hear_beside_poses(others, arrays, kind, decoded, count, frame, publisher, t)
    return take_message(
        others.stream[0],
        arrays,
        others.targets,
        decoded,
        kind,
        form == _JOG,
        publisher,
        t,
        stamp,
        present - stamp,
        may_begin,
    )


@kernel("i8(LoopState[::1], OtherArrays, StepArrays, Intake[::1], i8, i8, UniTuple(i8, 2), i8, f8)")
def hear_targets_once(
    loops: RecordArray,
    others: OtherArrays,
    arrays: StepArrays,
    intakes: RecordArray,
    kind: int,
    size: int,
    publisher: tuple[int, int],
    clock: int,
    now: float,
) -> int:
    """Kernel of `hear_targets`, for Python."""
    return hear_targets(loops[0], others, arrays, intakes[0], kind, size, publisher, clock, now)
