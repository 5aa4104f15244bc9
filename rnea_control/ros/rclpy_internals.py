"""The parts of rclpy beyond its public interface that this package uses; no other file imports
them.

Another rclpy may lack these names, or give them other signatures. Each has a way back:

- without `RCLError`, its base class `RuntimeError` takes its place;
- without a publisher's `publish_raw`, its public method takes its place;
- without `WaitSet`, or with one of another signature, `WaitSetUnavailable` is raised, and the
  caller has an executor take the messages.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.context import Context
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription

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


class WaitSetUnavailable(Exception):
    """This rclpy has no wait set, or one with another signature."""


class SubscriptionWaitSet:
    """Waits for subscriptions in the calling thread, as `rclpy.wait_for_message` does.

    Args:
        context: of the subscriptions.
        subscriptions: with `raw=True`; no executor may take their messages.

    Raises:
        WaitSetUnavailable: with this rclpy.
    """

    def __init__(self, context: Context, *subscriptions: Subscription) -> None:
        try:
            if WaitSet is None:
                raise AttributeError("rclpy has no WaitSet")
            self._subscriptions = subscriptions
            self._handles = [each.handle for each in subscriptions]
            self._wait_set = WaitSet(len(subscriptions), 0, 0, 0, 0, 0, context.handle)
            self.wait(0.0)
            self.is_ready(0)
            self.take(0)
        except (AttributeError, TypeError) as error:
            raise WaitSetUnavailable(str(error)) from error

    def wait(self, timeout: float) -> None:
        """Returns when a message waits, or after `timeout`, [s].

        Raises:
            RCLError: for example when the context has been shut down.
        """
        wait_set = self._wait_set
        wait_set.clear_entities()
        for handle in self._handles:
            wait_set.add_subscription(handle)
        wait_set.wait(int(1e9 * timeout))

    def is_ready(self, index: int) -> bool:
        """Whether the last wait has found a message of a subscription."""
        return bool(self._wait_set.is_ready("subscription", index))

    def take(self, index: int) -> tuple[bytes, int | None] | None:
        """The next message of a subscription and its publisher's count of it, where the middleware
        has one; None if none waits."""
        taken = self._handles[index].take_message(self._subscriptions[index].msg_type, True)
        if taken is None:
            return None
        message, info = taken
        return message, info.get("publication_sequence_number")
