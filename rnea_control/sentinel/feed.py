"""The sentinel's subscriptions: of its own thread, or through the node's executor."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from rclpy.node import Node
from rclpy.qos import QoSProfile

from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import Taken
from rnea_control.ros.rclpy_internals import WaitSetUnavailable


class Feed(Protocol):
    """Serialised messages of a topic."""

    def take(self, timeout: float) -> Taken | None:
        """The next message; None after `timeout`, [s]."""

    def poll(self) -> Taken | None:
        """As `take`, without a wait."""

    def publishers(self) -> int:
        """How many publishers it is matched with."""

    def stranger(self, publisher: bytes | None) -> str:
        """The name of the node with this publisher, if it is not one that may publish; empty if it
        is, or if its name is not known."""

    def destroy(self) -> None:
        """Takes the subscription down."""


class RawFeed(RawSubscription):
    """Messages that the guard's thread waits for.

    Args:
        node, message_type, topic, qos: as of `RawSubscription`.
        rightful: the nodes that may publish, by their full names.
    """

    def __init__(
        self, node: Node, message_type: type, topic: str, qos: QoSProfile, rightful: Sequence[str]
    ) -> None:
        super().__init__(node, message_type, topic, qos)
        self._topic, self._rightful = topic, rightful
        self._strangers: dict[bytes | None, str] = {None: ""}

    def stranger(self, publisher: bytes | None) -> str:
        """See `Feed`."""
        known = self._strangers.get(publisher)
        if known is None:
            name = (self.publishers_of(self._topic) or {}).get(publisher, "")
            known = "" if name in self._rightful else name
            if name:
                self._strangers[publisher] = known
        return known


class ExecutorFeed:
    """Messages that the node's executor takes; they wait here for another thread."""

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._node = node
        self._waiting: deque[bytes] = deque(maxlen=qos.depth)
        self._came = threading.Event()
        self._subscription = node.create_subscription(
            message_type, topic, self._receive, qos, raw=True
        )

    def _receive(self, message: bytes) -> None:
        self._waiting.append(message)
        self._came.set()

    def take(self, timeout: float) -> Taken | None:
        """See `Feed`."""
        self._came.clear()
        if not self._waiting:
            self._came.wait(timeout)
        return self.poll()

    def poll(self) -> Taken | None:
        """See `Feed`."""
        return Taken(self._waiting.popleft()) if self._waiting else None

    def publishers(self) -> int:
        """See `Feed`."""
        return self._subscription.get_publisher_count()

    def stranger(self, publisher: bytes | None) -> str:
        """See `Feed`; rclpy does not tell publishers."""
        return ""

    def destroy(self) -> None:
        """See `Feed`."""
        self._node.destroy_subscription(self._subscription)


def feed(
    node: Node, message_type: type, topic: str, qos: QoSProfile, rightful: Sequence[str] = ()
) -> Feed:
    """A subscription that the guard's thread waits on, or the executor where rclpy allows none."""
    try:
        return RawFeed(node, message_type, topic, qos, rightful)
    except WaitSetUnavailable as error:
        node.get_logger().warning(
            f"the executor takes states and commands, which costs more CPU time: {error}", once=True
        )
        return ExecutorFeed(node, message_type, topic, qos)
