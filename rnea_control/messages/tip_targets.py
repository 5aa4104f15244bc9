"""Reads target poses, twists, wrenches and stiffnesses of the tip from serialized messages:
geometry_msgs/PoseStamped, TwistStamped, WrenchStamped and std_msgs/Float64MultiArray.

The frame of a message is looked up among the links of the robot.
"""

from __future__ import annotations

import math

from rnea_control.array_types import ByteArray, IntArray, Vector, WordArray
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.messages import cdr
from rnea_control.messages.joint_targets import (
    NOT_FINITE,
    READ,
    UNREADABLE,
    WRONG_LENGTH,
    array_start,
    header,
    name_at,
)

# Results of decoding, beside those of joint_targets.py.
UNKNOWN_FRAME = 6  # the frame is not a link of the robot
NO_ORIENTATION = 7  # a quaternion whose length is not about 1

POSE = 7  # numbers of a pose
SIX = 6  # numbers of a twist or a wrench
MATRIX = 36  # numbers of a matrix of 6 x 6
LENGTH_ERROR = 0.1  # largest error of the length of a quaternion


@inlined
def _fill(data: ByteArray, start: int, count: int, bits: WordArray, big_endian: bool) -> bool:
    """Fills in numbers from an offset on; returns False if one is not finite."""
    for i in range(count):
        word = cdr.double_word(data, start + 8 * i, big_endian)
        if not cdr.is_finite(word):
            return False
        bits[i] = word
    return True


@inlined
def decode_stiffness(data: ByteArray, size: int, bits: WordArray) -> tuple[int, int]:
    """Fills in the 6 or 36 numbers of a Float64MultiArray; returns the result and their count."""
    result, count, start = array_start(data, size)
    if result != READ:
        return result, 0
    if count not in (SIX, MATRIX):
        return WRONG_LENGTH, 0
    start = cdr.aligned(start + 4, 8)
    if start + 8 * count > size:
        return UNREADABLE, 0
    finite = _fill(data, start, count, bits, data[1] == cdr.BIG_ENDIAN)
    return (READ if finite else NOT_FINITE), count


@inlined
def decode_tip(
    data: ByteArray,
    size: int,
    count: int,
    links: ByteArray,
    ends: IntArray,
    numbers: Vector,
    bits: WordArray,
) -> tuple[int, float, int]:
    """Fills in the numbers of a pose, twist or wrench.

    Args:
        data, size: the message and its size [bytes].
        count: POSE or SIX.
        links, ends: names of the links, see `joint_targets.name_table`.
        numbers, bits: output, shape (36,), and the same memory as words.

    Returns:
        The result, the stamp [s], NaN for 0, and the row of the frame among the links.
    """
    if not (cdr.HEADER < size <= data.shape[0] and data[0] == 0 and data[1] <= cdr.LITTLE_ENDIAN):
        return UNREADABLE, math.nan, 0
    big_endian = data[1] == cdr.BIG_ENDIAN
    stamp, end = header(data, size, big_endian)
    if end < 0:
        return UNREADABLE, math.nan, 0
    start = cdr.aligned(end, 8)
    if start + 8 * count > size:
        return UNREADABLE, math.nan, 0
    if not _fill(data, start, count, bits, big_endian):
        return NOT_FINITE, math.nan, 0
    begin = cdr.HEADER + 12
    frame = name_at(data, begin, end - begin - 1, links, ends)
    if frame < 0:
        return UNKNOWN_FRAME, stamp, 0
    if count == POSE:
        square = 0.0
        for k in range(3, POSE):
            square += numbers[k] * numbers[k]
        if not abs(math.sqrt(square) - 1.0) <= LENGTH_ERROR:
            return NO_ORIENTATION, stamp, frame
    return READ, stamp, frame


@inlined
def copy_frame(data: ByteArray, size: int, frame: ByteArray) -> None:
    """Copies the name of the frame, cut to the size of `frame`, with zeros after it."""
    _, end = header(data, size, data[1] == cdr.BIG_ENDIAN)
    begin = cdr.HEADER + 12
    for i in range(frame.shape[0]):
        frame[i] = data[begin + i] if begin + i < end else 0


# For Python.
read_tip = kernel("Tuple((i8, f8, i8))(u1[::1], i8, i8, u1[::1], i8[::1], f8[::1], u8[::1])")(
    decode_tip
)
read_stiffness = kernel("Tuple((i8, i8))(u1[::1], i8, u8[::1])")(decode_stiffness)
