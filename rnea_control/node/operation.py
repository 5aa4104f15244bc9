"""What an operator asks of the controller and hears of it: `~/mode`, services and the stop."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

from rnea_control.control import Mode, Supervisor
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import SentinelLink
from rnea_control.ros.arm_node import ArmNode
from rnea_control.ros.qos import LATCHED

MODE_NUMBERS = {mode: number for number, mode in enumerate(Mode)}
EMERGENCY_STOP = "~/emergency_stop"
RELIABLE, TRANSIENT_LOCAL = ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL
# The subscriptions to it. Whatever the QoS of who stops the arm, one of these hears it: a message
# that waited for the controller, one that its publisher sends again if it is lost, or one that it
# sends once.
STOPS = (
    (Bool, EMERGENCY_STOP, QoSProfile(depth=10, reliability=RELIABLE, durability=TRANSIENT_LOCAL)),
    (Bool, EMERGENCY_STOP, QoSProfile(depth=10, reliability=RELIABLE)),
    (Bool, EMERGENCY_STOP, QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)),
)


class Operation:
    """Topics and services of the mode, while there is a loop; `undo` takes them down."""

    def __init__(
        self, node: ArmNode, loop: ControlLoop, sentinel: SentinelLink, undo: ExitStack
    ) -> None:
        self._node, self._loop, self._sentinel = node, loop, sentinel
        self._publisher = node.create_publisher(TransitionEvent, "~/mode", LATCHED)
        undo.callback(node.destroy_publisher, self._publisher)
        # While one waits for the sentinel, the node's other callbacks must run.
        group = ReentrantCallbackGroup()
        for name, request in (
            ("hold", partial(loop.call, Supervisor.hold)),
            ("gravity_compensation", partial(loop.call, Supervisor.guide)),
            ("resume", self._resume),
            ("reset_fault", partial(loop.call, Supervisor.reset_fault)),
        ):
            service = node.offer(f"~/{name}", request, callback_group=group)
            undo.callback(node.destroy_service, service)

    def publish_changes(self) -> None:
        """Publishes the changes of the mode that were not told yet."""
        while self._loop.changes:
            old, new, reason = self._loop.changes.popleft()
            self._publisher.publish(
                TransitionEvent(
                    timestamp=self._node.get_clock().now().nanoseconds,
                    transition=Transition(label=reason),
                    start_state=State(id=MODE_NUMBERS[old], label=old.value),
                    goal_state=State(id=MODE_NUMBERS[new], label=new.value),
                )
            )

    def _resume(self) -> str:
        loop = self._loop
        if loop.supervisor.mode is Mode.GUARDED:
            return self._sentinel.take_back()
        return loop.call(lambda it: it.resume(loop.heard.publishers_of(EMERGENCY_STOP)))
