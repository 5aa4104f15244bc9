"""Reads many serialized messages at once: those of one layout become the rows of arrays.

A publisher repeats the same names in every message, so that its numbers stand at the same bytes.
What is not the same in all messages of a layout are the stamp, the numbers, and the arbitrary bytes
between fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnea_control.array_types import BoolArray, ByteArray, FloatArray, IntArray
from rnea_control.messages.cdr import HEADER
from rnea_control.messages.joint_state import JointStateFields

_SECONDS, _NANOSECONDS = slice(HEADER, HEADER + 4), slice(HEADER + 4, HEADER + 8)


class Layout:
    """What all JointState messages of one size, byte order and list of names have in common.

    Args:
        data: one of them; CdrError for bytes that are none.

    Attributes:
        names: of the joints.
    """

    def __init__(self, data: bytes) -> None:
        message = JointStateFields(data)
        self.names = tuple(message.names)
        self._order = message.reader.order
        numbers = message.positions, message.velocities, message.efforts
        self._numbers = [slice(start, start + 8 * count) for start, count in numbers]
        self._bytes, self._constant = message.reader.pattern()
        for span in (_SECONDS, _NANOSECONDS, *self._numbers):
            self._constant[span] = 0

    def fits(self, data: ByteArray) -> BoolArray:
        """Which messages of this size, shape (messages, size), are of it, shape (messages,)."""
        return np.asarray(((data ^ self._bytes) & self._constant == 0).all(axis=1))

    def batch(self, data: ByteArray, rows: IntArray) -> Batch:
        """Messages of this layout, shape (messages, size), as arrays."""

        def read(span: slice, kind: str) -> Any:
            return np.ascontiguousarray(data[:, span]).view(self._order + kind)

        seconds, nanoseconds = read(_SECONDS, "i4"), read(_NANOSECONDS, "u4")
        stamps = seconds.astype(np.int64) * 1_000_000_000 + nanoseconds
        numbers = tuple(read(span, "f8").astype(np.float64) for span in self._numbers)
        return Batch(self, rows, stamps[:, 0], numbers)


class Batch(NamedTuple):
    """Messages of one layout."""

    layout: Layout
    rows: IntArray  # the number of each in the order in which they came, shape (messages,)
    stamps: IntArray  # shape (messages,), [ns]
    # Positions, velocities and efforts, shape (messages, count).
    numbers: tuple[FloatArray, ...]


class BatchDecoder:
    """Decodes JointState messages; the layouts that came are remembered."""

    def __init__(self) -> None:
        self._layouts: dict[int, list[Layout]] = {}

    def decode(self, messages: Sequence[bytes], first: int = 0) -> list[Batch]:
        """Serialized messages as arrays; the values are not checked. `first`: the row of the first.

        Raises:
            CdrError: bytes that are not such a message.
        """
        found = []
        sizes = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            joined = b"".join([messages[i] for i in rows.tolist()])
            data = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), size)
            known = self._layouts.setdefault(size, [])
            while len(rows):
                layout = next((each for each in known if each.fits(data[:1])[0]), None)
                if layout is None:
                    layout = Layout(data[0].tobytes())
                    known.append(layout)
                same = layout.fits(data)
                found.append(layout.batch(data[same], rows[same] + first))
                data, rows = data[~same], rows[~same]
        return found
