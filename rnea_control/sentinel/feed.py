"""The sentinel's subscriptions to states and commands: of its own thread, or through the node's
executor."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.qos import COMMANDS, STATES
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import RclTable, Taken
from rnea_control.ros.rclpy_internals import WaitSetUnavailable

TOPIC = "joint_states"


class Feed(Protocol):
    """Serialized states and commands."""

    def take(self, timeout: float) -> Taken | None:
        """The next state; None after `timeout`, [s], or when a command has come."""

    def poll(self) -> Taken | None:
        """As `take`, without a wait."""

    def poll_command(self) -> Taken | None:
        """The next command; None if none waits."""

    def stranger(self, publisher: bytes | None) -> str:
        """The name of the node with this publisher, if it is not one that may command; empty if it
        is, or if its name is not known."""

    def own(self) -> bytes | None:
        """The GID of the sentinel's own publisher of commands; None where that is not known."""

    def table(self, command: EffortCommand, wake: GuardCondition) -> RclTable | None:
        """Addresses for machine code that answers the states; None where it does not."""

    def destroy(self) -> None:
        """Takes the subscriptions down."""


class RawFeed(RawSubscription):
    """Messages that the guard's thread waits for.

    Args:
        node: the sentinel's.
        topic: of the commands.
        rightful: the nodes that may command, by their full names; the first one is the sentinel.
    """

    def __init__(self, node: Node, topic: str, rightful: Sequence[str]) -> None:
        super().__init__(node, JointState, TOPIC, STATES, (Float64MultiArray, topic, COMMANDS))
        self._topic, self._rightful = topic, rightful
        self._strangers: dict[bytes | None, str] = {None: ""}

    def poll_command(self) -> Taken | None:
        """See `Feed`."""
        return self.poll_beside(1)

    def stranger(self, publisher: bytes | None) -> str:
        """See `Feed`."""
        known = self._strangers.get(publisher)
        if known is None:
            name = (self.publishers_of(self._topic) or {}).get(publisher, "")
            known = "" if name in self._rightful else name
            if name:
                self._strangers[publisher] = known
        return known

    def own(self) -> bytes | None:
        """See `Feed`."""
        found = self.publishers_of(self._topic) or {}
        return next((gid for gid, name in found.items() if name == self._rightful[0]), None)

    def table(self, command: EffortCommand, wake: GuardCondition) -> RclTable | None:
        """See `Feed`."""
        return self.addresses(command.publisher, command.message.memory, wake)


class ExecutorFeed:
    """Messages that the node's executor takes; they wait here for another thread."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._states: deque[bytes] = deque(maxlen=STATES.depth)
        self._commands: deque[bytes] = deque(maxlen=COMMANDS.depth)
        self._came = threading.Event()
        subscribe = node.create_subscription
        self._subscriptions = [
            subscribe(JointState, TOPIC, self._receive, STATES, raw=True),
            subscribe(Float64MultiArray, topic, self._commands.append, COMMANDS, raw=True),
        ]

    def _receive(self, message: bytes) -> None:
        self._states.append(message)
        self._came.set()

    def take(self, timeout: float) -> Taken | None:
        """See `Feed`."""
        self._came.clear()
        if not self._states:
            self._came.wait(timeout)
        return self.poll()

    def poll(self) -> Taken | None:
        """See `Feed`."""
        return Taken(self._states.popleft()) if self._states else None

    def poll_command(self) -> Taken | None:
        """See `Feed`."""
        return Taken(self._commands.popleft()) if self._commands else None

    def stranger(self, publisher: bytes | None) -> str:
        """See `Feed`; rclpy does not tell publishers."""
        return ""

    def own(self) -> None:
        """See `Feed`; rclpy does not tell publishers."""

    def table(self, command: EffortCommand, wake: GuardCondition) -> None:
        """See `Feed`."""

    def destroy(self) -> None:
        """See `Feed`."""
        for each in self._subscriptions:
            self._node.destroy_subscription(each)


def feed(node: Node, topic: str, rightful: Sequence[str]) -> Feed:
    """Subscriptions that the guard's thread waits on, or the executor where rclpy allows none;
    arguments as of `RawFeed`."""
    try:
        return RawFeed(node, topic, rightful)
    except WaitSetUnavailable as error:
        node.get_logger().warning(
            f"the executor takes states and commands, which costs more CPU time: {error}", once=True
        )
        return ExecutorFeed(node, topic)
