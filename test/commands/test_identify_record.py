"""`rnea_identify record` over DDS, beside a simulated arm and its controller."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import rclpy
import yaml
from dds import RUN_MODULE, Process, ros, wait_for, without
from rclpy.serialization import deserialize_message
from robots import two_link_arm
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState

from rnea_control.commands.identify import record
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording_files import read_recording

DOMAIN = 77
JOINTS = ["shoulder", "elbow"]
START = {"initial_positions.shoulder": 0.3, "initial_positions.elbow": -0.4}
RATE = 250
PARAMETERS = {
    "joints": JOINTS,
    "gains": {joint: {"p": 100.0, "d": 20.0} for joint in JOINTS},
    "joint_state_gap": 5.0,  # a busy machine takes long
    "joint_state_timeout": 5.0,
}
MODULE = "rnea_control.commands.identify.executable"
# Without control_msgs, and without rclpy's wait sets.
NO_ACTION = without("control_msgs")
NO_WAIT_SET = "import rnea_control.ros.rclpy_internals as internals\ninternals.WaitSet = None\n"


class Record:
    """A process of `rnea_identify record`; a context manager.

    Args:
        folder: for its output.
        arguments: of the command.
        before: Python code that runs first.
    """

    def __init__(self, folder: Path, *arguments: object, before: str = "") -> None:
        self.log = folder / "log"
        command = [sys.executable, "-c", before + RUN_MODULE, MODULE, "record"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *map(str, arguments)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def said(self, words: str) -> None:
        """Waits until it has printed these words."""
        wait_for(lambda: words in self.output or self.process.poll() is not None)
        assert words in self.output, self.output

    def status(self) -> int:
        """Waits for the end."""
        status = self.process.wait(timeout=60.0)
        assert "Traceback" not in self.output, self.output
        return status

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def control() -> Iterator[Process]:
    """The controller's process, in control of the arm."""
    hardware = {"robot_description": two_link_arm(), "rate": float(RATE), **START}
    with ros(DOMAIN), ExitStack() as stack:
        stack.enter_context(Process("rnea_control.simulation.executable", hardware))
        process = stack.enter_context(Process("rnea_control.node.executable", PARAMETERS))
        process.said("holding: at the measured position")
        yield process


@pytest.fixture(scope="module", autouse=True)
def silent(control: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """A recorder where nothing comes; it runs beside the others, as it takes long."""
    folder = tmp_path_factory.mktemp("silent")
    options = ["--namespace", "nobody", "--output", folder / "none", "--seconds", 1]
    with Record(folder, *options) as process:
        yield process


def trajectory(folder: Path, seconds: float, joints: list[str] = JOINTS) -> Path:
    """There and back."""
    points = []
    for part, positions in ((0.5, [0.5, -0.6]), (1.0, [0.3, -0.4])):
        sec, nanosec = divmod(round(1e9 * part * seconds), 1_000_000_000)
        rest = [0.0] * len(positions)
        point = {"positions": positions, "velocities": rest, "accelerations": rest}
        points.append({**point, "time_from_start": {"sec": sec, "nanosec": nanosec}})
    path = folder / "trajectory.yaml"
    path.write_text(yaml.safe_dump({"joint_names": joints, "points": points}))
    return path


def assert_there_and_back(path: Path, seconds: float) -> None:
    """The recording has the motion, a second before and one after."""
    found = read_recording(path, JOINTS)
    away = np.flatnonzero(found.q[:, 0] > 0.35)
    assert found.q[:, 0].max() > 0.49 and found.q[:, 1].min() < -0.59
    assert found.time[away[0]] > 0.99
    assert found.time[-1] - found.time[away[-1]] > 0.99
    assert 0.98 * (2.0 + seconds) < found.time[-1] < 20.0
    assert np.isfinite(found.effort).all() and np.ptp(found.effort[:, 0]) > 1.0
    # Commands arrive after the state that they answer, and act on the next ones.
    late = found.commanded[len(found.time) // 2 :]
    assert np.isfinite(late).all()
    error = np.abs(late - found.effort[len(found.time) // 2 :]).max()
    assert error < 0.2 * np.abs(found.effort).max()
    assert "two_link_arm" in found.robot_description


def test_motion_by_the_action_into_a_bag_while_another_one_listens(
    control: Process, tmp_path: Path
) -> None:
    output, heard = tmp_path / "motion", tmp_path / "heard.csv"
    (tmp_path / "listener").mkdir()
    with (
        Record(tmp_path / "listener", "--output", heard, before=NO_WAIT_SET) as listener,
        Record(tmp_path, trajectory(tmp_path, 0.8), "--output", output) as process,
    ):
        assert process.status() == 0, process.output
        # Ctrl-C is how listening without --seconds ends.
        listener.process.send_signal(signal.SIGINT)
        assert listener.status() == 0, listener.output
    assert "sent 0.8 s of trajectory by the action /rnea_controller/follow" in process.output
    assert_there_and_back(output, 0.8)
    with Reader(output) as bag:
        kinds = {each.topic: each.msgtype for each in bag.connections}
        states = [data for each, _, data in bag.messages() if each.topic == "/joint_states"]
    assert kinds == {
        "/joint_states": "sensor_msgs/msg/JointState",
        "/effort_controller/commands": "std_msgs/msg/Float64MultiArray",
        "/robot_description": "std_msgs/msg/String",
    }
    stamps = [deserialize_message(data, JointState).header.stamp for data in states]
    steps = np.diff([stamp.sec * 10**9 + stamp.nanosec for stamp in stamps])
    assert (steps > 0).all() and np.median(steps) == pytest.approx(1e9 / RATE, rel=0.2)
    found = read_recording(heard)
    assert set(found.joints) == set(JOINTS)
    assert found.q[:, found.joints.index("shoulder")].max() > 0.49


@pytest.mark.explores
def test_motion_by_the_topic_into_a_table(control: Process, tmp_path: Path) -> None:
    output = tmp_path / "motion.npz"
    arguments = [trajectory(tmp_path, 0.8), "--output", output]
    with Record(tmp_path, *arguments, before=NO_ACTION) as process:
        assert process.status() == 0, process.output
    assert "sent 0.8 s of trajectory by the topic /rnea_controller/joint_tr" in process.output
    assert_there_and_back(output, 0.8)


@pytest.mark.explores
def test_refused_trajectory_is_said_and_the_states_are_kept(
    control: Process, tmp_path: Path
) -> None:
    path = trajectory(tmp_path, 1.0, ["shoulder", "wrist"])
    with ExitStack() as stack:
        records = []
        # A table of a joint that is not there cannot be written; a rosbag2 folder can.
        for way, before, name in (("action", "", "motion"), ("topic", NO_ACTION, "motion.npz")):
            folder = tmp_path / way
            folder.mkdir()
            arguments = [path, "--output", folder / name]
            records.append(stack.enter_context(Record(folder, *arguments, before=before)))
        for process in records:
            assert process.status() == 1, process.output
    for process in records:
        said = process.output.split("not as planned: ")[1].replace("'", "")
        assert "wrist, which this controller does not control" in said
        assert "/joint_states lacks wrist; it has" in process.output
        assert len(read_recording(process.log.parent / "motion", JOINTS).time) > RATE
    assert "All messages are in the rosbag2 folder" in records[1].output


@pytest.mark.explores
def test_interrupt_in_motion_ends_it_and_keeps_the_states(control: Process, tmp_path: Path) -> None:
    output = tmp_path / "motion"
    with Record(tmp_path, trajectory(tmp_path, 6.0), "--output", output) as process:
        process.said("sent 6.0 s")
        time.sleep(0.8)
        process.process.send_signal(signal.SIGINT)
        assert process.status() == 1, process.output
    assert "not as planned: interrupted" in process.output
    control.said("goal canceled")
    found = read_recording(output, JOINTS)
    assert found.time[-1] > 2.0 and found.q[-1, 0] < 0.49
    assert np.abs(found.v[-1]).max() < 0.05, "the arm still moves"


@pytest.mark.explores
def test_efforts_that_are_missing_are_said_at_once(control: Process, tmp_path: Path) -> None:
    node = rclpy.create_node("arm_without_effort")
    publisher = node.create_publisher(JointState, "/arm/joint_states", 10)
    stopping = threading.Event()

    def publish() -> None:
        while not stopping.wait(0.02):
            message = JointState(name=JOINTS, position=[0.1, 0.2])
            message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)

    thread = threading.Thread(target=publish)
    thread.start()
    options = ["--output", tmp_path / "bag", "--seconds", 30]
    # The namespace may come from ROS's arguments too.
    remapping = ["--ros-args", "-r", "joint_states:=/arm/joint_states"]
    try:
        with Record(tmp_path, *options, *remapping) as process:
            process.said("warning: no effort of shoulder, elbow: it is empty or NaN")
            process.said("times a second; accelerations need at least 100 Hz")
            assert process.process.poll() is None
            process.process.send_signal(signal.SIGINT)
            assert process.status() == 1, process.output  # not the 30 seconds
    finally:
        stopping.set()
        thread.join()
        node.destroy_node()
    assert len(read_recording(tmp_path / "bag", topic="/arm/joint_states").time) > 20


def test_silence_is_said_with_the_topics_there_are(silent: Record) -> None:
    assert silent.status() == 1
    assert (
        "no joint states on /nobody/joint_states for 5 s; nobody is seen to publish there, but "
        "there are joint states on /joint_states" in silent.output
    )
    assert "nothing came on /nobody/joint_states: " in silent.output
    assert {path.name for path in silent.log.parent.iterdir()} == {"log"}


def test_existing_output_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    record.add_arguments(parser)
    options = parser.parse_args([str(trajectory(tmp_path, 1.0)), "--output", str(tmp_path)])
    with pytest.raises(RecordingError, match="exists already, and is not overwritten"):
        record.run(options)
