"""Writes CDR messages whose times and float64 numbers can be changed in place afterwards.

The reverse of `cdr`, where the rules are, in the byte order of this machine.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.messages.cdr import BIG_ENDIAN, HEADER, LITTLE_ENDIAN

# Bytes before the message: the first field stands at a multiple of eight in memory then, and with
# it all float64 numbers.
_LEAD = 8 - HEADER
_BYTE_ORDER = LITTLE_ENDIAN if sys.byteorder == "little" else BIG_ENDIAN
_TIME = struct.Struct("=iI")


class CdrWriter:
    """Writes one field after the other; times and float64 numbers are 0 at first.

    Once `message` was called no field can be added: memory that is viewed cannot grow.
    """

    def __init__(self) -> None:
        self._memory = bytearray(_LEAD) + bytes([0, _BYTE_ORDER, 0, 0])
        self._numbers: list[tuple[int, int]] = []

    def integer(self, value: int) -> None:
        """An unsigned integer of four bytes."""
        self._align(4)
        self._memory += struct.pack("=I", value)

    def string(self, text: str) -> None:
        """A string."""
        data = text.encode() + b"\0"
        self.integer(len(data))
        self._memory += data

    def strings(self, texts: Sequence[str]) -> None:
        """A sequence of strings."""
        self.integer(len(texts))
        for text in texts:
            self.string(text)

    def time(self) -> int:
        """A Time or a Duration; returns where in the message it stands, for `write_time`."""
        self._align(4)
        self._memory += bytes(_TIME.size)
        return len(self._memory) - _TIME.size - _LEAD

    def number(self) -> None:
        """A float64; counts as a sequence of one in `views`."""
        self._align(8)
        self._numbers.append((len(self._memory), 1))
        self._memory += bytes(8)

    def numbers(self, count: int) -> None:
        """A sequence of `count` float64."""
        self.integer(count)
        if count:
            self._align(8)
        self._numbers.append((len(self._memory), count))
        self._memory += bytes(8 * count)

    def message(self) -> memoryview:
        """The message; it changes with what is written into `views`."""
        return memoryview(self._memory)[_LEAD:]

    def views(self) -> list[FloatArray]:
        """The numbers of each float64 sequence, in the order in which they were written."""
        return [
            np.frombuffer(self._memory, np.float64, count, start) if count else np.zeros(0)
            for start, count in self._numbers
        ]

    def _align(self, size: int) -> None:
        self._memory += bytes(-len(self._memory) % size)


def write_time(message: memoryview, position: int, nanoseconds: int) -> None:
    """Sets the Time or Duration at `position` of a message, [ns]."""
    _TIME.pack_into(message, position, *divmod(nanoseconds, 1_000_000_000))
