"""rclpy's internals are used in one file, and the controller answers states without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dds import LockstepArm, controller, ros, wait_for
from lifecycle_msgs.srv import ChangeState
from robots import two_link_arm

import rnea_control
from rnea_control.dynamics import Workspace, gravity
from rnea_control.ros import rclpy_internals

PACKAGE = Path(rnea_control.__file__).parent
INTERNAL = re.compile(r"^rclpy\.(_|impl(\.|$))")
JOINTS = ["shoulder", "elbow"]
PARAMETERS = {
    "joints": JOINTS,
    "gains": {joint: {"p": 100.0, "d": 20.0} for joint in JOINTS},
    "joint_state_timeout": 1000.0,
    "joint_state_gap": 1000.0,
}
SAID = "the executor takes the joint states, which costs more CPU time"

# Only our file sees the change; rclpy itself keeps its own implementation.
ANOTHER_RCLPY = """
import types
import rclpy.context, rclpy.publisher, rclpy.subscription
import rclpy.impl.implementation_singleton as singleton
class EmptyWaitSet:
    def __init__(self, *arguments):
        pass
real = singleton.rclpy_implementation
{change}
import rnea_control.ros.rclpy_internals
singleton.rclpy_implementation = real
"""
CHANGES = {
    "none": "del singleton.rclpy_implementation",
    "no names": "singleton.rclpy_implementation = types.SimpleNamespace()",
    "another signature": "singleton.rclpy_implementation = types.SimpleNamespace(WaitSet=object)",
    "no methods": "singleton.rclpy_implementation = types.SimpleNamespace(WaitSet=EmptyWaitSet)",
}
MODES = {name: ANOTHER_RCLPY.format(change=change) for name, change in CHANGES.items()}


def internals_used(path: Path) -> list[str]:
    """What a file imports of rclpy's internals, or reaches by attributes of `rclpy`."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names.append(ast.unparse(node))
    return [name for name in names if INTERNAL.match(name)]


def test_one_file_imports_rclpys_internals() -> None:
    users = [path for path in sorted(PACKAGE.rglob("*.py")) if internals_used(path)]
    assert users == [Path(rclpy_internals.__file__)]


def test_without_raw_publishing_the_public_method_does_it() -> None:
    sent = []
    publisher = SimpleNamespace(handle=object(), publish=sent.append)
    rclpy_internals.raw_publish(publisher)(b"bytes")
    assert sent == [b"bytes"]


@pytest.fixture
def arm() -> Iterator[LockstepArm]:
    with ros(70):
        start = {"initial_positions.shoulder": 0.3, "initial_positions.elbow": -0.4}
        arm = LockstepArm(robot_description=two_link_arm(), **start)
        yield arm
        arm.destroy()


@pytest.mark.parametrize("mode", MODES)
def test_states_are_answered_by_the_executor(arm: LockstepArm, mode: str) -> None:
    with controller(PARAMETERS, before=MODES[mode]) as process:
        arm.run(20)
        assert process.stop() == 0, process.output
        assert process.output.count(SAID) == 1
        assert "Traceback" not in process.output
    model = arm.node.model
    expected = gravity(model, Workspace(model), arm.node.q, np.zeros(2))
    np.testing.assert_allclose(arm.torque[-1], expected, rtol=1e-6)


def test_refused_lifecycle_request_does_no_harm_without_rcl_error(arm: LockstepArm) -> None:
    client = arm.node.create_client(ChangeState, "rnea_controller/change_state")
    with controller(PARAMETERS, before=MODES["no names"]) as process:
        arm.run(5)
        assert client.wait_for_service(timeout_sec=30.0)
        request = ChangeState.Request()
        request.transition.id = 1  # configure; it is active already
        answer = client.call_async(request)
        wait_for(lambda: "request refused" in process.output or answer.done(), arm.spin)
        assert not answer.done() or not answer.result().success
        arm.run(5)
        assert process.process.poll() is None


def test_yaml_that_is_none_is_said_without_rcl_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("rnea_controller:\n  ros__parameters:\n    joints: [a, b\n  x: }")
    with controller(None, "--params-file", str(path), before=MODES["none"]) as process:
        assert process.process.wait(timeout=60.0) == 1
        assert "broken.yaml" in process.output
        assert "Traceback" not in process.output
