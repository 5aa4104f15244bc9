"""`Recorder`: keeps the messages of a robot's topics as they come, as bytes, and writes them."""

from __future__ import annotations

import itertools
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.exceptions import RecordingError
from rnea_control.identification.recorded_topics import JOINT_STATE, STRING, RecordedTopics
from rnea_control.identification.recording_files import TopicMessages, write_npz, write_rosbag
from rnea_control.messages.cdr import BIG_ENDIAN, HEADER, CdrReader
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros.effort_command import publisher_names
from rnea_control.ros.raw_subscription import RawSubscription

FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
# BEST_EFFORT takes from every publisher. None may be lost while Python is busy.
STREAM = QoSProfile(depth=10_000, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# How long a thread waits before it looks whether it shall end, [s].
LONGEST_WAIT = 0.1


class Channel:
    """The messages of one topic, taken by a thread of its own in the name of a node that is spun:
    the time at which each came by a clock that never falls, [ns], and its bytes. `topic` is its
    full name."""

    def __init__(
        self, node: Node, message_type: type, topic: str, clock: Callable[[], int]
    ) -> None:
        self.topic = node.resolve_topic_name(topic)
        self.messages: list[tuple[int, bytes]] = []
        self.is_stopped = False
        self._clock = clock
        self._subscription = RawSubscription(node, message_type, topic, STREAM)
        self._thread = threading.Thread(target=self._take, name=f"recorder of {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the subscription."""
        if not self.is_stopped:
            self.is_stopped = True
            self._thread.join()
            self._subscription.destroy()

    def _take(self) -> None:
        while not self.is_stopped:
            taken = self._subscription.take(LONGEST_WAIT)
            while taken is not None:
                self.messages.append((self._clock(), taken[0]))
                taken = self._subscription.poll()


class Recorder:
    """Records joint_states, robot_description, and the commands while somebody takes them.

    Args:
        node: for the subscriptions; an executor must spin it.
        commands: topic of the effort commands.

    Attributes:
        states: of joint_states.
        robot_description: the URDF; empty as long as none came.
    """

    def __init__(self, node: Node, commands: str) -> None:
        self._node = node
        # The clock of the computer may be set back meanwhile.
        self._offset = time.time_ns() - time.monotonic_ns()
        self.states = Channel(node, JointState, "joint_states", self._now)
        self.robot_description = ""
        self._command_topic = node.resolve_topic_name(commands)
        self._commands: list[Channel] = []
        self._descriptions: list[tuple[int, bytes]] = []
        self._description_topic = node.resolve_topic_name("robot_description")
        node.create_subscription(
            String, "robot_description", self._hear_description, LATCHED, raw=True
        )
        self.follow_commands()

    def newest_stamp(self) -> int:
        """The stamp of the newest joint state, [ns]; 0 if there is none, or it is empty."""
        if not self.states.messages:
            return 0
        message = self.states.messages[-1][1]
        order = ">" if message[1] == BIG_ENDIAN else "<"
        seconds, nanoseconds = struct.unpack_from(f"{order}iI", message, HEADER)
        return int(seconds * 1_000_000_000 + nanoseconds)

    def follow_commands(self) -> None:
        """Subscribes to the commands once somebody else does, and no longer than that: the
        controller would take this subscription for hardware that listens."""
        subscriptions = self._node.get_subscriptions_info_by_topic(self._command_topic)
        others = [info for info in subscriptions if not self._is_onlooker(info.node_name)]
        listening = bool(self._commands) and not self._commands[-1].is_stopped
        if others and not listening:
            self._commands.append(
                Channel(self._node, Float64MultiArray, self._command_topic, self._now)
            )
        elif listening and not others:
            self._commands[-1].stop()

    def _is_onlooker(self, name: str) -> bool:
        """Whether a node of this name takes no commands: this one's channels, which are hidden, a
        node that is not known yet, and what guards the controller."""
        own = name == self._node.get_name()
        return own or name.startswith("_") or name == SENTINEL

    def publishers(self) -> list[str]:
        """The nodes that publish joint_states."""
        return publisher_names(self._node, self.states.topic)

    def other_topics(self) -> list[str]:
        """Topics of this name in other namespaces."""
        own = self.states.topic
        topics = self._node.get_topic_names_and_types()
        found = [name for name, types in topics if JOINT_STATE in types and name != own]
        return [name for name in found if name.rpartition("/")[2] == own.rpartition("/")[2]]

    def stop(self) -> None:
        """Ends the subscriptions."""
        for channel in (self.states, *self._commands):
            channel.stop()

    def write(self, path: Path, joints: Sequence[str] | None) -> None:
        """Writes what was recorded.

        What cannot be written there does not cost the recording: a rosbag2 folder is written
        elsewhere then, and the error is raised after that.

        Args:
            path: `.npz` for a table of `joints`, else a rosbag2 folder.
            joints: of a table; None for all.

        Raises:
            RecordingError: it cannot be written, or not as this table.
        """
        topics = self._topics()
        try:
            if path.suffix == ".npz":
                recorded = RecordedTopics(str(path))
                for topic in topics:
                    for received, message in topic.messages:
                        recorded.add(topic.name, topic.kind, received, message)
                write_npz(path, recorded.recording(joints))
            else:
                write_rosbag(path, topics)
        except RecordingError as error:
            folder = _rescue(path.with_suffix(""), topics)
            raise RecordingError(
                f"{error}. All messages are in the rosbag2 folder {folder}"
            ) from error

    def _topics(self) -> list[TopicMessages]:
        """Commands come before the states that are recorded at the same time."""
        commands = [message for each in self._commands for message in each.messages]
        found = [
            TopicMessages(self._description_topic, STRING, self._descriptions, is_latched=True),
            TopicMessages(self._command_topic, FLOAT64_MULTI_ARRAY, commands),
            TopicMessages(self.states.topic, JOINT_STATE, self.states.messages),
        ]
        return [topic for topic in found if topic.messages]

    def _now(self) -> int:
        return self._offset + time.monotonic_ns()

    def _hear_description(self, message: bytes) -> None:
        self._descriptions.append((self._now(), message))
        self.robot_description = CdrReader(message, self._description_topic).string("data")


def _rescue(path: Path, topics: Sequence[TopicMessages]) -> Path:
    """Writes a rosbag2 folder beside `path`, or where this computer keeps temporary files; with a
    number where something is there."""
    temporary = Path(tempfile.gettempdir()) / path.name
    for wanted in (path, temporary):
        numbered = (wanted.with_name(f"{wanted.name}_{number}") for number in itertools.count(2))
        folder = next(each for each in itertools.chain([wanted], numbered) if not each.exists())
        try:
            write_rosbag(folder, topics)
            break
        except RecordingError:
            if wanted is temporary:
                raise
    return folder
