"""From the messages of topics to a `Recording`: which topic it is, and which of its messages."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from posixpath import commonpath
from typing import NamedTuple

import numpy as np

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording
from rnea_control.messages.batch import Batch, BatchDecoder
from rnea_control.messages.cdr import CdrError, CdrReader

JOINT_STATE = "sensor_msgs/msg/JointState"
STRING = "std_msgs/msg/String"
ROBOT_DESCRIPTION = "/robot_description"
# So many messages are decoded at once.
_BLOCK = 4096


class Message(NamedTuple):
    """A serialized message of a topic."""

    topic: str
    kind: str  # its type
    log_time: int  # at which it was recorded, [ns]
    data: bytes


def recording_of(
    source: str,
    messages: Iterable[Message],
    joints: Sequence[str] | None = None,
    topic: str | None = None,
    types: Mapping[str, str] | None = None,
) -> Recording:
    """The recording of one joint-state topic, with the robot_description of the nearest namespace.

    Args:
        source: the file, for error messages.
        messages: of all topics, each topic's in the order of time.
        joints, topic: as of `read_recording`.
        types: of all topics that there are, also of those without messages.

    Raises:
        RecordingError: there is no such topic, it does not name these joints, or bytes are not a
            message of their type.
    """
    states, descriptions = _decoded(source, messages)
    chosen = {f"/{topic.lstrip('/')}"} if topic is not None else states.keys()
    if not states or not chosen <= states.keys():
        has = listed([f"{name} ({kind})" for name, kind in (types or {}).items()]) or "no topics"
        raise RecordingError(
            f"{source}: no {JOINT_STATE} message{f' on {topic}' if topic else ''}; it has "
            f"{f'joint states on {listed(states)}' if states else has}. Record the topic of "
            "joint_state_broadcaster, /joint_states"
        )
    found = {name: each for name in chosen if (each := states[name].recording(joints)) is not None}
    if not found:
        names = {name: dict.fromkeys(itertools.chain(*states[name].names)) for name in chosen}
        has = "; ".join(f"{name} has {listed(names[name]) or 'no names'}" for name in chosen)
        raise RecordingError(
            f"{source}: no message names all of the joints {listed(joints or [])}; {has}. Give the "
            "joints as joint_states names them, or the recording of this robot"
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
    """The joint states of each topic, and the first robot description of each."""
    states: dict[str, _JointStates] = {}
    descriptions: dict[str, str] = {}
    stream, topic = iter(messages), ""
    try:
        while block := list(itertools.islice(stream, _BLOCK)):
            waiting: dict[str, list[Message]] = defaultdict(list)
            for message in block:
                topic = message.topic
                if message.kind == JOINT_STATE:
                    waiting[topic].append(message)
                elif message.kind == STRING and topic.endswith(ROBOT_DESCRIPTION):
                    text = CdrReader(message.data, topic).string("data")
                    descriptions.setdefault(topic, text)
            for topic, some in waiting.items():
                states.setdefault(topic, _JointStates(source, topic)).add(some)
    except CdrError as error:
        raise RecordingError(
            f"{source}: {topic}: {error}. If its messages are compressed, which only metadata.yaml "
            "says, give the folder with that file; else record it again, or convert it with the "
            "tool that wrote it"
        ) from error
    return states, descriptions


class _JointStates:
    """The joint states of a topic; `log_times` are those at which they were recorded, [ns]."""

    def __init__(self, source: str, topic: str) -> None:
        self.log_times: list[int] = []
        self._source, self._topic = source, topic
        self._batches: list[Batch] = []
        self._decoder = BatchDecoder()

    def add(self, messages: Sequence[Message]) -> None:
        """The next ones; raises CdrError for bytes that are no JointState."""
        data = [message.data for message in messages]
        self._batches += self._decoder.decode(data, len(self.log_times))
        self.log_times += [message.log_time for message in messages]

    @property
    def names(self) -> dict[tuple[str, ...], None]:
        """The joints that messages name together, in the order of the first of these."""
        return dict.fromkeys(batch.layout.names for batch in self._batches if batch.layout.names)

    def recording(self, joints: Sequence[str] | None) -> Recording | None:
        """The states of these joints, by default of those that messages name together and that are
        the most complete ones; None if no message names them all."""
        choices = self.names if joints is None else [tuple(joints)]
        found = [self._of(choice) for choice in choices if choice]
        return max((each for each in found if len(each.time)), key=_completeness, default=None)

    def _of(self, joints: tuple[str, ...]) -> Recording:
        """The states in the messages that name all these joints."""
        count = len(self.log_times)
        named = np.zeros(count, dtype=bool)
        stamps = np.zeros(count, dtype=np.int64)
        values = np.full((3, count, len(joints)), np.nan)
        for batch in self._batches:
            names = batch.layout.names
            if not set(joints) <= set(names):
                continue
            named[batch.rows], stamps[batch.rows] = True, batch.stamps
            columns = [names.index(joint) for joint in joints]
            for kind, numbers in enumerate(batch.numbers):
                if numbers.shape[1] == len(names):
                    values[kind, batch.rows] = numbers[:, columns]
        notes = []
        if not named.all():
            notes.append(
                f"{self._source}: {np.count_nonzero(~named)} of {count} messages of {self._topic} "
                f"do not name all of {listed(joints)}, and are left out"
            )
        if not stamps.any():
            notes.append(
                f"{self._source}: all stamps of {self._topic} are 0, so the times at which the "
                "messages were recorded stand in for them, with their jitter; let the publisher "
                "fill header.stamp"
            )
            stamps = np.array(self.log_times, dtype=np.int64)
        time = (stamps[named] - stamps[named][:1]) / 1e9
        return Recording(self._source, joints, time, *values[:, named], notes=tuple(notes))


def _completeness(recording: Recording) -> tuple[int, int, int]:
    """The joints that have efforts, all joints, and the states."""
    efforts = np.isfinite(recording.effort).any(axis=0)
    return int(efforts.sum()), len(recording.joints), len(recording.time)
