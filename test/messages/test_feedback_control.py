"""A planner's gains from the bytes of messages."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest
from rclpy.serialization import serialize_message

pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")

from linear_feedback_controller_msgs.msg import Contact, Control
from planned_arm import control
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from rnea_control.messages import joint_targets
from rnea_control.messages.feedback_control import TOO_LARGE, longest, read_control
from rnea_control.messages.joint_targets import (
    MOST_NAMES,
    NO_TARGET,
    NOT_FINITE,
    READ,
    UNKNOWN_JOINT,
    UNREADABLE,
    WRONG_LENGTH,
)

JOINTS = ["shoulder", "elbow", "wrist"]
NV = len(JOINTS)
NAMES, ENDS = joint_targets.name_table(JOINTS)
K = np.arange(1.0, 19.0).reshape(3, 6)
TAU, Q, V = np.array([10.0, 20.0, 30.0]), np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])


def read(data: bytes, names: tuple = (NAMES, ENDS), nv: int = NV) -> tuple:
    """Result, stamp, gains, and position, velocity and torque."""
    bits, gains = np.ones((3, nv), np.uint64), np.ones((nv, 2 * nv), np.uint64)
    joints = np.zeros(max(MOST_NAMES, nv), np.int64)
    array = np.frombuffer(data, np.uint8).copy()
    result, stamp = read_control(array, len(data), *names, joints, bits, gains)
    return result, stamp, gains.view(np.float64), bits.view(np.float64)


def good(names: tuple[str, ...] | list[str] = ()) -> Control:
    return control(K, TAU, Q, V, names)


class Writer:
    """CDR of either byte order."""

    def __init__(self, order: str) -> None:
        self.order, self.data = order, b""

    def put(self, kind: str, value: float) -> None:
        size = struct.calcsize(kind)
        self.data += bytes(-len(self.data) % size) + struct.pack(self.order + kind, value)

    def text(self, text: str) -> None:
        self.put("I", len(text) + 1)
        self.data += text.encode() + b"\0"

    def numbers(self, values: list[float]) -> None:
        self.put("I", len(values))
        for value in values:
            self.put("d", value)

    def stamped(self, header: object) -> None:
        self.put("i", header.stamp.sec)
        self.put("I", header.stamp.nanosec)
        self.text(header.frame_id)

    def matrix(self, array: Float64MultiArray) -> None:
        self.put("I", len(array.layout.dim))
        for dimension in array.layout.dim:
            self.text(dimension.label)
            self.put("I", dimension.size)
            self.put("I", dimension.stride)
        self.put("I", array.layout.data_offset)
        self.numbers(list(array.data))

    def control(self, message: Control) -> bytes:
        """A message without contacts."""
        self.stamped(message.header)
        self.matrix(message.feedback_gain)
        self.matrix(message.feedforward)
        sensor = message.initial_state
        self.stamped(sensor.header)
        pose, twist, joints = sensor.base_pose, sensor.base_twist, sensor.joint_state
        place, turn = pose.position, pose.orientation
        for value in (place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w):
            self.put("d", value)
        for part in (twist.linear, twist.angular):
            for value in (part.x, part.y, part.z):
                self.put("d", value)
        self.stamped(joints.header)
        self.put("I", len(joints.name))
        for name in joints.name:
            self.text(name)
        for values in (joints.position, joints.velocity, joints.effort):
            self.numbers(list(values))
        self.put("I", 0)
        return bytes([0, 1 if self.order == "<" else 0, 0, 0]) + self.data


def test_numbers_without_names_are_in_the_order_of_the_joints() -> None:
    message = good()
    message.header.stamp.sec, message.header.frame_id = 7, "base"
    message.initial_state.header.frame_id = "a frame of another length"
    message.initial_state.contacts = [Contact(name="foot")]
    result, stamp, gains, values = read(serialize_message(message))
    assert (result, stamp) == (READ, 7.0)
    np.testing.assert_array_equal(gains, K)
    np.testing.assert_array_equal(values, [Q, V, TAU])


def test_names_give_the_order_of_all_numbers() -> None:
    names = ["wrist", "shoulder", "elbow"]
    result, stamp, gains, values = read(serialize_message(good(names)))
    assert result == READ and math.isnan(stamp)
    order = [names.index(joint) for joint in JOINTS]
    np.testing.assert_array_equal(gains, K[order][:, order + [NV + j for j in order]])
    np.testing.assert_array_equal(values, np.array([Q, V, TAU])[:, order])


@pytest.mark.parametrize("names", [(), JOINTS[::-1]])
def test_both_byte_orders(names: list[str]) -> None:
    message = good(names)
    message.header.stamp.sec, message.header.stamp.nanosec = 3, 500_000_000
    message.initial_state.joint_state.header.frame_id = "b"
    data = serialize_message(message)
    written = Writer("<").control(message)
    assert read(written)[0] == READ and len(written) <= len(data)
    for one, other in zip(read(data), read(Writer(">").control(message)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert read(data)[1] == 3.5


def test_a_gain_without_dimensions_is_judged_by_its_length() -> None:
    message = good()
    message.feedback_gain.layout.dim = []
    message.feedforward.layout.dim = []
    result, _, gains, values = read(serialize_message(message))
    assert result == READ and (gains == K).all() and (values[2] == TAU).all()


def changed(change: Callable[[Control], object]) -> bytes:
    message = good(JOINTS)
    change(message)
    return serialize_message(message)


def gains_of(message: Control, numbers: np.ndarray) -> None:
    message.feedback_gain = control(numbers, TAU, Q, V).feedback_gain


def entry(values: object, k: int, value: float) -> None:
    values[k] = value


STATE = "initial_state.joint_state"
REFUSED = {
    "transposed": (lambda m: gains_of(m, K.T), WRONG_LENGTH),
    "positions alone": (lambda m: gains_of(m, K[:, :3]), WRONG_LENGTH),
    "another row": (lambda m: gains_of(m, np.ones((4, 6))), WRONG_LENGTH),
    "no gains": (lambda m: setattr(m, "feedback_gain", Float64MultiArray()), WRONG_LENGTH),
    "lacking": (lambda m: m.feedback_gain.data.pop(), WRONG_LENGTH),
    "offset": (lambda m: setattr(m.feedback_gain.layout, "data_offset", 1), WRONG_LENGTH),
    "dimensions": (
        lambda m: m.feedback_gain.layout.dim.append(MultiArrayDimension(size=1)),
        WRONG_LENGTH,
    ),
    "torques": (lambda m: m.feedforward.data.append(0.0), WRONG_LENGTH),
    "no torques": (lambda m: setattr(m, "feedforward", Float64MultiArray()), WRONG_LENGTH),
    "fewer joints": (lambda m: m.initial_state.joint_state.name.pop(), WRONG_LENGTH),
    "positions": (lambda m: m.initial_state.joint_state.position.pop(), WRONG_LENGTH),
    "no position": (lambda m: setattr(m.initial_state.joint_state, "position", []), NO_TARGET),
    "no velocity": (lambda m: setattr(m.initial_state.joint_state, "velocity", []), NO_TARGET),
    "another joint": (
        lambda m: entry(m.initial_state.joint_state.name, 1, "gripper"),
        UNKNOWN_JOINT,
    ),
    "a joint twice": (lambda m: entry(m.initial_state.joint_state.name, 1, "wrist"), UNKNOWN_JOINT),
    "gain": (lambda m: entry(m.feedback_gain.data, 17, math.nan), NOT_FINITE),
    "torque": (lambda m: entry(m.feedforward.data, 0, math.inf), NOT_FINITE),
    "position": (
        lambda m: entry(m.initial_state.joint_state.position, 2, -math.inf),
        NOT_FINITE,
    ),
    "velocity": (lambda m: entry(m.initial_state.joint_state.velocity, 0, math.nan), NOT_FINITE),
    "large gain": (lambda m: entry(m.feedback_gain.data, 0, -1.0001e12), TOO_LARGE),
    "large torque": (lambda m: entry(m.feedforward.data, 2, 1e300), TOO_LARGE),
    "large position": (
        lambda m: entry(m.initial_state.joint_state.position, 0, 2e12),
        TOO_LARGE,
    ),
    "large velocity": (
        lambda m: entry(m.initial_state.joint_state.velocity, 0, -2e12),
        TOO_LARGE,
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_messages_that_are_refused(which: str) -> None:
    change, expected = REFUSED[which]
    assert read(changed(change))[0] == expected


def test_the_largest_number_is_taken() -> None:
    assert read(changed(lambda m: entry(m.feedback_gain.data, 0, 1e12)))[0] == READ


def test_base_contacts_and_efforts_are_not_read() -> None:
    """linear_feedback_controller fills the base of a fixed arm with NaN, and planners send it
    back."""
    message = good()
    message.initial_state.base_twist.angular.z = math.nan
    message.initial_state.joint_state.effort = [math.nan]
    assert read(serialize_message(message))[0] == READ


def test_thirty_joints_fit() -> None:
    joints = [f"a_joint_with_quite_a_long_name_{k}" for k in range(30)]
    rng = np.random.default_rng(0)
    gains, rest = rng.normal(size=(30, 60)), rng.normal(size=(3, 30))
    message = control(gains, rest[2], rest[0], rest[1], joints)
    message.initial_state.joint_state.effort = rest[2].tolist()
    data = serialize_message(message)
    assert 14_400 < len(data) <= longest(joints)
    result, _, found, values = read(data, joint_targets.name_table(joints), 30)
    assert result == READ
    np.testing.assert_array_equal(found, gains)
    np.testing.assert_array_equal(values, rest)


def test_cut_and_random_bytes_are_refused_and_never_read_beyond_the_end() -> None:
    data = serialize_message(good(JOINTS))
    whole = len(Writer("<").control(good(JOINTS))) - 8  # without efforts and contacts
    for size in range(whole):
        assert read(data[:size] or b"\0")[0] != READ, size
    rng = np.random.default_rng(0)
    results = set()
    for _ in range(20_000):
        broken = bytearray(data)
        for _ in range(int(rng.integers(1, 6))):
            broken[rng.integers(len(broken))] = rng.integers(256)
        results.add(read(bytes(broken[: rng.integers(1, len(broken) + 1)]))[0])
        results.add(read(bytes(broken))[0])
    assert results >= {READ, UNREADABLE, WRONG_LENGTH, UNKNOWN_JOINT, TOO_LARGE}
    assert read(b"\0\2\0\0")[0] == read(b"\1\1\0\0" + bytes(600))[0] == UNREADABLE


@pytest.mark.parametrize("lie", [0, 1, 2**16, 2**29, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1])
def test_count_or_length_that_lies_is_refused(lie: int) -> None:
    """Each word that is the count of a sequence, the length of a text or an extent."""
    data = np.frombuffer(Writer("<").control(good(JOINTS)), np.uint8)
    counts = {1, 2, 3, 5, 6, 9, 18}
    lies = 0
    for place in range(12, len(data) - 12, 4):
        broken = data.copy()
        word = broken[place : place + 4].view("<u4")
        empty = word[0] == 1 and lie == 0  # some send an empty text without its last byte
        if word[0] in counts and word[0] != lie and not empty:
            stride = place in STRIDES
            word[0] = lie
            lies += 1
            assert (read(broken.tobytes())[0] == READ) == stride, (place, lie)
    assert lies >= 15


def _strides() -> set[int]:
    """Offsets of the strides, which are not read."""
    found = set()
    writer = Writer("<")
    put = writer.put

    def noted(kind: str, value: float) -> None:
        put(kind, value)
        if kind == "I":
            words.append((len(writer.data), value))

    words: list[tuple[int, float]] = []
    writer.put = noted  # type: ignore[method-assign]
    writer.control(good(JOINTS))
    # Each matrix: count of dimensions, then label, size and stride of both.
    for k, (_, value) in enumerate(words):
        if value == 2 and words[k + 1][1] == len("rows") + 1:
            found |= {words[k + 3][0], words[k + 6][0]}
    return found


STRIDES = _strides()
