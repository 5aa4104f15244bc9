"""What `rnea_identify record` says of a recording, and the trajectory that it reads and sends."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from identification_bench import recording_of
from rclpy.serialization import serialize_message
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_control.client.recorder import Recorder
from rnea_control.commands.identify.motion_sender import read_trajectory
from rnea_control.commands.identify.record import early_faults, faults
from rnea_control.exceptions import TrajectoryError
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel


@cache
def motion() -> Recording:
    recorded = recording_of(RobotModel.from_urdf_string(two_link_arm()), 10.0, 1, noise=0.005)
    return replace(recorded, robot_description=two_link_arm())


def with_effort(effort: Callable[[np.ndarray], np.ndarray]) -> Recording:
    return replace(motion(), effort=effort(motion().effort.copy()))


def at_rest(recording: Recording) -> Recording:
    return replace(recording, q=np.repeat(recording.q[:1], len(recording.q), axis=0))


def test_right_recording_has_no_fault_and_says_so_with_and_without_a_description() -> None:
    for recording in (motion(), replace(motion(), robot_description="")):
        assert list(faults(recording)) == list(early_faults(recording)) == []


def test_effort_that_is_not_measured_is_said_at_once() -> None:
    only_one = with_effort(lambda effort: effort * [1.0, np.nan])
    zero = with_effort(lambda effort: np.abs(effort) * [0.0, 1.0])
    for recording, words in (
        (with_effort(lambda effort: np.nan * effort), "no effort of any joint .shoulder, elbow."),
        (only_one, "no effort of elbow: it is empty or NaN"),
        (zero, r"never changes although the joint moves: shoulder .0 throughout"),
    ):
        (text,) = early_faults(recording)
        assert re.search(words, text), text
        assert text in faults(recording)
    assert list(early_faults(at_rest(zero))) == []


def test_few_states_a_second_are_said_at_once_and_gaps_and_other_stamps_at_the_end() -> None:
    time = motion().time
    (text,) = early_faults(replace(motion(), time=20.0 * time))
    assert "the rate of joint states is " in text and "accelerations need at least 100 Hz" in text
    half = len(time) // 2
    for stamps, words in (
        (np.where(time < time[half], time, time + 1.0), "1 gaps, the longest of 1"),
        (np.where(np.arange(len(time)) == half, time[half - 1], time), "stamps of 1 states fall"),
    ):
        recording = replace(motion(), time=stamps)
        assert list(early_faults(recording)) == []
        assert any(words in text for text in faults(recording))


def test_motor_currents_are_said_at_the_end() -> None:
    current = with_effort(lambda effort: 0.1 * effort)
    assert any("Motor currents need torque constant" in text for text in faults(current))


POINTS = """
- {positions: [0.1, 2], time_from_start: {sec: 0, nanosec: 500000000}}
- {positions: [0.2, -1.5], velocities: [1.0, 2.0], accelerations: [3.0, 4.0],
   time_from_start: {sec: 1, nanosec: 7}}
"""


def test_trajectory_becomes_the_message_that_ros2_topic_pub_sends(tmp_path: Path) -> None:
    path = tmp_path / "motion.yaml"
    path.write_text(f"header: {{}}\njoint_names: [a, b]\npoints: {POINTS}")
    message = read_trajectory(path)
    assert message.joint_names == ["a", "b"]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    first, last = message.points
    assert list(first.positions) == [0.1, 2.0] and not first.velocities and not first.accelerations
    assert (first.time_from_start.sec, first.time_from_start.nanosec) == (0, 500_000_000)
    assert list(last.positions) == [0.2, -1.5]
    assert list(last.velocities) == [1.0, 2.0] and list(last.accelerations) == [3.0, 4.0]
    assert (last.time_from_start.sec, last.time_from_start.nanosec) == (1, 7)


def test_files_that_are_no_trajectory(tmp_path: Path) -> None:
    path, of_a = tmp_path / "plan.yaml", "joint_names: [a]\npoints: "
    for text, words in (
        ("joint_names: [", "cannot be read"),
        ("just words", "is not as in a JointTrajectory"),
        ("joint_names: [a, b]", "is not as in a JointTrajectory.*points"),
        ("{joint_names: [1], points: []}", "is not as in a JointTrajectory.*joint_names"),
        (of_a + "[]", "points must be a list of at least one"),
        (of_a + "[1]", r"points\[0\] is not as in a JointTrajectory"),
        (of_a + "[{positions: [1.0]}]", r"points\[0\] is not .*time_from_start"),
        (of_a + "[{positions: [x], time_from_start: {sec: 1}}]", r"points\[0\] is not .*x"),
        (of_a + "[{positions: [1.0], time_from_start: {sec: 1.5}}]", r"points\[0\] is not .*float"),
    ):
        path.write_text(text)
        with pytest.raises(TrajectoryError, match=f"{path}: .*{words}|{path} {words}"):
            read_trajectory(path)
    with pytest.raises(TrajectoryError, match="cannot be read"):
        read_trajectory(tmp_path / "none.yaml")


def test_message_that_is_no_joint_state_does_not_tell_the_time() -> None:
    stamped, empty = JointState(header=Header(stamp=Time(sec=3, nanosec=5 * 10**8))), JointState()
    recorder = Recorder.__new__(Recorder)
    recorder.states = SimpleNamespace(messages=[(7 * 10**9, b"garbage")])
    assert recorder.now() == 0.0
    for sent, now in ((stamped, 3.5), (empty, 8.0)):
        some = (8 * 10**9, serialize_message(sent)), (9 * 10**9, b"garbage")
        recorder.states.messages += some
        assert recorder.now() == now
