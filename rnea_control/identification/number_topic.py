"""`NumberTopic`: the messages of one recorded topic as arrays, and their contents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.messages.batch import Batch, BatchDecoder, Layout

# So many messages are decoded at once.
_BLOCK = 4096


class NumberTopic:
    """The messages of one topic, decoded block by block.

    Args:
        name: of the topic.
        read_layout: `joint_state_layout` or `float64_multi_array_layout`.

    Attributes:
        batches: what was decoded; `finish` decodes the rest.
        log_times: when each message was recorded, [ns].
    """

    def __init__(self, name: str, read_layout: Callable[[bytes], Layout]) -> None:
        self.name = name
        self.batches: list[Batch] = []
        self.log_times: list[int] = []
        self._decoder = BatchDecoder(read_layout)
        self._waiting: list[bytes] = []

    def add(self, log_time: int, message: bytes) -> None:
        """Takes a message.

        Raises:
            CdrError: an earlier one, or this one, has other bytes than its type's.
        """
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


def joints_with_effort(topic: NumberTopic) -> set[str]:
    """The joints that have a finite effort in some message."""
    found: set[str] = set()
    for batch in topic.batches:
        efforts, names = batch.numbers[2], batch.layout.names
        if efforts.shape[1] == len(names) and not found.issuperset(names):
            has = np.flatnonzero(np.isfinite(efforts).any(axis=0))
            found.update(names[i] for i in has.tolist())
    return found


def most_efforts(topic: NumberTopic) -> tuple[str, ...]:
    """The joints of the messages that have the most efforts, and of these the most joints."""
    having = joints_with_effort(topic)
    kinds = dict.fromkeys(batch.layout.names for batch in topic.batches)
    return max(kinds, key=lambda names: (len(having & set(names)), len(names)))


def messages_naming(topic: NumberTopic, names: set[str]) -> int:
    """How many messages name all these joints."""
    return sum(len(each.rows) for each in topic.batches if names <= set(each.layout.names))


def joint_columns(
    topic: NumberTopic, joints: tuple[str, ...]
) -> tuple[BoolArray, IntArray, FloatArray]:
    """The joint states of some joints, as they came.

    Returns:
        Which of the n messages name all these joints; their stamps, [ns]; and their positions,
        velocities and efforts, shape (3, n, joints), NaN where a message has none.
    """
    count = len(topic.log_times)
    named = np.zeros(count, dtype=bool)
    stamps = np.zeros(count, dtype=np.int64)
    values = np.full((3, count, len(joints)), np.nan)
    for batch in topic.batches:
        names = batch.layout.names
        if not set(joints) <= set(names):
            continue
        named[batch.rows], stamps[batch.rows] = True, batch.stamps
        columns = [names.index(joint) for joint in joints]
        for kind, numbers in enumerate(batch.numbers):
            if numbers.shape[1] == len(names):
                values[kind, batch.rows] = numbers[:, columns]
    return named, stamps, values


def commands_of_size(topic: NumberTopic, size: int) -> tuple[IntArray, FloatArray]:
    """The times, ascending, and numbers of the messages that have so many."""
    fit = [batch for batch in topic.batches if batch.numbers[0].shape[1] == size]
    rows = np.concatenate([batch.rows for batch in fit])
    values = np.concatenate([batch.numbers[0] for batch in fit])
    order = np.argsort(rows)
    rows, values = rows[order], values[order]
    times = np.array(topic.log_times, dtype=np.int64)[rows]
    order = np.argsort(times, kind="stable")
    return times[order], values[order]
