"""Subscriptions for serialized messages, each with a thread that waits on this subscription only.

rclpy's executors rebuild their wait set from all entities of a node for every message, which costs
several times what the message does.

The subscription has its own context, and so its own DDS participant. All messages to one
participant over shared memory pass one port and one thread: behind a long trajectory, or while a
process that writes one is preempted, a state would wait for milliseconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from rnea_control.ros.conventions import HELPER
from rnea_control.ros.publishers import publishers_of
from rnea_control.ros.rcl_calls import Proof, RclTable, Taken, takes_like_rclpy
from rnea_control.ros.rclpy_internals import TELLS_INFO, RCLError, publisher_count

UNPROVEN = (
    "calls of rcl by address do not give the results of rclpy here: an executor receives "
    "joint_states, which costs more CPU time, and all ticks run in Python, where other work of the "
    "process delays them (docs/torque.md)"
)


def _raised(error: Exception) -> None:
    raise error


class RawSubscription:
    """Takes the messages of a topic as bytes, in the thread that calls it.

    Where rcl cannot be called by address, an executor takes the messages in that thread, without
    their publishers.

    Args:
        node: node that gives name, domain and remappings; no executor sees the subscription.
        message_type: message type of the topic.
        topic: name of the topic.
        qos: QoS profile.
        beside: type, topic and QoS of further subscriptions; their messages end a wait, too.
        own_context: True for a context of its own; else the node's, which knows others at once.
        visible: True if `ros2 node list`, `ros2 node info` and rqt_graph show the node that
            subscribes; the name of a hidden one begins with an underscore.

    Attributes:
        node: the node of the arguments.
        name: full name of the node that subscribes.
        table: addresses for machine code that takes the messages instead; None where they are not
            proven to give the results of rclpy.
        names_publishers: True if messages carry the graph's GIDs of their publishers; False if
            publishers can be distinguished at most.
        on_failure: called with the error of rcl if a message is not taken, unless the context is
            shut down; raises the error unless another function is set.
    """

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        qos: QoSProfile,
        *beside: tuple[type, str, QoSProfile],
        own_context: bool = True,
        visible: bool = False,
    ) -> None:
        self.node = node
        self.on_failure: Callable[[Exception], None] = _raised
        domain = node.context.get_domain_id()
        self._context = node.context
        if own_context:
            self._context = Context()
            self._context.init(domain_id=domain)
        name = topic.strip("~/").replace("/", "_")
        self._node = Node(
            f"{'' if visible else '_'}{node.get_name()}_{name}",
            namespace=node.get_namespace(),
            context=self._context,
            **HELPER,
        )
        self.name: str = self._node.get_fully_qualified_name()
        self._waiting: list[deque[Taken]] = []  # what the executor has taken
        self._depths = [qos.depth, *(profile.depth for _, _, profile in beside)]
        self._subscriptions = [
            self._node.create_subscription(
                kind, node.resolve_topic_name(name), self._keeping(profile.depth), profile, raw=True
            )
            for kind, name, profile in ((message_type, topic, qos), *beside)
        ]
        self.table: RclTable | None = None
        proof = takes_like_rclpy(domain)
        self.names_publishers = proof is Proof.BY_GID
        if proof:
            self.table = RclTable(self._subscriptions)
        else:
            node.get_logger().warning(UNPROVEN, once=True)
            self._executor = SingleThreadedExecutor(context=self._context)
            self._executor.add_node(self._node)

    def _keeping(self, depth: int) -> Callable[..., None]:
        waiting: deque[Taken] = deque(maxlen=depth)
        self._waiting.append(waiting)

        def keep(message: bytes, info: dict[str, Any]) -> None:
            waiting.append(Taken(message, info.get("publication_sequence_number")))

        return keep if TELLS_INFO else lambda message: keep(message, {})

    def take(self, timeout: float) -> Taken | None:
        """The next message; None after `timeout` [s], and once the context is shut down. With
        further subscriptions, None also when one of their messages has come, and at times without
        a reason."""
        table = self.table
        if table is not None:
            # The middleware signals a message a moment after it can be taken.
            end, several = time.monotonic() + timeout, len(self._subscriptions) > 1
            come, left = table.wait(0.0), timeout
            while (taken := self.poll()) is None and not (come and several) and left > 0.0:
                come = table.wait(left)
                left = end - time.monotonic()
            return taken
        try:
            if not any(self._waiting):
                self._executor.spin_once(timeout)
        except RCLError as error:
            self._fail(error)
            return None
        return self.poll()

    def _fail(self, error: Exception) -> None:
        if self._context.ok():
            self.on_failure(error)

    def poll(self, index: int = 0) -> Taken | None:
        """The next message of a subscription; index 0 is the topic's, further ones count from 1.
        None if no message waits."""
        try:
            if self.table is not None:
                return self.table.take(index)
        except RCLError as error:
            self._fail(error)
            return None
        waiting = self._waiting[index]
        if not waiting:
            self._gather(waiting)
        return waiting.popleft() if waiting else None

    def _gather(self, wanted: deque[Taken] | None = None) -> None:
        """Has the executor take the messages that wait, or no more than the first one `wanted`."""
        before = -1
        while not wanted and (kept := sum(map(len, self._waiting))) != before:
            before = kept
            self._executor.spin_once(0.0)

    def beside(self) -> Iterator[tuple[int, Taken]]:
        """The waiting messages of the further subscriptions, each with the index of its
        subscription, from 1 on. No more than the depth of each: a storm of messages keeps no state
        waiting."""
        if self.table is None:
            # Once for all: the executor takes 0.1 ms to find out that no message waits.
            self._gather()
            for index, waiting in enumerate(self._waiting[1:], 1):
                for _ in range(len(waiting)):
                    yield index, waiting.popleft()
            return
        for index, depth in enumerate(self._depths[1:], 1):
            for _ in range(depth):
                if (taken := self.poll(index)) is None:
                    break
                yield index, taken

    def publishers_of(self, topic: str) -> dict[bytes, str] | None:
        """Names of the nodes that publish on a topic, by the GIDs of their publishers; None if
        messages do not carry these GIDs."""
        topic = self.node.resolve_topic_name(topic)
        return publishers_of(self._node, topic) if self.names_publishers else None

    @property
    def waited(self) -> int:
        """Time for which the message that was taken last has waited in the middleware, [ns]; 0
        where it is not known."""
        received = self.table.received if self.table is not None else 0
        return max(time.time_ns() - received, 0) if received else 0

    def publishers(self) -> int:
        """Number of publishers that the subscription is matched with."""
        return publisher_count(self._node, self._subscriptions[0])

    def destroy(self) -> None:
        """Destroys the subscription; no thread may be waiting for it."""
        if self.table is not None:
            self.table.destroy()
        else:
            self._executor.shutdown()
        self._node.destroy_node()
        if self._context is not self.node.context:
            self._context.try_shutdown()
