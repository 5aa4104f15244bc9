"""From the messages of topics to a `Recording`: which topic it is, and which of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.number_topic import (
    NumberTopic,
    commands_of_size,
    joint_columns,
    joints_with_effort,
    messages_naming,
    most_efforts,
)
from rnea_control.identification.recording import Recording
from rnea_control.messages.batch import (
    float64_multi_array_layout,
    joint_state_layout,
)
from rnea_control.messages.cdr import CdrError, CdrReader

JOINT_STATE = "sensor_msgs/msg/JointState"
FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"
STRING = "std_msgs/msg/String"
JOINT_STATES, COMMANDS, ROBOT_DESCRIPTION = "/joint_states", "/commands", "/robot_description"
# How compressed bytes begin.
_ZSTD = "28 b5 2f fd"


@dataclass
class RecordedTopics:
    """The topics of one recording that identification knows.

    Attributes:
        source: the file, for messages.
        states, commands: by name of the topic.
        descriptions: the first URDF of each topic.
        others: the types of all topics, by name.
    """

    source: str
    states: dict[str, NumberTopic] = field(default_factory=dict)
    commands: dict[str, NumberTopic] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)

    def add(self, topic: str, kind: str, log_time: int, message: bytes) -> None:
        """Takes a message.

        Raises:
            RecordingError: bytes that are not a message of this type.
        """
        try:
            if kind == JOINT_STATE:
                if topic not in self.states:
                    self.states[topic] = NumberTopic(topic, joint_state_layout)
                self.states[topic].add(log_time, message)
            elif kind == FLOAT64_MULTI_ARRAY and topic.endswith(COMMANDS):
                if topic not in self.commands:
                    self.commands[topic] = NumberTopic(topic, float64_multi_array_layout)
                self.commands[topic].add(log_time, message)
            elif kind == STRING and topic.endswith(ROBOT_DESCRIPTION):
                self.descriptions.setdefault(topic, CdrReader(message, topic).string("data"))
        except CdrError as error:
            raise self._unreadable(topic, error) from error

    def recording(self, joints: Sequence[str] | None = None, topic: str | None = None) -> Recording:
        """The recording of one joint-state topic.

        Args:
            joints: the columns; by default all joints of the message with the most efforts.
            topic: of the joint states; by default the one that names `joints`, or without these
                the one with the most efforts.

        Raises:
            RecordingError: there is no such topic, or it does not name these joints.
        """
        for name, each in (self.states | self.commands).items():
            try:
                each.finish()
            except CdrError as error:
                raise self._unreadable(name, error) from error
        chosen, notes = self._choose(joints, topic)
        wanted = tuple(joints) if joints is not None else most_efforts(chosen)
        named, stamps, values = joint_columns(chosen, wanted)
        logged = np.array(chosen.log_times, dtype=np.int64)[named]
        stamps, values = stamps[named], values[:, named]
        if not named.all():
            notes.append(
                f"{self.source}: {int((~named).sum())} of {len(named)} messages of {chosen.name} "
                f"do not name all of {listed(wanted)}, and are left out"
            )
        if not stamps.any():
            notes.append(
                f"{self.source}: all stamps of {chosen.name} are 0, so the times at which the "
                "messages were recorded stand in for them, with their jitter; let the publisher "
                "fill header.stamp"
            )
            stamps = logged
        commanded, more = self._commanded(chosen.name, wanted, logged, joints is None)
        return Recording(
            source=self.source,
            joints=wanted,
            time=(stamps - stamps[0]) / 1e9,
            q=values[0],
            v=values[1],
            effort=values[2],
            commanded=commanded,
            robot_description=self._description(chosen.name),
            notes=(*notes, *more),
        )

    def _choose(
        self, joints: Sequence[str] | None, topic: str | None
    ) -> tuple[NumberTopic, list[str]]:
        states = {name: each for name, each in self.states.items() if each.log_times}
        if topic is not None:
            topic = "/" + topic.lstrip("/")
            if topic not in states:
                raise RecordingError(
                    f"{self.source}: {topic} is no topic with {JOINT_STATE} messages; {self._has()}"
                )
            states = {topic: states[topic]}
        if not states:
            raise RecordingError(
                f"{self.source}: no {JOINT_STATE} message; {self._has()}. Record the topic of "
                "joint_state_broadcaster, /joint_states"
            )
        if joints is None:
            best = max(states.values(), key=lambda each: _worth(each, None))
            return best, self._other_topics(best, states)
        names = set(joints)
        if not joints or len(names) != len(joints):
            raise RecordingError(
                f"{self.source}: the joints to read are {listed(joints) or 'none'}; name at least "
                "one, and each once"
            )
        fit = {
            name: each
            for name, each in states.items()
            if any(names <= set(batch.layout.names) for batch in each.batches)
        }
        if not fit:
            raise RecordingError(self._wrong_joints(joints, states))
        best = max(fit.values(), key=lambda each: _worth(each, names))
        return best, self._other_topics(best, fit)

    def _other_topics(self, best: NumberTopic, fit: dict[str, NumberTopic]) -> list[str]:
        others = [name for name in fit if name != best.name]
        if not others:
            return []
        return [
            f"{self.source}: the joint states are those of {best.name}, the most complete ones; "
            f"{listed(others)} could be meant too"
        ]

    def _wrong_joints(self, joints: Sequence[str], states: dict[str, NumberTopic]) -> str:
        found = "; ".join(
            f"{name} has {listed(each.names) or 'no names'}" for name, each in states.items()
        )
        return (
            f"{self.source}: no message names all of the joints {listed(joints)}; {found}. Give "
            "the joints as joint_states names them, or the recording of this robot"
        )

    def _has(self) -> str:
        """The contents of the recording, for an error."""
        states = [name for name, each in self.states.items() if each.log_times]
        if states:
            return f"it has joint states on {listed(states)}"
        known = [f"{name} ({kind})" for name, kind in self.others.items()]
        return f"it has {listed(known) or 'no topics'}"

    def _commanded(
        self, states: str, joints: tuple[str, ...], logged: IntArray, is_order_guessed: bool
    ) -> tuple[FloatArray, list[str]]:
        """The command in force at each state, by the times at which both were recorded."""
        commanded = np.full((len(logged), len(joints)), np.nan)
        fit = {
            name: each
            for name, each in self.commands.items()
            if any(batch.numbers[0].shape[1] == len(joints) for batch in each.batches)
        }
        if not fit:
            return commanded, []
        closeness = {name: _shared_namespace(name, states) for name in fit}
        near = [name for name in fit if closeness[name] == max(closeness.values())]
        if len(near) > 1:
            return commanded, [
                f"{self.source}: {listed(near)} each have {len(joints)} numbers, so that it is "
                f"open which belongs to {states}: no commands are read"
            ]
        topic = fit[near[0]]
        times, values = commands_of_size(topic, len(joints))
        held = np.searchsorted(times, logged, side="right") - 1
        commanded[held >= 0] = values[held[held >= 0]]
        if not is_order_guessed:
            return commanded, []
        return commanded, [
            f"{self.source}: {topic.name} names no joints; its numbers are taken to be in the "
            f"order {listed(joints)}. Name the joints in the controller's order if it is not"
        ]

    def _description(self, states: str) -> str:
        near = sorted(self.descriptions, key=lambda name: -_shared_namespace(name, states))
        return self.descriptions[near[0]] if near else ""

    def _unreadable(self, topic: str, error: CdrError) -> RecordingError:
        hint = "Record it again, or convert it with the tool that wrote it"
        if _ZSTD in str(error):
            hint = (
                "Its messages are compressed, which only metadata.yaml says: give the folder with "
                "that file, not the file in it"
            )
        return RecordingError(f"{self.source}: {topic}: {error}. {hint}")


def _worth(topic: NumberTopic, joints: set[str] | None) -> tuple[int, int]:
    """How many of some joints, or of all, have efforts, and how many messages name them."""
    having = joints_with_effort(topic)
    efforts = len(having if joints is None else having & joints)
    return efforts, messages_naming(topic, joints or set())


def _shared_namespace(a: str, b: str) -> int:
    """How many parts of their names two topics have in common, from the front."""
    shared = 0
    for one, other in zip(a.split("/")[:-1], b.split("/")[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return shared
