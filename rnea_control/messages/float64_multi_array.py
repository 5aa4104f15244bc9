"""Encodes and decodes commands, Float64MultiArray messages.

The layout of the message is not read: ros2_control does not read it either.
"""

from __future__ import annotations

import struct

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import Float64MultiArrayError
from rnea_control.messages.cdr import BYTE_ORDER, HEADER, CdrReader

# Offset of the numbers: after the count of dimensions, 0, data_offset, 0, the count of numbers, and
# four bytes that align the numbers to eight bytes from the first field on.
_NUMBERS = HEADER + 16
_LEAD = 8 - HEADER  # bytes before the message that align its numbers to eight bytes in memory
_LONGEST_LAYOUT = 4096  # largest number of bytes of a message beside its numbers


class Float64MultiArrayEncoder:
    """Serialized message of `size` numbers.

    Attributes:
        values: the numbers, shape (size,), a view of the message: a number written here is in the
            message at once.
        memory: the message.
    """

    def __init__(self, size: int) -> None:
        data = bytearray(_LEAD + _NUMBERS + 8 * size)
        self.memory = memoryview(data)[_LEAD:]
        struct.pack_into("=4B3I", self.memory, 0, 0, BYTE_ORDER, 0, 0, 0, 0, size)
        self.values: FloatArray = np.frombuffer(data, np.float64, size, _LEAD + _NUMBERS)

    def encode(self) -> bytes:
        """Copy of the message with the present `values`."""
        return bytes(self.memory)


def decode_command(data: bytes, size: int, topic: str = "Float64MultiArray") -> FloatArray:
    """Numbers of a message, shape (size,).

    Args:
        data: the message.
        size: required number of numbers.
        topic: name of the message in errors.

    Raises:
        CdrError: bytes that are not a Float64MultiArray.
        Float64MultiArrayError: a wrong number of numbers, a number that is not finite, or a layout
            that takes long to read.
    """
    longest = _LONGEST_LAYOUT + 8 * size
    if len(data) > longest:
        raise Float64MultiArrayError(
            f"{topic} has {len(data)} bytes; at most {longest} are allowed"
        )
    reader = CdrReader(data, topic)
    for i in range(reader.integer("layout.dim")):
        reader.string(f"layout.dim[{i}].label")
        reader.integer(f"layout.dim[{i}].size")
        reader.integer(f"layout.dim[{i}].stride")
    reader.integer("layout.data_offset")
    values = reader.numbers(reader.skip_numbers("data"))
    if len(values) != size:
        raise Float64MultiArrayError(f"{topic} has {len(values)} numbers; it must have {size}")
    finite = np.isfinite(values)
    if not finite.all():
        i = int(np.argmin(finite))
        raise Float64MultiArrayError(f"{topic}: number {i} is {values[i]}; it must be finite")
    return values.astype(np.float64)
