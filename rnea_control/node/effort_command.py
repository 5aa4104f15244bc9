"""The command message, whose bytes are the memory that the controller writes its torques to."""

from __future__ import annotations

import struct
import sys
from typing import Protocol

import numpy as np
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import ParameterError
from rnea_control.messages.cdr import BIG_ENDIAN, LITTLE_ENDIAN

# Of Float64MultiArray: encapsulation, no dimensions, data_offset 0, the count, and four bytes that
# bring the numbers to a multiple of eight from the first field on.
_HEADER = 20


class CommandMessage:
    """A serialised Float64MultiArray of `size` numbers.

    Attributes:
        torque: its numbers, shape (size,); what is written here is in the message at once.
    """

    def __init__(self, size: int) -> None:
        # Four bytes of lead bring the numbers to where float64 may stand in memory.
        memory = bytearray(4 + _HEADER + 8 * size)
        self._message = memoryview(memory)[4:]
        byte_order = LITTLE_ENDIAN if sys.byteorder == "little" else BIG_ENDIAN
        struct.pack_into("=4B3I", self._message, 0, 0, byte_order, 0, 0, 0, 0, size)
        self.torque = np.frombuffer(memory, dtype=np.float64, offset=4 + _HEADER)

    def __bytes__(self) -> bytes:
        return bytes(self._message)


class Command(Protocol):
    """Where a control loop puts its torques, one number a joint, and has them sent."""

    torque: FloatArray

    def publish(self) -> None:
        """Sends `torque` as it is now."""


class EffortCommand:
    """Publishes `torque`, one number a joint, to ros2_control.

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
        self._message = CommandMessage(joints)
        self.torque = self._message.torque

    @property
    def topic(self) -> str:
        """The full name of the topic."""
        return self._publisher.topic_name

    def listeners(self) -> int:
        """How many subscriptions there are to the topic."""
        return self._publisher.get_subscription_count()

    def publish(self) -> None:
        """Publishes `torque` as it is now."""
        self._publisher.publish(bytes(self._message))

    def destroy(self) -> None:
        """Takes the publisher down."""
        self._node.destroy_publisher(self._publisher)
