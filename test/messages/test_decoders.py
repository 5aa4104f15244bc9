"""The decoders of messages: against rclpy's own serialization, broken, and fuzzed."""

from __future__ import annotations

import contextlib
import math
import random
import re
import struct
from array import array

import numpy as np
import pytest
from dds import trajectory
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from rnea_control.exceptions import RneaControlError, TrajectoryError, TrajectoryJointsError
from rnea_control.loop.state_intake import LONGEST, AnothersState, StateIntake
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder, decode_command
from rnea_control.messages.joint_state import JointStateError, OtherJoints, measured_efforts
from rnea_control.messages.joint_trajectory import FIELDS, decode_trajectory


@st.composite
def hostile(draw, good: bytes, cut: bool = True) -> bytes:
    changed = bytearray(good)
    places = st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255))
    for place, value in draw(st.lists(places, min_size=1, max_size=6)):
        changed[place] = value
    return bytes(changed[: draw(st.integers(0, len(good))) if cut else None])


NAMES = ["a", "bb", "ccc", "dddd", "a_long_name_of_a_joint"]
PAIR = ["a", "b"]
numbers = st.floats(allow_nan=False, allow_infinity=False)


def serialized(
    names, position, velocity, effort=(), stamp=(1, 2), frame="base_link", order="<"
) -> bytes:
    """A JointState by the rules of CDR, with arbitrary bytes for padding."""
    data = bytearray([0, order == "<", 0, 0]) + struct.pack(order + "iI", *stamp)

    def align(size: int) -> None:
        while (len(data) - 4) % size:
            data.append(random.randrange(256))

    def count(value: int) -> None:
        align(4)
        data.extend(struct.pack(order + "I", value))

    def text(value: str) -> None:
        count(len(value.encode()) + 1)
        data.extend(value.encode() + b"\0")

    text(frame)
    count(len(names))
    for name in names:
        text(name)
    for values in (position, velocity, effort):
        count(len(values))
        if len(values):
            align(8)
            data.extend(struct.pack(f"{order}{len(values)}d", *values))
    return bytes(data)


@st.composite
def states(draw):
    names = draw(st.lists(st.text(max_size=9).filter(lambda s: "\0" not in s), unique=True))
    names = draw(st.permutations([*names, *(name for name in NAMES if name not in names)]))
    row = st.lists(numbers, min_size=len(names), max_size=len(names))
    stamp = (draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 10**9 - 1)))
    frame = draw(st.sampled_from(["", "base_link", "w"]))
    return names, draw(row), draw(row), draw(st.just([]) | row), stamp, frame


@settings(deadline=None)
@given(states())
def test_state_agrees_with_rclpy_in_both_byte_orders_and_any_padding(state) -> None:
    names, position, velocity, effort, stamp, frame = state
    rows = {"position": position, "velocity": velocity, "effort": effort}
    message = JointState(name=names, **{key: array("d", row) for key, row in rows.items()})
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    assert deserialize_message(serialized(*state), JointState) == message
    ours = [names.index(name) for name in NAMES]
    decoder = StateIntake(NAMES, 0.1)
    for data in (serialize_message(message), *(serialized(*state, order) for order in "<><>")):
        assert decoder.decode(data) == stamp[0] * 10**9 + stamp[1]
        assert decoder.q.tolist() == [position[i] for i in ours]
        assert decoder.v.tolist() == [velocity[i] for i in ours]
        found = measured_efforts(data, NAMES)
        assert found.tolist() == [effort[i] for i in ours] if effort else np.isnan(found).all()
    assert len(decoder.layouts) == 2


def test_known_layouts_are_decoded_without_their_names() -> None:
    decoder = StateIntake(PAIR, 0.1)
    for k in range(3):
        decoder.decode(serialized(["a", "b"], [1.0 * k, 2.0], [0.0, 0.0]))
        decoder.decode(serialized(["b", "a"], [1.0 * k, 3.0], [0.0, 0.0]))
        assert decoder.q.tolist() == [3.0, 1.0 * k]
    assert len(decoder.layouts) == 2
    for k in range(20):
        decoder.decode(serialized(["a", "b", f"b{k}"], [1.0, 2.0, 3.0], [0.0] * 3))
    assert len(decoder.layouts) <= 8


def test_layout_of_the_followed_publisher_stays_the_first() -> None:
    """Machine code knows that one alone."""
    decoder = StateIntake(PAIR, 0.1)
    decoder.take(serialized(["a", "b"], [1.0, 2.0], [0.0, 0.0]), 1, bytes(16), 0.0)
    followed = decoder.layouts[0]
    with pytest.raises(AnothersState):
        decoder.take(serialized(["b", "a"], [3.0, 4.0], [0.0, 0.0]), 1, bytes([1] * 16), 0.01)
    assert decoder.layouts[0] is followed
    assert decoder.q.tolist() == [1.0, 2.0]


GOOD = serialized(["b", "a"], [1.0, 2.0], [3.0, 4.0])
WRONG = {
    "empty": (b"", "begin with nothing"),
    "another encapsulation": (b"\0\7" + GOOD[2:], "begin with 00 07"),
    "header only": (GOOD[:4], "ends inside its stamp"),
    "no end": (GOOD[:-1], "ends inside its effort"),
    "count of names": (GOOD[:28] + b"\xff" * 4 + GOOD[32:], "ends inside its name"),
    "too long": (GOOD + bytes(LONGEST), r"has \d+ bytes; at most 131072"),
    "negative stamp": (serialized(PAIR, [1, 2], [3, 4], stamp=(-1, 0)), "stamp -1 s"),
    "nanoseconds": (serialized(PAIR, [1, 2], [3, 4], stamp=(1, 10**9)), "less than 1e9"),
    "no velocity": (serialized(PAIR, [1, 2], []), "has 0 velocity values for 2 names"),
    "short position": (serialized(PAIR, [1], [3, 4]), "has 1 position values for 2 names"),
    "long position": (serialized(PAIR, [1, 2, 3], [3, 4]), "has 3 position values"),
    "NaN": (serialized(PAIR, [1, math.nan], [3, 4]), "joint 'b' has position nan"),
    "inf": (serialized(PAIR, [1, 2], [math.inf, 4]), "joint 'a' .* velocity inf"),
    "missing joint": (serialized(["a", "c"], [1, 2], [3, 4]), "lacks b of `joints`; it has a, c"),
    "joint twice": (serialized(["a", "b", "a"], [1, 2, 3], [3, 4, 5]), "names a joint twice"),
    "other joints": (serialized(["c"], [1], [3]), "none of `joints`, a, b"),
    "no names": (serialized([], [], []), "it has no names"),
    "many names": (serialized("c" * 1500, [], []), "1500 entries; at most 1000 are allowed"),
    "other names": (serialized([f"j{i}" for i in range(900)], [], []), "and 890 more"),
    "long name": (serialized(["x" * 100_000], [], []), "none of `joints`, a, b"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_state_is_refused_and_nothing_changes(name: str) -> None:
    data, words = WRONG[name]
    decoder = StateIntake(PAIR, 0.1)
    for before in ([0.0, 0.0], [2.0, 1.0]):  # by a layout that is not known, and by one that is
        with pytest.raises((JointStateError, CdrError), match=words) as refusal:
            decoder.decode(data)
        assert isinstance(refusal.value, OtherJoints) == (name.startswith(("other", "long name")))
        assert len(str(refusal.value)) < 300
        assert decoder.q.tolist() == before and decoder.v.any() == any(before)
        decoder.decode(GOOD)
        assert decoder.q.tolist() == [2.0, 1.0] and decoder.v.tolist() == [4.0, 3.0]


def test_state_truncated_anywhere() -> None:
    good = serialized(["b", "a"], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    decoder = StateIntake(PAIR, 0.1)
    for _ in range(2):  # by a layout that is not known, and by one that is
        for size in range(len(good)):
            with pytest.raises(RneaControlError):
                decoder.decode(good[:size])
        decoder.decode(good)


@settings(deadline=None, max_examples=200)
@given(hostile(GOOD) | st.binary(max_size=300))
def test_hostile_state_gives_finite_numbers_or_an_error(data: bytes) -> None:
    decoder = StateIntake(PAIR, 0.1)
    decoder.decode(GOOD)
    try:
        assert decoder.decode(data) >= 0
    except RneaControlError:
        assert decoder.q.tolist() == [2.0, 1.0] and decoder.v.tolist() == [4.0, 3.0]
    assert np.isfinite([decoder.q, decoder.v]).all()
    with contextlib.suppress(CdrError):
        assert measured_efforts(data, PAIR).shape == (2,)


NAN, INF = math.nan, math.inf


def test_efforts_that_are_not_known_or_end_too_early() -> None:
    """Positions and velocities may be missing."""
    some = [NAN, 2.0, INF, -INF]
    for names, effort, joints, expected in (
        ("ab", [], ["b", "a"], [NAN, NAN]),
        ("ab", [1.0], ["b", "a"], [NAN, NAN]),
        ("ab", [1.0, 2.0, 3.0], ["b", "a"], [NAN, NAN]),
        ("abcd", some, ["d", "e", "b", "a"], [NAN, NAN, 2.0, NAN]),
        ("abcd", some, ["c"], [NAN]),
        ("", [], ["a"], [NAN]),
    ):
        data = serialized(names, [], [], effort)
        np.testing.assert_array_equal(measured_efforts(data, joints), expected)
        with pytest.raises(CdrError):
            measured_efforts(data[:-1], joints)


def message(values, labels=()) -> bytes:
    dimensions = [MultiArrayDimension(label=label, size=1, stride=2) for label in labels]
    layout = MultiArrayLayout(dim=dimensions)
    return serialize_message(Float64MultiArray(layout=layout, data=values))


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20), st.lists(st.text(max_size=9), max_size=4))
def test_command_agrees_with_rclpy_with_any_layout_and_byte_order(values, labels) -> None:
    encoder = Float64MultiArrayEncoder(len(values))
    assert encoder.values.flags.aligned
    encoder.values[:] = values
    encoded = encoder.encode()
    assert deserialize_message(encoded, Float64MultiArray).data.tolist() == values
    assert len(encoded) == len(message(values))
    labels = [label.replace("\0", "") for label in labels]
    big_endian = bytes(4) + struct.pack(f">IIII{len(values)}d", 0, 0, len(values), 0xABCD, *values)
    for data in (encoded, message(values, labels), big_endian):
        assert decode_command(data, len(values)).tolist() == values


COMMAND = message([1.0, 2.0], ["joints"])


def test_wrong_command_is_refused() -> None:
    for data, words in (
        (b"", "topic: the bytes begin with nothing"),
        (b"\0\7" + COMMAND[2:], "begin with 00 07"),
        (b"\1\1" + COMMAND[2:], "begin with 01 01"),
        (COMMAND[:4], "ends inside its layout.dim"),
        (COMMAND[:10], r"ends inside its layout.dim\[0\].label"),
        (message([1.0, 2.0])[:-3], "ends inside its data"),
        (COMMAND[:4] + b"\xff" * 4 + COMMAND[8:], "topic: the message ends inside"),
        (message([]), "topic has 0 numbers; it must have 2"),
        (message([1.0]), "topic has 1 numbers; it must have 2"),
        (message([1.0, 2.0, 3.0], ["a", "b"]), "topic has 3 numbers; it must have 2"),
        (message([1.0, np.nan], ["a"]), "topic: number 1 is nan; it must be finite"),
        (message([-np.inf, 0.0]), "topic: number 0 is -inf; it must be finite"),
        (message([1.0, 2.0], ["x" * 5000]), r"topic has \d+ bytes; at most"),
    ):
        with pytest.raises(RneaControlError, match=words):
            decode_command(data, 2, "topic")


@settings(deadline=None, max_examples=200)
@given(hostile(COMMAND))
def test_hostile_command_gives_finite_numbers_or_an_error(data: bytes) -> None:
    with contextlib.suppress(RneaControlError):
        values = decode_command(data, 2)
        assert np.isfinite(values).all() and values.shape == (2,)


JOINTS = ["a", "b", "c"]
number = st.floats(-1e6, 1e6)


@st.composite
def messages(draw):
    some = st.lists(st.sampled_from(JOINTS), min_size=1, unique=True)
    order = draw(st.permutations(JOINTS) | some)
    row = st.lists(number, min_size=len(order), max_size=len(order))
    return order, draw(st.lists(st.tuples(*[st.just([]) | row] * 4), max_size=5))


@settings(deadline=None)
@given(messages())
def test_trajectory_agrees_with_rclpys_serialization(message) -> None:
    order, points = message
    times = [0.25 * i - 1.0 for i in range(len(points))]
    timed = [(time, *fields) for time, fields in zip(times, points, strict=True)]
    data = serialize_message(trajectory(order, timed, start=12.5))
    decoded = decode_trajectory(JOINTS, data, partial=True)
    assert decoded.stamp == 12_500_000_000
    assert decoded.times.tolist() == times
    assert decoded.joints.tolist() == [joint in order for joint in JOINTS]
    assert decoded.fields.shape == (4, len(points), 3) and decoded.has.shape == (4, len(points))
    views = decoded.fields
    for k, view in enumerate(views):
        for i, fields in enumerate(points):
            values = dict(zip(order, fields[k], strict=True)) if fields[k] else {}
            assert view[i].tolist() == [values.get(joint, 0.0) for joint in JOINTS]
            assert decoded.has[k, i] == bool(fields[k])
    if len(order) == len(JOINTS):
        whole = decode_trajectory(JOINTS, data)
        np.testing.assert_array_equal(whole.fields, decoded.fields)


def test_wrong_joint_names() -> None:
    for names, words in (
        (["a", "b", "d"], "has 'd', which this controller does not control"),
        (["a", "b", "c", "a"], "names a joint twice: a, b, c, a"),
        (["a", "b", "a"], "names a joint twice: a, b, a"),
        ([], "joint_names is empty"),
        (["b"], "lacks a, c; .* allow_partial_joints_goal"),
    ):
        data = serialize_message(trajectory(names, [(1.0, [0.0] * len(names))]))
        for partial in (False,) if "partial" in words else (False, True):
            with pytest.raises(TrajectoryJointsError, match=words):
                decode_trajectory(JOINTS, data, partial)


@pytest.mark.parametrize("count", [1, 3])
def test_field_of_the_wrong_size_names_its_point(count: int) -> None:
    for k, field in enumerate(FIELDS):
        points = [(1.0, [0.0] * 2), (2.0, *[[]] * k, [1.0] * count)]
        data = serialize_message(trajectory(["c", "a"], points))
        with pytest.raises(TrajectoryError, match=f"point 1: has {count} {field} for 2"):
            decode_trajectory(JOINTS, data, partial=True)


POINTS = [(0.5 * (i + 1), [0.1 * i] * 3, *[[0.0] * 3] * 3) for i in range(4)]
TRAJECTORY = serialize_message(trajectory(JOINTS, POINTS))


def test_trajectory_truncated_anywhere() -> None:
    # rclpy's serialization has some bytes more than the message: the last point ends with the
    # seconds and nanoseconds of its time, 2 s.
    end = TRAJECTORY.rindex(b"\x02\0\0\0\0\0\0\0") + 8
    decode_trajectory(JOINTS, TRAJECTORY[:end])
    for size in range(end):
        with pytest.raises(TrajectoryError):
            decode_trajectory(JOINTS, TRAJECTORY[:size])


@settings(deadline=None, max_examples=200)
@given(hostile(TRAJECTORY, cut=False))
def test_hostile_trajectory_is_refused_or_read_within_bounds(data: bytes) -> None:
    try:
        decoded = decode_trajectory(JOINTS, data)
    except TrajectoryError as error:
        # the message says which field or point, and stays short
        assert re.search("joint_trajectory: |joint_names |point |points", str(error)), error
        assert len(str(error)) < 2000
    else:
        assert decoded.fields[0].shape == (len(decoded.times), 3)


def test_count_that_the_bytes_cannot_hold() -> None:
    place = TRAJECTORY.index(b"c\0") + 2
    place += -(place - 4) % 4
    hostile = TRAJECTORY[:place] + b"\xff\xff\xff\x0f" + TRAJECTORY[place + 4 :]
    with pytest.raises(TrajectoryError, match="claims 268435455 points"):
        decode_trajectory(JOINTS, hostile)
