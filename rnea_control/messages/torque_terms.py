"""DynamicJointState messages of control_msgs with the terms of each torque, to bytes."""

from __future__ import annotations

from collections.abc import Sequence

from rnea_control.array_types import FloatArray
from rnea_control.messages.cdr_writer import CdrWriter, write_time


class TorqueTermsEncoder:
    """A serialised message, of which only the stamp and the values are left to fill in.

    Args:
        joint_names: of the controlled joints.
        terms: their names, which are the interface_names of every joint.
    """

    def __init__(self, joint_names: Sequence[str], terms: Sequence[str]) -> None:
        writer = CdrWriter()
        self._stamp = writer.time()
        writer.string("")  # frame_id
        writer.strings(joint_names)
        writer.integer(len(joint_names))
        for _ in joint_names:
            writer.strings(terms)
            writer.numbers(len(terms))
        self._message = writer.message()
        self._values = writer.views()

    def encode(self, stamp: int, values: FloatArray) -> bytes:
        """The message.

        Args:
            stamp: of the header, [ns].
            values: the terms of each joint, shape (len(terms), nv), [Nm] or [N].
        """
        write_time(self._message, self._stamp, stamp)
        for interface_values, of_joint in zip(self._values, values.T, strict=True):
            interface_values[:] = of_joint
        return bytes(self._message)
