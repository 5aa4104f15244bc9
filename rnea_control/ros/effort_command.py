"""The effort commands, whose bytes are the memory that the controller writes its torques to."""

from __future__ import annotations

from typing import Protocol

from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import ParameterError
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder


class Command(Protocol):
    """Where a control loop writes its torques, one number for each joint, and sends them."""

    torque: FloatArray

    def publish(self) -> object:
        """Sends `torque` as it is now."""


class EffortCommand:
    """Publishes `torque`, one number for each joint, to ros2_control.

    Args:
        node: the node that publishes.
        topic: of a ForwardCommandController, `~/commands`.
        reliability: "reliable" or "best_effort".
        joints: how many.

    Raises:
        ParameterError: `topic` is not a topic name.
    """

    def __init__(self, node: Node, topic: str, reliability: str, joints: int) -> None:
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy[reliability.upper()])
        try:
            self._publisher = node.create_publisher(Float64MultiArray, topic, qos)
        except InvalidTopicNameException as error:
            raise ParameterError(
                f"parameter 'command_topic' is {topic!r}; it must be a topic name ({error})"
            ) from error
        self._node = node
        self._message = Float64MultiArrayEncoder(joints)
        self.torque = self._message.values

    @property
    def topic(self) -> str:
        """The full name of the topic."""
        return self._publisher.topic_name

    def listeners(self) -> int:
        """How many subscriptions there are to the topic."""
        return self._publisher.get_subscription_count()

    def publish(self) -> bytes:
        """Publishes `torque` as it is now; returns the serialised message."""
        message = self._message.encode()
        self._publisher.publish(message)
        return message

    def destroy(self) -> None:
        """Takes the publisher down."""
        self._node.destroy_publisher(self._publisher)
