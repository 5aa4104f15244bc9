"""`MessageRecorder` keeps the messages of a topic as they come, as bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rnea_control.ros.raw_subscription import RawSubscription

# BEST_EFFORT takes from every publisher. None may be lost while Python is busy.
STREAM = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.BEST_EFFORT)
# There may be several publishers.
LATCHED = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# How long a thread waits before it looks whether it shall end, [s].
LONGEST_WAIT = 0.1


class MessageRecorder:
    """Takes the messages in a thread of its own, in the name of a node that is spun.

    Args:
        node, message_type, topic: as of `RawSubscription`.
        now: what is noted with each message, such as the time.

    Attributes:
        topic: its full name.
        name: the full name of the hidden node that subscribes.
        messages: what `now` gave when a message came, and its bytes, in the order that they came.
        is_stopped: whether the recording has ended.
    """

    def __init__(self, node: Node, message_type: type, topic: str, now: Callable[[], Any]) -> None:
        self.topic = node.resolve_topic_name(topic)
        self.messages: list[tuple[Any, bytes]] = []
        self.is_stopped = False
        self._now = now
        self._subscription = RawSubscription(node, message_type, topic, STREAM)
        self.name = self._subscription.name
        self._thread = threading.Thread(target=self._take, name=f"recorder of {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording."""
        if not self.is_stopped:
            self.is_stopped = True
            self._thread.join()
            self._subscription.destroy()

    def _take(self) -> None:
        while not self.is_stopped:
            taken = self._subscription.take(LONGEST_WAIT)
            while taken is not None:
                self.messages.append((self._now(), taken.data))
                taken = self._subscription.poll()
