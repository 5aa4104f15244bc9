"""The state of the controller as rclpy reads it."""

from __future__ import annotations

import numpy as np
import pytest
from allocation import allocated
from builtin_interfaces.msg import Duration, Time
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from rnea_control.messages.controller_state import ControllerStateEncoder

JointTrajectoryControllerState = pytest.importorskip(
    "control_msgs.msg"
).JointTrajectoryControllerState

KNOWN = {
    "reference": ("positions", "velocities", "accelerations", "effort"),
    "feedback": ("positions", "velocities"),
    "error": ("positions", "velocities"),
    "output": ("effort",),
}
name = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)


@settings(deadline=None)
@given(
    st.sampled_from([1, 2, 7]).flatmap(lambda n: st.lists(name, min_size=n, max_size=n)),
    st.integers(0, 2**31 * 10**9 - 1),
    st.integers(0, 10**14),
    st.integers(0, 2**32),
)
def test_agrees_with_rclpys_serialisation(
    joint_names: list[str], stamp: int, microseconds: int, seed: int
) -> None:
    nv, rng = len(joint_names), np.random.default_rng(seed)
    encoder = ControllerStateEncoder(joint_names)
    for _ in range(2):  # nothing of the first message is left in the second
        stamp, microseconds = stamp // 2, microseconds // 2
        time = Duration(sec=microseconds // 10**6, nanosec=microseconds % 10**6 * 1000)
        scaling = rng.random()
        expected = JointTrajectoryControllerState(
            header=Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9)),
            joint_names=joint_names,
            reference=JointTrajectoryPoint(time_from_start=time),
            feedback=JointTrajectoryPoint(time_from_start=time),
            speed_scaling_factor=scaling,
        )
        for point, fields in KNOWN.items():
            for field in fields:
                values = rng.normal(size=nv)
                getattr(getattr(encoder, point), field)[:] = values
                setattr(getattr(expected, point), field, values.tolist())
        data = encoder.encode(stamp, 1e-6 * microseconds, scaling)
        # rounding of the seconds may change the last nanoseconds
        message = deserialize_message(data, JointTrajectoryControllerState)
        for point in (message.reference, message.feedback):
            rounded = point.time_from_start.sec * 10**9 + point.time_from_start.nanosec
            assert abs(rounded - 1000 * microseconds) < 30
            point.time_from_start = time
        assert message == expected


def test_unknown_fields_are_empty() -> None:
    encoder = ControllerStateEncoder(["a", "b"])
    for point, known in KNOWN.items():
        for field, values in getattr(encoder, point)._asdict().items():
            assert values.shape == ((2,) if field in known else (0,))


def test_encoding_keeps_no_memory() -> None:
    encoder = ControllerStateEncoder([f"joint{i}" for i in range(7)])
    counted = allocated(lambda: encoder.encode(1_500_000_000, 0.25, 1.0))
    assert counted["held"] <= 0
    assert counted["page faults"] == 0
    assert counted["peak"] < len(encoder.encode(0, 0.0, 1.0)) + 500
