"""rclpy's internals are used in one file, and the controller answers states without them."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dds import (
    ALWAYS,
    ARM,
    PATIENT,
    PYTHON_TICKS,
    LockstepArm,
    action_process,
    ask,
    controller,
    ros,
    settings,
    wait_for,
)
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.time import Time
from robots import two_link_arm

import rnea_control
from rnea_control.dynamics import Workspace, gravity
from rnea_control.ros import conventions, rclpy_internals
from rnea_control.ros.raw_subscription import UNPROVEN

PACKAGE = Path(rnea_control.__file__).parent
INTERNAL = re.compile(r"^rclpy\.(_|impl(\.|$))")

# Only our file sees that the implementation is gone; rclpy itself keeps its own.
ANOTHER_RCLPY = """
import rclpy.node
import rclpy.impl.implementation_singleton as singleton
real = singleton.rclpy_implementation
del singleton.rclpy_implementation
import rnea_control.ros.rclpy_internals
singleton.rclpy_implementation = real
"""

# What Humble's rclpy and messages lack, of all that this package uses.
HUMBLE = """
import sys
from contextlib import suppress
from importlib import import_module
import rclpy.action, rclpy.executors, rclpy.lifecycle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.subscription import Subscription
sys.modules["rclpy.event_handler"] = None
for owner, name in (
    (Node, "add_post_set_parameters_callback"),
    (Subscription, "get_publisher_count"),
):
    for each in owner.__mro__:
        if name in vars(each):
            delattr(each, name)
take = rclpy_implementation.Subscription.take_message
def take_message(*arguments):
    taken = take(*arguments)
    if taken is not None:
        taken[1].pop("publication_sequence_number", None)
    return taken
rclpy_implementation.Subscription.take_message = take_message
for package, lacks in (
    ("control_msgs", "SpeedScalingFactor"),
    ("controller_manager_msgs", "ControllerManagerActivity"),
):
    with suppress(ModuleNotFoundError, AttributeError):
        delattr(import_module(package + ".msg"), lacks)
"""
# And its executor gives callbacks the message alone.
HUMBLE_EXECUTOR = """
from rnea_control.ros import raw_subscription
raw_subscription.TELLS_INFO = False
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


def test_modes_have_the_time_of_lyrical_where_the_message_has(monkeypatch) -> None:
    class OfLyrical(SimpleNamespace):
        stamp = None

    monkeypatch.setattr(conventions, "TransitionEvent", OfLyrical)
    event = conventions.mode_event(Time(seconds=3, nanoseconds=5), State(), State(), "why")
    assert (event.stamp.sec, event.stamp.nanosec) == (3, 5)
    assert event.transition.label == "why" and not hasattr(event, "timestamp")


def test_states_are_answered_by_the_executor_and_a_refused_request_does_no_harm() -> None:
    with ros(70), controller(PATIENT, before=ANOTHER_RCLPY) as process:
        arm = LockstepArm(**ARM)
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
        assert process.output.count(UNPROVEN) == 1
        arm.destroy()


@pytest.mark.explores
@pytest.mark.parametrize("without", ["", PYTHON_TICKS + HUMBLE_EXECUTOR], ids=["native", "python"])
def test_what_humble_lacks_is_done_without(without: str) -> None:
    with ros(70), controller(PATIENT, before=HUMBLE + without) as process:
        arm = LockstepArm(robot_description=two_link_arm())
        arm.run(100)
        arm.until_diagnosed("control_law", "computed_torque")
        if not (without or ALWAYS):
            ticks = "ticks without the interpreter"
            wait_for(lambda: int(arm.diagnostics.get(ticks, 0)) > 0, arm.spin)
        if find_spec("control_msgs") is not None:
            assert re.search("the controller lacks .*~/controller_state", process.output)
            assert "and the action" not in process.output
            wait_for(lambda: action_process(process.process.pid), arm.spin)
        before, name = arm.torque[-1], "rnea_controller/set_parameters"
        for value, allowed in (([0.0, 0.0, -5.0], True), ([0.0, 0.0], False)):
            changes = settings({"gravity": value})
            answer = ask(arm.node, arm.spin, SetParameters, name, parameters=changes)
            assert answer.results[0].successful is allowed, answer
        arm.run(5)
        assert not np.allclose(arm.torque[-1], before, rtol=0.01)
        assert process.stop() == 0, process.output
        assert "Traceback" not in process.output
        arm.destroy()


def test_yaml_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("rnea_controller:\n  ros__parameters:\n    joints: [a, b\n  x: }")
    for before in ("", ANOTHER_RCLPY):
        with controller(None, "--params-file", str(path), before=before) as process:
            assert process.process.wait(timeout=60.0) == 1
            assert "broken.yaml" in process.output and "Traceback" not in process.output
