"""From the messages of topics to a `Recording`: which topic it is, and which of its messages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from posixpath import commonpath

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


class StatesTopic:
    """The joint states of the topic `name`, decoded block by block: `batches`, of which `finish`
    adds the last one; `log_times` are those at which they were recorded, [ns]."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: list[Batch] = []
        self.log_times: list[int] = []
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
        self.batches += self._decoder.decode(self._waiting, first)
        self._waiting = []

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The joints that messages name together, in the order of the first of these."""
        found: dict[frozenset[str], tuple[str, ...]] = {}
        for batch in self.batches:
            found.setdefault(frozenset(batch.layout.names), batch.layout.names)
        return list(found.values())

    def joint_columns(self, joints: tuple[str, ...]) -> tuple[BoolArray, IntArray, FloatArray]:
        """The joint states of some joints, as they came.

        Returns:
            Which of the n messages name all these joints; their stamps, [ns]; and their positions,
            velocities and efforts, shape (3, n, joints), NaN where a message has none.
        """
        count = len(self.log_times)
        named = np.zeros(count, dtype=bool)
        stamps = np.zeros(count, dtype=np.int64)
        values = np.full((3, count, len(joints)), np.nan)
        for batch in self.batches:
            names = batch.layout.names
            if not set(joints) <= set(names):
                continue
            named[batch.rows], stamps[batch.rows] = True, batch.stamps
            columns = [names.index(joint) for joint in joints]
            for kind, numbers in enumerate(batch.numbers):
                if numbers.shape[1] == len(names):
                    values[kind, batch.rows] = numbers[:, columns]
        return named, stamps, values


@dataclass
class RecordedTopics:
    """The topics of one recording that identification knows, by name."""

    source: str  # the file, for messages
    states: dict[str, StatesTopic] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)  # the first URDF of each
    others: dict[str, str] = field(default_factory=dict)  # the types of all topics

    def add(self, topic: str, kind: str, log_time: int, message: bytes) -> None:
        """Takes a message; raises RecordingError for bytes that are none of this type."""
        try:
            if kind == STRING and topic.endswith(ROBOT_DESCRIPTION):
                self.descriptions.setdefault(topic, CdrReader(message, topic).string("data"))
            elif kind == JOINT_STATE:
                if topic not in self.states:
                    self.states[topic] = StatesTopic(topic)
                self.states[topic].add(log_time, message)
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
        for name, each in self.states.items():
            try:
                each.finish()
            except CdrError as error:
                raise self._unreadable(name, error) from error
        notes: list[str] = []
        chosen, wanted = self._choose(joints, topic, notes)
        named, stamps, values = chosen.joint_columns(wanted)
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
        time = (stamps - stamps[0]) / 1e9
        # Of several descriptions that of the nearest namespace.
        nearest = max(
            self.descriptions, key=lambda each: len(commonpath([each, chosen.name])), default=""
        )
        urdf = self.descriptions.get(nearest, "")
        return Recording(
            self.source, wanted, time, *values, robot_description=urdf, notes=tuple(notes)
        )

    def _choose(
        self, joints: Sequence[str] | None, topic: str | None, notes: list[str]
    ) -> tuple[StatesTopic, tuple[str, ...]]:
        """The most complete joint states that there are, and their joints."""
        states = self.states
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
        if joints is not None and (not joints or len({*joints}) != len(joints)):
            raise RecordingError(
                f"{self.source}: the joints to read are {listed(joints) or 'none'}; name at least "
                "one, and each once"
            )
        fit = {}
        for each in states.values():
            for names in each.names if joints is None else [tuple(joints)]:
                named, _, values = each.joint_columns(names)
                efforts = int(np.isfinite(values[2]).any(axis=0).sum())
                if names and named.any():
                    fit[each.name, names] = efforts, len(names), int(named.sum())
        if not fit:
            found = "; ".join(
                f"{name} has {listed([*itertools.chain(*each.names)]) or 'no names'}"
                for name, each in states.items()
            )
            raise RecordingError(
                f"{self.source}: no message names all of the joints {listed(joints or [])}; "
                f"{found}. Give the joints as joint_states names them, or the recording of this "
                "robot"
            )
        best, names = max(fit, key=lambda each: fit[each])
        if others := dict.fromkeys(name for name, _ in fit if name != best):
            notes.append(
                f"{self.source}: the joint states are those of {best}, the most complete "
                f"ones; {listed(others)} could be meant too"
            )
        return states[best], names

    def _has(self) -> str:
        """The contents of the recording, for an error."""
        if self.states:
            return f"it has joint states on {listed(self.states)}"
        known = [f"{name} ({kind})" for name, kind in self.others.items()]
        return f"it has {listed(known) or 'no topics'}"

    def _unreadable(self, topic: str, error: CdrError) -> RecordingError:
        return RecordingError(
            f"{self.source}: {topic}: {error}. If its messages are compressed, which only "
            "metadata.yaml says, give the folder with that file; else record it again, or convert "
            "it with the tool that wrote it"
        )
