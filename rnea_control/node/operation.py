"""The operator's side of the mode: `~/mode` and services."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from lifecycle_msgs.msg import TransitionEvent
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_srvs.srv import Trigger

from rnea_control.control import Mode, Supervisor
from rnea_control.exceptions import ControllerError
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import SentinelLink
from rnea_control.node.state_feed import StateFeed
from rnea_control.ros.qos import LATCHED

MODE_NUMBERS = {mode: number for number, mode in enumerate(Mode)}


class Operation:
    """Topics and services of the mode, while there is a loop.

    Args:
        node: that offers them.
        loop: whose mode it is.
        sentinel: that may have the arm.
        feed: knows who may press the emergency stop.
        undo: takes them down again.
    """

    def __init__(
        self,
        node: Node,
        loop: ControlLoop,
        sentinel: SentinelLink,
        feed: StateFeed,
        undo: ExitStack,
    ) -> None:
        self._node = node
        self._feed = feed
        self._loop = loop
        self._sentinel = sentinel
        self._publisher = node.create_publisher(TransitionEvent, "~/mode", LATCHED)
        undo.callback(node.destroy_publisher, self._publisher)
        # While one waits for the sentinel, the node's other callbacks must run.
        group = ReentrantCallbackGroup()
        for name, request in (
            ("hold", Supervisor.hold),
            ("gravity_compensation", Supervisor.guide),
            ("resume", self._resume),
            ("reset_fault", Supervisor.reset_fault),
        ):
            service = node.create_service(
                Trigger, f"~/{name}", self._answer(name, request), callback_group=group
            )
            undo.callback(node.destroy_service, service)

    def publish_changes(self) -> None:
        """Publishes the changes of the mode that were not told yet."""
        changes = self._loop.changes
        while changes:
            old, new, reason = changes.popleft()
            event = TransitionEvent(timestamp=self._node.get_clock().now().nanoseconds)
            event.transition.label = reason
            event.start_state.id, event.start_state.label = MODE_NUMBERS[old], old.value
            event.goal_state.id, event.goal_state.label = MODE_NUMBERS[new], new.value
            self._publisher.publish(event)

    def _answer(
        self, name: str, request: Callable[[Supervisor], str]
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        def answer(asked: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                if name == "resume" and self._loop.supervisor.mode is Mode.GUARDED:
                    response.message = self._sentinel.take_back()
                else:
                    response.message = self._loop.call(request)
                response.success = True
            except ControllerError as error:
                response.message = str(error)
                self._node.get_logger().warning(f"~/{name} refused: {error}")
            return response

        return answer

    def _resume(self, supervisor: Supervisor) -> str:
        return supervisor.resume(self._feed.who_may_stop())
