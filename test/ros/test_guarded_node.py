"""A node whose callbacks raise goes on, says why, and answers every request."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import rclpy
from dds import ask, ros, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from rnea_control.ros import guarded_executor
from rnea_control.ros.guarded_executor import GuardedExecutor
from rnea_control.ros.guarded_node import MOST_PARAMETERS, GuardedNode


class Managed(GuardedNode, LifecycleNode):
    def __init__(self) -> None:
        super().__init__("guarded", enable_rosout=False)


class Asked:
    def __init__(self) -> None:
        self.node = Managed()
        self.client = rclpy.create_node("client")
        self.executor = GuardedExecutor(self.node)
        self.others = SingleThreadedExecutor()
        self.others.add_node(self.client)

    def spin(self) -> None:
        self.executor.spin_once(timeout_sec=0.01)
        self.others.spin_once(timeout_sec=0.01)

    def ask(self, kind: type, name: str, **fields: object) -> object:
        return ask(self.client, self.spin, kind, name, **fields)


@pytest.fixture(scope="module", params=["kept", "rclpys own"])
def shared_bench(request: pytest.FixtureRequest) -> Iterator[Asked]:
    with ros(74), pytest.MonkeyPatch.context() as patch:
        if request.param != "kept":
            patch.setattr(guarded_executor, "WaitSet", None)
        bench = Asked()
        bench.node.declare_parameter("good", 1)
        yield bench


@pytest.fixture
def asked(shared_bench: Asked) -> Asked:
    shared_bench.node.failures = 0
    return shared_bench


def _raises(*_: object) -> None:
    raise KeyError("of the callback")


@pytest.mark.parametrize("kind", [Trigger, SetBool])
def test_service_that_raises_answers_with_a_refusal(asked: Asked, kind: type) -> None:
    asked.node.create_service(kind, f"broken_{kind.__name__}", _raises)
    answer = asked.ask(kind, f"broken_{kind.__name__}")
    assert (answer.success, answer.message) == (False, "KeyError: 'of the callback'")
    assert asked.node.failures == 1
    ((_, text),) = asked.node.new_failures()
    assert "of the callback" in text
    assert asked.node.new_failures() == []


def test_value_of_an_unknown_type_is_refused(asked: Asked) -> None:
    wrong = Parameter(name="wrong", value=ParameterValue(type=10))
    good = Parameter(name="good", value=ParameterValue(type=2, integer_value=5))
    answer = asked.ask(SetParameters, "guarded/set_parameters", parameters=[good, wrong, good])
    assert [each.successful for each in answer.results] == [True, False, False]
    assert "'wrong' has a value of type 10; it must be one of" in answer.results[1].reason
    name = "guarded/set_parameters_atomically"
    answer = asked.ask(SetParametersAtomically, name, parameters=[wrong])
    assert not answer.result.successful
    assert "'wrong'" in answer.result.reason


def test_more_parameters_than_a_robot_has_are_refused(asked: Asked) -> None:
    good = Parameter(name="good", value=ParameterValue(type=2, integer_value=7))
    many = [good] * (MOST_PARAMETERS + 1)
    answer = asked.ask(SetParameters, "guarded/set_parameters", parameters=many)
    assert len(answer.results) == len(many)
    assert not any(each.successful for each in answer.results)
    assert f"send {MOST_PARAMETERS} at most" in answer.results[-1].reason
    assert asked.node.get_parameter("good").value != 7
    answer = asked.ask(SetParameters, "guarded/set_parameters", parameters=many[1:])
    assert all(each.successful for each in answer.results)


def test_transition_that_is_not_possible_is_answered(asked: Asked) -> None:
    for transition in (Transition(label="activate"), Transition(id=3)):
        answer = asked.ask(ChangeState, "guarded/change_state", transition=transition)
        assert not answer.success
        wanted = transition.label or transition.id
        ((_, text),) = asked.node.new_failures()
        assert f"transition {wanted} is not possible now, only configure (1)" in text
    configure = Transition(label="configure")
    answer = asked.ask(ChangeState, "guarded/change_state", transition=configure)
    assert answer.success and asked.node.failures == 2


def test_callback_that_raises_ends_nothing(asked: Asked) -> None:
    node = asked.node
    subscription = node.create_subscription(Bool, "topic", _raises, 10)
    publisher = asked.client.create_publisher(Bool, "topic", 10)
    wait_for(publisher.get_subscription_count, asked.spin)
    timer = node.create_timer(0.01, _raises)
    timer.cancel()
    for begin, end in (
        (lambda: publisher.publish(Bool()), lambda: node.destroy_subscription(subscription)),
        (timer.reset, lambda: node.destroy_timer(timer)),
        (node.create_guard_condition(_raises).trigger, lambda: None),
    ):
        before = node.failures
        begin()
        wait_for(lambda before=before: node.failures > before, asked.spin)
        end()
    node.create_service(Trigger, "fine", lambda _, response: response)
    assert asked.ask(Trigger, "fine").message == ""


def test_what_a_callback_repeats_of_others_forges_no_line(asked: Asked, capfd) -> None:
    def repeats(*_: object) -> None:
        raise ValueError("no such name: \x1b[31m\n[FATAL] [1.0] [rnea_controller]: forged")

    asked.node.create_service(Trigger, "repeats", repeats)
    timer = asked.node.create_timer(0.01, repeats)
    asked.ask(Trigger, "repeats")
    said: list[str] = []

    def logged() -> bool:
        said.extend(capfd.readouterr().err.splitlines())
        return any("a callback has failed" in line for line in said)  # once a second at most

    wait_for(logged, asked.spin)
    asked.node.destroy_timer(timer)
    assert any("forged" in line for line in said)
    assert not any("\x1b" in line or line.startswith("[FATAL]") for line in said)


def test_node_that_is_destroyed_leaves_the_graph_though_somebody_keeps_it(asked: Asked) -> None:
    node, seen = GuardedNode("ended", enable_rosout=False), asked.client.get_node_names
    executor = GuardedExecutor(node)
    wait_for(lambda: "ended" in seen())
    executor.spin_once(0.0)
    node.destroy_node()
    began = time.monotonic()
    wait_for(lambda: "ended" not in seen())
    assert time.monotonic() - began < 10.0  # it is not waited for as for one that was killed
