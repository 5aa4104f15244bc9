"""`Recording`: a robot's joint states during a motion."""

from __future__ import annotations

from dataclasses import dataclass

from rnea_control.array_types import FloatArray


@dataclass(frozen=True, eq=False)
class Recording:
    """The joint states of a motion as they came: nothing is sorted, filtered or left out.

    Attributes:
        source: the file, for messages.
        joints: the order of the columns.
        time: stamps, counted from the first one, shape (samples,), [s].
        q: positions, shape (samples, joints), [rad] or [m]; NaN where the messages had none.
        v: velocities, the same shape, [rad/s] or [m/s]; NaN where the messages had none.
        effort: measured efforts, the same shape, [Nm] or [N]; NaN where the messages had none.
        commanded: the commanded efforts in force at each state, the same shape; NaN where none was
            recorded.
        robot_description: the URDF that was recorded with them; "" if none was.
        notes: the assumptions of the file's reader, a sentence each.
    """

    source: str
    joints: tuple[str, ...]
    time: FloatArray
    q: FloatArray
    v: FloatArray
    effort: FloatArray
    commanded: FloatArray
    robot_description: str = ""
    notes: tuple[str, ...] = ()
