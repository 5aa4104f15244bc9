"""Turns serialised JointTrajectory messages into waypoints in the controller's joint order.

rclpy takes ten milliseconds to make Python objects of a thousand points, and holds the interpreter
meanwhile; from the bytes it takes less than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rnea_control.array_types import FloatArray
from rnea_control.control import Waypoints
from rnea_control.exceptions import TrajectoryError, listed
from rnea_control.kernels.kernel import inlined, kernel
from rnea_control.messages.cdr import (
    BIG_ENDIAN,
    Bytes,
    CdrError,
    CdrReader,
    aligned,
    double_word,
    word,
)

FIELDS = ("positions", "velocities", "accelerations", "effort")
# The longest trajectory that is looked at.
MOST_POINTS = 100_000
# A point has four counts and a duration at least, in bytes.
_SMALLEST_POINT = 24
_SIGN, _WORD = 1 << 31, 1 << 32

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TrajectoryMessage:
    """A JointTrajectory.

    Attributes:
        stamp: of its header, [ns]; 0 for now.
        waypoints: their times counted from its start.
    """

    stamp: int
    waypoints: Waypoints


def decode_trajectory(data: bytes, joints: Sequence[str]) -> TrajectoryMessage:
    """The trajectory in the bytes of a message.

    Raises:
        TrajectoryError: joints that are unknown, missing or given twice, fields of the wrong size,
            bytes that are no JointTrajectory. What the numbers themselves must satisfy is checked
            where the motion is planned.
    """
    try:
        reader = CdrReader(data, "joint_trajectory")
        seconds, nanoseconds = reader.integer("stamp", signed=True), reader.integer("stamp")
        reader.text("frame_id")
        names = reader.texts("joint_names")
        count = reader.integer("points")
    except CdrError as error:
        raise TrajectoryError(str(error)) from error
    order = _order(names, joints)
    if count > len(data) // _SMALLEST_POINT:
        raise TrajectoryError(f"{len(data)} bytes cannot hold the {count} points that they claim")
    if count > MOST_POINTS:
        raise TrajectoryError(f"it has {count} points; at most {MOST_POINTS} are taken at once")
    counts = np.zeros((count, len(FIELDS)), dtype=np.int64)
    bits = np.zeros((3, count, len(names)), dtype=np.uint64)
    times = np.zeros(count)
    bytes_ = np.array(np.frombuffer(data, dtype=np.uint8))
    read = _read_points(bytes_, reader.position, data[1] == BIG_ENDIAN, counts, bits, times)
    _check_counts(counts[: read + 1], len(names))
    if read < count:
        raise TrajectoryError(f"point {read}: the message ends in the midst of it")
    fields = bits.view(np.float64)[:, :, order]
    has = counts[:, 1:3] > 0
    waypoints = Waypoints(times, *fields, has[:, 0], has[:, 1])
    return TrajectoryMessage(seconds * 1_000_000_000 + nanoseconds, waypoints)


def _order(names: list[str], joints: Sequence[str]) -> list[int]:
    """Where in a point the value of each controlled joint stands."""
    unknown = [name for name in names if name not in joints]
    missing = [name for name in joints if name not in names]
    if unknown:
        raise TrajectoryError(
            f"joint_names has {listed([repr(name) for name in unknown])}, not controlled here; the "
            f"joints are {listed(joints)}"
        )
    if missing:
        raise TrajectoryError(
            f"joint_names lacks {listed(missing)}; a trajectory must name every controlled joint"
        )
    if len(names) != len(joints):
        raise TrajectoryError(f"joint_names names a joint twice: {listed(names)}")
    return [names.index(joint) for joint in joints]


def _check_counts(counts: Integers, joints: int) -> None:
    """Refuses points whose fields have not one number a joint."""
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
def _copy_numbers(data: Bytes, start: int, count: int, big_endian: bool, row: Words) -> None:
    for j in range(min(count, row.shape[0])):
        row[j] = double_word(data, start + 8 * j, big_endian)


@kernel("i8(u1[::1], i8, b1, i8[:,::1], u8[:,:,::1], f8[::1])", nogil=True)
def _read_points(
    data: Bytes,
    position: int,
    big_endian: bool,
    counts: Integers,
    bits: Words,
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
