"""Reads the controlled joints out of serialized JointState messages, and refuses bad ones.

A publisher repeats the same names in every message. Where they stand, and which number belongs to
which joint, is found once; a message whose bytes up to the numbers are the same is then decoded by
one compiled call, which compares no names and allocates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray, IntArray, WordArray
from rnea_control.exceptions import RneaControlError, listed
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.messages.cdr import (
    BIG_ENDIAN,
    HEADER,
    CdrReader,
    aligned,
    double_word,
    is_finite,
    word,
)

# The longest message that is read, in bytes; a thousand joints take less than half.
LONGEST = 1 << 17
# How many lists of names are remembered.
LAYOUTS = 8

# What decoding reports in place of a stamp.
OTHER_LAYOUT, BAD_POSITIONS, BAD_VELOCITIES, NOT_FINITE, BAD_STAMP, TRUNCATED = range(-1, -7, -1)

# Where frame_id starts: after the header and the stamp.
_FRAME_ID = HEADER + 8
_SIGN = 1 << 31
_SECOND = 1_000_000_000


class JointStateError(RneaControlError, ValueError):
    """A JointState message that lacks a valid position or velocity of a controlled joint."""


class OtherJoints(JointStateError):
    """A JointState message with none of the controlled joints: it is from another device."""


class JointStateDecoder:
    """Decodes messages into the arrays `q` and `v`, whose order is that of `joints`.

    joint_state_broadcaster keeps no order, mixes in other joints, and leaves fields empty or NaN:
    joints are matched by name, and every number is checked.

    Attributes:
        q, v: the last positions and velocities, shape (nv,); `decode` writes into them.
        layouts: those of the latest publishers, at most `LAYOUTS`.
        bits: both as words, shape (2, nv).
        buffer: the last message, and what comes after it.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self._joints = tuple(joints)
        self.bits = np.zeros((2, len(joints)), dtype=np.uint64)
        self.q, self.v = self.bits.view(np.float64)
        self.layouts: list[Layout] = []
        self._make_room(1 << 12)

    def decode(self, data: bytes) -> int:
        """Fills `q` and `v`; returns the stamp, [ns], which is 0 where the publisher left it empty.

        Raises:
            CdrError: bytes that are not a JointState.
            JointStateError: names the joint and what is wrong.
            `q` and `v` then stay as they were.
        """
        size = len(data)
        if size > len(self._view):
            self._make_room(size)
        self._view[:size] = data
        for layout in self.layouts:
            stamp = decode(self.buffer, size, layout.pattern, layout.indices, self.bits)
            if stamp != OTHER_LAYOUT:
                break
        else:
            layout = Layout(data, self._joints)
            self.layouts = [layout, *self.layouts[: LAYOUTS - 1]]
            stamp = decode(self.buffer, size, layout.pattern, layout.indices, self.bits)
        if stamp < 0:
            raise self._refusal(stamp, data)
        return stamp

    def _make_room(self, size: int) -> None:
        if size > LONGEST:
            raise JointStateError(
                f"a joint_states message has {size} bytes; at most {LONGEST} are allowed"
            )
        self.buffer = np.zeros(min(2 * size, LONGEST), dtype=np.uint8)
        self._view = self.buffer.data

    def _refusal(self, reason: int, data: bytes) -> JointStateError:
        """The error for a message of a known layout."""
        message = JointStateFields(data)  # raises if it is truncated
        if reason == BAD_STAMP:
            return JointStateError(
                f"joint_states has the stamp {message.seconds} s, {message.nanoseconds} ns; it "
                "must not be negative, and have less than 1e9 ns"
            )
        counts = {"position": message.positions[1], "velocity": message.velocities[1]}
        for name, count in counts.items():
            if count != len(message.names):
                return JointStateError(
                    f"a joint_states message has {count} {name} values for {len(message.names)} "
                    "names; it must have one for each. Does the hardware export this state "
                    "interface?"
                )
        positions, velocities = map(message.numbers, (message.positions, message.velocities))
        for joint in self._joints:
            i = message.names.index(joint)
            position, velocity = positions[i], velocities[i]
            if not np.isfinite([position, velocity]).all():
                return JointStateError(
                    f"joint_states: joint {joint!r} has position {position} and velocity "
                    f"{velocity}; both must be finite. Does its hardware export both state "
                    "interfaces?"
                )
        raise AssertionError(f"reason {reason}, but nothing is wrong with the message")


def measured_efforts(data: bytes, joints: Sequence[str]) -> FloatArray:
    """The efforts of `joints` in a serialized message, shape (nv,), [Nm] or [N] if the hardware
    keeps to ROS's units.

    NaN for joints that the message does not name, where its efforts are empty or not one for each
    name, and where they are not finite. It reads every name, and allocates: not for the tick.

    Raises:
        CdrError: bytes that are not a JointState.
    """
    message = JointStateFields(data)
    names, efforts = message.names, message.numbers(message.efforts)
    if len(efforts) != len(names):
        return np.full(len(joints), np.nan)
    found = np.array([efforts[names.index(each)] if each in names else np.nan for each in joints])
    return np.where(np.isfinite(found), found, np.nan)


class JointStateFields:
    """Where the fields of one message stand.

    Raises:
        CdrError: bytes that are not a JointState.
    """

    def __init__(self, data: bytes) -> None:
        reader = CdrReader(data, "joint_states")
        self.seconds = reader.integer("stamp", signed=True)
        self.nanoseconds = reader.integer("stamp")
        reader.string("frame_id")
        self.names = reader.strings("name")
        self.end_of_names = reader.position
        self.positions = reader.skip_numbers("position")
        self.velocities = reader.skip_numbers("velocity")
        self.efforts = reader.skip_numbers("effort")
        self.spans = reader.spans
        self._data, self._type = data, f"{reader.order}f8"

    def numbers(self, field: tuple[int, int]) -> FloatArray:
        """Those of `positions`, `velocities` or `efforts`."""
        start, count = field
        return np.frombuffer(self._data, self._type, count, start)


class Layout:
    """What all messages with the same frame_id and joint names have in common.

    Attributes:
        pattern: the bytes from frame_id to the end of the names, and masks that are 0 for the
            arbitrary ones in between, shape (2, n); the first two stand for the byte order.
        indices: number of values, then where each controlled joint's value stands among them.
    """

    def __init__(self, data: bytes, joints: tuple[str, ...]) -> None:
        message = JointStateFields(data)
        names = message.names
        missing = [joint for joint in joints if joint not in names]
        if missing:
            error = OtherJoints if names and len(missing) == len(joints) else JointStateError
            raise error(
                f"joint_states lacks {listed(missing)} of `joints`; it has "
                f"{listed(names) or 'no names'}"
            )
        if len(set(names)) != len(names):
            raise JointStateError(f"joint_states names a joint twice: {listed(names)}")
        self.indices = np.array([len(names), *(names.index(joint) for joint in joints)])
        size = message.end_of_names - _FRAME_ID
        self.pattern = np.zeros((2, 2 + size), dtype=np.uint8)
        self.pattern[0] = np.frombuffer(data[:2] + data[_FRAME_ID : message.end_of_names], np.uint8)
        self.pattern[1, :2] = 0xFF
        for start, end in message.spans:
            if start >= _FRAME_ID and end <= message.end_of_names:
                self.pattern[1, start - _FRAME_ID + 2 : end - _FRAME_ID + 2] = 0xFF


@inlined
def _numbers(data: ByteArray, size: int, position: int, count: int, big_endian: bool) -> int:
    """Where the numbers of the sequence at `position` start, if there are `count`; else -1."""
    position = aligned(position, 4)
    if position + 4 > size or word(data, position, big_endian) != count:
        return -1
    start = aligned(position + 4, 8)
    return start if start + 8 * count <= size else -1


@inlined
def decode_state(
    data: ByteArray, size: int, pattern: ByteArray, indices: IntArray, bits: WordArray
) -> int:
    """The stamp [ns] of a message of this layout, or the reason why it is refused, negative.

    Fills `bits`, shape (2, nv), with the positions and velocities that stand at `indices[1:]`.
    """
    end = _FRAME_ID + pattern.shape[1] - 2
    if size < end or size > data.shape[0]:
        return OTHER_LAYOUT
    difference = (data[0] ^ pattern[0, 0]) | (data[1] ^ pattern[0, 1])
    for i in range(pattern.shape[1] - 2):
        difference |= (data[_FRAME_ID + i] ^ pattern[0, 2 + i]) & pattern[1, 2 + i]
    if difference != 0:
        return OTHER_LAYOUT
    big_endian = pattern[0, 1] == BIG_ENDIAN
    count = indices[0]
    positions = _numbers(data, size, end, count, big_endian)
    if positions < 0:
        return BAD_POSITIONS
    velocities = _numbers(data, size, positions + 8 * count, count, big_endian)
    if velocities < 0:
        return BAD_VELOCITIES
    efforts = aligned(velocities + 8 * count, 4)
    if efforts + 4 > size:
        return TRUNCATED
    effort_count = word(data, efforts, big_endian)
    if effort_count > 0 and aligned(efforts + 4, 8) + 8 * effort_count > size:
        return TRUNCATED
    for j in range(bits.shape[1]):
        i = 8 * indices[1 + j]
        if not (
            is_finite(double_word(data, positions + i, big_endian))
            and is_finite(double_word(data, velocities + i, big_endian))
        ):
            return NOT_FINITE
    seconds = word(data, HEADER, big_endian)
    nanoseconds = word(data, HEADER + 4, big_endian)
    if seconds >= _SIGN or nanoseconds >= _SECOND:
        return BAD_STAMP
    for j in range(bits.shape[1]):
        i = 8 * indices[1 + j]
        bits[0, j] = double_word(data, positions + i, big_endian)
        bits[1, j] = double_word(data, velocities + i, big_endian)
    return seconds * _SECOND + nanoseconds


decode = kernel("i8(u1[::1], i8, u1[:,::1], i8[::1], u8[:,::1])")(decode_state)
