"""The executable: signals, requests that do not fit, files that cannot be read."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from dds import LockstepArm, Process, controller, ros, trajectory, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
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


def _ask(arm: LockstepArm, kind: type, name: str, **fields: object) -> object:
    client = arm.node.create_client(kind, name)
    wait_for(client.service_is_ready, arm.spin)
    answer = client.call_async(kind.Request(**fields))
    wait_for(answer.done, arm.spin)
    return answer.result()


def test_transition_that_is_not_possible_is_answered(arm: LockstepArm) -> None:
    with controller(PARAMETERS) as process:
        arm.run(5)
        for number in (1, 3, 42):  # configure, activate, nonsense; it is active already
            transition = Transition(id=number)
            name = "rnea_controller/change_state"
            assert not _ask(arm, ChangeState, name, transition=transition).success
        process.said("transition 1 is not possible now, only deactivate (4)")
        arm.run(5)


@pytest.mark.parametrize("executable", ["node", "sentinel"])
def test_wrong_request_is_answered_and_counted(arm: LockstepArm, executable: str) -> None:
    name = {"node": "rnea_controller", "sentinel": "rnea_sentinel"}[executable]
    parameters = {**PARAMETERS, "robot_description": two_link_arm()}
    with Process(f"rnea_control.{executable}.executable", parameters) as process:
        for number in (99, 255):
            wrong = Parameter(name="x", value=ParameterValue(type=number))
            answer = _ask(arm, SetParameters, f"{name}/set_parameters", parameters=[wrong])
            assert f"type {number}; it must be one of" in answer.results[0].reason
        wait_for(lambda: arm.diagnostics.get("callbacks failed") == "2", arm.spin)
        assert process.process.poll() is None


def test_state_before_the_epoch_is_asked_for(arm: LockstepArm) -> None:
    pytest.importorskip("control_msgs")
    from control_msgs.srv import QueryTrajectoryState  # noqa: PLC0415

    with controller(PARAMETERS) as process:
        arm.run(5)
        time = Time(sec=-1)
        answer = _ask(arm, QueryTrajectoryState, "rnea_controller/query_state", time=time)
        assert not answer.success
        assert "outside the trajectory" in answer.message
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
