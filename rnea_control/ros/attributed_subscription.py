"""`AttributedSubscription`: a subscription whose messages come with the GIDs of their publishers.

rclpy hands on a message without its publisher. Here it is taken by address (rcl_calls.py), in the
executor of the node, which the middleware wakes at each message.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from rnea_control.ros.conventions import HELPER
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.rcl_calls import Proof, RclTable, takes_like_rclpy

Hear = Callable[[Any, bytes | None], None]


class AttributedSubscription:
    """Receives messages with the GIDs of their publishers; with None where rcl cannot be called by
    address.

    A message that cannot be decoded, or whose callback raises, is logged and counted as a failure
    of the node's callbacks; the next message is received as usual.

    Args:
        node: node whose executor calls `hear`.
        message_type: message type of the topic.
        topic: name of the topic.
        qos: QoS profile; the depth is for the messages of all publishers together.
        hear: called with a message and the GID of its publisher.
        undo: closes the subscription.

    Attributes:
        names_participants: True if a GID begins with the GID of its DDS participant.
    """

    def __init__(
        self,
        node: GuardedNode,
        message_type: type,
        topic: str,
        qos: QoSProfile,
        hear: Hear,
        undo: ExitStack,
    ) -> None:
        self._node, self._type, self._topic, self._hear = node, message_type, topic, hear
        proof = takes_like_rclpy(node.context.get_domain_id())
        self.names_participants = proof is Proof.BY_GID
        if not proof:
            node.until(
                undo, "subscription", message_type, topic, lambda message: hear(message, None), qos
            )
            return
        name = topic.strip("~/").replace("/", "_")
        hidden = Node(
            f"_{node.get_name()}_{name}",
            namespace=node.get_namespace(),
            context=node.context,
            **HELPER,
        )
        undo.callback(hidden.destroy_node)
        full = node.resolve_topic_name(topic)
        subscription = hidden.create_subscription(message_type, full, _ignore, qos, raw=True)
        guard = node.until(undo, "guard_condition", self._take_all)
        self._table = RclTable([subscription], guard)
        undo.callback(self._table.destroy)
        guard.trigger()

    def _take_all(self) -> None:
        while (taken := self._table.take(0)) is not None:
            try:
                self._hear(deserialize_message(taken.data, self._type), taken.publisher)
            except Exception as error:
                self._node.note_failure(
                    f"a message on {self._topic} is ignored: {type(error).__name__}: {error}"
                )


def _ignore(message: bytes) -> None:
    """No executor takes these messages."""
