"""From the messages of topics to a `Recording`: which topic it is, and which of its messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from posixpath import commonpath
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, IntArray
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
        joints: the columns; by default all joints of the message with the most efforts.
        topic: of the joint states; by default the one that names `joints`, or without these the
            one with the most efforts.
        types: of all topics that there are, also of those without messages.

    Raises:
        RecordingError: there is no such topic, it does not name these joints, or bytes are not a
            message of their type.
    """
    if joints is not None and (not joints or len({*joints}) != len(joints)):
        raise RecordingError(
            f"{source}: the joints to read are {listed(joints) or 'none'}; name at least one, and "
            "each once"
        )
    states, descriptions = _decoded(source, messages)
    chosen = {f"/{topic.lstrip('/')}"} if topic is not None else states.keys()
    if not states or not chosen <= states.keys():
        has = listed([f"{name} ({kind})" for name, kind in (types or {}).items()]) or "no topics"
        raise RecordingError(
            f"{source}: no {JOINT_STATE} message{f' on {topic}' if topic else ''}; it has "
            f"{f'joint states on {listed(states)}' if states else has}. Record the topic of "
            "joint_state_broadcaster, /joint_states"
        )
    found: dict[str, _Columns] = {}
    for name in chosen:
        for names in states[name].names if joints is None else [tuple(joints)]:
            columns = states[name].columns(names)
            if columns.named.any() and (name not in found or columns.worth > found[name].worth):
                found[name] = columns
    if not found:
        has = "; ".join(
            f"{name} has {listed([*itertools.chain(*states[name].names)]) or 'no names'}"
            for name in chosen
        )
        raise RecordingError(
            f"{source}: no message names all of the joints {listed(joints or [])}; {has}. Give the "
            "joints as joint_states names them, or the recording of this robot"
        )
    name = max(found, key=lambda each: found[each].worth)
    best, notes = found.pop(name), []
    if found:
        notes.append(
            f"{source}: the joint states are those of {name}, the most complete ones; "
            f"{listed(found)} could be meant too"
        )
    if not best.named.all():
        notes.append(
            f"{source}: {int((~best.named).sum())} of {len(best.named)} messages of {name} do not "
            f"name all of {listed(best.joints)}, and are left out"
        )
    stamps = best.stamps[best.named]
    if not stamps.any():
        notes.append(
            f"{source}: all stamps of {name} are 0, so the times at which the messages were "
            "recorded stand in for them, with their jitter; let the publisher fill header.stamp"
        )
        stamps = np.array(states[name].log_times, dtype=np.int64)[best.named]
    time, values = (stamps - stamps[0]) / 1e9, best.values[:, best.named]
    nearest = max(descriptions, key=lambda each: len(commonpath([each, name])), default="")
    urdf = descriptions.get(nearest, "")
    return Recording(source, best.joints, time, *values, robot_description=urdf, notes=tuple(notes))


def _decoded(
    source: str, messages: Iterable[Message]
) -> tuple[dict[str, _StatesTopic], dict[str, str]]:
    """The joint states of each topic, and the first robot description of each."""
    states: dict[str, _StatesTopic] = {}
    descriptions: dict[str, str] = {}
    topic = ""
    try:
        for topic, kind, log_time, data in messages:
            if kind == STRING and topic.endswith(ROBOT_DESCRIPTION):
                descriptions.setdefault(topic, CdrReader(data, topic).string("data"))
            elif kind == JOINT_STATE:
                if topic not in states:
                    states[topic] = _StatesTopic()
                states[topic].add(log_time, data)
        for topic, each in states.items():  # noqa: B007  the error names it
            each.finish()
    except CdrError as error:
        raise RecordingError(
            f"{source}: {topic}: {error}. If its messages are compressed, which only metadata.yaml "
            "says, give the folder with that file; else record it again, or convert it with the "
            "tool that wrote it"
        ) from error
    return states, descriptions


class _Columns(NamedTuple):
    """The joint states of some joints, as they came in n messages."""

    joints: tuple[str, ...]
    named: BoolArray  # which messages name all these joints, shape (n,)
    stamps: IntArray  # [ns]
    # Positions, velocities and efforts, shape (3, n, joints), NaN where a message has none.
    values: FloatArray

    @property
    def worth(self) -> tuple[int, int, int]:
        """The joints that have efforts, all joints, and the messages that name them."""
        efforts = np.isfinite(self.values[2]).any(axis=0)
        return int(efforts.sum()), len(self.joints), int(self.named.sum())


class _StatesTopic:
    """The joint states of a topic, decoded block by block; `log_times` are those at which they were
    recorded, [ns]."""

    def __init__(self) -> None:
        self.log_times: list[int] = []
        self._batches: list[Batch] = []
        self._decoder = BatchDecoder()
        self._waiting: list[bytes] = []

    def add(self, log_time: int, message: bytes) -> None:
        """Takes a message; raises CdrError if it, or an earlier one, has bytes of no JointState."""
        self.log_times.append(log_time)
        self._waiting.append(message)
        if len(self._waiting) == _BLOCK:
            self.finish()

    def finish(self) -> None:
        """Decodes what waits to be decoded; raises as `add` does."""
        first = len(self.log_times) - len(self._waiting)
        self._batches += self._decoder.decode(self._waiting, first)
        self._waiting = []

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The joints that messages name together, in the order of the first of these."""
        found: dict[frozenset[str], tuple[str, ...]] = {}
        for batch in self._batches:
            found.setdefault(frozenset(batch.layout.names), batch.layout.names)
        return [names for names in found.values() if names]

    def columns(self, joints: tuple[str, ...]) -> _Columns:
        """The columns of some joints."""
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
        return _Columns(joints, named, stamps, values)
