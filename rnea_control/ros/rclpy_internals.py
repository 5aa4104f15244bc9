"""The parts of rclpy beyond its public interface that this package uses; no other file imports
them.

Another rclpy may lack these names, or give them other signatures. Each has a way back:

- without `RCLError` or `InvalidHandle`, the base class `RuntimeError` takes its place;
- without a subscription's `get_publisher_count`, as in Humble, the graph's count takes its place;
- without `_type_description_service`, there is none, or rclpy ends it itself;
- without `LIBRARY`, or with another, an executor takes messages (rcl_calls.py);
- without `WaitSet`, or an executor's `_guard`, rclpy runs all callbacks (guarded_executor.py).
"""

from __future__ import annotations

from rclpy.node import Node
from rclpy.subscription import Subscription

try:
    from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
except ImportError:
    _rclpy = None

# Exception that rclpy raises where a call into rcl fails.
RCLError: type[Exception] = getattr(_rclpy, "RCLError", RuntimeError)
# Exception that rclpy raises for an entity that was destroyed.
InvalidHandle: type[Exception] = getattr(_rclpy, "InvalidHandle", RuntimeError)
WaitSet = getattr(_rclpy, "WaitSet", None)
# Path of the library that is linked to rcl; None where rclpy is another.
LIBRARY: str | None = getattr(_rclpy, "__file__", None)
# True if an executor hands on the information of a message; Humble's does not.
TELLS_INFO = hasattr(Subscription, "CallbackType")


def publisher_count(node: Node, subscription: Subscription) -> int:
    """Number of publishers that a subscription of a node is matched with."""
    if hasattr(subscription, "get_publisher_count"):
        return int(subscription.get_publisher_count())
    return int(node.count_publishers(subscription.topic_name))


def end_type_descriptions(node: Node) -> None:
    """Ends a destroyed node's service of type descriptions. rclpy of Lyrical does not, and the node
    then stays in the graph until its process has been gone for 20 s."""
    service = getattr(node, "_type_description_service", None)
    if service is not None:
        vars(service).update(_type_description_srv=None)
