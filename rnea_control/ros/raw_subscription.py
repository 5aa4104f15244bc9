"""A subscription that one thread waits on by itself, for serialised messages.

rclpy's executors rebuild their wait set from all entities of a node for every message, which costs
several times what the message does.

The subscription is in a context, and so has a DDS participant, of its own. All that comes to one
participant over shared memory goes through one port and one thread: behind a long trajectory, or
while a process that writes one is preempted, a state would wait for milliseconds.
"""

from __future__ import annotations

from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from rnea_control.ros.rclpy_internals import RCLError, SubscriptionWaitSet, WaitSetUnavailable


class RawSubscription:
    """Takes the messages of a topic as bytes, in the thread that asks for them.

    Args:
        node: in whose name and domain it is, and whose remappings it obeys; no executor sees it.
        message_type, topic, qos: as of `Node.create_subscription`.

    Raises:
        WaitSetUnavailable: with this rclpy; use a subscription with `raw=True` and the executor.
    """

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._context = Context()
        self._context.init(domain_id=node.context.get_domain_id())
        self._node = Node(
            f"_{node.get_name()}_{topic.replace('/', '_')}",  # hidden, by the leading underscore
            namespace=node.get_namespace(),
            context=self._context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        self._subscription = self._node.create_subscription(
            message_type, node.resolve_topic_name(topic), _never, qos, raw=True
        )
        try:
            self._wait_set = SubscriptionWaitSet(self._context, self._subscription)
        except WaitSetUnavailable:
            self.destroy()
            raise

    def take(self, timeout: float) -> tuple[bytes, int | None] | None:
        """The next message and its publisher's count of it, where the middleware has one.

        None after `timeout`, [s], and once the context is shut down.
        """
        try:
            return self._wait_set.take(timeout)
        except RCLError:
            if self._context.ok():
                raise
            return None

    def poll(self) -> tuple[bytes, int | None] | None:
        """As `take`, without a wait."""
        try:
            return self._wait_set.poll()
        except RCLError:
            if self._context.ok():
                raise
            return None

    def publishers(self) -> int:
        """How many publishers it is matched with."""
        return self._subscription.get_publisher_count()

    def destroy(self) -> None:
        """Takes the subscription down; nobody may be waiting for it."""
        self._node.destroy_node()
        self._context.try_shutdown()


def _never(message: bytes) -> None:
    raise AssertionError("an executor took a message; none should know this node")
