"""The node beside a controller_manager whose effort controller becomes active, or does not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
import rclpy
from dds import JOINTS, ros, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from node_bench import GOOD, GRAVITY, Bench, Q, gravity_torque
from rclpy.parameter import Parameter
from std_msgs.msg import Float64MultiArray

from rnea_control.control import Mode
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.effort_controller import EffortController

msg = pytest.importorskip("controller_manager_msgs.msg")
srv = pytest.importorskip("controller_manager_msgs.srv")

DOMAIN = 72
NAME = "effort_controller"
RIVAL = "joint_trajectory_controller"
NUMBERS = itertools.count()


class Manager:
    """Speaks for controller_manager.

    Attributes:
        states: of its controllers, by name.
        requests: to switch controllers.
        refusal: what it answers to them; empty to do as told.
        interfaces: of its hardware, for commands.
        controller: the node of its effort controller, whose parameters say its joints.
    """

    def __init__(self, bench: Bench, activity: bool = True, joints: Sequence[str] = JOINTS) -> None:
        self.states = {NAME: "inactive", "joint_state_broadcaster": "active"}
        self.requests: list = []
        self.refusal = ""
        self.node = rclpy.create_node("controller_manager", namespace=bench.peer.get_namespace())
        bench.executor.add_node(self.node)
        # Humble's has none.
        kind = getattr(msg, "ControllerManagerActivity", None) if activity else None
        self._publisher = kind and self.node.create_publisher(kind, "~/activity", LATCHED)
        self.node.create_service(srv.SwitchController, "~/switch_controller", self._switch)
        self.node.create_service(srv.ListControllers, "~/list_controllers", self._list)
        self.interfaces = [f"{joint}/effort" for joint in JOINTS]
        listed = srv.ListHardwareInterfaces, "~/list_hardware_interfaces", self._list_hardware
        self.node.create_service(*listed)
        self.controller = rclpy.create_node(NAME, namespace=bench.peer.get_namespace())
        self.controller.declare_parameter("joints", list(joints))
        self.controller.declare_parameter("interface_name", "effort")
        bench.executor.add_node(self.controller)
        self.publish()

    def publish(self, **states: str) -> None:
        """Changes states, and tells all."""
        self.states |= states
        if not self._publisher:
            return
        message = msg.ControllerManagerActivity()
        for name, label in self.states.items():
            message.controllers.append(msg.NamedLifecycleState(name=name))
            message.controllers[-1].state.label = label
        self._publisher.publish(message)

    def _switch(self, request: object, response: object) -> object:
        self.requests.append(request)
        response.ok = not self.refusal
        if hasattr(response, "message"):  # Humble's has none
            response.message = self.refusal
        if response.ok:
            self.publish(
                **dict.fromkeys(request.activate_controllers, "active"),
                **dict.fromkeys(request.deactivate_controllers, "inactive"),
            )
        return response

    def _list_hardware(self, request: object, response: object) -> object:
        each = msg.HardwareInterface
        response.command_interfaces = [each(name=name) for name in self.interfaces]
        return response

    def _list(self, request: object, response: object) -> object:
        state = msg.ControllerState
        response.controller = [state(name=name, state=each) for name, each in self.states.items()]
        return response


@contextmanager
def managed(
    activity: bool = True, joints: Sequence[str] = JOINTS, **parameters: object
) -> Iterator[tuple[Bench, Manager]]:
    """In a context of its own, as in test_node_start.py."""
    with ros(DOMAIN):
        bench = Bench(namespace=f"n{next(NUMBERS)}", **GOOD, **parameters)
        manager = Manager(bench, activity, joints)
        try:
            said(bench, "inactive")
            yield bench, manager
        finally:
            bench.destroy()


def until(bench: Bench, condition: Callable[[], bool]) -> None:
    """Waits, while the node does what it does once a second more often."""
    wait_for(condition, lambda: bench.node.publish_diagnostics() or bench.spin())


def said(bench: Bench, state: str) -> None:
    until(bench, lambda: bench.values["effort controller"] == f"{NAME} is {state}")


def becomes(bench: Bench, listening: bool) -> None:
    until(bench, lambda: bench.node.loop.supervisor.listening == listening)


def follows(bench: Bench) -> None:
    """The gravity torque of where the arm is, wherever that is."""
    for shift in (0.0, 0.01, 0.02):
        torque = bench.answer(Q + shift)
        assert bench.node.loop.supervisor.mode is Mode.WAITING
        np.testing.assert_allclose(torque, gravity_torque(Q + shift), rtol=1e-9)


def test_few_states_are_answered_while_nobody_takes_the_commands() -> None:
    with managed() as (bench, manager):
        follows(bench)

        def answered(states: int) -> int:
            ticks = bench.node.loop.arm_loop.statistics.ticks
            for _ in range(states):
                bench.state(Q)
                time.sleep(0.001)
            return bench.node.loop.arm_loop.statistics.ticks - ticks

        assert 0 < answered(200) < 100
        manager.publish(**{NAME: "active"})
        becomes(bench, listening=True)
        np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
        assert bench.node.loop.supervisor.mode is Mode.HOLDING


def test_inactive_controller_is_no_listener_and_a_rival_may_move_the_arm_meanwhile() -> None:
    with managed() as (bench, manager):
        follows(bench)
        words = "waiting as effort_controller is inactive and takes no commands"
        assert words in bench.status.message
        manager.publish(**{NAME: "active"})
        becomes(bench, listening=True)
        np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
        assert bench.node.loop.supervisor.mode is Mode.HOLDING
        pull = bench.answer(Q + 0.01) - gravity_torque(Q + 0.01)
        assert np.abs(pull).max() > 0.5
        manager.publish(**{NAME: "inactive", RIVAL: "active"})
        becomes(bench, listening=False)
        for i in range(100):
            bench.answer(Q + 0.005 * i, (5.0, 5.0))
        manager.publish(**{NAME: "active", RIVAL: "inactive"})
        becomes(bench, listening=True)
        # It moves still, and is caught.
        bench.answer(Q + 0.5, (0.1, 0.1))
        assert bench.node.loop.supervisor.mode is Mode.BRAKING
        assert np.abs(bench.node.loop.controller.position_error).max() < 0.01
        assert not manager.requests


def test_activation_is_asked_for_once_torque_is_there() -> None:
    with managed(activate_effort_controller=True) as (bench, manager):
        for _ in range(20):
            bench.spin()
        assert not manager.requests  # no state has come, so there is no torque
        manager.refusal = told = f"joint1/effort is claimed by {RIVAL}"
        if not hasattr(srv.SwitchController.Response(), "message"):
            told = "it gives no reason"
        bench.state()
        wait_for(lambda: told in bench.values["effort controller"], bench.spin)
        request = manager.requests[0]
        assert list(request.activate_controllers) == [NAME] and not request.deactivate_controllers
        assert request.strictness == request.STRICT
        manager.refusal = ""  # it is asked again
        bench.state()
        becomes(bench, listening=True)
        said(bench, "active")
        np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
        # An operator who deactivates it is not fought with.
        count = len(manager.requests)
        manager.publish(**{NAME: "inactive"})
        becomes(bench, listening=False)
        follows(bench)
        bench.node.publish_diagnostics()
        for _ in range(20):
            bench.spin()
        assert len(manager.requests) == count
        # A controller_manager that starts again has none active.
        manager.node.destroy_node()
        again = Manager(bench)
        again.publish(**{NAME: "not loaded"})
        said(bench, "not loaded")
        again.publish(**{NAME: "inactive"})
        bench.state(Q + 0.3)
        wait_for(lambda: again.requests and bench.node.loop.supervisor.listening, bench.spin)


def test_one_without_the_activity_topic_is_asked() -> None:
    with managed(activity=False) as (bench, manager):
        for state in ("active", "inactive"):
            manager.publish(**{NAME: state})
            said(bench, state)
        manager.node.destroy_node()
        gone = "controller_manager, and effort_controller with it, has ended"
        until(bench, lambda: bench.values["effort controller"] == gone)
        assert bench.node.loop.supervisor.listening
        for subscription in list(bench.peer.subscriptions):
            bench.peer.destroy_subscription(subscription)
        becomes(bench, listening=False)
        reason = bench.node.loop.supervisor.reason
        assert reason.startswith("for joint_states, and for a subscription to /n")
        assert reason.endswith(f", as {gone}")


def test_limits_are_not_at_work_in_torques_that_nobody_takes() -> None:
    with managed() as (bench, manager):
        near = np.array([2.98, 0.0])
        for k in range(5):
            bench.answer(near + 0.001 * k, (0.1, 0.0))
        assert bench.values["soft position limit at work"] == "never"
        manager.publish(**{NAME: "active"})
        becomes(bench, listening=True)
        for k in range(5):
            bench.answer(near + 0.001 * k, (0.1, 0.0))
        assert bench.values["soft position limit at work"].startswith("shoulder 0.0")


def objects(bench: Bench, words: str) -> None:
    """The node says so, and commands nothing."""
    until(bench, lambda: words in bench.status.message)
    assert bench.status.level == DiagnosticStatus.ERROR
    before = len(bench.commands)
    for shift in (0.0, 0.01, 0.02):
        bench.state(Q + shift)
        bench.spin()
    assert len(bench.commands) == before
    assert bench.node.loop.supervisor.mode is Mode.WAITING


def test_joints_in_another_order_are_told_and_nothing_is_commanded() -> None:
    with managed(joints=JOINTS[::-1]) as (bench, manager):
        manager.publish(**{NAME: "active"})
        objects(bench, f"{NAME} has another order: its `joints` are elbow, shoulder")
        manager.publish(**{NAME: "inactive"})
        manager.controller.set_parameters([Parameter("joints", value=JOINTS)])
        manager.publish(**{NAME: "active"})
        becomes(bench, listening=True)
        wait_for(lambda: not bench.node.configured.misfit, bench.spin)
        np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("joints", ["shoulder", "wrist"], "has other joints: its `joints` are shoulder, wrist"),
        ("interface_name", "velocity", "commands 'velocity', not 'effort'"),
    ],
)
def test_effort_controller_of_something_else_is_told(name: str, value: object, words: str) -> None:
    with managed() as (bench, manager):
        manager.controller.set_parameters([Parameter(name, value=value)])
        manager.publish(**{NAME: "active"})
        objects(bench, words)


def test_hardware_without_efforts_is_told() -> None:
    with managed() as (bench, manager):
        manager.interfaces = ["shoulder/effort", "elbow/position", "elbow/velocity"]
        manager.publish(**{NAME: "active"})
        objects(bench, "the hardware takes no effort for elbow, only position, velocity")


def test_arm_that_was_let_go_has_its_effort_controller_deactivated() -> None:
    with managed() as (bench, manager):
        manager.publish(**{NAME: "active"})
        becomes(bench, listening=True)
        bench.answer(Q)
        bench.node.loop.call(lambda it: it.let_go("a test has let go"))
        until(bench, lambda: manager.states[NAME] == "inactive")
        (request,) = manager.requests
        assert list(request.deactivate_controllers) == [NAME] and not request.activate_controllers
        assert bench.node.loop.supervisor.mode is Mode.POWERLESS
        assert bench.status.level == DiagnosticStatus.ERROR


def test_effort_controller_is_found_by_its_subscription() -> None:
    """The command topic is remapped, and does not tell the controller's name."""
    with ros(DOMAIN):
        name, topic = f"n{next(NUMBERS)}", "drive/torques"
        bench = Bench(namespace=name, topic=topic, **GOOD, activate_effort_controller=True)
        manager = Manager(bench)
        manager.controller.create_subscription(Float64MultiArray, topic, print, 10)
        try:
            said(bench, "inactive")
            bench.state()
            until(bench, lambda: bench.node.loop.supervisor.streaming or manager.requests)
            becomes(bench, listening=True)
            (request,) = manager.requests
            assert list(request.activate_controllers) == [NAME]
            np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
            manager.publish(**{NAME: "inactive"})
            becomes(bench, listening=False)
            manager.controller.set_parameters([Parameter("joints", value=JOINTS[::-1])])
            manager.publish(**{NAME: "active"})
            objects(bench, f"{NAME} has another order")
        finally:
            bench.destroy()


def test_command_topic_of_no_controller_is_told(capfd) -> None:
    with ros(DOMAIN):
        bench = Bench(namespace=f"n{next(NUMBERS)}", topic="drive/torques", **GOOD)
        manager = Manager(bench)
        try:
            words = "no controller of controller_manager is known to subscribe to /n"
            err = ""

            def told() -> bool:
                nonlocal err
                err += capfd.readouterr().err
                return words in err

            until(bench, told)
            becomes(bench, listening=True)
            assert not manager.requests
        finally:
            bench.destroy()


def test_without_controller_manager_nobody_is_asked() -> None:
    with ExitStack() as undo:  # whatever is asked of this node is an error
        nobody = EffortController(object(), f"{NAME}/commands", JOINTS, "", lambda: None, undo)
        nobody.look()
        nobody.activate()
        assert str(nobody).endswith("is not known") and nobody.takes_commands
