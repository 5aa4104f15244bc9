"""A subscription that one thread waits on by itself, for serialised messages.

rclpy's executors rebuild their wait set from all entities of a node for every message, which costs
several times what the message does. The wait set used here is rclpy's internal one, as
`rclpy.wait_for_message` uses it. This is the only file that touches it.

The subscription is in a context, and so has a DDS participant, of its own. All that comes to one
participant over shared memory goes through one port and one thread: behind a long trajectory, or
while a process that writes one is preempted, a state would wait for milliseconds.
"""

from __future__ import annotations

from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

try:
    from rclpy._rclpy_pybind11 import RCLError
    from rclpy.impl.implementation_singleton import rclpy_implementation

    _WaitSet = rclpy_implementation.WaitSet
except (ImportError, AttributeError):  # another rclpy: `RawSubscription` says so
    _WaitSet = None


class WaitSetUnavailable(Exception):
    """This rclpy's wait set is not as it is known here."""


class RawSubscription:
    """Takes the messages of a topic as bytes, in the thread that asks for them.

    Args:
        node: in whose name and domain it is, and whose remappings it obeys; no executor sees it.
        message_type, topic, qos: as of `Node.create_subscription`.

    Raises:
        WaitSetUnavailable: with this rclpy; use a subscription with `raw=True` and the executor.
    """

    def __init__(self, node: Node, message_type: type, topic: str, qos: QoSProfile) -> None:
        self._type = message_type
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
            if _WaitSet is None:
                raise AttributeError("rclpy has no WaitSet")
            self._handle = self._subscription.handle
            self._wait_set = _WaitSet(1, 0, 0, 0, 0, 0, self._context.handle)
            self.take(0.0)
        except (AttributeError, TypeError) as error:
            self.destroy()
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
            if self._context.ok():
                raise
            return None
        if taken is None:
            return None
        message, info = taken
        return message, info.get("publication_sequence_number")

    def publishers(self) -> int:
        """How many publishers it is matched with."""
        return self._subscription.get_publisher_count()

    def destroy(self) -> None:
        """Takes the subscription down; nobody may be waiting for it."""
        self._node.destroy_node()
        self._context.try_shutdown()


def _never(message: bytes) -> None:
    raise AssertionError("an executor took a message; none should know this node")
