"""`Recorder`: keeps the messages of a robot's topics as they come, as bytes, and writes them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.commands.message_recorder import LATCHED, MessageRecorder
from rnea_control.exceptions import CdrError, RecordingError, listed
from rnea_control.identification.recorded_topics import JOINT_STATE, STRING, Message, recording_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_files import write_npz, write_rosbag
from rnea_control.messages.joint_state import JointStateFields
from rnea_control.node.sentinel_link import SENTINEL

FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
# Makes wall time of a clock that never falls, as the computer's may be set back meanwhile, [ns].
_SINCE_EPOCH = time.time_ns() - time.monotonic_ns()


class Recorder:
    """Records joint_states, robot_description, and the effort commands while somebody takes them,
    in the name of a node that an executor spins.

    Attributes:
        states: of joint_states.
    """

    def __init__(self, node: Node, commands: str) -> None:
        self._node = node
        self.states = MessageRecorder(node, JointState, "joint_states", _now)
        self._command_topic = node.resolve_topic_name(commands)
        self._commands: list[MessageRecorder] = []
        self._descriptions: list[tuple[int, bytes]] = []
        node.create_subscription(
            String,
            "robot_description",
            lambda message: self._descriptions.append((_now(), message)),
            LATCHED,
            raw=True,
        )
        self.follow_commands()

    def now(self) -> float:
        """The stamp of the newest joint state, [s]; if it is empty, the time when it came."""
        for came, data in reversed(self.states.messages):
            with suppress(CdrError):  # whoever sends what is none must not end a motion
                state = JointStateFields(data)
                return state.seconds + 1e-9 * state.nanoseconds or 1e-9 * came
        return 0.0

    def follow_commands(self) -> None:
        """Subscribes to the commands once somebody else does, and no longer than that: the
        controller would take this subscription for hardware that listens."""
        # This node's own are hidden, as is one that is not known yet; the sentinel only looks.
        onlookers = self._node.get_name(), SENTINEL
        found = self._node.get_subscriptions_info_by_topic(self._command_topic)
        names = {info.node_name for info in found}.difference(onlookers)
        taken = any(not name.startswith("_") for name in names)
        listening = bool(self._commands) and not self._commands[-1].is_stopped
        if taken and not listening:
            self._commands.append(
                MessageRecorder(self._node, Float64MultiArray, self._command_topic, _now)
            )
        elif listening and not taken:
            self._commands[-1].stop()

    def where_else(self) -> str:
        """Where else there are joint states, and what to do."""
        others = [
            name
            for name, types in self._node.get_topic_names_and_types()
            if JOINT_STATE in types and name.endswith("/joint_states") and name != self.states.topic
        ]
        if not others:
            return "rnea_doctor says why"
        return f"there are joint states on {listed(others)}: give --namespace"

    def stop(self) -> None:
        """Ends the subscriptions."""
        for channel in (self.states, *self._commands):
            channel.stop()

    def recording(self, joints: Sequence[str]) -> Recording:
        """What was recorded so far of these joints, or without any of all.

        Raises:
            RecordingError: no joint states came, or none that names these joints.
        """
        return recording_of("the recording", self._messages(), joints or None)

    def write(self, path: Path, joints: Sequence[str]) -> None:
        """Writes what was recorded.

        What cannot be written there does not cost the recording: a rosbag2 folder is written
        elsewhere then, and the error is raised after that.

        Args:
            path: `.npz` for a table of `joints`, without any of all; else a rosbag2 folder.

        Raises:
            RecordingError: it cannot be written, or not as this table.
        """
        try:
            if path.suffix == ".npz":
                write_npz(path, self.recording(joints))
            else:
                write_rosbag(path, self._messages())
        except RecordingError as error:
            folder = path.with_suffix("")
            try:
                write_rosbag(folder, self._messages())
            except RecordingError:  # where this computer keeps temporary files
                folder = Path(tempfile.mkdtemp(prefix="rnea_identify_"), folder.name)
                write_rosbag(folder, self._messages())
            raise RecordingError(
                f"{error}. All messages are in the rosbag2 folder {folder}"
            ) from error

    def _messages(self) -> list[Message]:
        # Commands come before the states that are recorded at the same time.
        commands = [message for each in self._commands for message in each.messages]
        description = self._node.resolve_topic_name("robot_description")
        return [
            *(Message(description, STRING, *each) for each in self._descriptions),
            *(Message(self._command_topic, FLOAT64_MULTI_ARRAY, *each) for each in commands),
            *(Message(self.states.topic, JOINT_STATE, *each) for each in self.states.messages),
        ]


def _now() -> int:
    return _SINCE_EPOCH + time.monotonic_ns()
