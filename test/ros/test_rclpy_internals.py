"""rclpy's internals are used in one file, and the controller answers states without them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from dds import PATIENT, LockstepArm, controller, ros, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from robots import two_link_arm

import rnea_control
from rnea_control.dynamics import Workspace, gravity
from rnea_control.ros import rclpy_internals
from rnea_control.ros.raw_subscription import UNPROVEN

PACKAGE = Path(rnea_control.__file__).parent
INTERNAL = re.compile(r"^rclpy\.(_|impl(\.|$))")
JOINTS = ["shoulder", "elbow"]
PARAMETERS = PATIENT
SAID = UNPROVEN

# Only our file sees that the implementation is gone; rclpy itself keeps its own.
ANOTHER_RCLPY = """
import rclpy.context, rclpy.publisher, rclpy.subscription
import rclpy.impl.implementation_singleton as singleton
real = singleton.rclpy_implementation
del singleton.rclpy_implementation
import rnea_control.ros.rclpy_internals
singleton.rclpy_implementation = real
"""


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


def test_states_are_answered_by_the_executor_and_a_refused_request_does_no_harm() -> None:
    start = {"initial_positions.shoulder": 0.3, "initial_positions.elbow": -0.4}
    with ros(70), controller(PARAMETERS, before=ANOTHER_RCLPY) as process:
        arm = LockstepArm(robot_description=two_link_arm(), **start)
        arm.run(20)
        model = arm.node.model
        expected = gravity(model, Workspace(model), arm.node.q, np.zeros(2))
        np.testing.assert_allclose(arm.torque[-1], expected, rtol=1e-6)
        client = arm.node.create_client(ChangeState, "rnea_controller/change_state")
        wait_for(client.service_is_ready, arm.spin)
        # Configure; it is active already.
        answer = client.call_async(ChangeState.Request(transition=Transition(id=1)))
        wait_for(lambda: "request refused" in process.output or answer.done(), arm.spin)
        assert not answer.done() or not answer.result().success
        arm.run(5)
        assert process.stop() == 0, process.output
        assert process.output.count(SAID) == 1
        arm.destroy()


def test_yaml_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("rnea_controller:\n  ros__parameters:\n    joints: [a, b\n  x: }")
    for before in ("", ANOTHER_RCLPY):
        with controller(None, "--params-file", str(path), before=before) as process:
            assert process.process.wait(timeout=60.0) == 1
            assert "broken.yaml" in process.output and "Traceback" not in process.output
