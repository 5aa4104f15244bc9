"""`ArmNode`: what the nodes of controller and sentinel have in common."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.time import Time
from rclpy.wait_for_message import wait_for_message
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import String

from rnea_control.exceptions import CdrError, ParameterError
from rnea_control.messages.cdr import CdrReader, decoding
from rnea_control.messages.clock import nanoseconds_of
from rnea_control.ros.conventions import LATCHED, NEWEST
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.presence import Presence
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.real_time import RealTime, RealTimeSettings

# Steady clock, for timers that must run when /clock stands still.
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
DIAGNOSTICS_PERIOD = 1.0
DESCRIPTION = "robot_description"
# Timeout of the request for the latest description [s].
LONGEST_WAIT = 1.0
CLOCK, ROS_TIME = "/clock", ClockType.ROS_TIME


class ArmNode(GuardedNode):
    """A node for an arm, described by the parameter or the topic robot_description.

    Taking a message of that topic, and converting it to a Python string, blocks all other threads
    of the process, the control loop included: for a second at 50 MB. So the node subscribes only
    while it lacks a description, and otherwise requests the latest description on demand.

    A subclass has `publish_diagnostics`, which also does what is due once a second, and
    `receive_description`, called with a description from the topic while the parameter has none.

    Attributes:
        parameters: parameters of the node, of the class for this node.
        clock: time of the node.
        fault: why the node does not work; empty if it may.
        real_time: real-time set-up of the process; exists once the arm is known.
        presence: checks that no other process has a node of this name.
        diagnostics_timer: timer of the report for /diagnostics.
    """

    parameters: NodeParameters
    real_time: RealTime

    def __init__(self, name: str, **node_arguments: Any) -> None:
        super().__init__(
            name, automatically_declare_parameters_from_overrides=True, **node_arguments
        )
        self.fault = ""
        self._born = time.monotonic()
        self.presence = Presence(self)
        self.clock = NodeClock(self)
        self.hear_descriptions()
        period = DIAGNOSTICS_PERIOD
        self.diagnostics_timer = self.create_timer(period, self._report, clock=STEADY)
        self._clock_refused = 0  # number of refused /clock messages that have been logged

    def _report(self) -> None:
        refused, self._clock_refused = self._clock_refused, self.clock.refused
        if self.clock.refused > refused:
            count = self.clock.refused - refused
            self.note_failure(f"{count} messages were ignored, the last one as {self.clock.fault}")
        self.publish_diagnostics()

    @property
    def age(self) -> float:
        """Age of the node by the steady clock [s]."""
        return time.monotonic() - self._born

    def hear_descriptions(self) -> None:
        """Subscribes to descriptions; receives the latest one, and those that follow."""
        heard = String, DESCRIPTION, self._hear_description, LATCHED
        self._descriptions = self.create_subscription(*heard)

    def leave_descriptions(self) -> None:
        """Ends the subscription to descriptions, until `hear_descriptions` is called again."""
        self.destroy_subscription(self._descriptions)

    def latest_description(self) -> str:
        """Waits for the latest description; empty if none arrives within `LONGEST_WAIT`."""
        found, message = wait_for_message(
            String, self, DESCRIPTION, qos_profile=LATCHED, time_to_wait=LONGEST_WAIT
        )
        return message.data if found else ""

    def _hear_description(self, message: String) -> None:
        if not message.data:
            self.note_failure(f"an empty message on the topic {DESCRIPTION} is ignored")
        elif not self.value_or_none(DESCRIPTION):
            self.receive_description(message.data)

    def value_or_none(self, name: str) -> Any:
        """The value of a parameter; None if it is invalid, which is reported elsewhere."""
        try:
            return self.parameters[name]
        except ParameterError:
            return None

    def enter_real_time(self, values: Mapping[str, Any], undo: ExitStack) -> None:
        """Applies the real-time set-up that these parameters request."""
        self.real_time = RealTime(RealTimeSettings.of(values))
        undo.callback(self.real_time.leave)
        self.real_time.enter_process()

    def now(self) -> Time:
        return self.clock.now()

    def destroy_node(self) -> None:
        self.clock.destroy()
        super().destroy_node()


class NodeClock:
    """The clock of a node, which in simulated time reads /clock only when the time is asked for.

    rclpy takes each message on /clock through the node's executor. At a thousand a second that
    takes several times as much CPU time as the control loop.

    Args:
        node: its own clock is set at each look, for what else uses it.

    Attributes:
        refused: messages of which no time could be made.
        fault: why not, of the last one; empty before there is one.
    """

    refused, fault = 0, ""

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._lock = threading.Lock()
        self._subscription: RawSubscription | None = None
        if not self._clock.ros_time_is_active:
            return
        self._subscription = RawSubscription(node, ClockMessage, CLOCK, NEWEST)
        topic = node.resolve_topic_name(CLOCK)
        for subscription in [one for one in node.subscriptions if one.topic_name == topic]:
            node.destroy_subscription(subscription)

    @property
    def ros_time_is_active(self) -> bool:
        """True if the node uses the time of /clock."""
        return self._clock.ros_time_is_active

    def now(self) -> Time:
        """The time now. A message of which no time can be made changes nothing; see `fault`."""
        with self._lock:
            taken = self._subscription and self._subscription.poll()
            if taken:
                try:
                    with decoding(CLOCK):
                        now = nanoseconds_of(CdrReader(taken.data, CLOCK))
                    self._clock.set_ros_time_override(Time(nanoseconds=now, clock_type=ROS_TIME))
                except CdrError as error:
                    self.refused, self.fault = self.refused + 1, str(error)
        return self._clock.now()

    def destroy(self) -> None:
        """Takes the subscription down; the time stands still then."""
        with self._lock:
            if self._subscription is not None:
                self._subscription.destroy()
                self._subscription = None
