"""The executable: signals, requests that do not fit, files that cannot be read."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from dds import LockstepArm, controller, ros, trajectory, wait_for
from lifecycle_msgs.srv import ChangeState
from robots import two_link_arm

from rnea_control.dynamics import Workspace, gravity

JOINTS = ["shoulder", "elbow"]
PARAMETERS = {
    "joints": JOINTS,
    "gains": {joint: {"p": 100.0, "d": 20.0} for joint in JOINTS},
    "joint_state_timeout": 1000.0,
    "joint_state_gap": 1000.0,
}


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ros(83):
        yield


@pytest.fixture
def arm() -> Iterator[LockstepArm]:
    start = {"initial_positions.shoulder": 0.3, "initial_positions.elbow": -0.4}
    arm = LockstepArm(robot_description=two_link_arm(), **start)
    yield arm
    arm.destroy()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_a_holding_torque_and_status_zero(arm: LockstepArm, number: int) -> None:
    with controller(PARAMETERS) as process:
        arm.run(20)
        received = arm.node.commands_received
        assert process.stop(number) == 0, process.output
        wait_for(lambda: arm.node.commands_received > received, arm.spin)
        assert "Traceback" not in process.output
    model = arm.node.model
    expected = gravity(model, Workspace(model), arm.node.q, np.zeros(2))
    command = arm.node.effort_controller.limited(arm.node.q, arm.node.v)
    np.testing.assert_allclose(command, expected, rtol=1e-6)


def test_request_that_does_not_fit_the_state_does_no_harm(arm: LockstepArm) -> None:
    client = arm.node.create_client(ChangeState, "rnea_controller/change_state")
    with controller(PARAMETERS) as process:
        arm.run(5)
        assert client.wait_for_service(timeout_sec=30.0)
        answers = []
        for transition in (1, 3, 42):  # configure, activate, nonsense; it is active already
            request = ChangeState.Request()
            request.transition.id = transition
            answers.append(client.call_async(request))
        # rclpy either answers that it did not succeed, or raises and never answers.
        wait_for(
            lambda: "request refused" in process.output or all(a.done() for a in answers), arm.spin
        )
        assert not any(answer.result().success for answer in answers if answer.done())
        arm.run(5)
        assert process.process.poll() is None


def test_waiting_is_said() -> None:
    with controller(PARAMETERS) as process:
        process.said("waiting for the topic robot_description")
        process.said("still waiting for the topic robot_description")
        assert process.stop() == 0


def test_wrong_yaml_value_is_said_and_the_node_stays() -> None:
    parameters = {**PARAMETERS, "robot_description": two_link_arm(), "control_law": "magic"}
    with controller(parameters) as process:
        process.said("not configured: parameter 'control_law' is 'magic'; it must be one of")
        assert process.process.poll() is None
        assert process.stop() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": []}, "Does the YAML file set a parameter to []"),
        ({"autostart": 1}, "not started: parameter 'autostart' is 1; it must be a boolean"),
        ({"robot_description": 7}, "not started: parameter 'robot_description' is 7; it must be"),
    ],
)
def test_yaml_of_the_wrong_type_is_said(change: dict, words: str) -> None:
    with controller({**PARAMETERS, **change}) as process:
        process.said(words)
        assert "Traceback" not in process.output


def test_signal_in_motion_brings_the_arm_to_rest(arm: LockstepArm) -> None:
    with controller(PARAMETERS) as process:
        arm.run(20)
        goal = [(1.0, [1.0, -1.0], [0.0, 0.0], [0.0, 0.0])]
        arm.send(trajectory(JOINTS, goal))
        arm.until_diagnosed("motion", "following")
        arm.run(500)
        assert np.abs(arm.v[-1]).max() > 0.5
        process.process.send_signal(signal.SIGINT)
        wait_for(lambda: not arm.answers(), lambda: None)
        assert process.stop() == 0, process.output
    assert np.abs(arm.node.v).max() < 0.01, process.output


def test_misspelt_parameter_is_said() -> None:
    parameters = {**PARAMETERS, "robot_description": two_link_arm(), "contol_law": "pd"}
    with controller(parameters) as process:
        process.said("parameter 'contol_law' is not known and has no effect; is it misspelt?")


def test_yaml_that_is_none_is_said(tmp_path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("rnea_controller:\n  ros__parameters:\n    joints: [a, b\n  x: }")
    with controller(None, "--params-file", str(path)) as process:
        assert process.process.wait(timeout=60.0) == 1
        assert "broken.yaml" in process.output
        assert "Traceback" not in process.output
