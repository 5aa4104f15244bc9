"""Float64MultiArray messages, the commands of a ForwardCommandController, to bytes and back.

The layout in the message is not read: ros2_control does not read it either.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import ByteArray, WordArray
from rnea_control.exceptions import RneaControlError
from rnea_control.kernels.kernel import kernel
from rnea_control.messages.cdr import (
    BIG_ENDIAN,
    HEADER,
    LITTLE_ENDIAN,
    CdrReader,
    CdrWriter,
    aligned,
    double_word,
    is_finite,
    word,
)

# Encapsulation, no dimensions, data_offset 0, the count, and four bytes that bring the numbers to a
# multiple of eight from the first field on.
_NUMBERS = HEADER + 16
# How many bytes a layout may take; one without labels takes none.
_LONGEST_LAYOUT = 4096

# What decoding reports in place of success.
DECODED, REFUSED = 0, -1


class Float64MultiArrayError(RneaControlError, ValueError):
    """A Float64MultiArray message with the wrong count of numbers, or one that is not finite."""


class Float64MultiArrayEncoder:
    """A serialized message of `size` numbers, encoded while they are written.

    Attributes:
        values: the numbers, shape (size,); what is written here is in the message at once.
        memory: the message.
    """

    def __init__(self, size: int) -> None:
        writer = CdrWriter()
        writer.integer(0)  # layout.dim
        writer.integer(0)  # layout.data_offset
        writer.numbers(size)
        self.memory = writer.message()
        (self.values,) = writer.views()

    def encode(self) -> bytes:
        """The message with `values` as they are now."""
        return bytes(self.memory)


class Float64MultiArrayDecoder:
    """Decodes messages that must have `size` finite numbers; keeps no new memory.

    Args:
        size: how many numbers.
        topic: what error texts call the message.

    Attributes:
        values: the numbers of the last message, shape (size,); `decode` writes into them.
    """

    def __init__(self, size: int, topic: str = "Float64MultiArray") -> None:
        self._topic = topic
        self._bits = np.zeros(size, dtype=np.uint64)
        self.values = self._bits.view(np.float64)
        self._buffer = np.zeros(_NUMBERS + _LONGEST_LAYOUT + 8 * size, dtype=np.uint8)
        self._view = self._buffer.data

    def decode(self, data: bytes) -> None:
        """Fills `values`.

        Raises:
            CdrError: bytes that are not a Float64MultiArray.
            Float64MultiArrayError: the wrong count of numbers, or one that is not finite.
            `values` then stay as they were.
        """
        size = len(data)
        if size > len(self._view):
            raise Float64MultiArrayError(
                f"{self._topic} has {size} bytes; at most {len(self._view)} are allowed"
            )
        self._view[:size] = data
        if decode(self._buffer, size, self._bits) != DECODED:
            raise self._refusal(data)

    def _refusal(self, data: bytes) -> Float64MultiArrayError:
        reader = CdrReader(data, self._topic)
        start, count = skip_to_numbers(reader)
        if count != len(self.values):
            return Float64MultiArrayError(
                f"{self._topic} has {count} numbers; it must have {len(self.values)}"
            )
        values = np.frombuffer(data, f"{reader.order}f8", count, start)
        i = int(np.argmin(np.isfinite(values)))
        return Float64MultiArrayError(
            f"{self._topic}: number {i} is {values[i]}; it must be finite"
        )


def skip_to_numbers(reader: CdrReader) -> tuple[int, int]:
    """Passes over a whole message; returns where its numbers start, and how many.

    Raises:
        CdrError: bytes that are not a Float64MultiArray.
    """
    for i in range(reader.integer("layout.dim")):
        reader.string(f"layout.dim[{i}].label")
        reader.integer(f"layout.dim[{i}].size")
        reader.integer(f"layout.dim[{i}].stride")
    reader.integer("layout.data_offset")
    return reader.skip_numbers("data")


@kernel("i8(u1[::1], i8, u8[::1])")
def decode(data: ByteArray, size: int, bits: WordArray) -> int:
    """Fills `bits` with the numbers of a message; `REFUSED` if it does not have so many finite
    ones."""
    if size < HEADER or size > data.shape[0] or data[0] != 0 or data[1] > LITTLE_ENDIAN:
        return REFUSED
    big_endian = data[1] == BIG_ENDIAN
    if size < HEADER + 4:
        return REFUSED
    position = HEADER + 4
    for _ in range(word(data, HEADER, big_endian)):
        position = aligned(position, 4)
        if position + 4 > size:
            return REFUSED
        position = aligned(position + 4 + word(data, position, big_endian), 4) + 8
    position = aligned(position, 4) + 4  # data_offset
    if position + 4 > size or word(data, position, big_endian) != bits.shape[0]:
        return REFUSED
    start = aligned(position + 4, 8)
    if start + 8 * bits.shape[0] > size:
        return REFUSED
    for j in range(bits.shape[0]):
        if not is_finite(double_word(data, start + 8 * j, big_endian)):
            return REFUSED
    for j in range(bits.shape[0]):
        bits[j] = double_word(data, start + 8 * j, big_endian)
    return DECODED
