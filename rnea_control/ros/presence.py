"""`Presence`: checks that a process is the only one that has a node of a name.

A second start of a launch file gives a second controller and a second sentinel of the same names.
Both would command the arm, and both would answer each request. So a node publishes its presence and
its process on its topic `~/process`, latched. A node that starts subscribes to this topic first,
and does not start beside a living one.

A process that was killed stays in the graph for as long as its participant's lease, 20 s with
Fast DDS, but sends no latched message any more: a publisher that is listed and does not answer
within `ANSWER` is dead. A process that is stopped (SIGSTOP) does not answer either.

If two processes start at the same moment, the one whose participant has the lower GID continues,
after the process with the higher GID has ended.
"""

from __future__ import annotations

import os
import socket
import time

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from rnea_control.exceptions import quoted
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.middleware import longest_discovery
from rnea_control.ros.publishers import participant, publishers_of
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import own_gid

TOPIC = "~/process"
STARTING, STARTED = "starting", "started"
# Like `LATCHED`, but for several publishers at once.
FROM_SEVERAL = QoSProfile(
    depth=32, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Longest time of a living process to send its latched message after it is discovered [s].
ANSWER = 1.0
# Longest wait of the process that has precedence for the end of a process that starts too [s].
LONGEST_TIE = 5.0
# Time between two looks at the graph [s].
LOOK = 0.02
LONGEST_SILENT = 1.0  # longest wait that is not logged [s]


class Presence:
    """The process of a node among those of the same name.

    Args:
        node: node that publishes from now on that it is starting.

    Attributes:
        dead: participants that were listed at the start, and did not answer.
    """

    def __init__(self, node: GuardedNode) -> None:
        self._node = node
        self._born, self._discovery = time.monotonic(), longest_discovery()
        self._publisher = node.create_publisher(DiagnosticStatus, TOPIC, LATCHED)
        self._where = f"process {os.getpid()} on {socket.gethostname()}"
        # Until messages are known to have the GIDs of the graph. With Cyclone DDS they do not have
        # these GIDs, and this process is identified by its number and host instead.
        self._own = self._where.encode()
        self._named = False
        self.dead: frozenset[bytes] = frozenset()
        self._alone = False
        self._say(STARTING)

    def rival(self) -> str:
        """Why this process must not start: another living process of the same name, and where it
        runs. Empty without a rival. The first call waits until all rivals must have answered."""
        if self._alone:
            return ""
        left = self._born + self._discovery - time.monotonic()
        if left > LONGEST_SILENT:
            self._node.get_logger().info(
                f"looks for another {self._node.get_fully_qualified_name()} for {left:.1f} s"
            )
        heard = RawSubscription(
            self._node, DiagnosticStatus, TOPIC, FROM_SEVERAL, own_context=False
        )
        gid = own_gid(self._publisher)
        if heard.names_publishers and gid is not None:
            self._own, self._named = participant(gid), True
        try:
            found = self._listen(heard)
        finally:
            heard.destroy()
        if not found:
            self._alone = True
            self._say(STARTED)
        return found

    def _listen(self, heard: RawSubscription) -> str:
        topic = self._node.resolve_topic_name(TOPIC)
        others: dict[bytes, DiagnosticStatus] = {}
        listed: dict[bytes, float] = {}  # when each publisher was listed first
        began = time.monotonic()
        while True:
            taken = heard.take(LOOK)
            while taken is not None:
                self._note(others, taken.data, taken.publisher if self._named else None)
                taken = heard.poll()
            now = time.monotonic()
            there = {participant(gid) for gid in publishers_of(self._node, topic)} - {self._own}
            listed = {each: listed.get(each, now) for each in there}
            if found := self._objection(others):
                return found
            # Without GIDs this process is listed itself, and senders cannot be matched with
            # listed publishers.
            rivals = len(there) - (not self._named)
            listed_yet = any(each in there for each in others) if self._named else rivals > 0
            ties = now - began < LONGEST_TIE and len(others) > 0 and listed_yet
            silent = [each for each in there if each not in others]
            unanswered = len(silent) > 0 and rivals > len(others)
            waits = unanswered and any(now - listed[each] < ANSWER for each in silent)
            if not waits and not ties and now - self._born >= self._discovery:
                self.dead = frozenset(silent)
                return ""

    def _note(
        self, others: dict[bytes, DiagnosticStatus], data: bytes, publisher: bytes | None
    ) -> None:
        try:
            status = deserialize_message(data, DiagnosticStatus)
        except Exception as error:  # rclpy's own have no common class
            self._node.note_failure(f"a message on {TOPIC} is ignored: {error}")
            return
        who = status.hardware_id.encode() if publisher is None else participant(publisher)
        if who != self._own:
            others[who] = status

    def _objection(self, others: dict[bytes, DiagnosticStatus]) -> str:
        name = self._node.get_fully_qualified_name()
        for who, status in others.items():
            if status.message == STARTING and who > self._own:
                continue  # the participant with the higher GID does not start
            also = "starts at the same moment" if status.message == STARTING else "runs"
            gid = f", participant {who.hex()}" if len(who) < len(self._where) else ""
            return (
                f"another {name} {also}: {quoted(status.hardware_id)}{gid}. End it, or give one of "
                "them another name or namespace"
            )
        return ""

    def _say(self, state: str) -> None:
        name = self._node.get_fully_qualified_name()
        self._publisher.publish(DiagnosticStatus(name=name, message=state, hardware_id=self._where))
