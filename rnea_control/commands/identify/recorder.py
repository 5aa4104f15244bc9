"""`Recorder`: keeps the messages of a robot's topics as they come, as bytes, and writes them."""

from __future__ import annotations

import itertools
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.commands.message_recorder import LATCHED, MessageRecorder
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recorded_topics import JOINT_STATE, STRING, RecordedTopics
from rnea_control.identification.recording_files import TopicMessages, write_npz, write_rosbag
from rnea_control.messages.cdr import BIG_ENDIAN, HEADER, CdrReader
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros.effort_command import publisher_names

FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
# Makes wall time of a clock that never falls, as the computer's may be set back meanwhile, [ns].
_SINCE_EPOCH = time.time_ns() - time.monotonic_ns()


class Recorder:
    """Records joint_states, robot_description, and the effort commands while somebody takes them,
    in the name of a node that an executor spins.

    Attributes:
        states: of joint_states.
        robot_description: the URDF; empty as long as none came.
    """

    def __init__(self, node: Node, commands: str) -> None:
        self._node = node
        self.states = MessageRecorder(node, JointState, "joint_states", _now)
        self.robot_description = ""
        self._command_topic = node.resolve_topic_name(commands)
        self._commands: list[MessageRecorder] = []
        topic = node.resolve_topic_name("robot_description")
        self._descriptions = TopicMessages(topic, STRING, [], is_latched=True)
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
        # This node's own are hidden, as is one that is not known yet; the sentinel only looks.
        onlookers = self._node.get_name(), SENTINEL
        others = [
            info.node_name
            for info in subscriptions
            if info.node_name not in onlookers and not info.node_name.startswith("_")
        ]
        listening = bool(self._commands) and not self._commands[-1].is_stopped
        if others and not listening:
            self._commands.append(
                MessageRecorder(self._node, Float64MultiArray, self._command_topic, _now)
            )
        elif listening and not others:
            self._commands[-1].stop()

    def why_silent(self) -> str:
        """Why no joint states may come: who could publish them, and where else there are some."""
        own = self.states.topic
        if publishers := publisher_names(self._node, own):
            return f"{listed(publishers)} could publish them: is it active?"
        others = [
            name
            for name, types in self._node.get_topic_names_and_types()
            if JOINT_STATE in types and name != own
            if name.rpartition("/")[2] == own.rpartition("/")[2]
        ]
        where = ". Is joint_state_broadcaster active, and ROS_DOMAIN_ID the same?"
        if others:
            where = f", but there are joint states on {listed(others)}: give --namespace"
        return f"nobody is seen to publish there{where}"

    def stop(self) -> None:
        """Ends the subscriptions."""
        for channel in (self.states, *self._commands):
            channel.stop()

    def write(self, path: Path, joints: Sequence[str] | None) -> None:
        """Writes what was recorded.

        What cannot be written there does not cost the recording: a rosbag2 folder is written
        elsewhere then, and the error is raised after that.

        Args:
            path: `.npz` for a table of `joints`, None for all; else a rosbag2 folder.

        Raises:
            RecordingError: it cannot be written, or not as this table.
        """
        # Commands come before the states that are recorded at the same time.
        commands = [message for each in self._commands for message in each.messages]
        topics = [
            self._descriptions,
            TopicMessages(self._command_topic, FLOAT64_MULTI_ARRAY, commands),
            TopicMessages(self.states.topic, JOINT_STATE, self.states.messages),
        ]
        topics = [topic for topic in topics if topic.messages]
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

    def _hear_description(self, message: bytes) -> None:
        self._descriptions.messages.append((_now(), message))
        self.robot_description = CdrReader(message, self._descriptions.name).string("data")


def _now() -> int:
    return _SINCE_EPOCH + time.monotonic_ns()


def _rescue(path: Path, topics: Sequence[TopicMessages]) -> Path:
    """Writes a rosbag2 folder beside `path`, or where this computer keeps temporary files; with a
    number where something is there."""
    numbered = (path.with_name(f"{path.name}_{number}") for number in itertools.count(2))
    folder = next(each for each in itertools.chain([path], numbered) if not each.exists())
    try:
        write_rosbag(folder, topics)
        return folder
    except RecordingError:
        temporary = Path(tempfile.gettempdir())
        if path.parent == temporary:
            raise
        return _rescue(temporary / path.name, topics)
