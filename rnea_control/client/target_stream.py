"""`TargetStream`: targets on one topic, one after the other; reports that they are not followed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from rnea_control.client.controller_link import ControllerLink
from rnea_control.control import Mode
from rnea_control.control.mode import STREAMS
from rnea_control.exceptions import NotThere, Refused, Stopped, plain
from rnea_control.ros.conventions import NEWEST, SINGLE, STREAM_REFUSAL

DISCOVERY = 5.0  # time limit until the controller receives the topic [s]
# Time after which targets must be followed: the controller reports refusals once a second [s].
LONGEST_SILENCE = 2.5
LONGEST_WORDS = 1000  # characters of a refusal
TAKES_TARGETS = {mode.value for mode in STREAMS}


class TargetStream:
    """Targets on one topic of the controller.

    Args:
        link: connection to the controller.
        kind: message type, with a header; JointTrajectory for chunks of points.
        topic: name of the topic; ~ is the controller's name.
        report: returns the newest values of the controller's report on /diagnostics.
    """

    def __init__(
        self,
        link: ControllerLink,
        kind: type,
        topic: str,
        report: Callable[[], Mapping[str, str]],
    ) -> None:
        self._link, self._report = link, report
        node = link.connection.node
        self._node = node
        self._is_stream = kind is not JointTrajectory
        qos = NEWEST if self._is_stream else SINGLE
        name = topic.replace("~", link.controller, 1)
        self._publisher = link.connection.run(lambda: node.create_publisher(kind, name, qos))
        self._refused = f"{topic}: "  # begin of a sentence about refused messages
        self._topic = self._publisher.topic_name
        self._timeout = float(link.given.values["stream.target_timeout"])
        self._sent_at = self._began_at = -math.inf
        self._followed, self._refusal = False, ""

    def send(self, message: Any) -> None:
        """Sends a target, and returns at once.

        Raises:
            Refused: the controller does not follow the targets.
            Stopped: the controller does not follow the targets any more.
            NotThere: the controller does not receive the topic.
        """
        now = time.monotonic()
        link, topic = self._link, self._topic
        if link.connection.has_ended:
            raise NotThere("the connection to ROS is closed")
        if now - self._sent_at > self._timeout:
            if not link.until(self._publisher.get_subscription_count, DISCOVERY):
                raise NotThere(f"{link.controller} does not receive {topic}")
            self._began_at, self._followed = time.monotonic(), False
            self._refusal = self._report().get(STREAM_REFUSAL, "")
        self._check(now)
        self._sent_at = time.monotonic()
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def _check(self, now: float) -> None:
        link, topic = self._link, self._topic
        self._followed |= link.mode == Mode.STREAMING.value
        state = f"the controller is {link.mode}: {link.reason}"
        if link.mode not in TAKES_TARGETS:
            raise (Stopped if self._followed else Refused)(f"{topic} is not followed: {state}")
        if not self._is_stream:
            return  # trajectories are not in the report, and end at rest
        refusal = self._report().get(STREAM_REFUSAL, "")
        # A refusal of other messages may name this node as followed, or be about another topic.
        own = f" of {self._node.get_fully_qualified_name()} are ignored"
        if refusal != self._refusal and refusal.startswith(self._refused) and own in refusal:
            raise Refused(plain(refusal, LONGEST_WORDS))
        if self._followed and link.mode != Mode.STREAMING.value:
            raise Stopped(f"{topic} is not followed any more: {state}")
        if not self._followed and now - self._began_at > LONGEST_SILENCE:
            raise Refused(
                f"{topic} is not followed, and the log of {link.controller} has the reason: {state}"
            )
