"""Turns serialised JointTrajectory messages into arrays in the controller's joint order.

rclpy takes ten milliseconds to make Python objects of a thousand points, and holds the
interpreter's lock meanwhile; decoding the bytes takes less than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, ByteArray, FloatArray, IntArray, WordArray
from rnea_control.exceptions import TrajectoryError, listed
from rnea_control.kernels.kernel import inlined, kernel
from rnea_control.messages.cdr import (
    BIG_ENDIAN,
    CdrError,
    CdrReader,
    aligned,
    double_word,
    word,
)

FIELDS = ("positions", "velocities", "accelerations", "effort")
# The longest trajectory that is read.
MOST_POINTS = 100_000
# A point has at least four counts and a duration, in bytes.
_SMALLEST_POINT = 24
_SIGN, _WORD = 1 << 31, 1 << 32


@dataclass(frozen=True)
class JointTrajectoryMessage:
    """The n points of a JointTrajectory, as arrays.

    Attributes:
        stamp: of its header, [ns]; 0 means now.
        times: time_from_start of each point, shape (n,), [s].
        positions, velocities, accelerations: shape (n, nv); 0 where a point does not have them.
        has_velocity, has_acceleration: which points do, shape (n,).
    """

    stamp: int
    times: FloatArray
    positions: FloatArray
    velocities: FloatArray
    accelerations: FloatArray
    has_velocity: BoolArray
    has_acceleration: BoolArray


class JointTrajectoryDecoder:
    """Decodes messages into arrays whose columns have the order of `joints`."""

    def __init__(self, joints: Sequence[str]) -> None:
        self._joints = tuple(joints)

    def decode(self, data: bytes) -> JointTrajectoryMessage:
        """The trajectory in the bytes of a message.

        Raises:
            TrajectoryError: joints that are unknown, missing or given twice, fields of the wrong
                size, bytes that are not a JointTrajectory. The values themselves are not checked:
                they may be NaN, and times may fall.
        """
        try:
            reader = CdrReader(data, "joint_trajectory")
            seconds, nanoseconds = reader.integer("stamp", signed=True), reader.integer("stamp")
            reader.string("frame_id")
            names = reader.strings("joint_names")
            count = reader.integer("points")
        except CdrError as error:
            raise TrajectoryError(str(error)) from error
        columns = _columns(names, self._joints)
        if count > len(data) // _SMALLEST_POINT:
            raise TrajectoryError(f"it claims {count} points, which {len(data)} bytes cannot hold")
        if count > MOST_POINTS:
            raise TrajectoryError(f"it has {count} points; at most {MOST_POINTS} are allowed")
        counts = np.zeros((count, len(FIELDS)), dtype=np.int64)
        bits = np.zeros((3, count, len(names)), dtype=np.uint64)
        times = np.zeros(count)
        bytes_ = np.array(np.frombuffer(data, dtype=np.uint8))
        read = _read_points(bytes_, reader.position, data[1] == BIG_ENDIAN, counts, bits, times)
        _check_counts(counts[: read + 1], len(names))
        if read < count:
            raise TrajectoryError(f"point {read}: the message ends before the point does")
        positions, velocities, accelerations = bits.view(np.float64)[:, :, columns]
        has = counts[:, 1:3] > 0
        return JointTrajectoryMessage(
            seconds * 1_000_000_000 + nanoseconds,
            times,
            positions,
            velocities,
            accelerations,
            has[:, 0],
            has[:, 1],
        )


def _columns(names: list[str], joints: Sequence[str]) -> list[int]:
    """Where in a point the value of each controlled joint stands."""
    unknown = [name for name in names if name not in joints]
    missing = [name for name in joints if name not in names]
    if unknown:
        raise TrajectoryError(
            f"joint_names has {listed([repr(name) for name in unknown])}, which this controller "
            f"does not control; its joints are {listed(joints)}"
        )
    if missing:
        raise TrajectoryError(
            f"joint_names lacks {listed(missing)}; a trajectory must name every controlled joint"
        )
    if len(names) != len(joints):
        raise TrajectoryError(f"joint_names names a joint twice: {listed(names)}")
    return [names.index(joint) for joint in joints]


def _check_counts(counts: IntArray, joints: int) -> None:
    """Refuses points with a field that does not have one number a joint."""
    wrong = (counts != joints) & (counts != 0)
    wrong[:, 0] |= counts[:, 0] == 0
    wrong[:, 3] = counts[:, 3] != 0
    if not wrong.any():
        return
    i, field = np.argwhere(wrong)[0]
    if FIELDS[field] == "effort":
        raise TrajectoryError(
            f"point {i}: has effort values, which are not supported; leave effort empty"
        )
    raise TrajectoryError(
        f"point {i}: has {counts[i, field]} {FIELDS[field]} for {joints} joint_names; it must "
        "have one for each"
    )


@inlined
def _copy_numbers(
    data: ByteArray, start: int, count: int, big_endian: bool, row: WordArray
) -> None:
    for j in range(min(count, row.shape[0])):
        row[j] = double_word(data, start + 8 * j, big_endian)


@kernel("i8(u1[::1], i8, b1, i8[:,::1], u8[:,:,::1], f8[::1])", nogil=True)
def _read_points(
    data: ByteArray,
    position: int,
    big_endian: bool,
    counts: IntArray,
    bits: WordArray,
    times: FloatArray,
) -> int:
    """Reads points from `position` on, as many as `times` holds; returns how many there were.

    Fills how many numbers each field of a point has, and as many of them as are wanted.
    """
    size = data.shape[0]
    for i in range(times.shape[0]):
        for field in range(counts.shape[1]):
            position = aligned(position, 4)
            if position + 4 > size:
                return i
            count = word(data, position, big_endian)
            counts[i, field] = count
            position += 4
            if count > 0:
                position = aligned(position, 8)
                if count > (size - position) // 8:
                    return i
                if field < bits.shape[0]:
                    _copy_numbers(data, position, count, big_endian, bits[field, i])
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
