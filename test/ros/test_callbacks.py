"""A node whose callbacks raise goes on, says why, and answers every request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rclpy
from dds import ros, wait_for
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from rnea_control.ros.callbacks import GuardedExecutor, GuardedNode


class Managed(GuardedNode, LifecycleNode):
    def __init__(self) -> None:
        super().__init__("guarded", enable_rosout=False)


@pytest.fixture
def asked() -> Iterator[Asked]:
    with ros(74):
        bench = Asked()
        yield bench
        bench.destroy()


class Asked:
    """A node with bad callbacks, and one that asks it."""

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
        client = self.client.create_client(kind, name)
        wait_for(client.service_is_ready, self.spin)
        answer = client.call_async(kind.Request(**fields))
        wait_for(answer.done, self.spin)
        return answer.result()

    def destroy(self) -> None:
        for executor in (self.executor, self.others):
            executor.shutdown()
        for node in (self.node, self.client):
            node.destroy_node()


def _raises(*_: object) -> None:
    raise KeyError("of the callback")


@pytest.mark.parametrize("kind", [Trigger, SetBool])
def test_service_that_raises_answers_with_a_refusal(asked: Asked, kind: type) -> None:
    asked.node.create_service(kind, "broken", _raises)
    answer = asked.ask(kind, "broken")
    assert (answer.success, answer.message) == (False, "KeyError: 'of the callback'")
    assert asked.node.failures == 1
    assert "of the callback" in asked.node.new_failure()
    assert asked.node.new_failure() == ""


@pytest.mark.parametrize("number", [10, 99, 255])
def test_value_of_an_unknown_type_is_refused(asked: Asked, number: int) -> None:
    asked.node.declare_parameter("good", 1)
    wrong = Parameter(name="wrong", value=ParameterValue(type=number))
    good = Parameter(name="good", value=ParameterValue(type=2, integer_value=5))
    answer = asked.ask(SetParameters, "guarded/set_parameters", parameters=[good, wrong, good])
    assert [each.successful for each in answer.results] == [True, False, False]
    assert f"'wrong' has a value of type {number}; it must be one of" in answer.results[1].reason
    answer = asked.ask(
        SetParametersAtomically, "guarded/set_parameters_atomically", parameters=[wrong]
    )
    assert not answer.result.successful
    assert "'wrong'" in answer.result.reason


def test_transition_that_is_not_possible_is_answered(asked: Asked) -> None:
    request = ChangeState.Request()
    request.transition.label = "activate"
    answer = asked.ask(ChangeState, "guarded/change_state", transition=request.transition)
    assert not answer.success
    request.transition.label, request.transition.id = "", 3
    answer = asked.ask(ChangeState, "guarded/change_state", transition=request.transition)
    assert not answer.success
    assert "transition 3 is not possible now, only configure (1)" in asked.node.new_failure()


@pytest.mark.parametrize("how", ["subscription", "timer", "guard condition"])
def test_callback_that_raises_ends_nothing(asked: Asked, how: str) -> None:
    if how == "subscription":
        asked.node.create_subscription(Bool, "topic", _raises, 10)
        publisher = asked.client.create_publisher(Bool, "topic", 10)
        wait_for(publisher.get_subscription_count, asked.spin)
        publisher.publish(Bool())
    elif how == "timer":
        asked.node.create_timer(0.01, _raises)
    else:
        asked.node.create_guard_condition(_raises).trigger()
    wait_for(lambda: asked.node.failures, asked.spin)
    asked.node.create_service(Trigger, "fine", lambda _, response: response)
    assert asked.ask(Trigger, "fine").message == ""
