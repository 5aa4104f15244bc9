"""Reads the controlled joints from serialized JointState messages, and refuses invalid messages.

joint_state_broadcaster keeps no order of joints, includes other joints, and leaves fields empty or
NaN. Therefore joints are matched by name, and every number is checked. A publisher repeats the same
names in every message: their layout is determined once. A message with the same bytes up to the
numbers is then decoded by one compiled call, which compares no names and allocates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray, IntArray, WordArray
from rnea_control.exceptions import JointStateError, OtherJoints, listed
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.messages import cdr

# Results of decoding in place of a stamp.
OTHER_LAYOUT = -1  # the message has another layout
REFUSED = -2  # wrong number of values, or a value that is not finite

_FRAME_ID = cdr.HEADER + 8  # offset of frame_id, after the header and the stamp
_SIGN = 1 << 31
_SECOND = 1_000_000_000


def measured_efforts(data: bytes, joints: Sequence[str]) -> FloatArray:
    """Efforts of `joints` in a serialized message, shape (nv,), [Nm] or [N] if the hardware uses
    ROS units.

    NaN for a joint that the message does not name, for an effort that is not finite, and for all
    joints if the message does not have one effort for each name. Reads every name, and allocates:
    not for a tick.

    Raises:
        CdrError: bytes that are not a JointState.
    """
    message = JointStateFields(data)
    names, efforts = message.names, message.reader.numbers(message.efforts)
    if len(efforts) != len(names):
        return np.full(len(joints), np.nan)
    found = np.array([efforts[names.index(each)] if each in names else np.nan for each in joints])
    return np.where(np.isfinite(found), found, np.nan)


class JointStateFields:
    """Offsets of the fields of one message; raises CdrError for bytes that are not a JointState."""

    def __init__(self, data: bytes) -> None:
        self.reader = reader = cdr.CdrReader(data, "joint_states")
        self.seconds = reader.integer("stamp", signed=True)
        self.nanoseconds = reader.integer("stamp")
        reader.string("frame_id")
        self.names = reader.strings("name")
        self.end_of_names = reader.position
        self.positions = reader.skip_numbers("position")
        self.velocities = reader.skip_numbers("velocity")
        self.efforts = reader.skip_numbers("effort")


class Layout:
    """Common layout of all messages with the same frame_id and joint names.

    Attributes:
        pattern: first two bytes of the message, which give the byte order, then the bytes from
            frame_id to the end of the names; and masks, 0 for arbitrary bytes; shape (2, n).
        indices: number of values, then the index of each controlled joint's value.
    """

    def __init__(self, data: bytes, joints: tuple[str, ...]) -> None:
        message = JointStateFields(data)
        names = message.names
        missing = [joint for joint in joints if joint not in names]
        if names and len(missing) == len(joints):
            raise OtherJoints(
                f"joint_states name {listed(names)}, and none of `joints`, {listed(joints)}: give "
                "both the same names"
            )
        if missing:
            raise JointStateError(
                f"joint_states lacks {listed(missing)} of `joints`; it has "
                f"{listed(names) or 'no names'}"
            )
        if len(set(names)) != len(names):
            raise JointStateError(f"joint_states names a joint twice: {listed(names)}")
        self.indices = np.array([len(names), *(names.index(joint) for joint in joints)])
        pattern = message.reader.pattern()[:, : message.end_of_names]
        self.pattern = np.delete(pattern, slice(2, _FRAME_ID), axis=1)


def refusal(data: bytes, joints: Sequence[str]) -> JointStateError:
    """Error for a message of a known layout; raises CdrError if the message is truncated."""
    message = JointStateFields(data)
    for name, (_, count) in (("position", message.positions), ("velocity", message.velocities)):
        if count != len(message.names):
            return JointStateError(
                f"a joint_states message has {count} {name} values for {len(message.names)} "
                "names; it must have one for each. Does the hardware export this state interface?"
            )
    rows = map(message.reader.numbers, (message.positions, message.velocities))
    values = dict(zip(message.names, zip(*rows, strict=True), strict=True))
    for joint in joints:
        position, velocity = values[joint]
        if not np.isfinite([position, velocity]).all():
            return JointStateError(
                f"joint_states: joint {joint!r} has position {position} and velocity {velocity}; "
                "both must be finite. Does its hardware export both state interfaces?"
            )
    return JointStateError(
        f"joint_states has the stamp {message.seconds} s, {message.nanoseconds} ns; it must "
        "not be negative, and have less than 1e9 ns"
    )


@inlined
def decode_state(
    data: ByteArray, size: int, pattern: ByteArray, indices: IntArray, bits: WordArray
) -> int:
    """Stamp [ns] of a message of this layout, or OTHER_LAYOUT or REFUSED.

    Fills `bits`, shape (2, nv), with the positions and velocities at `indices[1:]`.
    """
    end = _FRAME_ID + pattern.shape[1] - 2
    if size < end or size > data.shape[0]:
        return OTHER_LAYOUT
    difference = (data[0] ^ pattern[0, 0]) | (data[1] ^ pattern[0, 1])
    for i in range(pattern.shape[1] - 2):
        difference |= (data[_FRAME_ID + i] ^ pattern[0, 2 + i]) & pattern[1, 2 + i]
    if difference != 0:
        return OTHER_LAYOUT
    big_endian = pattern[0, 1] == cdr.BIG_ENDIAN
    count = indices[0]
    positions = cdr.numbers_at(data, size, end, count, big_endian)
    if positions < 0:
        return REFUSED
    velocities = cdr.numbers_at(data, size, positions + 8 * count, count, big_endian)
    if velocities < 0:
        return REFUSED
    efforts = cdr.aligned(velocities + 8 * count, 4)
    if efforts + 4 > size:
        return REFUSED
    effort_count = cdr.word(data, efforts, big_endian)
    if effort_count > 0 and cdr.aligned(efforts + 4, 8) + 8 * effort_count > size:
        return REFUSED
    for j in range(bits.shape[1]):
        i = 8 * indices[1 + j]
        if not (
            cdr.is_finite(cdr.double_word(data, positions + i, big_endian))
            and cdr.is_finite(cdr.double_word(data, velocities + i, big_endian))
        ):
            return REFUSED
    seconds = cdr.word(data, cdr.HEADER, big_endian)
    nanoseconds = cdr.word(data, cdr.HEADER + 4, big_endian)
    if seconds >= _SIGN or nanoseconds >= _SECOND:
        return REFUSED
    for j in range(bits.shape[1]):
        i = 8 * indices[1 + j]
        bits[0, j] = cdr.double_word(data, positions + i, big_endian)
        bits[1, j] = cdr.double_word(data, velocities + i, big_endian)
    return seconds * _SECOND + nanoseconds


decode = kernel("i8(u1[::1], i8, u1[:,::1], i8[::1], u8[:,::1])")(decode_state)
