"""Reads joint targets from serialized messages: sensor_msgs/JointState, std_msgs/Float64MultiArray
and control_msgs/JointJog.

Names are compared with those of the controlled joints at each message: there may be fewer, and in
any order. A message with another joint is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import ByteArray, IntArray, WordArray
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.messages import cdr

# Results of decoding.
READ = 0
UNREADABLE = 1  # the bytes are no message of this type
WRONG_LENGTH = 2  # a number of values that does not fit the joints
UNKNOWN_JOINT = 3  # a joint that is not controlled, or a joint twice
NOT_FINITE = 4
NO_TARGET = 5  # neither a position nor a velocity

MOST_NAMES = 64  # longest list of joints in a message
MOST_DIMENSIONS = 8  # largest number of dimensions of an array
_STAMP = 8  # size of a stamp [bytes]
NAN = np.uint64(0x7FF8000000000000)  # bits of NaN


def name_table(names: Sequence[str]) -> tuple[ByteArray, IntArray]:
    """Bytes of all names, one after the other, and the offset of each and of the end."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8).copy(), ends


@inlined
def name_at(data: ByteArray, at: int, length: int, names: ByteArray, ends: IntArray) -> int:
    """Row of the name at this offset in a table of names; -1 for none."""
    for j in range(ends.shape[0] - 1):
        if ends[j + 1] - ends[j] != length:
            continue
        same = True
        for i in range(length):
            same &= data[at + i] == names[ends[j] + i]
        if same:
            return j
    return -1


@inlined
def header(data: ByteArray, size: int, big_endian: bool) -> tuple[float, int]:
    """Stamp [s], NaN for 0, and the offset after a std_msgs/Header; -1 for none."""
    start = cdr.HEADER
    if start + _STAMP + 4 > size:
        return math.nan, -1
    seconds = cdr.word(data, start, big_endian)
    stamp = seconds + 1e-9 * cdr.word(data, start + 4, big_endian)
    length = cdr.word(data, start + _STAMP, big_endian)
    end = start + _STAMP + 4 + length
    return (stamp if stamp > 0.0 else math.nan), (end if end <= size else -1)


@inlined
def find_joints(
    data: ByteArray,
    size: int,
    position: int,
    names: ByteArray,
    ends: IntArray,
    joints: IntArray,
    big_endian: bool,
) -> tuple[int, int, int]:
    """Fills `joints` with the indices of the joints that a sequence of names gives. Returns the
    result, the number of names, and the offset after it."""
    position = cdr.aligned(position, 4)
    if position + 4 > size:
        return UNREADABLE, 0, 0
    count = cdr.word(data, position, big_endian)
    position += 4
    if count > joints.shape[0]:
        return UNKNOWN_JOINT, 0, 0
    for i in range(count):
        position = cdr.aligned(position, 4)
        if position + 4 > size:
            return UNREADABLE, 0, 0
        length = cdr.word(data, position, big_endian)
        position += 4
        if length < 1 or position + length > size:
            return UNREADABLE, 0, 0
        joints[i] = name_at(data, position, length - 1, names, ends)
        if joints[i] < 0:
            return UNKNOWN_JOINT, 0, 0
        for k in range(i):
            if joints[k] == joints[i]:
                return UNKNOWN_JOINT, 0, 0
        position += length
    return READ, count, position


@inlined
def fill_row(
    data: ByteArray,
    size: int,
    position: int,
    count: int,
    joints: IntArray,
    bits: WordArray,
    big_endian: bool,
) -> tuple[int, int]:
    """Fills a row of bits with the numbers of a sequence, which is empty or has `count` of them.
    Returns the result and the offset after it."""
    position = cdr.aligned(position, 4)
    if position + 4 > size:
        return UNREADABLE, 0
    length = cdr.word(data, position, big_endian)
    if length == 0:
        return READ, position + 4
    if length != count:
        return WRONG_LENGTH, 0
    start = cdr.aligned(position + 4, 8)
    if start + 8 * count > size:
        return UNREADABLE, 0
    for i in range(count):
        word = cdr.double_word(data, start + 8 * i, big_endian)
        if not cdr.is_finite(word):
            return NOT_FINITE, 0
        bits[joints[i]] = word
    return READ, start + 8 * count


@inlined
def begins(data: ByteArray, size: int, bits: WordArray) -> bool:
    """True for the first bytes of a serialized message; sets all numbers to NaN."""
    for row in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            bits[row, j] = NAN
    return cdr.HEADER < size <= data.shape[0] and data[0] == 0 and data[1] <= cdr.LITTLE_ENDIAN


@inlined
def _decode(
    data: ByteArray,
    size: int,
    names: ByteArray,
    ends: IntArray,
    joints: IntArray,
    bits: WordArray,
    rows: int,
    moving: int,
) -> tuple[int, float]:
    """Decodes a header, names, and `rows` sequences of numbers, of which one of the first `moving`
    must not be empty; see `decode_joint_state`."""
    if not begins(data, size, bits):
        return UNREADABLE, math.nan
    big_endian = data[1] == cdr.BIG_ENDIAN
    stamp, position = header(data, size, big_endian)
    if position < 0:
        return UNREADABLE, math.nan
    result, count, position = find_joints(data, size, position, names, ends, joints, big_endian)
    moves = False
    for row in range(rows):
        if result == READ and count > 0:
            result, position = fill_row(data, size, position, count, joints, bits[row], big_endian)
            moves |= row < moving and bits[row, joints[0]] != NAN
    return NO_TARGET if result == READ and not moves else result, stamp


@inlined
def decode_joint_state(
    data: ByteArray, size: int, names: ByteArray, ends: IntArray, joints: IntArray, bits: WordArray
) -> tuple[int, float]:
    """Fills `bits`, shape (3, nv), with positions, velocities and efforts of a JointState, NaN
    where it has none. Returns the result, and the stamp [s], NaN for 0.

    Args:
        data, size: the message and its size [bytes].
        names, ends: names of the controlled joints, see `name_table`.
        joints: overwritten, shape (MOST_NAMES,).
    """
    return _decode(data, size, names, ends, joints, bits, 3, 1)


@inlined
def decode_jog(
    data: ByteArray, size: int, names: ByteArray, ends: IntArray, joints: IntArray, bits: WordArray
) -> tuple[int, float]:
    """Fills `bits` with displacements and velocities of a JointJog; else as
    `decode_joint_state`."""
    return _decode(data, size, names, ends, joints, bits, 2, 2)


@inlined
def array_start(data: ByteArray, size: int) -> tuple[int, int, int]:
    """Result for the layout of a Float64MultiArray, the count of its numbers, and the offset of
    that count."""
    if not (cdr.HEADER < size <= data.shape[0] and data[0] == 0 and data[1] <= cdr.LITTLE_ENDIAN):
        return UNREADABLE, 0, 0
    big_endian = data[1] == cdr.BIG_ENDIAN
    position = cdr.HEADER
    if position + 4 > size:
        return UNREADABLE, 0, 0
    dimensions = cdr.word(data, position, big_endian)
    position += 4
    if dimensions > MOST_DIMENSIONS:
        return UNREADABLE, 0, 0
    for _ in range(dimensions):  # a label, and two numbers
        position = cdr.aligned(position, 4)
        if position + 4 > size:
            return UNREADABLE, 0, 0
        position = cdr.aligned(position + 4 + cdr.word(data, position, big_endian), 4) + 8
    position = cdr.aligned(position, 4)
    if position + 8 > size:
        return UNREADABLE, 0, 0
    if cdr.word(data, position, big_endian) != 0:  # the offset of the data
        return WRONG_LENGTH, 0, 0
    return READ, cdr.word(data, position + 4, big_endian), position + 4


@inlined
def decode_positions(data: ByteArray, size: int, joints: IntArray, bits: WordArray) -> int:
    """Fills `bits` with the positions of all joints in a Float64MultiArray; returns the result."""
    begins(data, size, bits)
    result, length, start = array_start(data, size)
    if result != READ:
        return result
    count = bits.shape[1]
    for j in range(count):
        joints[j] = j
    if length != count:
        return WRONG_LENGTH
    return fill_row(data, size, start, count, joints, bits[0], data[1] == cdr.BIG_ENDIAN)[0]


# For Python.
SIGNATURE = "Tuple((i8, f8))(u1[::1], i8, u1[::1], i8[::1], i8[::1], u8[:,::1])"
read_joint_state = kernel(SIGNATURE)(decode_joint_state)
read_jog = kernel(SIGNATURE)(decode_jog)
read_positions = kernel("i8(u1[::1], i8, i8[::1], u8[:,::1])")(decode_positions)
