"""The clock of a node, which in simulated time reads /clock only when somebody asks for the time.

rclpy takes each message on /clock through the node's executor. At a thousand a second that takes
several times as much CPU time as the control loop.
"""

from __future__ import annotations

import threading

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.time import Time
from rosgraph_msgs.msg import Clock

from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rclpy_internals import WaitSetUnavailable

TOPIC = "/clock"
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class NodeClock:
    """A node's clock, which looks at /clock whenever the time is asked for.

    Args:
        node: its own clock is set at each look, for what else uses it.
    """

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._lock = threading.Lock()
        self._subscription: RawSubscription | None = None
        if not self._clock.ros_time_is_active:
            return
        try:
            self._subscription = RawSubscription(node, Clock, TOPIC, NEWEST)
        except WaitSetUnavailable:
            return  # the executor takes it
        topic = node.resolve_topic_name(TOPIC)
        for subscription in [one for one in node.subscriptions if one.topic_name == topic]:
            node.destroy_subscription(subscription)

    @property
    def ros_time_is_active(self) -> bool:
        """Whether it goes by /clock."""
        active: bool = self._clock.ros_time_is_active
        return active

    def now(self) -> Time:
        """The time now."""
        if self._subscription is not None:
            with self._lock:
                taken = self._subscription.poll()
                if taken is not None:
                    message = deserialize_message(taken[0], Clock)
                    self._clock.set_ros_time_override(Time.from_msg(message.clock))
        return self._clock.now()

    def destroy(self) -> None:
        """Takes the subscription down; the time stands still then."""
        with self._lock:
            if self._subscription is not None:
                self._subscription.destroy()
                self._subscription = None
