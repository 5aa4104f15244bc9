"""JointTrajectory from bytes."""

from __future__ import annotations

import re

import pytest
from dds import trajectory
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import serialize_message

from rnea_control.exceptions import TrajectoryError, TrajectoryJointsError
from rnea_control.messages.joint_trajectory import FIELDS, JointTrajectoryDecoder

JOINTS = ["a", "b", "c"]
number = st.floats(-1e6, 1e6)


@st.composite
def messages(draw, names):
    """Joint names from `names`, and points that have any of the four fields."""
    order = draw(names)
    row = st.lists(number, min_size=len(order), max_size=len(order))
    return order, draw(st.lists(st.tuples(*[st.just([]) | row] * 4), max_size=5))


complete = st.permutations(JOINTS)
some = st.lists(st.sampled_from(JOINTS), min_size=1, unique=True)


def check_against_rclpys_serialisation(order, points, partial: bool) -> None:
    times = [0.25 * i - 1.0 for i in range(len(points))]
    message = trajectory(
        order, [(time, *fields) for time, fields in zip(times, points, strict=True)], start=12.5
    )
    decoded = JointTrajectoryDecoder(JOINTS).decode(serialize_message(message), partial)
    assert decoded.stamp == 12_500_000_000
    assert decoded.times.tolist() == times
    assert decoded.joints.tolist() == [joint in order for joint in JOINTS]
    assert decoded.fields.shape == (4, len(points), 3) and decoded.has.shape == (4, len(points))
    views = decoded.positions, decoded.velocities, decoded.accelerations, decoded.efforts
    for k, view in enumerate(views):
        for i, fields in enumerate(points):
            values = dict(zip(order, fields[k], strict=True)) if fields[k] else {}
            assert view[i].tolist() == [values.get(joint, 0.0) for joint in JOINTS]
            assert decoded.has[k, i] == bool(fields[k])


@settings(deadline=None)
@given(messages(complete), st.booleans())
def test_agrees_with_rclpys_serialisation(message, partial: bool) -> None:
    check_against_rclpys_serialisation(*message, partial)


@settings(deadline=None)
@given(messages(some))
def test_joints_left_out_are_zero(message) -> None:
    check_against_rclpys_serialisation(*message, partial=True)


def test_velocity_only_point_and_point_without_any_field() -> None:
    message = trajectory(JOINTS, [(1.0, [], [1.0, 2.0, 3.0]), (2.0,)])
    decoded = JointTrajectoryDecoder(JOINTS).decode(serialize_message(message))
    assert decoded.has.T.tolist() == [[False, True, False, False], [False] * 4]
    assert decoded.velocities.tolist() == [[1.0, 2.0, 3.0], [0.0] * 3]


WRONG_JOINTS = {
    "unknown": (["a", "b", "d"], "has 'd', which this controller does not control"),
    "twice": (["a", "b", "c", "a"], "names a joint twice: a, b, c, a"),
    "twice in place of another": (["a", "b", "a"], "names a joint twice: a, b, a"),
    "none": ([], "joint_names is empty"),
}


@pytest.mark.parametrize("names, words", WRONG_JOINTS.values(), ids=WRONG_JOINTS)
@pytest.mark.parametrize("partial", [False, True])
def test_wrong_joint_names(names: list[str], words: str, partial: bool) -> None:
    data = serialize_message(trajectory(names, [(1.0, [0.0] * len(names))]))
    with pytest.raises(TrajectoryJointsError, match=words):
        JointTrajectoryDecoder(JOINTS).decode(data, partial)


def test_missing_joints_are_refused_unless_partial() -> None:
    data = serialize_message(trajectory(["b"], [(1.0, [0.5])]))
    with pytest.raises(TrajectoryJointsError, match=r"lacks a, c; .* allow_partial_joints_goal"):
        JointTrajectoryDecoder(JOINTS).decode(data)
    assert JointTrajectoryDecoder(JOINTS).decode(data, partial=True).positions[0, 1] == 0.5


@pytest.mark.parametrize("k, field", list(enumerate(FIELDS)))
@pytest.mark.parametrize("count", [1, 3, 4])
def test_field_of_the_wrong_size_names_its_point(k: int, field: str, count: int) -> None:
    wrong = [*[[]] * k, [1.0] * count]
    data = serialize_message(trajectory(["c", "a"], [(1.0, [0.0] * 2), (2.0, *wrong)]))
    with pytest.raises(TrajectoryError, match=f"point 1: has {count} {field} for 2 joint_names"):
        JointTrajectoryDecoder(JOINTS).decode(data, partial=True)


GOOD = serialize_message(
    trajectory(JOINTS, [(0.5 * (i + 1), [0.1 * i] * 3, *[[0.0] * 3] * 3) for i in range(4)])
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
