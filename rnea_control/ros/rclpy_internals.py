"""What this package uses of rclpy beyond its public interface; no other file imports any of it.

Another rclpy may lack these names, or give them other signatures. Each has a way back:

- without `RCLError`, its base class `RuntimeError` takes its place;
- without a publisher's `publish_raw`, its public method takes its place;
- without `WaitSet`, or with one of another signature, `WaitSetUnavailable` is raised, and the
  caller makes a subscription for its executor.
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


def raw_publish(publisher: Publisher) -> Callable[[bytes], None]:
    """A function that publishes serialised messages, at half the cost of `Publisher.publish`, which
    looks at each message; nobody may destroy the publisher meanwhile."""
    publish: Callable[[bytes], None] = getattr(publisher.handle, "publish_raw", publisher.publish)
    return publish


class WaitSetUnavailable(Exception):
    """This rclpy has no wait set, or one with another signature."""


class SubscriptionWaitSet:
    """Waits for one subscription in the calling thread, as `rclpy.wait_for_message` does.

    Args:
        context: of the subscription.
        subscription: with `raw=True`; no executor may take its messages.

    Raises:
        WaitSetUnavailable: with this rclpy.
    """

    def __init__(self, context: Context, subscription: Subscription) -> None:
        self._type = subscription.msg_type
        try:
            if WaitSet is None:
                raise AttributeError("rclpy has no WaitSet")
            self._handle = subscription.handle
            self._wait_set = WaitSet(1, 0, 0, 0, 0, 0, context.handle)
            self.take(0.0)
        except (AttributeError, TypeError) as error:
            raise WaitSetUnavailable(str(error)) from error

    def take(self, timeout: float) -> tuple[bytes, int | None] | None:
        """The next message and its publisher's count of it, where the middleware has one.

        None after `timeout`, [s].

        Raises:
            RCLError: for example when the context has been shut down.
        """
        wait_set, handle = self._wait_set, self._handle
        wait_set.clear_entities()
        wait_set.add_subscription(handle)
        wait_set.wait(int(1e9 * timeout))
        return self.poll()

    def poll(self) -> tuple[bytes, int | None] | None:
        """As `take`, without a wait, at a fraction of its cost."""
        taken = self._handle.take_message(self._type, True)
        if taken is None:
            return None
        message, info = taken
        return message, info.get("publication_sequence_number")
