"""The arm from Python: goals, streams, requests, and what ends leave behind."""

from __future__ import annotations

import gc
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from dds import JOINTS, PATIENCE, Process, wait_for

from rnea_control.client import Aborted, Arm, NotThere, Refused, Stopped, TimedOut
from rnea_control.exceptions import ArgumentError, TrajectoryError
from rnea_control.identification.recording_files import read_recording

DOMAIN = 86
README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"
HOME = [0.3, -0.4]
QUICK = 0.1  # speed: 1 rad/s
SLOW = 0.01  # speed: 0.1 rad/s


def stream(arm: Arm, target: object, seconds: float = PATIENCE) -> None:
    """Sends a target again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        arm.stream(target)
        time.sleep(0.02)


def test_goal_is_reached_refused_and_stopped_with_the_words_of_the_controller(arm: Arm) -> None:
    assert arm.joint_names == tuple(JOINTS)
    goal = arm.go_to({"shoulder": 0.4}, speed=QUICK)
    assert goal.words == "the goal is reached" and goal.progress == 1.0 and goal.errors
    np.testing.assert_allclose(arm.state.positions, [0.4, -0.4], atol=0.01)
    assert abs(arm.state.age) < PATIENCE and arm.state.efforts.shape == (2,)
    assert arm.move_by([-0.1, 0.0], speed=QUICK).failure is None
    assert arm.go_to(goal.target * 0.0 + HOME, speed=QUICK).progress == 1.0
    with pytest.raises(TrajectoryError, match=r"shoulder would go to 99 rad; its limits are -3"):
        arm.go_to({"shoulder": 99.0})
    with pytest.raises(TrajectoryError, match="'wrist' is not a joint"):
        arm.go_to({"wrist": 0.0})
    with pytest.raises(ArgumentError, match="speed is 2"):
        arm.go_to(HOME, speed=2.0)
    goal = arm.go_to([1.0, 0.4], speed=SLOW, wait=False)
    assert not goal.has_ended and goal.words.endswith(f"of {goal.duration:.1f} s")
    wait_for(lambda: goal.errors)
    with pytest.raises(TimedOut):
        goal.wait(0.1)
    arm.hold()
    with pytest.raises(Stopped, match="requested by ~/hold"):
        goal.wait(PATIENCE)


@pytest.mark.explores
def test_goal_is_canceled_or_replaced(arm: Arm) -> None:
    goal = arm.go_to([1.0, 0.4], speed=SLOW, wait=False)
    goal.cancel()
    with pytest.raises(Stopped, match="canceled by the client"):
        goal.wait(PATIENCE)
    arm.wait(seconds=PATIENCE)
    goal = arm.go_to([1.0, 0.4], speed=SLOW, wait=False)
    wait_for(lambda: arm.mode.name == "moving")
    with Arm(timeout=PATIENCE) as other:
        with pytest.raises(Refused, match="it follows a trajectory of another client"):
            other.go_to(HOME)
        stream(other, other.state.positions, 0.1)
        with pytest.raises(Stopped, match="a stream of targets has replaced it"):
            goal.wait(PATIENCE)


@pytest.mark.explores
def test_controller_that_aborts_or_ends_elsewhere(arm: Arm) -> None:
    changed = ("disturbance_observer.bandwidth", "payload.mass", "constraints.elbow.trajectory")
    before = arm.parameters.get(changed)
    try:
        arm.parameters["disturbance_observer.bandwidth"] = 0.0  # which would compensate the load
        arm.payload(0.5, (0.0, 0.0, 0.1))
        with pytest.raises(Aborted, match=r"the motion has ended, but \w+ is"):
            arm.move_by({"elbow": 0.1}, speed=QUICK)
        arm.parameters["constraints.elbow.trajectory"] = 0.001
        with pytest.raises((Aborted, Refused), match="elbow"):
            arm.move_by({"elbow": 0.5}, speed=QUICK)
    finally:
        arm.parameters.set(before)


def test_streams_are_followed_or_say_why_not(arm: Arm) -> None:
    for k in range(20):
        arm.stream({"elbow": -0.4 + 0.004 * k}, velocity={"elbow": 0.2})
        time.sleep(0.02)
    assert arm.mode.name == "streaming"
    np.testing.assert_allclose(arm.state.positions[1], -0.33, atol=0.05)
    with pytest.raises(Stopped, match="requested by ~/hold"):
        arm.hold()
        stream(arm, {"elbow": -0.33})
    arm.wait(seconds=PATIENCE)
    time.sleep(0.6)  # the controller takes a new stream after a pause
    with pytest.raises(Refused, match=r"elbow is .* rad from its desired position, more than"):
        stream(arm, {"elbow": 1.9})
    pose = arm.pose
    for _ in range(60):  # meanwhile a report comes, about the targets of joints
        arm.stream_pose(pose.position, pose.orientation)
        time.sleep(0.02)
    assert arm.mode.name == "streaming" and arm.diagnostics.values["robot"]
    arm.wait(seconds=PATIENCE)


@pytest.mark.explores
def test_stream_of_the_second_client_is_refused(arm: Arm) -> None:
    with Arm(timeout=PATIENCE) as other:
        arm.stream(HOME)
        wait_for(lambda: arm.mode.name == "streaming")
        refusal, end = "", time.monotonic() + PATIENCE
        while not refusal and time.monotonic() < end:
            arm.stream(HOME)  # the first client is not refused
            try:
                other.stream(HOME)
            except Refused as error:
                refusal = str(error)
            time.sleep(0.02)
        stream(arm, HOME, 1.2)  # until the report has come
    assert "are ignored, as the arm follows target_joint of /rnea_client" in refusal


@pytest.mark.explores
def test_program_that_fails_while_it_streams_leaves_a_held_arm(arm: Arm) -> None:
    with pytest.raises(ZeroDivisionError), Arm(timeout=PATIENCE) as own:
        stream(own, own.state.positions, 0.3)
        raise ZeroDivisionError
    assert arm.mode.name == "streaming"
    arm.wait(seconds=PATIENCE)
    assert arm.mode.name == "holding"
    with pytest.raises(NotThere, match="the connection to ROS is closed"):
        own.stream(HOME)


def test_emergency_stop_is_held_until_released(arm: Arm) -> None:
    goal = arm.go_to([1.0, 0.4], speed=SLOW, wait=False)
    wait_for(lambda: goal.errors)
    arm.emergency_stop()
    assert str(arm.mode) == "emergency_stop: emergency stop"
    with pytest.raises(Stopped, match="emergency stop"):
        goal.wait(PATIENCE)
    for request in (lambda: arm.go_to(HOME), lambda: arm.stream(HOME), arm.guide):
        with pytest.raises(Refused, match=r"emergency[ _]stop"):
            request()
    with pytest.raises(Refused, match="still on, held by /rnea_client_"):
        arm.resume()
    arm.release_emergency_stop()
    wait_for(lambda: _succeeds(arm.resume))
    arm.wait(seconds=PATIENCE)
    assert "the arm follows the hand" in arm.guide()
    with pytest.raises(Refused, match="a hand guides the arm; call ~/resume first"):
        arm.go_to(HOME)
    arm.resume()


def _succeeds(request: Callable[[], object]) -> bool:
    try:
        request()
    except Refused:
        return False
    return True


def test_parameters_are_live_and_refused_in_the_words_of_the_controller(arm: Arm) -> None:
    arm.parameters["gains.elbow.p"] = 90
    assert arm.parameters["gains.elbow.p"] == 90
    arm.parameters["gains.elbow.p"] = np.float64(100.0)
    with pytest.raises(Refused, match=r"'gains.elbow.p' is -5.0; it must be a double, at least 0"):
        arm.parameters["gains.elbow.p"] = -5.0
    with pytest.raises(Refused, match="cannot change now"):
        arm.parameters["joints"] = ["elbow"]
    with pytest.raises(KeyError, match="nothing"):
        arm.parameters["nothing"]
    assert "payload.mass" in set(arm.parameters)


@pytest.mark.explores
def test_chunks_of_a_policy_are_joined(arm: Arm) -> None:
    for k in range(4):
        chunk = [[0.3, -0.4 + 0.01 * (4 * k + i)] for i in range(1, 9)]
        arm.stream_chunk(chunk, 0.05)
        time.sleep(0.2)
    assert arm.mode.name == "moving"
    arm.wait(seconds=PATIENCE)
    np.testing.assert_allclose(arm.state.positions, [0.3, -0.2], atol=0.02)


def test_page_and_example_run_as_they_are_printed(
    arm: Arm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall("```python\n(.*?)```", (DOCS / "client.md").read_text(), re.DOTALL)
    exec(code, {})
    assert "the goal is reached" in capsys.readouterr().out
    arm.wait(seconds=PATIENCE)
    np.testing.assert_allclose(arm.state.positions, [0.3, 0.1], atol=0.02)
    (code,) = re.findall("```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(code.replace("joint4", "elbow").replace("1.2", "0.2"), {})
    np.testing.assert_allclose(arm.state.positions, [0.3, 0.2], atol=0.02)
    monkeypatch.setattr(sys, "argv", ["policy.py", "0.5"])
    runpy.run_path(str(DOCS.parent / "examples" / "policy.py"), run_name="__main__")
    assert "moved by [0." in capsys.readouterr().out


@pytest.mark.explores
def test_recording_is_read_by_identification(arm: Arm, tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    with arm.record(tmp_path / "states.npz"), arm.record(tmp_path / "bag"):
        arm.move_by({"elbow": 0.1}, speed=QUICK)
    for name in ("states.npz", "bag"):
        recording = read_recording(tmp_path / name)
        assert recording.joints == tuple(JOINTS) and "two_link_arm" in recording.robot_description
        assert len(recording.time) > 50 and np.ptp(recording.q[:, 1]) > 0.09


def test_arm_that_is_not_closed_leaves_nothing(arm: Arm) -> None:
    threads = threading.active_count()

    def forget() -> None:
        goal = Arm(timeout=PATIENCE).go_to([1.0, 0.4], speed=SLOW, wait=False)
        assert goal.client.way

    forget()
    gc.collect()
    arm.wait(seconds=PATIENCE)
    assert threading.active_count() == threads


PROGRAM = """
import rclpy
from rnea_control.client import Arm
{before}
arm = Arm(timeout=60.0)
goal = arm.go_to([1.0, 0.4], speed=0.01, wait=False)
while not goal.errors:
    pass
print("moving", flush=True)
{after}
"""
PROGRAMS = {
    "interrupted beside rclpy": ("rclpy.init()", "goal.wait()"),
    "interrupted": ("", "goal.wait()"),
    "ended": ("", ""),
}
QUICKEST, *OTHERS = PROGRAMS


@pytest.mark.parametrize(
    "name", [QUICKEST, *(pytest.param(name, marks=pytest.mark.explores) for name in OTHERS)]
)
def test_program_that_is_interrupted_or_ends_stops_the_arm(
    arm: Arm, name: str, tmp_path: Path
) -> None:
    before, after = PROGRAMS[name]
    program = PROGRAM.format(before=before, after=after)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "moving\n", process.stderr.read()
    if after:
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert ("KeyboardInterrupt" in errors) == bool(after), errors
    arm.wait(seconds=5.0)
    assert np.abs(arm.state.positions - [1.0, 0.4]).max() > 0.3


def test_controller_that_is_missing_or_dies(arm: Arm, processes: Process) -> None:
    with pytest.raises(
        NotThere, match=r"there is no controller /left/rnea_controller within 0.5 s"
    ):
        Arm(namespace="left", timeout=0.5)
    goal = arm.go_to([1.0, 0.4], speed=SLOW, wait=False)
    wait_for(lambda: goal.errors)
    processes.process.kill()
    with pytest.raises(NotThere, match="the controller's process has ended"):
        goal.wait(PATIENCE)
