"""What a controller tells of its state, to bytes: JointTrajectoryControllerState messages of
control_msgs, and JointState messages with the terms of each torque.

Every term of every joint is a name, `joint1/gravity`, with an effort: so tools that label efforts
by their names, such as PlotJuggler, label the terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rnea_control.array_types import FloatArray
from rnea_control.messages.cdr import CdrWriter, write_time


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
        reference: desired values.
        feedback: measured values.
        error: reference less feedback.
        output: commanded torques.
        What is written into their arrays is in the message at once.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        nv = len(joint_names)
        writer = CdrWriter()
        self._stamp = writer.time()
        writer.string("")  # frame_id
        writer.strings(joint_names)
        self._reference_time = _write_point(writer, nv, nv, nv, nv)
        self._feedback_time = _write_point(writer, nv, nv, 0, 0)
        _write_point(writer, nv, nv, 0, 0)
        _write_point(writer, 0, 0, 0, nv)
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
        write_time(self._message, self._stamp, stamp)
        nanoseconds = round(1e9 * time_from_start)
        write_time(self._message, self._reference_time, nanoseconds)
        write_time(self._message, self._feedback_time, nanoseconds)
        self._speed_scaling_factor[0] = speed_scaling_factor
        return bytes(self._message)


def _write_point(writer: CdrWriter, *counts: int) -> int:
    """A JointTrajectoryPoint; returns where its time_from_start stands."""
    for count in counts:
        writer.numbers(count)
    return writer.time()


class TorqueTermsEncoder:
    """A serialized message, of which only the stamp and the efforts are left to fill in.

    Args:
        joint_names: of the controlled joints.
        terms: their names.
    """

    def __init__(self, joint_names: Sequence[str], terms: Sequence[str]) -> None:
        writer = CdrWriter()
        self._stamp = writer.time()
        writer.string("")  # frame_id
        writer.strings([f"{joint}/{term}" for joint in joint_names for term in terms])
        writer.numbers(0)  # position
        writer.numbers(0)  # velocity
        writer.numbers(len(joint_names) * len(terms))
        self._message = writer.message()
        self._efforts = writer.views()[-1].reshape(len(joint_names), len(terms))

    def encode(self, stamp: int, values: FloatArray) -> bytes:
        """The message.

        Args:
            stamp: of the header, [ns].
            values: the terms of each joint, shape (len(terms), nv), [Nm] or [N].
        """
        write_time(self._message, self._stamp, stamp)
        self._efforts[:] = values.T
        return bytes(self._message)
