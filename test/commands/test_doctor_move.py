"""`rnea_doctor --move` over DDS: beside a simulated arm whose wires are right, or are not."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dds
import numpy as np
import pytest
import yaml
from dds import ARM, PATIENCE, Process, wait_for
from robots import two_link_arm

from rnea_control.commands.doctor import main
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.ros.middleware import BUILTIN

DOMAIN = 88
URDF = two_link_arm().replace('effort="100"', 'effort="40"')
MODEL = RobotModel.from_urdf_string(URDF)
START = np.array([0.3, -0.4])
GRAVITY = gravity(MODEL, Workspace(MODEL), START, np.zeros(2))
# A busy machine takes long.
PARAMETERS = {**dds.PARAMETERS, "joint_state_gap": 1.0, "joint_state_timeout": 2.0}
# In the arm's process: each command that comes is written to a file, and then changed.
WIRES = """
from rnea_control.simulation import simulated_arm
def wired(controller, values, receive=simulated_arm.EffortController.receive):
    print(*values, file=open({file!r}, "a"))
    return receive(controller, {change})
simulated_arm.EffortController.receive = wired
"""
RIGHT, REVERSED = "values", "[-values[0], values[1]]"
# In the arm's process: other nodes. One has a publisher of commands; one says that it is the
# controller, and active.
OTHERS = """
import rclpy
from lifecycle_msgs.msg import TransitionEvent
from std_msgs.msg import Float64MultiArray
from rnea_control.ros.conventions import LATCHED
def made(arm, *given, init=simulated_arm.SimulatedArm.__init__, **named):
    init(arm, *given, **named)
    arm.other = rclpy.create_node("{node}")
    arm.topic = arm.other.create_publisher({publishes})
    if arm.topic.msg_type is TransitionEvent:
        event = TransitionEvent()
        event.goal_state.label = "holding"
        arm.topic.publish(event)
simulated_arm.SimulatedArm.__init__ = made
"""
RIVAL = OTHERS.format(node="teleop", publishes='Float64MultiArray, "effort_controller/commands", 1')
ACTIVE = OTHERS.format(node="other", publishes='TransitionEvent, "rnea_controller/mode", LATCHED')
# In the arm's process: after so many commands there are no states any more.
FALLS_SILENT = """
def published(arm, publish=simulated_arm.SimulatedArm.publish_state):
    return arm.stamp() if arm.commands_received > 20 else publish(arm)
simulated_arm.SimulatedArm.publish_state = published
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    monkeypatch.setenv(BUILTIN, "UDPv4")  # which the command sets


class Arm:
    """A simulated arm in a process of its own, and the doctor beside it.

    Attributes:
        folder: where doctors run.
        options: of a doctor.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._commands = folder, folder / "commands"
        self.set()
        file = str(folder / "controller.yaml")
        self.options = ["--move", "--json", "--parameters", file, "--seconds", "1.5"]
        self._commands.touch()

    def set(self, **parameters: object) -> None:
        """Gives the controller other parameters."""
        text = yaml.safe_dump({"rnea_controller": {"ros__parameters": PARAMETERS | parameters}})
        (self.folder / "controller.yaml").write_text(text)

    @property
    def commands(self) -> np.ndarray:
        """The commands that came so far, shape (n, 2), [Nm]."""
        lines = self._commands.read_text().splitlines()
        return np.array([line.split() for line in lines], dtype=float).reshape(-1, 2)

    @contextmanager
    def running(self, change: str = RIGHT, before: str = "") -> Iterator[Arm]:
        wires = WIRES.format(file=str(self._commands), change=change)
        hardware = {**ARM, "robot_description": URDF, "rate": 500.0, "joint_friction": 0.3}
        with Process("rnea_control.simulation.executable", hardware, before=wires + before) as arm:
            arm.said("simulating")
            yield self

    def diagnosis(self, capsys: pytest.CaptureFixture[str], *options: str) -> Diagnosis:
        """What a doctor in this process finds."""
        status = main(["rnea_doctor", *self.options, *options])
        return Diagnosis(status, *capsys.readouterr())

    def doctor(self, *options: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen:
        """A doctor in a process of its own."""
        program = [sys.executable, "-m", "rnea_control.commands.doctor", *self.options, *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(program, cwd=self.folder, text=True, stdin=stdin, **pipes)


class Diagnosis:
    """What a doctor found: exit status, what it found by code, and what it said beside."""

    def __init__(self, status: int, printed: str, said: str) -> None:
        self.status, self.said = status, said
        self.found = {each["code"]: each["what"] for each in json.loads(printed)["findings"]}

    @classmethod
    def of(cls, doctor: subprocess.Popen) -> Diagnosis:
        printed, said = doctor.communicate(timeout=PATIENCE)
        assert printed, said
        return cls(doctor.returncode, printed, said)

    def __repr__(self) -> str:
        return f"{self.status} {self.found} {self.said}"


@pytest.mark.explores
def test_question_then_right_arm_then_signal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside one arm, as each start takes its time."""
    with Arm(tmp_path).running() as arm:
        ours, its = pty.openpty()
        os.write(ours, b"n\n")
        with os.fdopen(its) as terminal:
            monkeypatch.setattr(sys, "stdin", terminal)
            declined = arm.diagnosis(capsys)
        os.close(ours)
        assert declined.status == 1
        assert "was not yes" in declined.found["move-refused"]
        assert "the gravity torque, under which it drifts away" in declined.said
        assert "Move the arm? [y/N]" in declined.said
        assert len(arm.commands) == 0

        right = arm.diagnosis(capsys, "--yes")
        assert right.status == 0, right
        assert "all 2 joints responded as the model predicts" in right.found["wires-right"]
        commands = arm.commands
        np.testing.assert_allclose(commands[0], GRAVITY, atol=0.05)
        np.testing.assert_allclose(commands[-1], GRAVITY, atol=0.5)
        assert (np.ptp(commands, axis=0) > 1.0).all() and (np.ptp(commands, axis=0) < 20.0).all()
        assert "The last command, the gravity torque, stays in force" in right.said

        arm.set(last_command="zero")

        def press() -> None:
            wait_for(lambda: len(arm.commands) > len(commands) + 5)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        ended = arm.diagnosis(capsys, "--yes")
        thread.join()
        assert ended.status == 1
        assert "interrupted" in ended.found["move-ended"]
        assert "zero torque" in ended.found["move-ended"]
        assert (arm.commands[-1] == 0.0).all()


def test_reversed_joint_is_named_and_gets_no_torque_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Arm(tmp_path).running(REVERSED) as arm:
        wrong = arm.diagnosis(capsys, "--yes")
        assert wrong.status == 1
        assert "the torque of shoulder has the wrong sign" in wrong.found["wires-wrong"], wrong
        assert (arm.commands[-1] == 0.0).all()


def test_active_controller_is_named_and_nobody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Arm(tmp_path).running(before=ACTIVE) as arm:
        refused = arm.diagnosis(capsys, "--yes")
        assert refused.status == 1
        assert "/rnea_controller is active, in mode holding" in refused.found["move-refused"]
        monkeypatch.setattr(sys, "stdin", None)
        assert "give --yes" in arm.diagnosis(capsys, "--seconds", "0.5").found["move-refused"]
        assert len(arm.commands) == 0


def test_wrong_options_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["rnea_doctor", "--yes"])
    assert "--yes needs --move" in capsys.readouterr().err


@pytest.mark.explores
def test_rival_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Arm(tmp_path).running(before=RIVAL) as arm:
        refused = arm.diagnosis(capsys, "--yes")
        assert "commands-second-publisher" in refused.found["move-refused"]
        assert "/teleop" in refused.found["commands-second-publisher"]
        assert len(arm.commands) == 0


@pytest.mark.explores
def test_states_that_stop_leave_no_torque_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Arm(tmp_path).running(before=FALLS_SILENT) as arm:
        arm.set(joint_state_timeout=0.5, joint_state_gap=0.1)
        ended = arm.diagnosis(capsys, "--yes")
        assert ended.status == 1
        assert "no joint_states" in ended.found["move-ended"], ended
        assert (arm.commands[-1] == 0.0).all()


@pytest.mark.explores
def test_another_doctor_and_a_controller_that_becomes_active(tmp_path: Path) -> None:
    with Arm(tmp_path).running() as arm:
        ours, its = pty.openpty()
        asking = arm.doctor(stdin=its)
        said = ""
        while not said.endswith("[y/N]"):
            letter = asking.stderr.read(1)
            assert letter, said
            said += letter
        another = Diagnosis.of(arm.doctor("--yes"))
        assert "/rnea_doctor_" in another.found["commands-second-publisher"], another
        with Process("rnea_control.node.executable", PARAMETERS) as controller:
            controller.said("active:")
            os.write(ours, b"y\n")
            refused = Diagnosis.of(asking)
            # The controller may be discovered a moment later.
            assert refused.status == 1
            assert {"move-refused", "move-ended"} & refused.found.keys(), refused
