"""Reads a planner's gains from a serialized linear_feedback_controller_msgs/Control.

The message has the feedback gain, the feedforward torque, and the state about which the gains are,
as a Sensor. The names in the joint state of the Sensor give the order of all numbers; without names
it is the order of the controlled joints. Base and contacts of the Sensor are not read: they may be
NaN for an arm on a fixed base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import ByteArray, IntArray, WordArray
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.messages import cdr
from rnea_control.messages.joint_targets import (
    NO_TARGET,
    NOT_FINITE,
    READ,
    UNREADABLE,
    WRONG_LENGTH,
    begins,
    fill_row,
    find_joints,
    header,
)

TOO_LARGE = 18  # result: a number whose products with others may be infinite
LARGEST = np.uint64(0x426D1A94A2000000)  # bits of the largest number, 1e12
_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)  # all bits but the sign
_STAMP = 8  # size of a stamp [bytes]
_BASE = 13 * 8  # size of pose and twist of the base [bytes]
_REST = 4096  # size of the frames, the labels, the contacts and the lengths, at most [bytes]


def longest(joint_names: Sequence[str]) -> int:
    """Size of the longest message for these joints [bytes]."""
    nv = len(joint_names)
    names = sum(len(name.encode()) + 8 for name in joint_names)
    return 8 * (2 * nv * nv + 4 * nv) + names + _REST


@inlined
def _matrix(
    data: ByteArray, size: int, position: int, rows: int, columns: int, big_endian: bool
) -> tuple[int, int, int]:
    """Result, offset of the numbers and offset after a Float64MultiArray of this shape, row by row.
    An array without dimensions is judged by its length."""
    position = cdr.aligned(position, 4)
    if position + 4 > size:
        return UNREADABLE, 0, 0
    dimensions = cdr.word(data, position, big_endian)
    position += 4
    if dimensions not in (0, 2):
        return WRONG_LENGTH, 0, 0
    fits = True
    for k in range(dimensions):  # a label, the extent and the stride
        position = cdr.aligned(position, 4)
        if position + 4 > size:
            return UNREADABLE, 0, 0
        position = cdr.aligned(position + 4 + cdr.word(data, position, big_endian), 4)
        if position + 8 > size:
            return UNREADABLE, 0, 0
        fits &= cdr.word(data, position, big_endian) == (rows if k == 0 else columns)
        position += 8
    position = cdr.aligned(position, 4)
    if position + 8 > size:
        return UNREADABLE, 0, 0
    fits &= cdr.word(data, position, big_endian) == 0  # the offset of the data
    fits &= cdr.word(data, position + 4, big_endian) == rows * columns
    if not fits:
        return WRONG_LENGTH, 0, 0
    start = cdr.aligned(position + 8, 8)
    end = start + 8 * rows * columns
    return (READ, start, end) if end <= size else (UNREADABLE, 0, 0)


@inlined
def _after_header(data: ByteArray, size: int, position: int, big_endian: bool) -> int:
    """Offset after a std_msgs/Header at this offset; -1 for none."""
    position = cdr.aligned(position, 4) + _STAMP
    if position + 4 > size:
        return -1
    end = position + 4 + cdr.word(data, position, big_endian)
    return end if end <= size else -1


@inlined
def _judge(word: int) -> int:
    """Result for the bits of one number."""
    if not cdr.is_finite(word):
        return NOT_FINITE
    return TOO_LARGE if word & _MAGNITUDE > LARGEST else READ


@inlined
def _state(
    data: ByteArray,
    size: int,
    position: int,
    names: ByteArray,
    ends: IntArray,
    joints: IntArray,
    bits: WordArray,
    big_endian: bool,
) -> int:
    """Fills `joints` with the order of the message, and the first rows of `bits` with positions and
    velocities of a Sensor; returns the result."""
    nv = bits.shape[1]
    position = _after_header(data, size, position, big_endian)
    if position < 0:
        return UNREADABLE
    position = _after_header(data, size, cdr.aligned(position, 8) + _BASE, big_endian)
    if position < 0:
        return UNREADABLE
    result, count, position = find_joints(data, size, position, names, ends, joints, big_endian)
    if result == READ and count == 0:
        for j in range(nv):
            joints[j] = j
    elif result == READ and count != nv:
        return WRONG_LENGTH
    for row in range(2):
        if result == READ:
            result, position = fill_row(data, size, position, nv, joints, bits[row], big_endian)
        if result != READ:
            return result
        for j in range(nv):
            if not cdr.is_finite(bits[row, j]):  # NaN: the sequence is empty
                return NO_TARGET
            if _judge(bits[row, j]) != READ:
                return TOO_LARGE
    return READ


@inlined
def decode_control(
    data: ByteArray,
    size: int,
    names: ByteArray,
    ends: IntArray,
    joints: IntArray,
    bits: WordArray,
    gains: WordArray,
) -> tuple[int, float]:
    """Fills in the numbers of a Control, in the order of the controlled joints. Returns the result,
    and the stamp [s], NaN for 0.

    Args:
        data, size: the message and its size [bytes].
        names, ends: names of the controlled joints, see `joint_targets.name_table`.
        joints: overwritten, of at least nv and MOST_NAMES entries.
        bits: output, shape (3, nv): position, velocity and torque about which the gains are.
        gains: output, shape (nv, 2 nv): gains of the positions, then of the velocities.
    """
    nv = bits.shape[1]
    if not begins(data, size, bits):
        return UNREADABLE, math.nan
    big_endian = data[1] == cdr.BIG_ENDIAN
    stamp, position = header(data, size, big_endian)
    if position < 0:
        return UNREADABLE, math.nan
    result, gains_at, position = _matrix(data, size, position, nv, 2 * nv, big_endian)
    if result != READ:
        return result, stamp
    result, torques_at, position = _matrix(data, size, position, nv, 1, big_endian)
    if result != READ:
        return result, stamp
    result = _state(data, size, position, names, ends, joints, bits, big_endian)
    if result != READ:
        return result, stamp
    for i in range(nv):
        word = cdr.double_word(data, torques_at + 8 * i, big_endian)
        result = max(result, _judge(word))
        bits[2, joints[i]] = word
        for half in range(2):
            for j in range(nv):
                at = gains_at + 8 * ((2 * i + half) * nv + j)
                word = cdr.double_word(data, at, big_endian)
                result = max(result, _judge(word))
                gains[joints[i], half * nv + joints[j]] = word
    return result, stamp


# For Python.
read_control = kernel(
    "Tuple((i8, f8))(u1[::1], i8, u1[::1], i8[::1], i8[::1], u8[:,::1], u8[:,::1])"
)(decode_control)
