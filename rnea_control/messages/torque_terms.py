"""JointState messages with the terms of each torque, to bytes.

Every term of every joint is a name, `joint1/gravity`, with an effort: so tools that label efforts
by their names, such as PlotJuggler, label the terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from rnea_control.array_types import FloatArray
from rnea_control.messages.cdr_writer import CdrWriter, write_time


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
