"""The topic robot_description, heard only while a node lacks a description.

To take a message, and to make Python's string of it, keeps all other threads of the process
waiting, the control loop as well: for a second if somebody publishes 50 MB. So a node that has its
description hears no other one; when it is to have a new one, it asks for the latest.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import String

from rnea_control.ros.qos import LATCHED

TOPIC = "robot_description"
# For how long the latest description is waited for, [s].
LONGEST_WAIT = 1.0


class DescriptionTopic:
    """Hears the topic until it is told to leave it.

    Args:
        node: that hears it.
        receive: called with each description, while the topic is heard.
    """

    def __init__(self, node: Node, receive: Callable[[str], None]) -> None:
        self._node, self._receive = node, receive
        self._subscription: Subscription | None = None
        self.listen()

    def listen(self) -> None:
        """Hears the latest description, and those that follow."""
        if self._subscription is None:
            self._subscription = self._node.create_subscription(
                String, TOPIC, lambda message: self._receive(message.data), LATCHED
            )

    def leave(self) -> None:
        """Hears none any more."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def latest(self) -> str:
        """The latest description, waited for; empty if there is none."""
        found, message = wait_for_message(
            String, self._node, TOPIC, qos_profile=LATCHED, time_to_wait=LONGEST_WAIT
        )
        return message.data if found else ""
