"""The effort commands, whose bytes are the memory that the controller writes its torques to."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.duration import Duration
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Float64MultiArray

from rnea_control.array_types import FloatArray
from rnea_control.control import Controller
from rnea_control.exceptions import ParameterError, plain, quoted
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.ros.publishers import UNKNOWN
from rnea_control.ros.rcl_calls import own_gid

try:
    from rclpy.event_handler import PublisherEventCallbacks
except ModuleNotFoundError:  # Humble's reports no match
    PublisherEventCallbacks = None

LONGEST_REASON = 500  # characters of rclpy's reason that are repeated
# Timeout for the last torques to arrive: a subscription that hangs does not keep the process.
LONGEST_WAIT = Duration(seconds=0.5)
APPROACH_PERIOD = 0.001  # period of the last commands, on the way to the very last one [s]
LONGEST_APPROACH = 0.2  # upper bound of the duration of these commands [s]
# Effect of the last command, by `last_command`; "guarded" if the sentinel takes over.
LAST_WORDS = {
    "guarded": "stopped. rnea_sentinel holds the arm from now on, unless it is ended as well",
    "gravity": "stopped. The last command, the gravity torque, stays in force and balances the arm "
    "like a pencil on its tip: without brakes or friction it drifts away within seconds. Engage "
    "the brakes, or deactivate the effort controller",
    "zero": "stopped. The last command is zero torque: without brakes the arm falls",
}


def send_last(
    controller: Controller, target: FloatArray, tau: FloatArray, send: Callable[[], bool]
) -> None:
    """Sends the last torques: those on the way to `target` within the controller's rate limit, then
    `target` itself, which the hardware applies from then on.

    Args:
        controller: knows the torque in force.
        target: last torque, shape (nv,), [Nm] or [N].
        tau: filled before each call of `send`, shape (nv,), [Nm] or [N].
        send: commands `tau`; returns True while this process commands the arm. False ends the
            approach.
    """
    for _ in range(round(LONGEST_APPROACH / APPROACH_PERIOD)):
        controller.approach(target, APPROACH_PERIOD, tau)
        if not send() or (controller.in_force == target).all():  # not if it was not published
            return
        time.sleep(APPROACH_PERIOD)


class Command:
    """One torque for each joint, encoded while it is written, and not sent.

    Args:
        joints: number of joints.

    Attributes:
        torque: shape (joints,), [Nm] or [N].
        message: encoder of the message.
    """

    def __init__(self, joints: int) -> None:
        self.message = Float64MultiArrayEncoder(joints)
        self.torque = self.message.values

    def publish(self) -> bytes:
        """Sends `torque` as it is now; returns the serialized message."""
        return self.message.encode()


class EffortCommand(Command):
    """Publishes `torque` to ros2_control.

    Args:
        topic: command topic, `~/commands` of a ForwardCommandController.
        reliability: "reliable" or "best_effort".
        on_match: called in the executor when a subscription has come or gone, if this rclpy
            reports that (Humble's does not).

    Attributes:
        publisher: publisher of the commands, also for machine code.
        topic: full name of the topic.

    Raises:
        ParameterError: `topic` is not a topic name.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        reliability: str,
        joints: int,
        on_match: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(joints)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy[reliability.upper()])
        options = {}
        if PublisherEventCallbacks is not None:
            options["event_callbacks"] = PublisherEventCallbacks(matched=lambda info: on_match())
        try:
            self.publisher = node.create_publisher(Float64MultiArray, topic, qos, **options)
        except InvalidTopicNameException as error:
            raise ParameterError(
                f"parameter 'command_topic' is {quoted(topic)}; it must be a topic name "
                f"({plain(str(error), LONGEST_REASON)})"
            ) from error
        self._node = node
        self.topic: str = self.publisher.topic_name

    @property
    def gid(self) -> bytes | None:
        """The GID of its publisher; None where rmw does not give it."""
        return own_gid(self.publisher)

    def listeners(self, without: tuple[str, ...] = ()) -> int:
        """Number of subscriptions to the topic.

        Args:
            without: names of nodes whose subscriptions, and those of their hidden nodes, are not
                counted. If given, nodes whose names are not known yet are not counted either.
        """
        if not without:
            return self.publisher.get_subscription_count()
        hidden = tuple(f"_{name}_" for name in without)
        names = (i.node_name for i in self._node.get_subscriptions_info_by_topic(self.topic))
        others = (name for name in names if name not in (*without, UNKNOWN))
        return sum(not name.startswith(hidden) for name in others)

    def publish(self) -> bytes:
        message = super().publish()
        self.publisher.publish(message)
        return message

    def destroy(self) -> None:
        """Takes the publisher down, once the last torques have arrived; they stay in force."""
        self.publisher.wait_for_all_acked(LONGEST_WAIT)
        self._node.destroy_publisher(self.publisher)
