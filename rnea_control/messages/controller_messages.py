"""The messages of a controller: its commands, Float64MultiArray, to bytes and back, and what it
tells of its state, to bytes: JointTrajectoryControllerState of control_msgs, and JointState with
the terms of each torque.

The layout in a Float64MultiArray is not read: ros2_control does not read it either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray, WordArray
from rnea_control.exceptions import Float64MultiArrayError
from rnea_control.kernels.kernel import kernel
from rnea_control.messages import cdr

# Encapsulation, no dimensions, data_offset 0, the count, and four bytes that bring the numbers to a
# multiple of eight from the first field on; and how many bytes a layout may take.
_NUMBERS, _LONGEST_LAYOUT = cdr.HEADER + 16, 4096

# What decoding reports in place of success.
DECODED, REFUSED = 0, -1


class Float64MultiArrayEncoder:
    """A serialized message of `size` numbers, encoded while they are written.

    Attributes:
        values: the numbers, shape (size,); what is written here is in the message at once.
        memory: the message.
    """

    def __init__(self, size: int) -> None:
        writer = cdr.CdrWriter()
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
        reader = cdr.CdrReader(data, self._topic)
        for i in range(reader.integer("layout.dim")):
            reader.string(f"layout.dim[{i}].label")
            reader.integer(f"layout.dim[{i}].size")
            reader.integer(f"layout.dim[{i}].stride")
        reader.integer("layout.data_offset")
        values = reader.numbers(reader.skip_numbers("data"))
        if len(values) != len(self.values):
            what = f" has {len(values)} numbers; it must have {len(self.values)}"
        else:
            i = int(np.argmin(np.isfinite(values)))
            what = f": number {i} is {values[i]}; it must be finite"
        return Float64MultiArrayError(f"{self._topic}{what}")


@kernel("i8(u1[::1], i8, u8[::1])")
def decode(data: ByteArray, size: int, bits: WordArray) -> int:
    """Fills `bits` with the numbers of a message; `REFUSED` if it does not have so many finite
    ones."""
    position = cdr.HEADER + 4
    if not position <= size <= data.shape[0] or data[0] != 0 or data[1] > cdr.LITTLE_ENDIAN:
        return REFUSED
    big_endian = data[1] == cdr.BIG_ENDIAN
    for _ in range(cdr.word(data, cdr.HEADER, big_endian)):
        position = cdr.aligned(position, 4)
        if position + 4 > size:
            return REFUSED
        position = cdr.aligned(position + 4 + cdr.word(data, position, big_endian), 4) + 8
    position += 4  # data_offset
    start = cdr.numbers_at(data, size, position, bits.shape[0], big_endian)
    if start < 0:
        return REFUSED
    for j in range(bits.shape[0]):
        if not cdr.is_finite(cdr.double_word(data, start + 8 * j, big_endian)):
            return REFUSED
    for j in range(bits.shape[0]):
        bits[j] = cdr.double_word(data, start + 8 * j, big_endian)
    return DECODED


class PointFields(NamedTuple):
    """The fields of a JointTrajectoryPoint inside a message, each shape (nv,), or (0,) if empty:
    in [rad], [rad/s], [rad/s^2] and [Nm], or of sliding joints [m], [m/s], [m/s^2] and [N]."""

    positions: FloatArray
    velocities: FloatArray
    accelerations: FloatArray
    effort: FloatArray


class ControllerStateEncoder:
    """A serialized state of a controller, encoded while it is written.

    Empty are the fields that the controller does not know: accelerations and effort of `feedback`
    and `error`, all but the effort of `output`, and the joints of several degrees of freedom.

    Args:
        joint_names: of the controlled joints.

    Attributes:
        reference, feedback, error, output: desired and measured values, the one less the other, and
            commanded torques; what is written into their arrays is in the message at once.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        nv = len(joint_names)
        writer = cdr.CdrWriter()
        self._stamp = writer.time()
        writer.string("")  # frame_id
        writer.strings(joint_names)
        self._times: list[int] = []  # time_from_start of each point
        for counts in ((nv, nv, nv, nv), (nv, nv, 0, 0), (nv, nv, 0, 0), (0, 0, 0, nv)):
            for count in counts:
                writer.numbers(count)
            self._times.append(writer.time())
        writer.strings(())  # multi_dof_joint_names
        for _ in range(4):
            for _ in ("transforms", "velocities", "accelerations"):
                writer.integer(0)
            writer.time()
        writer.number()
        self._message = writer.message()
        *fields, self._speed_scaling_factor = writer.views()
        self.reference, self.feedback, self.error, self.output = (
            PointFields(*fields[i : i + 4]) for i in range(0, 16, 4)
        )

    def encode(
        self, stamp: int, time_from_start: float, speed_scaling_factor: float = 1.0
    ) -> bytes:
        """The message with its arrays as they are now.

        Args:
            stamp: of the header, [ns].
            time_from_start: of reference and feedback in the trajectory, [s]; finite.
            speed_scaling_factor: 1 where the trajectory runs at its own speed.
        """
        cdr.write_time(self._message, self._stamp, stamp)
        for place in self._times[:2]:
            cdr.write_time(self._message, place, round(1e9 * time_from_start))
        self._speed_scaling_factor[0] = speed_scaling_factor
        return bytes(self._message)


class TorqueTermsEncoder:
    """A serialized JointState, of which only the stamp and the efforts are left to fill in. Every
    term of every joint is a name, `joint1/gravity`, with an effort: so tools that label efforts by
    their names, such as PlotJuggler, label the terms.

    Args:
        joint_names: of the controlled joints.
        terms: their names.
    """

    def __init__(self, joint_names: Sequence[str], terms: Sequence[str]) -> None:
        writer = cdr.CdrWriter()
        self._stamp = writer.time()
        writer.string("")  # frame_id
        writer.strings([f"{joint}/{term}" for joint in joint_names for term in terms])
        for count in (0, 0, len(joint_names) * len(terms)):  # position, velocity, effort
            writer.numbers(count)
        self._message = writer.message()
        self._efforts = writer.views()[-1].reshape(len(joint_names), len(terms))

    def encode(self, stamp: int, values: FloatArray) -> bytes:
        """The message.

        Args:
            stamp: of the header, [ns].
            values: the terms of each joint, shape (len(terms), nv), [Nm] or [N].
        """
        cdr.write_time(self._message, self._stamp, stamp)
        self._efforts[:] = values.T
        return bytes(self._message)
