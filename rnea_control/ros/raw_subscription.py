"""A subscription that one thread waits on by itself, for serialised messages.

rclpy's executors rebuild their wait set from all entities of a node for every message, which costs
several times what the message does. The wait set used here is rclpy's internal one, as
`rclpy.wait_for_message` uses it. This is the only file that touches it.
"""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

try:
    from rclpy._rclpy_pybind11 import RCLError
    from rclpy.impl.implementation_singleton import rclpy_implementation

    _WaitSet = rclpy_implementation.WaitSet
except (ImportError, AttributeError):  # another rclpy: `RawSubscription` says so
    _WaitSet = None


class WaitSetUnavailable(Exception):
    """This rclpy's wait set is not as it is known here."""


class _NoExecutor(CallbackGroup):
    """Keeps a subscription out of every executor's wait set."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class RawSubscription:
    """Takes the messages of a topic as bytes, in the thread that asks for them.

    Args:
        node: whose subscription it is; its executor leaves it alone.
        message_type, topic, qos: as of `Node.create_subscription`.

    Raises:
        WaitSetUnavailable: with this rclpy; use a subscription with `raw=True` and the executor.
    """

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._type = message_type
        self._node = node
        self._subscription = node.create_subscription(
            message_type, topic, _never, qos, raw=True, callback_group=_NoExecutor()
        )
        try:
            if _WaitSet is None:
                raise AttributeError("rclpy has no WaitSet")
            self._handle = self._subscription.handle
            self._wait_set = _WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)
            self.take(0.0)
        except (AttributeError, TypeError) as error:
            node.destroy_subscription(self._subscription)
            raise WaitSetUnavailable(str(error)) from error

    def take(self, timeout: float) -> tuple[bytes, int | None] | None:
        """The next message and its publisher's count of it, where the middleware has one.

        None after `timeout`, [s], and once the context is shut down.
        """
        wait_set, handle = self._wait_set, self._handle
        try:
            wait_set.clear_entities()
            wait_set.add_subscription(handle)
            wait_set.wait(int(1e9 * timeout))
            taken = handle.take_message(self._type, True)
        except RCLError:
            if self._node.context.ok():
                raise
            return None
        if taken is None:
            return None
        message, info = taken
        return message, info.get("publication_sequence_number")

    def destroy(self) -> None:
        """Takes the subscription down; nobody may be waiting for it."""
        self._node.destroy_subscription(self._subscription)


def _never(message: bytes) -> None:
    raise AssertionError("an executor took a message that is not its own")
