"""Makes a `Recording` from the messages of topics: selects the topic and its messages."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from posixpath import commonpath
from typing import NamedTuple, TypeAlias

import numpy as np

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording, other_joints
from rnea_control.messages.cdr import CdrError, CdrReader
from rnea_control.messages.joint_state import JointStateFields

JOINT_STATE = "sensor_msgs/msg/JointState"
STRING = "std_msgs/msg/String"
ROBOT_DESCRIPTION = "/robot_description"
_Columns: TypeAlias = "tuple[array[int], array[float], array[float]]"


class Message(NamedTuple):
    """Serialized message of a topic."""

    topic: str
    kind: str  # type of the message
    log_time: int  # time of recording, [ns]
    data: bytes


def recording_of(
    source: str,
    messages: Iterable[Message],
    joints: Sequence[str] | None = None,
    topic: str | None = None,
) -> Recording:
    """Recording of one joint-state topic, with the robot_description of the nearest namespace.

    Args:
        source: name of the file, for error messages.
        messages: messages of all topics, in the order of time within each topic.
        joints: joints to read, in the order wanted for the columns; by default all joints of the
            messages with the most efforts, in the messages' order.
        topic: topic of the joint states; by default the topic that names `joints`, or without
            `joints` the topic with the most efforts.

    Raises:
        RecordingError: no such topic, a topic that does not name these joints, or bytes that are
            not a message of their type.
    """
    states, descriptions = _decoded(source, messages)
    chosen = {f"/{topic.lstrip('/')}"} if topic is not None else states.keys()
    if not states or not chosen <= states.keys():
        raise RecordingError(
            f"{source}: no {JOINT_STATE} message{f' on {topic}' if topic else ''}; it has some on "
            f"{listed(states) or 'no topic'}. Record the topic of joint_state_broadcaster, "
            "/joint_states"
        )
    found = {name: each for name in chosen if (each := states[name].recording(joints)) is not None}
    if not found:
        names = {name: dict.fromkeys(itertools.chain(*states[name].named)) for name in chosen}
        has = "; ".join(f"{name} has {listed(names[name]) or 'no names'}" for name in chosen)
        raise RecordingError(
            f"{source}: no message names all of the joints {listed(joints or [])}; {has}. "
            f"{other_joints(joints or [], [*itertools.chain(*names.values())])}"
        )
    best = max(found, key=lambda name: _completeness(found[name]))
    notes = found[best].notes
    if others := [name for name in found if name != best]:
        also = f"the most complete ones; {listed(others)} could be meant too"
        notes = (f"{source}: the joint states are those of {best}, {also}", *notes)
    nearest = max(descriptions, key=lambda each: len(commonpath([each, best])), default="")
    return replace(found[best], robot_description=descriptions.get(nearest, ""), notes=notes)


def _decoded(
    source: str, messages: Iterable[Message]
) -> tuple[dict[str, _JointStates], dict[str, str]]:
    """Joint states of each topic, and first robot description of each topic."""
    states: dict[str, _JointStates] = {}
    descriptions: dict[str, str] = {}
    topic = ""
    try:
        for topic, kind, log_time, data in messages:
            if kind == JOINT_STATE:
                states.setdefault(topic, _JointStates(source, topic)).add(data, log_time)
            elif kind == STRING and topic.endswith(ROBOT_DESCRIPTION):
                descriptions.setdefault(topic, CdrReader(data, topic).string("data"))
    except CdrError as error:
        raise RecordingError(
            f"{source}: {topic}: {error}. If its messages are compressed, which only metadata.yaml "
            "says, give the folder with that file; else record it again, or convert it with the "
            "tool that wrote it"
        ) from error
    return states, descriptions


class _JointStates:
    """Joint states of a topic, in arrays, as there may be millions.

    Attributes:
        log_times, stamps: times of all messages, [ns].
        named: by the joints that a message names: the numbers of these messages on the topic, their
            positions and efforts, NaN if a message does not have one for each joint.
    """

    def __init__(self, source: str, topic: str) -> None:
        self._source, self._topic = source, topic
        self.log_times, self.stamps = array("q"), array("q")
        self.named: dict[tuple[str, ...], _Columns] = defaultdict(
            lambda: (array("q"), array("d"), array("d"))
        )

    def add(self, data: bytes, log_time: int) -> None:
        """Adds the next message; raises CdrError for bytes that are not a JointState."""
        message = JointStateFields(data)
        numbers, *values = self.named[tuple(message.names)]
        numbers.append(len(self.stamps))
        unknown = [math.nan] * len(message.names)
        for column, span in zip(values, (message.positions, message.efforts), strict=True):
            known = span[1] == len(message.names)
            column.extend(message.reader.numbers(span).tolist() if known else unknown)
        self.stamps.append(message.seconds * 10**9 + message.nanoseconds)
        self.log_times.append(log_time)

    def recording(self, joints: Sequence[str] | None) -> Recording | None:
        """States of these joints; None if no message names them all. Default: the joints of the
        most complete messages."""
        choices = [*self.named] if joints is None else [tuple(joints)]
        found = [self._of(choice) for choice in choices if choice]
        return max((each for each in found if len(each.time)), key=_completeness, default=None)

    def _of(self, joints: tuple[str, ...]) -> Recording:
        """States from the messages that name all these joints."""
        count = len(self.stamps)
        is_named, values = np.zeros(count, np.bool_), np.full((2, count, len(joints)), np.nan)
        for names, (numbers, *columns) in self.named.items():
            if set(joints) <= set(names):
                is_named[numbers] = True
                rows = np.reshape(columns, (2, -1, len(names)))
                values[:, numbers] = rows[:, :, [names.index(joint) for joint in joints]]
        notes = []
        if not is_named.all():
            notes.append(
                f"{self._source}: {np.count_nonzero(~is_named)} of {count} messages of "
                f"{self._topic} do not name all of {listed(joints)}, and are left out"
            )
        stamps = np.array(self.stamps)[is_named]
        if not stamps.any():
            notes.append(
                f"{self._source}: all stamps of {self._topic} are 0, so the times at which the "
                "messages were recorded stand in for them, with their jitter; let the publisher "
                "fill header.stamp"
            )
            stamps = np.array(self.log_times)[is_named]
        time, start = (stamps - stamps[:1]) / 1e9, stamps[0] / 1e9 if len(stamps) else 0.0
        own = values[:, is_named]
        return Recording(self._source, joints, time, *own, notes=tuple(notes), start=start)


def _completeness(recording: Recording) -> tuple[int, int, int]:
    """Numbers of joints with efforts, of all joints, and of states."""
    efforts = np.isfinite(recording.effort).any(axis=0)
    return int(efforts.sum()), len(recording.joints), len(recording.time)
