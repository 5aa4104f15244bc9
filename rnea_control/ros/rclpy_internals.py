"""The parts of rclpy beyond its public interface that this package uses; no other file imports
them.

Another rclpy may lack these names, or give them other signatures. Each has a way back:

- without `RCLError`, its base class `RuntimeError` takes its place;
- without a publisher's `publish_raw`, its public method takes its place;
- without `WaitSet` or `LIBRARY`, or with others, an executor takes messages (rcl_calls.py).
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.publisher import Publisher

try:
    from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
except ImportError:
    _rclpy = None

# What rclpy raises where a call into rcl fails.
RCLError: type[Exception] = getattr(_rclpy, "RCLError", RuntimeError)
WaitSet = getattr(_rclpy, "WaitSet", None)
# The library that is linked to rcl; None where rclpy is another.
LIBRARY: str | None = getattr(_rclpy, "__file__", None)


def raw_publish(publisher: Publisher) -> Callable[[bytes], None]:
    """A function that publishes serialized messages, at half the cost of `Publisher.publish`, which
    looks at each message; nobody may destroy the publisher meanwhile."""
    publish: Callable[[bytes], None] = getattr(publisher.handle, "publish_raw", publisher.publish)
    return publish
