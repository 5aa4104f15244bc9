"""`rnea_identify record` over DDS, beside a simulated arm and its controller."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import dds
import numpy as np
import pytest
import yaml
from dds import ARM, JOINTS, Process, controller, ros, without
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.commands.identify import record
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording_files import read_recording
from rnea_control.ros.raw_subscription import UNPROVEN

DOMAIN = 77
RATE = 250
# A busy machine takes long.
PARAMETERS = {**dds.PARAMETERS, "joint_state_gap": 5.0, "joint_state_timeout": 5.0}
MODULE = "rnea_control.commands.identify.executable"
# Without control_msgs, and without the addresses of rcl.
NO_ACTION = without("control_msgs")
NO_RCL = "import rnea_control.ros.rclpy_internals as internals\ninternals.LIBRARY = None\n"


class Record(Process):
    """A process of `rnea_identify record` with these arguments, before which some code runs."""

    def __init__(self, *arguments: object, before: str = "") -> None:
        super().__init__(MODULE, None, "--", "record", *map(str, arguments), before=before)

    def ends_with(self, status: int) -> None:
        assert self.process.wait(timeout=60.0) == status, self.output
        assert "Traceback" not in self.output, self.output

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def control() -> Iterator[Process]:
    with (
        ros(DOMAIN),
        Process("rnea_control.simulation.executable", {**ARM, "rate": float(RATE)}),
        controller(PARAMETERS) as process,
    ):
        process.said("]: holding: ")
        yield process


@pytest.fixture(scope="module", autouse=True)
def silent(control: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """A recorder where nothing comes; it runs beside the others, as it takes long."""
    output = tmp_path_factory.mktemp("silent") / "none"
    with Record("--namespace", "nobody", "--output", output, "--seconds", 1) as process:
        yield process
        assert list(output.parent.iterdir()) == []


def trajectory(folder: Path, seconds: float, joints: list[str] = JOINTS) -> Path:
    rest, points = [0.0, 0.0], []
    for part, positions in ((0.5, [0.5, -0.6]), (1.0, [0.3, -0.4])):
        sec, nanosec = divmod(round(1e9 * part * seconds), 1_000_000_000)
        point = {"positions": positions, "velocities": rest, "accelerations": rest}
        points.append({**point, "time_from_start": {"sec": sec, "nanosec": nanosec}})
    path = folder / "trajectory.yaml"
    path.write_text(yaml.safe_dump({"joint_names": joints, "points": points}))
    return path


def assert_there_and_back(path: Path, seconds: float) -> None:
    found = read_recording(path, JOINTS)
    away = np.flatnonzero(found.q[:, 0] > 0.35)
    assert found.q[:, 0].max() > 0.49 and found.q[:, 1].min() < -0.59
    assert found.time[away[0]] > 0.99
    assert found.time[-1] - found.time[away[-1]] > 0.99
    assert 0.98 * (2.0 + seconds) < found.time[-1] < 20.0
    assert np.isfinite(found.effort).all() and np.ptp(found.effort[:, 0]) > 1.0
    # From when it has discovered who takes the commands.
    with Reader(path) as bag:
        commands = [
            deserialize_message(data, Float64MultiArray).data
            for each, _, data in bag.messages()
            if each.topic == "/effort_controller/commands"
        ]
    assert len(commands) > len(found.time) // 4 and np.isfinite(commands).all()
    assert np.abs(np.subtract(commands[-1], found.effort[-1])).max() < 0.2 * np.ptp(found.effort)
    assert "two_link_arm" in found.robot_description


@pytest.mark.explores
def test_motion_by_the_action_into_a_bag_while_another_listens(control, tmp_path) -> None:
    output, heard = tmp_path / "motion", tmp_path / "heard.npz"
    with (
        Record("--output", heard, before=NO_RCL) as listener,
        Record(trajectory(tmp_path, 0.8), "--output", output) as process,
    ):
        process.ends_with(0)
        assert "sent 0.8 s of trajectory by the action /rnea_controller/follow" in process.output
        # Ctrl-C is how recording without --seconds ends.
        listener.interrupt()
        listener.ends_with(0)
        assert UNPROVEN in listener.output  # an executor took what it heard
    assert_there_and_back(output, 0.8)
    with Reader(output) as bag:
        topics = {each.topic for each in bag.connections}
        states = [data for each, _, data in bag.messages() if each.topic == "/joint_states"]
    assert topics == {"/joint_states", "/effort_controller/commands", "/robot_description"}
    stamps = [deserialize_message(data, JointState).header.stamp for data in states]
    steps = np.diff([stamp.sec * 10**9 + stamp.nanosec for stamp in stamps])
    assert (steps > 0).all() and np.median(steps) == pytest.approx(1e9 / RATE, rel=0.2)
    found = read_recording(heard)
    assert set(found.joints) == set(JOINTS)
    assert found.q[:, found.joints.index("shoulder")].max() > 0.49


@pytest.mark.explores
def test_refused_trajectory_is_said_and_the_states_are_kept(control, tmp_path) -> None:
    path = trajectory(tmp_path, 1.0, ["shoulder", "wrist"])
    table = tmp_path / "table"  # of a joint that is not there: only a folder can be written
    with (
        Record(path, "--output", tmp_path / "motion") as by_action,
        Record(path, "--output", table.with_suffix(".npz"), before=NO_ACTION) as by_topic,
    ):
        for process, output in ((by_action, tmp_path / "motion"), (by_topic, table)):
            process.ends_with(1)
            said = process.output.split("the motion failed: ")[1].replace("'", "")
            assert "wrist, which this controller does not control" in said
            words = "no message names all of the joints shoulder, wrist; /joint_states has"
            assert words in process.output
            assert len(read_recording(output, JOINTS).time) > RATE
        assert "All messages are in the rosbag2 folder" in by_topic.output


@pytest.mark.explores
def test_interrupt_in_motion_ends_it_and_keeps_the_states(control: Process, tmp_path: Path) -> None:
    output = tmp_path / "motion"
    with Record(trajectory(tmp_path, 6.0), "--output", output) as process:
        process.said("sent 6.0 s")
        time.sleep(0.8)
        process.interrupt()
        process.ends_with(1)
        assert "the motion failed: interrupted" in process.output
    control.said("goal canceled")
    found = read_recording(output, JOINTS)
    assert found.time[-1] > 2.0 and found.q[-1, 0] < 0.49
    assert np.ptp(found.q[-RATE // 10 :], axis=0).max() < 0.005, "the arm still moves"


@pytest.mark.explores
def test_silence_is_said_with_the_topics_there_are(silent: Record) -> None:
    silent.ends_with(1)
    assert (
        "no joint states on /nobody/joint_states for 5 s; /joint_states has joint states"
        in silent.output
    )
    assert "no message on /nobody/joint_states: " in silent.output


def test_existing_output_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    record.add_arguments(parser)
    options = parser.parse_args([str(trajectory(tmp_path, 1.0)), "--output", str(tmp_path)])
    with pytest.raises(RecordingError, match="exists already, and is not overwritten"):
        record.run(options)
