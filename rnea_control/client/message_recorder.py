"""`MessageRecorder` stores the messages of a topic as bytes, in the order of receipt."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rnea_control.ros.raw_subscription import RawSubscription

# BEST_EFFORT matches every publisher; the depth keeps messages while Python is busy.
STREAM = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.BEST_EFFORT)
# The depth allows several publishers.
LATCHED = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
LONGEST_WAIT = 0.1  # period at which the thread checks whether it shall end [s]


class MessageRecorder:
    """Receives messages in its own thread.

    Args:
        node: node with the namespace of the topic; an executor must spin it.
        message_type: Python class of the messages.
        topic: name of the topic, relative to the node's namespace.
        now: returns a value to store with each message, such as the time; called with the time [ns]
            for which the message has waited since its receipt, 0 where that is not known.

    Attributes:
        topic: full name of the topic.
        name: full name of the hidden node that subscribes.
        messages: values of `now` and bytes of the messages, in the order of receipt.
        is_stopped: True after the recording has ended.
    """

    def __init__(
        self, node: Node, message_type: type, topic: str, now: Callable[[int], Any]
    ) -> None:
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
                self.messages.append((self._now(self._subscription.waited), taken.data))
                taken = self._subscription.poll()
