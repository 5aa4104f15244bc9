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

_STAMP = {"seconds": ("i4", HEADER), "nanoseconds": ("u4", HEADER + 4)}


class Layout(NamedTuple):
    """What all messages of one size, byte order and list of names have in common.

    Attributes:
        names: of the joints.
        record: a message, of which `seconds` and `nanoseconds` are the stamp, and every
            other field is a sequence of float64.
        pattern: the bytes of a message, and masks that are 0 for those that may differ, shape
            (2, size).
    """

    names: tuple[str, ...]
    record: np.dtype[Any]
    pattern: ByteArray

    def fits(self, data: ByteArray) -> BoolArray:
        """Which messages of this size, shape (messages, size), are of it, shape (messages,)."""
        return np.asarray(((data ^ self.pattern[0]) & self.pattern[1] == 0).all(axis=1))


class Batch(NamedTuple):
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
            while len(rows):
                layout = self._layout(data[:1])
                same = layout.fits(data)
                found.append(_batch(layout, data[same], rows[same] + first))
                data, rows = data[~same], rows[~same]
        return found

    def _layout(self, message: ByteArray) -> Layout:
        known = self._layouts.setdefault(message.size, [])
        for layout in known:
            if layout.fits(message)[0]:
                return layout
        known.append(joint_state_layout(message.tobytes()))
        return known[-1]


def joint_state_layout(data: bytes) -> Layout:
    """The layout of a JointState, whose numbers are positions, velocities and efforts; CdrError for
    bytes that are none."""
    message = JointStateFields(data)
    numbers = message.positions, message.velocities, message.efforts
    sequences = {f"f{i}": (("f8", (count,)), start) for i, (start, count) in enumerate(numbers)}
    fields: dict[str, tuple[Any, int]] = {**_STAMP, **sequences}
    pattern = message.reader.pattern()
    for kind, start in fields.values():
        pattern[1, start : start + np.dtype(kind).itemsize] = 0
    formats, offsets = map(list, zip(*fields.values(), strict=True))
    record: Any = {"names": list(fields), "formats": formats, "offsets": offsets}
    record["itemsize"] = pattern.shape[1]
    dtype = np.dtype(record).newbyteorder(message.reader.order)
    return Layout(tuple(message.names), dtype, pattern)


def _batch(layout: Layout, data: ByteArray, rows: IntArray) -> Batch:
    records, fields = data.view(layout.record)[:, 0], layout.record.names or ()
    stamps = records["seconds"].astype(np.int64) * 1_000_000_000 + records["nanoseconds"]
    numbers = tuple(records[each].astype(np.float64) for each in fields if each not in _STAMP)
    return Batch(layout, rows, stamps, numbers)
