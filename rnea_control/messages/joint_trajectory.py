"""Decodes serialized JointTrajectory messages to arrays in the controller's joint order.

rclpy takes ten milliseconds to make Python objects of a thousand points, and holds the
interpreter's lock meanwhile; decoding the bytes takes less than a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, ByteArray, FloatArray, IntArray, WordArray
from rnea_control.exceptions import (
    CdrError,
    TrajectoryJointsError,
    TrajectoryPointsError,
    listed,
    quoted,
)
from rnea_control.jit.kernel import kernel
from rnea_control.messages.cdr import BIG_ENDIAN, CdrReader, aligned, double_word, word

FIELDS = ("positions", "velocities", "accelerations", "effort")
MOST_POINTS = 100_000  # longest trajectory that is read
_SMALLEST_POINT = 24  # bytes of a point without numbers: four counts and a duration
_SIGN = 1 << 31  # sign bit of a 32-bit integer
_WORD = 1 << 32  # number of values of a 32-bit integer


@dataclass(frozen=True)
class JointTrajectoryMessage:
    """Points of a JointTrajectory, n in number, as arrays."""

    stamp: int  # stamp of the header, [ns]; 0 means now
    times: FloatArray  # time_from_start of each point, shape (n,), [s]
    # Positions, velocities, accelerations and efforts, shape (4, n, nv); 0 if a point does not have
    # the field, or the message does not name the joint.
    fields: FloatArray
    has: BoolArray  # True if a point has the field, shape (4, n)
    joints: BoolArray  # True if the message names the controlled joint, shape (nv,)


def decode_trajectory(
    joints: Sequence[str], data: bytes, partial: bool = False
) -> JointTrajectoryMessage:
    """Decodes the bytes of a message.

    Args:
        joints: names of the controlled joints, in the order of the arrays' columns.
        data: the message.
        partial: True if the message may leave out controlled joints.

    Raises:
        TrajectoryJointsError: a joint is unknown, missing or given twice, or no joint is named.
        TrajectoryPointsError: fields of the wrong size, or bytes that are not a JointTrajectory.
            The values are not checked: they may be NaN, times may decrease, and points may have no
            field at all.
    """
    try:
        reader = CdrReader(data, "joint_trajectory")
        seconds, nanoseconds = reader.integer("stamp", signed=True), reader.integer("stamp")
        reader.string("frame_id")
        names = reader.strings("joint_names")
        count = reader.integer("points")
    except CdrError as error:
        raise TrajectoryPointsError(str(error)) from error
    columns = _columns(names, joints, partial)
    if count > len(data) // _SMALLEST_POINT:
        raise TrajectoryPointsError(
            f"it claims {count} points, which {len(data)} bytes cannot hold"
        )
    if count > MOST_POINTS:
        raise TrajectoryPointsError(f"it has {count} points; at most {MOST_POINTS} are allowed")
    counts = np.zeros((len(FIELDS), count), dtype=np.int64)
    bits = np.zeros((len(FIELDS), count, len(joints)), dtype=np.uint64)
    times = np.zeros(count)
    bytes_ = np.array(np.frombuffer(data, dtype=np.uint8))
    big_endian = data[1] == BIG_ENDIAN
    read = _read_points(bytes_, reader.position, big_endian, columns, counts, bits, times)
    wrong = ((counts != len(names)) & (counts != 0)).T[: read + 1]
    if wrong.any():
        i, field = np.argwhere(wrong)[0]
        raise TrajectoryPointsError(
            f"point {i}: has {counts[field, i]} {FIELDS[field]} for {len(names)} joint_names; it "
            "must have one for each"
        )
    if read < count:
        raise TrajectoryPointsError(f"point {read}: the message ends before the point does")
    named = np.zeros(len(joints), dtype=bool)
    named[columns] = True
    stamp = seconds * 1_000_000_000 + nanoseconds
    return JointTrajectoryMessage(stamp, times, bits.view(np.float64), counts > 0, named)


def _columns(names: Sequence[str], joints: Sequence[str], partial: bool) -> IntArray:
    """Index of the controlled joint of each name, shape (len(names),)."""
    if not names:
        raise TrajectoryJointsError(
            "joint_names is empty; it must name the joints that the points' values belong to"
        )
    unknown = [name for name in names if name not in joints]
    missing = [name for name in joints if name not in names]
    if unknown:
        raise TrajectoryJointsError(
            f"joint_names has {listed([quoted(name) for name in unknown])}, which this controller "
            f"does not control; its joints are {listed(joints)}"
        )
    if len(set(names)) != len(names):
        raise TrajectoryJointsError(f"joint_names names a joint twice: {listed(names)}")
    if missing and not partial:
        raise TrajectoryJointsError(
            f"joint_names lacks {listed(missing)}; name every controlled joint, or set the "
            "parameter allow_partial_joints_goal"
        )
    return np.array([joints.index(name) for name in names])


@kernel("i8(u1[::1], i8, b1, i8[::1], i8[:,::1], u8[:,:,::1], f8[::1])", nogil=True)
def _read_points(
    data: ByteArray,
    position: int,
    big_endian: bool,
    columns: IntArray,
    counts: IntArray,
    bits: WordArray,
    times: FloatArray,
) -> int:
    """Reads points from `position` on, at most the size of `times`; returns their number.

    Fills `counts` with the number of numbers in each field of a point, shape (4, n), and `bits`
    with the numbers at their `columns`, shape (4, n, nv).
    """
    size = data.shape[0]
    for i in range(times.shape[0]):
        for field in range(counts.shape[0]):
            position = aligned(position, 4)
            if position + 4 > size:
                return i
            count = word(data, position, big_endian)
            counts[field, i] = count
            position += 4
            if count > 0:
                position = aligned(position, 8)
                if count > (size - position) // 8:
                    return i
                for j in range(min(count, columns.shape[0])):
                    bits[field, i, columns[j]] = double_word(data, position + 8 * j, big_endian)
                position += 8 * count
        position = aligned(position, 4)
        if position + 8 > size:
            return i
        seconds = word(data, position, big_endian)
        if seconds >= _SIGN:
            seconds -= _WORD
        times[i] = seconds + word(data, position + 4, big_endian) / 1e9
        position += 8
    return times.shape[0]
