"""JointState from bytes: against rclpy's own serialisation, in both byte orders, and fuzzed."""

from __future__ import annotations

import math
import random
import struct
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from rnea_control.exceptions import RneaControlError
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.joint_state import (
    LONGEST,
    JointStateDecoder,
    JointStateError,
    OtherJoints,
    measured_efforts,
)

NAMES = ["a", "bb", "ccc", "dddd", "a_long_name_of_a_joint"]
numbers = st.floats(allow_nan=False, allow_infinity=False)


def serialised(
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
    n = len(names)
    values = [draw(st.lists(numbers, min_size=n, max_size=n)) for _ in range(2)]
    effort = draw(st.sampled_from([[], [0.0] * n]))
    stamp = (draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 10**9 - 1)))
    return names, *values, effort, stamp, draw(st.sampled_from(["", "base_link", "w"]))


@settings(deadline=None)
@given(states())
def test_agrees_with_rclpy(state) -> None:
    names, position, velocity, effort, stamp, frame = state
    message = JointState(
        name=names,
        position=array("d", position),
        velocity=array("d", velocity),
        effort=array("d", effort),
    )
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    decoder = JointStateDecoder(NAMES)
    assert decoder.decode(serialize_message(message)) == stamp[0] * 10**9 + stamp[1]
    assert decoder.q.tolist() == [position[names.index(name)] for name in NAMES]
    assert decoder.v.tolist() == [velocity[names.index(name)] for name in NAMES]


@settings(deadline=None)
@given(states())
def test_both_byte_orders_and_any_padding(state) -> None:
    names, position, velocity, effort, stamp, frame = state
    arguments = (names, position, velocity, effort, stamp, frame)
    assert list(deserialize_message(serialised(*arguments), JointState).position) == position
    decoder = JointStateDecoder(NAMES)
    for order in "<><>":
        data = serialised(*arguments, order=order)
        assert decoder.decode(data) == stamp[0] * 10**9 + stamp[1]
        assert decoder.q.tolist() == [position[names.index(name)] for name in NAMES]
        assert decoder.v.tolist() == [velocity[names.index(name)] for name in NAMES]
    assert len(decoder.layouts) == 2


def test_known_layouts_are_decoded_without_their_names() -> None:
    decoder = JointStateDecoder(["a", "b"])
    for k in range(100):
        decoder.decode(serialised(["a", "b"], [1.0 * k, 2.0], [0.0, 0.0]))
        decoder.decode(serialised(["b", "a"], [1.0 * k, 3.0], [0.0, 0.0]))
        assert decoder.q.tolist() == [3.0, 1.0 * k]
    assert len(decoder.layouts) == 2


def test_many_layouts_take_no_more_memory() -> None:
    decoder = JointStateDecoder(["a"])
    for k in range(100):
        decoder.decode(serialised(["a", f"b{k}"], [1.0, 2.0], [0.0, 0.0]))
    assert len(decoder.layouts) <= 8


GOOD = serialised(["b", "a"], [1.0, 2.0], [3.0, 4.0])
WRONG = {
    "empty": (b"", "begin with nothing"),
    "another encapsulation": (b"\0\7" + GOOD[2:], "begin with 00 07"),
    "header only": (GOOD[:4], "ends inside its stamp"),
    "no end": (GOOD[:-1], "ends inside its effort"),
    "count of names": (GOOD[:28] + b"\xff" * 4 + GOOD[32:], "ends inside its name"),
    "too long": (GOOD + bytes(LONGEST), "at most"),
    "negative stamp": (serialised(["a", "b"], [1, 2], [3, 4], stamp=(-1, 0)), "stamp -1 s"),
    "nanoseconds": (serialised(["a", "b"], [1, 2], [3, 4], stamp=(1, 10**9)), "less than 1e9"),
    "no velocity": (serialised(["a", "b"], [1, 2], []), "has 0 velocity values for 2 names"),
    "short position": (serialised(["a", "b"], [1], [3, 4]), "has 1 position values for 2 names"),
    "long position": (serialised(["a", "b"], [1, 2, 3], [3, 4]), "has 3 position values"),
    "NaN": (serialised(["a", "b"], [1, math.nan], [3, 4]), "joint 'b' has position nan"),
    "inf": (serialised(["a", "b"], [1, 2], [math.inf, 4]), "joint 'a' .* velocity inf"),
    "missing joint": (serialised(["a", "c"], [1, 2], [3, 4]), "lacks b of `joints`; it has a, c"),
    "joint twice": (serialised(["a", "b", "a"], [1, 2, 3], [3, 4, 5]), "names a joint twice"),
    "other joints": (serialised(["c"], [1], [3]), "lacks a, b"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("known", [False, True])
def test_wrong_bytes_are_refused_and_nothing_changes(name: str, known: bool) -> None:
    data, words = WRONG[name]
    decoder = JointStateDecoder(["a", "b"])
    if known:
        decoder.decode(GOOD)
    before = decoder.q.copy(), decoder.v.copy()
    with pytest.raises((JointStateError, CdrError), match=words):
        decoder.decode(data)
    np.testing.assert_array_equal(decoder.q, before[0])
    np.testing.assert_array_equal(decoder.v, before[1])
    decoder.decode(GOOD)
    assert decoder.q.tolist() == [2.0, 1.0]


def test_other_device_is_told_from_a_missing_joint() -> None:
    with pytest.raises(OtherJoints):
        JointStateDecoder(["a", "b"]).decode(serialised(["c"], [1], [3]))
    with pytest.raises(JointStateError) as raised:
        JointStateDecoder(["a", "b"]).decode(serialised([], [], []))
    assert not isinstance(raised.value, OtherJoints)


def test_truncated_anywhere() -> None:
    decoder = JointStateDecoder(["a", "b"])
    for known in (False, True):
        for size in range(len(GOOD) - 4):
            with pytest.raises(RneaControlError):
                decoder.decode(GOOD[:size])
        if not known:
            decoder.decode(GOOD)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_hostile_bytes_give_finite_numbers_or_an_error(data) -> None:
    hostile = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        hostile[data.draw(st.integers(0, len(hostile) - 1))] = data.draw(st.integers(0, 255))
    hostile = bytes(hostile[: data.draw(st.integers(0, len(hostile)))])
    decoder = JointStateDecoder(["a", "b"])
    decoder.decode(GOOD)
    try:
        assert decoder.decode(hostile) >= 0
    except RneaControlError:
        assert decoder.q.tolist() == [2.0, 1.0] and decoder.v.tolist() == [4.0, 3.0]
    assert np.isfinite([decoder.q, decoder.v]).all()


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_refused(data: bytes) -> None:
    with pytest.raises(RneaControlError):
        JointStateDecoder(["a", "b"]).decode(data)


def test_lists_too_long_for_a_tick_are_refused_at_once() -> None:
    names = [f"joint{i}" for i in range(1500)]
    zeros = array("d", bytes(8 * len(names)))
    message = JointState(name=names, position=zeros, velocity=zeros)
    with pytest.raises(CdrError, match="1500 entries; at most 1000 are allowed"):
        JointStateDecoder(NAMES).decode(serialize_message(message))
    with pytest.raises(JointStateError, match=r"\d+ bytes; at most 131072"):
        JointStateDecoder(NAMES).decode(bytes(1 << 18))


def test_errors_stay_short() -> None:
    names = [f"joint{i}" for i in range(900)]
    with pytest.raises(JointStateError) as caught:
        JointStateDecoder(NAMES).decode(serialize_message(JointState(name=names)))
    assert len(str(caught.value)) < 300 and "and 890 more" in str(caught.value)
    with pytest.raises(JointStateError) as caught:
        JointStateDecoder(NAMES).decode(serialize_message(JointState(name=["x" * 100_000])))
    assert len(str(caught.value)) < 300


def test_truncated_effort_is_refused_in_a_known_layout_too() -> None:
    n = len(NAMES)
    values = array("d", [1.0] * n)
    data = serialize_message(
        JointState(name=list(NAMES), position=values, velocity=values, effort=values)
    )
    decoder = JointStateDecoder(NAMES)
    decoder.decode(data)
    for cut in range(1, 9):
        with pytest.raises(CdrError, match="effort"):
            decoder.decode(data[:-cut])


@settings(deadline=None)
@given(states(), st.data())
def test_efforts_are_read_by_name(state, data) -> None:
    names, position, velocity, _, stamp, frame = state
    values = data.draw(st.lists(numbers, min_size=len(names), max_size=len(names)))
    for order in "<>":
        message = serialised(names, position, velocity, values, stamp, frame, order)
        found = measured_efforts(message, NAMES)
        assert found.tolist() == [values[names.index(name)] for name in NAMES]
    # Positions and velocities may be missing.
    found = measured_efforts(serialised(names, [], [], values, stamp, frame), NAMES)
    assert found.tolist() == [values[names.index(name)] for name in NAMES]


@pytest.mark.parametrize("effort", [[], [1.0], [1.0, 2.0, 3.0]])
def test_efforts_that_are_not_one_for_each_name(effort) -> None:
    data = serialised(["a", "b"], [0.0, 0.0], [0.0, 0.0], effort)
    found = measured_efforts(data, ["b", "a"])
    assert found.shape == (2,) and np.isnan(found).all()


def test_efforts_of_unknown_joints_and_those_that_are_not_finite() -> None:
    efforts = [math.nan, 2.0, math.inf, -math.inf]
    data = serialised(["a", "b", "c", "d"], [0.0] * 4, [0.0] * 4, efforts)
    found = measured_efforts(data, ["d", "other", "b", "a", "c"])
    np.testing.assert_array_equal(found, [np.nan, np.nan, 2.0, np.nan, np.nan])
    assert measured_efforts(serialised([], [], [], []), ["a"]).tolist() != [0.0]


@given(st.integers(0, 200), st.binary(max_size=40))
def test_efforts_of_garbage_are_refused_in_words(cut: int, tail: bytes) -> None:
    whole = serialised(["a", "b"], [0.0] * 2, [0.0] * 2, [1.0, 2.0])
    for data in (whole[: min(cut, len(whole) - 1)], tail):
        try:
            found = measured_efforts(data, ["a", "b"])
        except CdrError:
            continue
        assert found.shape == (2,)  # as short as the tail of a whole message may be
    with pytest.raises(CdrError):
        measured_efforts(whole[:-1], ["a", "b"])
