"""Reads many serialized messages at once: those of one layout become the rows of arrays.

A publisher repeats the same names in every message, so that its numbers stand at the same bytes.
What is not the same in all messages of a layout are the stamp, the numbers, and the arbitrary bytes
between fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, ByteArray, FloatArray, IntArray
from rnea_control.messages.cdr import BIG_ENDIAN
from rnea_control.messages.joint_state import JointStateFields

_SECOND = 1_000_000_000


@dataclass(frozen=True, eq=False)
class Layout:
    """What all messages of one size, byte order and list of names have in common.

    Attributes:
        names: of the joints.
        stamp: where the stamp starts.
        numbers: where each sequence of float64 starts, and how many they are.
        pattern: one message, shape (size,).
        mask: 0 for its bytes that may differ, else 255, shape (size,).
    """

    names: tuple[str, ...]
    stamp: int
    numbers: tuple[tuple[int, int], ...]
    pattern: ByteArray
    mask: ByteArray

    def fits(self, data: ByteArray) -> BoolArray:
        """Which messages are of this layout, shape (messages,).

        Args:
            data: the messages, all of this size, shape (messages, size).
        """
        same: BoolArray = ((data & self.mask) == (self.pattern & self.mask)).all(axis=1)
        return same


@dataclass(frozen=True, eq=False)
class Batch:
    """Messages of one layout.

    Attributes:
        layout: theirs.
        rows: the number of each message in the order in which they came, shape (messages,).
        stamps: shape (messages,), [ns].
        numbers: of each sequence of float64, shape (messages, count).
    """

    layout: Layout
    rows: IntArray
    stamps: IntArray
    numbers: tuple[FloatArray, ...]


class BatchDecoder:
    """Decodes the joint states of a topic; the layouts that came are remembered."""

    def __init__(self) -> None:
        self._layouts: dict[int, list[Layout]] = {}

    def decode(self, messages: Sequence[bytes], first: int = 0) -> list[Batch]:
        """The messages as arrays; the values are not checked.

        Args:
            messages: serialized.
            first: the row of the first one.

        Raises:
            CdrError: bytes that are not such a message.
        """
        found = []
        sizes = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            joined = b"".join([messages[i] for i in rows.tolist()])
            data = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), size)
            while len(rows):
                layout = self._layout(data[0])
                same = layout.fits(data)
                if same.all():
                    found.append(_batch(layout, data, rows + first))
                    break
                found.append(_batch(layout, data[same], rows[same] + first))
                data, rows = data[~same], rows[~same]
        return found

    def _layout(self, message: ByteArray) -> Layout:
        known = self._layouts.setdefault(len(message), [])
        for layout in known:
            if layout.fits(message[None, :])[0]:
                return layout
        known.append(joint_state_layout(message.tobytes()))
        return known[-1]


def joint_state_layout(data: bytes) -> Layout:
    """The layout of a JointState; its numbers are positions, velocities and efforts.

    Raises:
        CdrError: bytes that are not a JointState.
    """
    message = JointStateFields(data)
    stamp = message.spans[0][0]
    numbers = message.positions, message.velocities, message.efforts
    mask = np.zeros(len(data), dtype=np.uint8)
    mask[:2] = 0xFF  # the byte order
    for start, end in message.spans:
        mask[start:end] = 0xFF
    mask[stamp : stamp + 8] = 0
    for start, count in numbers:
        mask[start : start + 8 * count] = 0
    return Layout(tuple(message.names), stamp, numbers, np.frombuffer(data, np.uint8), mask)


def _batch(layout: Layout, data: ByteArray, rows: IntArray) -> Batch:
    order = ">" if layout.pattern[1] == BIG_ENDIAN else "<"
    seconds, nanoseconds = (
        _column(data, start, 1, kind)[:, 0].astype(np.int64)
        for start, kind in ((layout.stamp, f"{order}i4"), (layout.stamp + 4, f"{order}u4"))
    )
    stamps = seconds * _SECOND + nanoseconds
    numbers = tuple(
        _column(data, start, count, f"{order}f8").astype(np.float64)
        for start, count in layout.numbers
    )
    return Batch(layout, rows, stamps, numbers)


def _column(data: ByteArray, start: int, count: int, kind: str) -> np.ndarray:
    """The same numbers of every message, shape (messages, count)."""
    size = count * np.dtype(kind).itemsize
    if not count:
        return np.zeros((len(data), 0), dtype=kind)
    return np.ascontiguousarray(data[:, start : start + size]).view(kind)
