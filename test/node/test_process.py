"""The executable: signals, requests that do not fit, files that cannot be read."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from dds import ARM, PATIENT, LockstepArm, ask, controller, ros, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from robots import two_link_arm
from surroundings import no_free_descriptor

from rnea_control.dynamics import Workspace, gravity

EMPTY_DOMAIN = 18 + int(os.environ["ROS_DOMAIN_ID"])  # nobody tells a description there


@pytest.fixture(scope="module")
def arm() -> Iterator[LockstepArm]:
    with ros(83):
        arm = LockstepArm(**ARM)
        yield arm
        arm.destroy()


def test_wrong_requests_are_answered_and_a_signal_leaves_a_holding_torque(arm: LockstepArm) -> None:
    """But not SIGHUP."""
    with controller(PATIENT) as process:
        arm.run(5)
        for number in (1, 3, 42):  # configure, activate, nonsense; it is active already
            transition = Transition(id=number)
            name = "rnea_controller/change_state"
            assert not ask(arm.node, arm.spin, ChangeState, name, transition=transition).success
        process.said("transition 1 is not possible now, only deactivate (4)")
        wrong = [Parameter(name="x", value=ParameterValue(type=99))]
        service = "rnea_controller/set_parameters"
        answer = ask(arm.node, arm.spin, SetParameters, service, parameters=wrong)
        assert "type 99; it must be one of" in answer.results[0].reason
        wait_for(lambda: arm.diagnostics.get("callbacks failed") == "4", arm.spin)
        arm.run(20)
        received = arm.node.commands_received
        words = "SIGHUP (a closed terminal) is ignored, as the controller has an arm (mode holding)"
        begin = time.monotonic()
        for _ in range(50):
            process.process.send_signal(signal.SIGHUP)
            arm.run(1)
            time.sleep(0.02)
        wait_for(lambda: words in process.output, arm.spin)
        assert process.output.count(words) <= time.monotonic() - begin + 2.0  # once a second
        assert process.stop(signal.SIGTERM) == 0, process.output
        wait_for(lambda: arm.node.commands_received > received, arm.spin)
        assert "Traceback" not in process.output
    model = arm.node.model
    expected = gravity(model, Workspace(model), arm.node.q, np.zeros(2))
    command = arm.node.effort_controller.limited(arm.node.q, arm.node.v)
    np.testing.assert_allclose(command, expected, rtol=1e-6)


@pytest.mark.explores
def test_file_for_another_node_is_told_from_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(EMPTY_DOMAIN))
    file, own = tmp_path / "my_arm.yaml", "ros__parameters: {joints: [a]}"
    file.write_text(f"arm_controller: {{{own}}}\n/left: {{rnea_controller: {{{own}}}}}\n")
    words = (
        f"{file} has no parameters for /rnea_controller, only for /arm_controller, "
        "/left/rnea_controller: give the section the name and namespace of this node"
    )
    description = ("-p", f"robot_description:={two_link_arm()}")
    with controller(None, "--params-file", str(file)) as process:
        process.said(words)
    with controller(None, "--params-file", str(file), *description) as process:
        process.said(f"not configured: no parameter is set: {words}")
    named = ("-r", "__ns:=/left", *description)
    with controller(None, "--params-file", str(file), *named) as process:
        process.said("not configured: ")
        assert "has no parameters for" not in process.output


@pytest.mark.explores
def test_joint_names_with_a_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    """As keys rcl misreads all but the first of a map; the nested maps that the message asks for
    are read."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(EMPTY_DOMAIN))
    joints = ["arm.elbow", "arm.shoulder"]
    urdf = (
        two_link_arm().replace('"shoulder"', f'"{joints[1]}"').replace('"elbow"', f'"{joints[0]}"')
    )
    given = {"joints": joints, "robot_description": urdf}
    gains = {joint: {"p": 1.0, "d": 1.0} for joint in joints}
    with controller({**given, "gains": gains}) as process:
        process.said("ROS misreads the key 'arm.shoulder' in YAML; write nested maps, {arm: {sh")
        process.said("not configured: parameter 'gains.arm.shoulder.p' is not set")
        assert "misspelled" not in process.output
    nested = {joint.removeprefix("arm."): own for joint, own in gains.items()}
    with controller({**given, "gains": {"arm": nested}}) as process:
        process.said("commands to /effort_controller/commands")
        assert "misreads" not in process.output


def test_log_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "file" / "log"))
    with controller(None) as process:
        process.said(f"its log folder {tmp_path}/file/log cannot be written; set ROS_LOG_DIR")
        assert process.process.wait() == 1 and "these arguments" not in process.output


# The process leads a session whose terminal is its output.
IN_TERMINAL = """
import fcntl, os, termios
os.setsid()
terminal = os.open({!r}, os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.dup2(terminal, 1)
os.dup2(terminal, 2)
os.close(terminal)
"""


def test_arm_is_held_when_the_terminal_closes(arm: LockstepArm) -> None:
    """The kernel sends SIGHUP then, and what is written to the terminal is an error."""
    master, terminal = os.openpty()
    with controller(PATIENT, before=IN_TERMINAL.format(os.ttyname(terminal))) as process:
        os.close(terminal)
        arm.run(20)
        os.close(master)
        for _ in range(10):
            arm.run(20)
            assert process.process.poll() is None
        assert process.stop(signal.SIGTERM) == 0


@pytest.mark.explores
def test_diagnostics_go_on_without_a_free_descriptor(arm: LockstepArm) -> None:
    def ticks() -> int:
        return int(arm.diagnostics.get("ticks", "0"))

    with controller(PATIENT) as process:
        arm.run(5)
        with no_free_descriptor(process.process.pid):
            for _ in range(3):  # reports
                before = ticks()
                arm.run(5)
                wait_for(lambda: ticks() > before, arm.spin)  # noqa: B023
            process.said("Too many open files: '/proc/self/task'; tried again in 1 s")
        assert process.stop(signal.SIGTERM) == 0


def test_closed_terminal_ends_a_controller_that_has_no_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(EMPTY_DOMAIN))
    with controller({**PATIENT, "robot_description": two_link_arm()}) as process:
        process.said("active: waiting for joint_states")
        assert process.stop(signal.SIGHUP) == 0, process.output


@pytest.mark.explores
def test_what_is_wrong_at_the_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(EMPTY_DOMAIN))  # where nobody tells a description
    wrong = {"robot_description": two_link_arm(), "contol_law": "pd", "control_law": "magic"}
    wrong |= {"gains": {"finger": {"p": 1.0, "d": 1.0}}}
    with ExitStack() as stack:
        waiting, refused, empty = (
            stack.enter_context(controller({**PATIENT, **changes}))
            for changes in ({}, wrong, {"joints": []})
        )
        empty.said("Does the YAML file set a parameter to []")
        assert "Traceback" not in empty.output
        refused.said("parameter 'contol_law' is not known and has no effect; is it misspelled?")
        no_effect = "gains.finger.d, gains.finger.p: no effect, as 'finger' is not in `joints`"
        refused.said(no_effect)
        assert refused.output.count("misspelled") == 1
        refused.said("not configured: parameter 'control_law' is 'magic'; it must be one of")
        refused.said("[parameter]")
        waiting.said("waiting for the topic robot_description")
        waiting.said("still waiting for the topic robot_description")
        for process in (waiting.process, refused.process):
            assert process.poll() is None
            while process.poll() is None:  # a launch file sends a second one beside a terminal's
                process.send_signal(signal.SIGINT)
                time.sleep(0.001)
            assert process.returncode == 0
