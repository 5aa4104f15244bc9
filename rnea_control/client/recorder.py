"""`Recorder`: stores the messages of a robot's topics as bytes, and writes them to files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.client.message_recorder import LATCHED, MessageRecorder
from rnea_control.exceptions import CdrError, RecordingError, listed
from rnea_control.identification.recorded_topics import JOINT_STATE, STRING, Message, recording_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_files import write_npz, write_rosbag
from rnea_control.messages.joint_state import JointStateFields
from rnea_control.node.sentinel_link import SENTINEL

Received = list[tuple[int, bytes]]

FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
# Types of fields in Python's words, and in those of message definitions.
FIELD_TYPES = {"double": "float64", "float": "float32", "boolean": "bool", "octet": "byte"}
LONGEST_WAIT = 10_000_000_000  # time from receipt to Python beyond which a clock was set [ns]
# Offset from monotonic to wall time; unlike the system clock, the sum is never set back [ns].
_SINCE_EPOCH = time.time_ns() - time.monotonic_ns()


class Recorder:
    """Records joint_states, robot_description, and effort commands while an effort controller
    subscribes to them.

    Args:
        node: node of the subscriptions; an executor must spin it.
        commands: topic of the effort commands.
        others: other topics to record, and the Python classes of their messages.

    Attributes:
        states: recorder of joint_states.
    """

    def __init__(self, node: Node, commands: str, others: Mapping[str, type] | None = None) -> None:
        self._node = node
        self._others = {
            MessageRecorder(node, kind, topic, _received): kind
            for topic, kind in (others or {}).items()
        }
        self.states = MessageRecorder(node, JointState, "joint_states", _received)
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
        """Stamp of the newest valid joint state [s]; if it is zero, the time of receipt."""
        for came, data in reversed(self.states.messages):
            with suppress(CdrError):  # a malformed message must not end a motion
                state = JointStateFields(data)
                return state.seconds + 1e-9 * state.nanoseconds or 1e-9 * came
        return 0.0

    def follow_commands(self) -> None:
        """Subscribes to the commands only while another node does: the controller would count this
        subscription as an effort controller."""
        # Names of this node's subscriptions and of undiscovered nodes begin with an underscore. The
        # sentinel does not apply commands.
        onlookers = self._node.get_name(), SENTINEL
        found = self._node.get_subscriptions_info_by_topic(self._command_topic)
        names = {info.node_name for info in found}.difference(onlookers)
        taken = any(not name.startswith("_") for name in names)
        listening = bool(self._commands) and not self._commands[-1].is_stopped
        if taken and not listening:
            self._commands.append(
                MessageRecorder(self._node, Float64MultiArray, self._command_topic, _received)
            )
        elif listening and not taken:
            self._commands[-1].stop()

    def where_else(self) -> str:
        """Remedy for missing joint states, with other topics of joint states."""
        others = [
            name
            for name, types in self._node.get_topic_names_and_types()
            if JOINT_STATE in types and name.endswith("/joint_states") and name != self.states.topic
        ]
        if not others:
            return "rnea_doctor finds the reason"
        return f"{listed(others)} has joint states: give its --namespace"

    @property
    def is_complete(self) -> bool:
        """True once a message of joint_states and of each other topic was received."""
        return all(channel.messages for channel in (self.states, *self._others))

    def stop(self) -> None:
        """Ends the subscriptions."""
        for channel in (self.states, *self._commands, *self._others):
            channel.stop()

    def taken(self) -> tuple[Received, Received]:
        """Times of receipt [ns] and bytes of all joint states and commands; drops them."""
        return _emptied([self.states]), _emptied(self._commands)

    def recording(self, joints: Sequence[str]) -> Recording:
        """Recording so far of these joints, or of all joints if none is given.

        Raises:
            RecordingError: no joint state was received, or none with these joints.
        """
        return recording_of("the recording", self._messages(), joints or None)

    def write(self, path: Path, joints: Sequence[str]) -> None:
        """Writes the recording. If `path` cannot be written, a rosbag2 folder is written in another
        place before the error is raised.

        Args:
            path: `.npz` for a table, else a rosbag2 folder.
            joints: columns of the table; empty for all joints.

        Raises:
            RecordingError: the recording cannot be written to `path`; the message names the folder.
        """
        try:
            if path.suffix == ".npz":
                write_npz(path, self.recording(joints))
            else:
                self._write_rosbag(path)
        except RecordingError as error:
            folder = path.with_suffix("")
            try:
                self._write_rosbag(folder)
            except RecordingError:  # second choice: the folder of temporary files
                folder = Path(tempfile.mkdtemp(prefix="rnea_identify_"), folder.name)
                self._write_rosbag(folder)
            raise RecordingError(
                f"{error}. All messages are in the rosbag2 folder {folder}"
            ) from error

    def _write_rosbag(self, path: Path) -> None:
        definitions = {_name(kind): _definition(kind) for kind in self._others.values()}
        write_rosbag(path, self._messages(), definitions)

    def _messages(self) -> list[Message]:
        # Commands precede states of the same time.
        commands = [message for each in self._commands for message in each.messages]
        description = self._node.resolve_topic_name("robot_description")
        return [
            *(Message(description, STRING, *each) for each in self._descriptions),
            *(Message(self._command_topic, FLOAT64_MULTI_ARRAY, *each) for each in commands),
            *(Message(self.states.topic, JOINT_STATE, *each) for each in self.states.messages),
            *(
                Message(recorder.topic, _name(kind), *message)
                for recorder, kind in self._others.items()
                for message in recorder.messages
            ),
        ]


def _emptied(channels: Sequence[MessageRecorder]) -> Received:
    """Messages of all recorders, which lose them; others may arrive meanwhile."""
    found: Received = []
    for channel in channels:
        count = len(channel.messages)
        found += channel.messages[:count]
        del channel.messages[:count]
    return found


def _name(kind: type) -> str:
    """Name of a message type."""
    return f"{kind.__module__.partition('.')[0]}/msg/{kind.__name__}"


def _definition(kind: Any) -> str:
    """Definition of a message type, without its constants."""
    lines = []
    for field, of in kind.get_fields_and_field_types().items():
        element = of.removeprefix("sequence<").rstrip(">")
        array = "[]" if element != of else ""
        lines.append(f"{FIELD_TYPES.get(element, element)}{array} {field}")
    return "\n".join(lines)


def _now() -> int:
    return _SINCE_EPOCH + time.monotonic_ns()


def _received(waited: int) -> int:
    """Time of receipt by the middleware: Python takes messages later, and often several at once."""
    return _now() - (waited if waited < LONGEST_WAIT else 0)
