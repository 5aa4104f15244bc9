"""Reads CDR, the serialization of messages over DDS.

A message has four bytes of encapsulation (two with the byte order, two with options), then its
fields in order, each number at a multiple of its own size, counted from the first field [OMG
DDSI-RTPS 2.5, sec. 10; OMG DDS-XTYPES 1.3, sec. 7.4, XCDR version 1]. The bytes between fields are
arbitrary.

The bytes are not trusted: every length is checked before it is used.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray
from rnea_control.exceptions import CdrError, RneaControlError, plain
from rnea_control.jit.inlining import inlined

HEADER = 4
BIG_ENDIAN = 0
LITTLE_ENDIAN = 1
BYTE_ORDER = LITTLE_ENDIAN if sys.byteorder == "little" else BIG_ENDIAN  # this machine
MOST_STRINGS = 1000  # longest sequence of strings; a longer one takes too much of a tick
LONGEST_TEXT = 200  # number of characters of an error that are repeated
EXPONENT = np.uint64(0x7FF0000000000000)  # exponent bits; all ones if infinite or NaN


@contextmanager
def decoding(message: str) -> Iterator[None]:
    """Context that converts any exception over the bytes of another process to a CdrError that
    names the message, as these bytes must not end the thread that reads them.

    Raises:
        RneaControlError: an error of the decoder, or a CdrError.
    """
    try:
        yield
    except RneaControlError:
        raise
    except Exception as error:
        text = plain(f"{type(error).__name__}: {error}", LONGEST_TEXT)
        raise CdrError(f"{message}: the bytes cannot be decoded: {text}") from error


class CdrReader:
    """Reads the fields one after the other, never beyond the end.

    Args:
        data: the whole message.
        message: name of the message in errors.

    Attributes:
        position: offset of the next byte in `data`.
        order: byte order of numbers, in the notation of `struct` and NumPy.

    Raises:
        CdrError: from every method, if the bytes end too early or are invalid.
    """

    def __init__(self, data: bytes, message: str) -> None:
        self._data = data
        self._message = message
        if len(data) < HEADER or data[0] != 0 or data[1] not in (BIG_ENDIAN, LITTLE_ENDIAN):
            raise CdrError(
                f"{message}: the bytes begin with {data[:HEADER].hex(' ') or 'nothing'}; CDR "
                "begins with 00 00 (big endian) or 00 01 (little endian)"
            )
        self.order = "<" if data[1] == LITTLE_ENDIAN else ">"
        self.position = HEADER
        self._spans = [(0, 2)]

    def integer(self, field: str, signed: bool = False) -> int:
        """Reads an integer of four bytes."""
        start = self._skip(field, 4, 4)
        return struct.unpack_from(self.order + ("i" if signed else "I"), self._data, start)[0]

    def string(self, field: str) -> str:
        length = self.integer(field)
        start = self._skip(field, 1, length)
        try:
            return self._data[start : start + length].rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise CdrError(f"{self._message}: {field} is not UTF-8") from error

    def strings(self, field: str) -> list[str]:
        count = self.integer(field)
        if count > len(self._data) // 4:  # each string has at least its own length field
            raise self._too_short(field, 4 * count)
        if count > MOST_STRINGS:
            raise CdrError(
                f"{self._message}: {field} has {count} entries; at most {MOST_STRINGS} are allowed"
            )
        return [self.string(f"{field}[{i}]") for i in range(count)]

    def skip_numbers(self, field: str) -> tuple[int, int]:
        """Skips a sequence of float64; returns the offset and the number of its numbers."""
        count = self.integer(field)
        start = self._skip(field, 8, 8 * count) if count else self.position
        return start, count

    def numbers(self, sequence: tuple[int, int]) -> FloatArray:
        """Numbers of a sequence that `skip_numbers` has skipped."""
        start, count = sequence
        return np.frombuffer(self._data, f"{self.order}f8", count, start)

    def pattern(self) -> ByteArray:
        """Bytes of the message, and masks, shape (2, size). A mask is 0 for an arbitrary byte: one
        that belongs neither to a field read so far nor to the byte order."""
        pattern = np.zeros((2, len(self._data)), dtype=np.uint8)
        pattern[0] = np.frombuffer(self._data, np.uint8)
        for start, end in self._spans:
            pattern[1, start:end] = 0xFF
        return pattern

    def _skip(self, field: str, alignment: int, size: int) -> int:
        start = self.position + (HEADER - self.position) % alignment
        if size > len(self._data) - start:
            raise self._too_short(field, size)
        self.position = start + size
        self._spans.append((start, self.position))
        return start

    def _too_short(self, field: str, size: int) -> CdrError:
        return CdrError(
            f"{self._message}: the message ends inside its {field}, which has {size} bytes or "
            f"more; all of the message has {len(self._data)}"
        )


def boolean(data: bytes) -> bool | None:
    """Value of a std_msgs/Bool; None for invalid bytes."""
    right = len(data) > HEADER and data[0] == 0 and data[1] in (BIG_ENDIAN, LITTLE_ENDIAN)
    return data[HEADER] != 0 if right else None


@inlined
def word(data: ByteArray, start: int, big_endian: bool) -> Any:
    """Four bytes from `start` on as an unsigned integer."""
    first = np.uint64(start)  # a signed index could be negative and count from the end
    value = np.uint32(0)
    reversed_value = np.uint32(0)
    for i in range(4):  # compiles to one load, and one swap of bytes
        byte = np.uint32(data[first + np.uint64(i)])
        value |= byte << np.uint32(8 * i)
        reversed_value |= byte << np.uint32(24 - 8 * i)
    return np.int64(reversed_value if big_endian else value)


@inlined
def double_word(data: ByteArray, start: int, big_endian: bool) -> Any:
    """Eight bytes from `start` on as the bits of a float64."""
    first = np.uint64(start)
    value = np.uint64(0)
    reversed_value = np.uint64(0)
    for i in range(8):
        byte = np.uint64(data[first + np.uint64(i)])
        value |= byte << np.uint64(8 * i)
        reversed_value |= byte << np.uint64(56 - 8 * i)
    return reversed_value if big_endian else value


@inlined
def is_finite(bits: int) -> bool:
    """True if the float64 with these bits is neither infinite nor NaN."""
    return (bits & EXPONENT) != EXPONENT


@inlined
def aligned(position: int, alignment: int) -> int:
    """First offset from `position` on that is aligned for a number of this size."""
    return position + (HEADER - position) % alignment


@inlined
def numbers_at(data: ByteArray, size: int, position: int, count: int, big_endian: bool) -> int:
    """Offset of the numbers of the float64 sequence at `position` if it has `count` numbers; else
    -1."""
    position = aligned(position, 4)
    if position + 4 > size or word(data, position, big_endian) != count:
        return -1
    start = aligned(position + 4, 8)
    return start if start + 8 * count <= size else -1


@inlined
def goes_to(label: tuple[int, ...], size: int, message: ByteArray) -> bool:
    """True if a TransitionEvent goes to the state with this label.

    Args:
        label: bytes of the label, and the 0 after them.
        size: size of the message, which may be larger than `message`.
        message: first bytes of the message.
    """
    if not HEADER + 8 <= size <= message.shape[0] or message[0] != 0 or message[1] > LITTLE_ENDIAN:
        return False
    big_endian = message[1] == BIG_ENDIAN
    position, length = HEADER + 8, 0
    for _ in range(3):  # transition, start state and goal state: a number and a label each
        position = aligned(position + length + 1, 4)
        if position + 4 > size:
            return False
        length = word(message, position, big_endian)
        position += 4
        if position + length > size:
            return False
    same = length == len(label)
    for i in range(length if same else 0):
        same &= message[position + i] == label[i]
    return same
