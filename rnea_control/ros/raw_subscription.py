"""Subscriptions that one thread waits on by itself, for serialized messages.

rclpy's executors rebuild their wait set from all entities of a node for every message, which costs
several times what the message does.

The subscription is in a context, and so has a DDS participant, of its own. All that comes to one
participant over shared memory goes through one port and one thread: behind a long trajectory, or
while a process that writes one is preempted, a state would wait for milliseconds.

Where this rclpy does not allow that, the executor takes the messages, and the thread waits for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator

from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile

from rnea_control.ros.effort_command import publishers_of
from rnea_control.ros.rcl_calls import RclTable, Taken, takes_like_rclpy
from rnea_control.ros.rclpy_internals import RCLError, SubscriptionWaitSet, WaitSetUnavailable

# How often the executor shows that it runs, where it takes the messages, [s]: several times in a
# controller's lease.
EXECUTOR_PERIOD = 0.002
UNPROVEN = (
    "rcl does not answer by address as rclpy does here: all ticks run in Python, and wait for what "
    "else the process does (docs/torque.md)"
)


class RawSubscription:
    """Takes the messages of a topic as bytes, in the thread that asks for them.

    Args:
        node: in whose name and domain it is, and whose remappings it obeys; no executor sees it.
        message_type, topic, qos: as of `Node.create_subscription`.
        beside: the same of further subscriptions; their messages end a wait, too.

    Raises:
        WaitSetUnavailable: with this rclpy; use a subscription with `raw=True` and the executor.
    """

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        qos: QoSProfile,
        *beside: tuple[type, str, QoSProfile],
    ) -> None:
        self._of = node
        domain = node.context.get_domain_id()
        self._context = Context()
        self._context.init(domain_id=domain)
        name = topic.replace("/", "_").replace("~", "")
        self._node = Node(
            f"_{node.get_name()}_{name}",  # hidden, by the leading underscore
            namespace=node.get_namespace(),
            context=self._context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        subscriptions = [
            self._node.create_subscription(
                kind, node.resolve_topic_name(name), _never, profile, raw=True
            )
            for kind, name, profile in ((message_type, topic, qos), *beside)
        ]
        self._subscriptions = subscriptions
        self._by_address: RclTable | None = None
        try:
            self._wait_set = SubscriptionWaitSet(self._context, *subscriptions)
            if takes_like_rclpy(domain):
                self._by_address = RclTable(self._context, subscriptions)
            else:
                node.get_logger().warning(UNPROVEN, once=True)
        except WaitSetUnavailable:
            self.destroy()
            raise

    def take(self, timeout: float) -> Taken | None:
        """The next message; None after `timeout`, [s], when one of another subscription has come,
        and once the context is shut down."""
        try:
            self._wait_set.wait(timeout)
        except RCLError:
            if self._context.ok():
                raise
            return None
        return self.poll()

    def poll(self, index: int = 0) -> Taken | None:
        """The next message, of a further subscription if it is counted from 1; None if none
        waits."""
        try:
            if self._by_address is not None:
                return self._by_address.take(index)
            taken = self._wait_set.take(index)
        except RCLError:
            if self._context.ok():
                raise
            return None
        return None if taken is None else Taken(*taken)

    def knows(self) -> bool:
        """Whether no message waits anywhere when `take` has found none."""
        return True

    def beside(self) -> Iterator[tuple[int, Taken]]:
        """The messages of the further subscriptions that the last wait has found, each with the
        number of its subscription, from 1 on."""
        for index in range(1, len(self._subscriptions)):
            if self._wait_set.is_ready(index):
                while (taken := self.poll(index)) is not None:
                    yield index, taken

    def addresses(
        self, publisher: Publisher, command: memoryview, guard: GuardCondition
    ) -> RclTable | None:
        """Addresses for machine code that takes the messages and publishes; see `RclTable`. None if
        it is not proven to do so here."""
        if self._by_address is None:
            return None
        return RclTable(self._context, self._subscriptions, publisher, command, guard)

    def publishers_of(self, topic: str) -> dict[bytes, str] | None:
        """Who publishes on a topic, by GID, as `publishers_of` of effort_command.py; None if
        messages do not tell their publishers."""
        topic = self._of.resolve_topic_name(topic)
        return None if self._by_address is None else publishers_of(self._node, topic)

    def publishers(self) -> int:
        """How many publishers it is matched with."""
        return self._subscriptions[0].get_publisher_count()

    def destroy(self) -> None:
        """Takes the subscription down; nobody may be waiting for it."""
        if self._by_address is not None:
            self._by_address.destroy()
        self._node.destroy_node()
        self._context.try_shutdown()


class ExecutorSubscription:
    """The same by the node's executor, which takes the messages: they wait here for the thread.
    Nothing tells who has sent them. Arguments and methods as of `RawSubscription`."""

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        qos: QoSProfile,
        *beside: tuple[type, str, QoSProfile],
    ) -> None:
        self._node = node
        self._came = threading.Event()
        self._executor_ran = False
        self._waiting: list[deque[bytes]] = []
        self._subscriptions = [
            node.create_subscription(kind, name, self._keeping(profile.depth), profile, raw=True)
            for kind, name, profile in ((message_type, topic, qos), *beside)
        ]
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(EXECUTOR_PERIOD, self._note_executor, clock=steady)

    def _note_executor(self) -> None:
        self._executor_ran = True

    def knows(self) -> bool:
        """See `RawSubscription`; only once after each time that the executor has run."""
        ran, self._executor_ran = self._executor_ran, False
        return ran

    def _keeping(self, depth: int) -> Callable[[bytes], None]:
        waiting: deque[bytes] = deque(maxlen=depth)
        self._waiting.append(waiting)

        def keep(message: bytes) -> None:
            waiting.append(message)
            self._came.set()

        return keep

    def take(self, timeout: float) -> Taken | None:
        """See `RawSubscription`."""
        self._came.clear()
        if not any(self._waiting):
            self._came.wait(timeout)
        return self.poll()

    def poll(self, index: int = 0) -> Taken | None:
        """See `RawSubscription`."""
        waiting = self._waiting[index]
        return Taken(waiting.popleft()) if waiting else None

    def beside(self) -> Iterator[tuple[int, Taken]]:
        """See `RawSubscription`."""
        for index in range(1, len(self._waiting)):
            while (taken := self.poll(index)) is not None:
                yield index, taken

    def addresses(self, publisher: Publisher, command: memoryview, guard: GuardCondition) -> None:
        """None: no thread takes the messages by itself."""

    def publishers_of(self, topic: str) -> None:
        """None: messages do not tell their publishers."""

    def publishers(self) -> int:
        """How many publishers it is matched with."""
        count: int = self._subscriptions[0].get_publisher_count()
        return count

    def destroy(self) -> None:
        """Takes the subscription down."""
        self._node.destroy_timer(self._timer)
        for each in self._subscriptions:
            self._node.destroy_subscription(each)


def subscription(
    node: Node,
    words: str,
    message_type: type,
    topic: str,
    qos: QoSProfile,
    *beside: tuple[type, str, QoSProfile],
) -> RawSubscription | ExecutorSubscription:
    """A `RawSubscription`, or one by the executor where this rclpy does not allow that.

    Args:
        words: what the warning calls the messages.
        node, message_type, topic, qos, beside: as of `RawSubscription`.
    """
    try:
        return RawSubscription(node, message_type, topic, qos, *beside)
    except WaitSetUnavailable as error:
        node.get_logger().warning(
            f"the executor takes {words}, which costs more CPU time: {error}", once=True
        )
        return ExecutorSubscription(node, message_type, topic, qos, *beside)


def _never(message: bytes) -> None:
    raise AssertionError("an executor took a message; none should know this node")
