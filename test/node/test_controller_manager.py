"""The node beside a controller_manager whose effort controller becomes active, or does not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from dds import ros, wait_for
from node_bench import COMMANDS, GOOD, GRAVITY, Bench, Q, gravity_torque

from rnea_control.control import Mode
from rnea_control.node import effort_controller

msg = pytest.importorskip("controller_manager_msgs.msg")
srv = pytest.importorskip("controller_manager_msgs.srv")

DOMAIN = 72
NAME = "effort_controller"
RIVAL = "joint_trajectory_controller"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """One each, as in test_node.py."""
    with ros(DOMAIN):
        yield


class Manager:
    """Speaks for controller_manager.

    Attributes:
        states: of its controllers, by name.
        requests: to switch controllers.
        refusal: what it answers to them; empty to do as told.
    """

    def __init__(self, bench: Bench, activity: bool = True) -> None:
        self.states = {NAME: "inactive", "joint_state_broadcaster": "active"}
        self.requests: list = []
        self.refusal = ""
        self.node = rclpy.create_node("controller_manager")
        bench.executor.add_node(self.node)
        self._publisher = activity and self.node.create_publisher(
            msg.ControllerManagerActivity, "~/activity", effort_controller.ACTIVITY
        )
        self.node.create_service(srv.SwitchController, "~/switch_controller", self._switch)
        self.node.create_service(srv.ListControllers, "~/list_controllers", self._list)
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
        response.ok, response.message = not self.refusal, self.refusal
        if response.ok:
            self.publish(**dict.fromkeys(request.activate_controllers, "active"))
        return response

    def _list(self, request: object, response: object) -> object:
        response.controller = [
            msg.ControllerState(name=name, state=state) for name, state in self.states.items()
        ]
        return response


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    parameters = getattr(request, "param", {})
    bench = Bench(topic=parameters.get("command_topic", COMMANDS), **{**GOOD, **parameters})
    yield bench
    bench.destroy()


@pytest.fixture
def manager(bench: Bench) -> Iterator[Manager]:
    manager = Manager(bench)
    wait_for(lambda: bench.values["effort controller"] == f"{NAME} is inactive", bench.spin)
    yield manager
    manager.node.destroy_node()


ASKS = pytest.mark.parametrize("bench", [{"activate_effort_controller": True}], indirect=True)


def follows(bench: Bench) -> None:
    """The gravity torque of where the arm is, wherever that is."""
    for shift in (0.0, 0.01, 0.02):
        torque = bench.answer(Q + shift)
        assert bench.node.loop.supervisor.mode is Mode.WAITING
        np.testing.assert_allclose(torque, gravity_torque(Q + shift), rtol=1e-9)


def test_inactive_controller_is_no_listener(bench: Bench, manager: Manager) -> None:
    follows(bench)
    assert "waiting as effort_controller is inactive and takes no commands" in bench.status.message
    manager.publish(**{NAME: "active"})
    wait_for(lambda: bench.node.listening, bench.spin)
    np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
    assert bench.node.loop.supervisor.mode is Mode.HOLDING
    pull = bench.answer(Q + 0.01) - gravity_torque(Q + 0.01)
    assert np.abs(pull).max() > 0.5
    assert not manager.requests


def test_rival_moves_the_arm_meanwhile(bench: Bench, manager: Manager) -> None:
    manager.publish(**{NAME: "active"})
    wait_for(lambda: bench.node.listening, bench.spin)
    bench.answer(Q)
    manager.publish(**{NAME: "inactive", RIVAL: "active"})
    wait_for(lambda: not bench.node.listening, bench.spin)
    for i in range(100):
        bench.answer(Q + 0.005 * i, (5.0, 5.0))
    manager.publish(**{NAME: "active", RIVAL: "inactive"})
    wait_for(lambda: bench.node.listening, bench.spin)
    there = Q + 0.5
    # It moves still, and is caught.
    bench.answer(there, (0.1, 0.1))
    assert bench.node.loop.supervisor.mode is Mode.BRAKING
    error = bench.node.loop.controller.position_error
    assert np.abs(error).max() < 0.01


@ASKS
def test_activation_is_asked_for_once_torque_is_there(bench: Bench, manager: Manager) -> None:
    for _ in range(20):
        bench.spin()
    assert not manager.requests  # no state has come, so there is no torque
    bench.state()
    wait_for(lambda: manager.requests, bench.spin)
    (request,) = manager.requests
    assert list(request.activate_controllers) == [NAME] and not request.deactivate_controllers
    assert request.strictness == request.STRICT
    wait_for(lambda: bench.node.listening, bench.spin)
    np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
    # An operator who deactivates it is not fought with.
    manager.publish(**{NAME: "inactive"})
    wait_for(lambda: not bench.node.listening, bench.spin)
    follows(bench)
    bench.node.publish_diagnostics()
    for _ in range(20):
        bench.spin()
    assert len(manager.requests) == 1


@ASKS
def test_refused_activation_is_said_and_asked_for_again(bench: Bench, manager: Manager) -> None:
    manager.refusal = f"joint1/effort is claimed by {RIVAL}"
    bench.state()
    wait_for(lambda: manager.refusal in bench.values["effort controller"], bench.spin)
    manager.refusal = ""
    bench.state()
    wait_for(lambda: bench.node.listening, bench.spin)
    assert bench.values["effort controller"] == f"{NAME} is active"


@ASKS
def test_controller_manager_that_starts_again(bench: Bench, manager: Manager) -> None:
    bench.state()
    wait_for(lambda: bench.node.listening, bench.spin)
    manager.node.destroy_node()
    again = Manager(bench)
    again.publish(**{NAME: "not loaded"})
    wait_for(lambda: not bench.node.listening, bench.spin)
    again.publish(**{NAME: "inactive"})
    bench.state(Q + 0.3)
    wait_for(lambda: again.requests and bench.node.listening, bench.spin)
    again.node.destroy_node()


def test_one_without_the_activity_topic_is_asked(bench: Bench) -> None:
    manager = Manager(bench, activity=False)
    for state in ("inactive", "active", "inactive"):
        manager.publish(**{NAME: state})
        wait_for(
            lambda state=state: state == bench.values["effort controller"].split()[-1], bench.spin
        )
    manager.node.destroy_node()
    wait_for(lambda: bench.values["effort controller"] == f"{NAME} is not known", bench.spin)
    assert bench.node.listening


@pytest.mark.parametrize(
    "bench",
    [{"controller_manager": ""}, {"command_topic": "drive/torques"}],
    indirect=True,
)
def test_without_a_name_nobody_is_asked(bench: Bench) -> None:
    Manager(bench).node.destroy_node()
    assert bench.values["effort controller"].endswith("is not known")
