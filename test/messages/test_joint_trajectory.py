"""JointTrajectory from bytes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from dds import trajectory
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message

from rnea_control.exceptions import TrajectoryError
from rnea_control.messages.joint_trajectory import JointTrajectoryDecoder

JOINTS = ["a", "b", "c"]
number = st.floats(-1e6, 1e6)
row = st.lists(number, min_size=3, max_size=3)


@settings(deadline=None)
@given(
    st.lists(st.tuples(row, st.none() | row, st.none() | row), max_size=5), st.permutations(JOINTS)
)
def test_agrees_with_rclpys_serialisation(points, order) -> None:
    message = trajectory(
        order,
        [(0.25 * i - 1.0, p, v or [], a or []) for i, (p, v, a) in enumerate(points)],
        start=12.5,
    )
    decoded = JointTrajectoryDecoder(JOINTS).decode(serialize_message(message))
    columns = [list(order).index(joint) for joint in JOINTS]
    assert decoded.stamp == 12_500_000_000
    assert decoded.times.tolist() == [0.25 * i - 1.0 for i in range(len(points))]
    for i, (p, v, a) in enumerate(points):
        np.testing.assert_array_equal(decoded.positions[i], np.array(p)[columns])
        assert decoded.has_velocity[i] == (v is not None)
        assert decoded.has_acceleration[i] == (a is not None)
        np.testing.assert_array_equal(decoded.velocities[i], np.array(v or [0.0] * 3)[columns])
        np.testing.assert_array_equal(decoded.accelerations[i], np.array(a or [0.0] * 3)[columns])


GOOD = serialize_message(
    trajectory(JOINTS, [(0.5 * (i + 1), [0.1 * i] * 3, [0.0] * 3, [0.0] * 3) for i in range(4)])
)


def decodes(data: bytes) -> bool:
    try:
        JointTrajectoryDecoder(JOINTS).decode(data)
    except TrajectoryError:
        return False
    return True


def test_truncated_anywhere() -> None:
    # rclpy's serialisation has some bytes more than the message: the last point ends with the
    # seconds and nanoseconds of its time, 2 s.
    end = GOOD.rindex(b"\x02\0\0\0\0\0\0\0") + 8
    assert [decodes(GOOD[:size]) for size in range(len(GOOD) + 1)] == [
        size >= end for size in range(len(GOOD) + 1)
    ]


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_hostile_bytes_are_refused_or_read_within_bounds(data) -> None:
    hostile = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        hostile[data.draw(st.integers(0, len(hostile) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = JointTrajectoryDecoder(JOINTS).decode(bytes(hostile))
    except TrajectoryError as error:
        # the message says which field or point, and stays short
        assert re.search("joint_trajectory: |joint_names |point |points", str(error)), error
        assert len(str(error)) < 2000
    else:
        assert decoded.positions.shape == (len(decoded.times), 3)


def test_count_that_the_bytes_cannot_hold() -> None:
    place = GOOD.index(b"c\0") + 2
    place += -(place - 4) % 4
    hostile = GOOD[:place] + b"\xff\xff\xff\x0f" + GOOD[place + 4 :]
    with pytest.raises(TrajectoryError, match="claims 268435455 points"):
        JointTrajectoryDecoder(JOINTS).decode(hostile)
