"""Joint targets from the bytes of messages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from rnea_control.messages import joint_targets
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
NAMES, ENDS = joint_targets.name_table(JOINTS)


def state(names=JOINTS, position=(), velocity=(), effort=(), seconds=0) -> JointState:
    message = JointState(name=list(names), position=list(position))
    message.velocity, message.effort = list(velocity), list(effort)
    message.header.stamp.sec, message.header.frame_id = seconds, "base"
    return message


def read(data: bytes, kernel=joint_targets.read_joint_state) -> tuple[int, float, np.ndarray]:
    bits = np.ones((3, len(JOINTS)), np.uint64)
    joints = np.zeros(MOST_NAMES, np.int64)
    array = np.frombuffer(data, np.uint8).copy()
    result, stamp = kernel(array, len(data), NAMES, ENDS, joints, bits)
    return result, stamp, bits.view(np.float64)


def read_positions(data: bytes) -> tuple[int, np.ndarray]:
    bits = np.ones((3, len(JOINTS)), np.uint64)
    joints = np.zeros(MOST_NAMES, np.int64)
    result = joint_targets.read_positions(
        np.frombuffer(data, np.uint8).copy(), len(data), joints, bits
    )
    return result, bits.view(np.float64)


def test_values_are_in_the_order_of_the_joints() -> None:
    message = state(["wrist", "shoulder"], [3.0, 1.0], [0.3, 0.1], [30.0, 10.0], seconds=7)
    result, stamp, values = read(serialize_message(message))
    assert (result, stamp) == (READ, 7.0)
    expected = [[1.0, math.nan, 3.0], [0.1, math.nan, 0.3], [10.0, math.nan, 30.0]]
    np.testing.assert_array_equal(values, expected)


def test_velocities_and_efforts_may_be_missing() -> None:
    result, stamp, values = read(serialize_message(state(position=[1.0, 2.0, 3.0])))
    assert result == READ and math.isnan(stamp)
    np.testing.assert_array_equal(values[0], [1.0, 2.0, 3.0])
    assert np.isnan(values[1:]).all()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (state([], []), NO_TARGET),
        (state(velocity=[1.0, 2.0, 3.0]), NO_TARGET),
        (state(position=[1.0, 2.0]), WRONG_LENGTH),
        (state(position=[1.0, 2.0, 3.0], velocity=[1.0]), WRONG_LENGTH),
        (state(["shoulder", "gripper"], [1.0, 2.0]), UNKNOWN_JOINT),
        (state(["elbow", "elbow"], [1.0, 2.0]), UNKNOWN_JOINT),
        (state(["elbo"], [1.0]), UNKNOWN_JOINT),
        (state([""], [1.0]), UNKNOWN_JOINT),
        (state(["elbow"] * 70, [1.0] * 70), UNKNOWN_JOINT),
        (state(position=[1.0, math.nan, 3.0]), NOT_FINITE),
        (state(position=[1.0, 2.0, 3.0], velocity=[0.0, math.inf, 0.0]), NOT_FINITE),
    ],
)
def test_messages_that_are_refused(message: JointState, expected: int) -> None:
    assert read(serialize_message(message))[0] == expected


def test_cut_and_random_bytes_are_refused_and_never_read_beyond_the_end() -> None:
    data = serialize_message(state(position=[1.0, 2.0, 3.0], velocity=[1.0] * 3, effort=[1.0] * 3))
    for size in range(len(data)):
        assert read(data[:size] or b"\0")[0] != READ
    rng = np.random.default_rng(0)
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(int(rng.integers(1, 6))):
            broken[rng.integers(len(broken))] = rng.integers(256)
        for kernel in (joint_targets.read_joint_state, joint_targets.read_jog):
            read(bytes(broken), kernel)
        read_positions(bytes(broken))


def test_positions_of_all_joints() -> None:
    plain = Float64MultiArray(data=[1.0, 2.0, 3.0])
    result, values = read_positions(serialize_message(plain))
    assert result == READ
    np.testing.assert_array_equal(values[0], [1.0, 2.0, 3.0])
    plain.layout.dim = [MultiArrayDimension(label="joints", size=3, stride=3)] * 2
    assert read_positions(serialize_message(plain))[0] == READ


@pytest.mark.parametrize(
    ("data", "offset", "expected"),
    [
        ([1.0, 2.0], 0, WRONG_LENGTH),
        ([], 0, WRONG_LENGTH),
        ([1.0, 2.0, 3.0], 3, WRONG_LENGTH),
        ([1.0, math.inf, 3.0], 0, NOT_FINITE),
    ],
)
def test_positions_that_are_refused(data: list[float], offset: int, expected: int) -> None:
    message = Float64MultiArray(data=data)
    message.layout.data_offset = offset
    assert read_positions(serialize_message(message))[0] == expected


def test_jog() -> None:
    message = pytest.importorskip("control_msgs.msg").JointJog(joint_names=["wrist", "elbow"])
    message.velocities, message.duration = [0.5, -0.5], 0.1
    message.header.stamp.sec = 3
    result, stamp, values = read(serialize_message(message), joint_targets.read_jog)
    assert (result, stamp) == (READ, 3.0)
    np.testing.assert_array_equal(values[1], [math.nan, -0.5, 0.5])
    assert np.isnan(values[[0, 2]]).all()
    message.displacements, message.velocities = [0.01, 0.02], []
    result, _, values = read(serialize_message(message), joint_targets.read_jog)
    np.testing.assert_array_equal(values[0], [math.nan, 0.02, 0.01])
    message.displacements = []
    assert read(serialize_message(message), joint_targets.read_jog)[0] == NO_TARGET


def test_other_byte_order_and_other_bytes() -> None:
    assert read(b"\0\2\0\0")[0] == read(b"\1\1\0\0" + bytes(60))[0] == UNREADABLE
