"""The messages of a controller: its commands, Float64MultiArray, to bytes and back, and what it
tells of its state, to bytes: JointTrajectoryControllerState of control_msgs, and JointState with
the terms of each torque.

The layout in a Float64MultiArray is not read: ros2_control does not read it either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import Float64MultiArrayError
from rnea_control.messages import cdr

# How many bytes a command may have beside its numbers.
_LONGEST_LAYOUT = 4096


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


def decode_command(data: bytes, size: int, topic: str = "Float64MultiArray") -> FloatArray:
    """The numbers of a message, shape (size,).

    Args:
        data: the message.
        size: how many numbers it must have.
        topic: what error texts call the message.

    Raises:
        CdrError: bytes that are not a Float64MultiArray.
        Float64MultiArrayError: the wrong count of numbers, one that is not finite, or a layout that
            takes long to read.
    """
    longest = _LONGEST_LAYOUT + 8 * size
    if len(data) > longest:
        raise Float64MultiArrayError(
            f"{topic} has {len(data)} bytes; at most {longest} are allowed"
        )
    reader = cdr.CdrReader(data, topic)
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
