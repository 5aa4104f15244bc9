"""From the messages of topics to a `Recording`: which topic it is, and which of its messages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording
from rnea_control.messages.batch import Batch, BatchDecoder
from rnea_control.messages.cdr import CdrError, CdrReader

JOINT_STATE = "sensor_msgs/msg/JointState"
STRING = "std_msgs/msg/String"
ROBOT_DESCRIPTION = "/robot_description"
# How compressed bytes begin.
_ZSTD = "28 b5 2f fd"
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
    def names(self) -> tuple[str, ...]:
        """Every joint that a message names."""
        return tuple(dict.fromkeys(name for each in self.batches for name in each.layout.names))

    def with_effort(self) -> set[str]:
        """The joints that have a finite effort in some message."""
        found: set[str] = set()
        for batch in self.batches:
            efforts, names = batch.numbers[2], batch.layout.names
            if efforts.shape[1] == len(names) and not found.issuperset(names):
                has = np.flatnonzero(np.isfinite(efforts).any(axis=0))
                found.update(names[i] for i in has.tolist())
        return found

    def most_efforts(self) -> tuple[str, ...]:
        """The joints of the messages that have the most efforts, and of these the most joints."""
        having = self.with_effort()
        kinds = dict.fromkeys(batch.layout.names for batch in self.batches)
        return max(kinds, key=lambda names: (len(having & set(names)), len(names)))

    def worth(self, names: set[str]) -> tuple[int, int]:
        """How many of these joints, or without any of all, have efforts; and how many messages
        name them all."""
        having = self.with_effort()
        count = sum(len(each.rows) for each in self.batches if names <= set(each.layout.names))
        return len(having & names if names else having), count

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
        chosen = self._choose(joints, topic, notes)
        wanted = tuple(joints) if joints is not None else chosen.most_efforts()
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
        namespace = chosen.name.split("/")[:-1]

        def nearness(topic: str) -> int:
            """How many parts of its namespace are those of the states, from the front."""
            pairs = zip(topic.split("/")[:-1], namespace, strict=False)
            return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))

        urdf = self.descriptions.get(max(self.descriptions, key=nearness, default=""), "")
        return Recording(
            self.source, wanted, time, *values, robot_description=urdf, notes=tuple(notes)
        )

    def _choose(
        self, joints: Sequence[str] | None, topic: str | None, notes: list[str]
    ) -> StatesTopic:
        """The most complete joint states that there are of the joints."""
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
        names = set(joints or ())
        if joints is not None and (not joints or len(names) != len(joints)):
            raise RecordingError(
                f"{self.source}: the joints to read are {listed(joints) or 'none'}; name at least "
                "one, and each once"
            )
        fit = [each for each in states.values() if each.worth(names)[1]]
        if not fit:
            found = "; ".join(
                f"{name} has {listed(each.names) or 'no names'}" for name, each in states.items()
            )
            raise RecordingError(
                f"{self.source}: no message names all of the joints {listed(joints or [])}; "
                f"{found}. Give the joints as joint_states names them, or the recording of this "
                "robot"
            )
        best = max(fit, key=lambda each: each.worth(names))
        others = [each.name for each in fit if each is not best]
        if others:
            notes.append(
                f"{self.source}: the joint states are those of {best.name}, the most complete "
                f"ones; {listed(others)} could be meant too"
            )
        return best

    def _has(self) -> str:
        """The contents of the recording, for an error."""
        if self.states:
            return f"it has joint states on {listed(self.states)}"
        known = [f"{name} ({kind})" for name, kind in self.others.items()]
        return f"it has {listed(known) or 'no topics'}"

    def _unreadable(self, topic: str, error: CdrError) -> RecordingError:
        hint = "Record it again, or convert it with the tool that wrote it"
        if _ZSTD in str(error):
            hint = (
                "Its messages are compressed, which only metadata.yaml says: give the folder with "
                "that file, not the file in it"
            )
        return RecordingError(f"{self.source}: {topic}: {error}. {hint}")
