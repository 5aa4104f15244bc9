"""`ControllerState`: what a controller did in its last step."""

from __future__ import annotations

from dataclasses import dataclass

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.motion import Motion


@dataclass(frozen=True)
class ControllerState:
    """What a controller did in its last step.

    Attributes:
        rows: see layout.py.
        motion: what was followed; None if nothing was.
    """

    rows: FloatArray
    motion: Motion | None

    @property
    def desired(self) -> FloatArray:
        """Desired position, velocity, acceleration and effort, shape (4, nv)."""
        return self.rows[layout.DESIRED_POSITION : layout.DESIRED_EFFORT + 1]

    @property
    def errors(self) -> FloatArray:
        """Desired minus measured position and velocity when the torque acts, shape (2, nv)."""
        return self.rows[layout.POSITION_ERROR : layout.VELOCITY_ERROR + 1]

    @property
    def measured(self) -> FloatArray:
        """Measured position and velocity, carried on to when the torque acts, shape (2, nv);
        continuous joints in the turn of the desired position."""
        return self.desired[:2] - self.errors

    @property
    def torque(self) -> FloatArray:
        """The torque before the effort limits, shape (nv,)."""
        return self.rows[layout.TORQUE]

    @property
    def speed_scaling(self) -> float:
        return float(self.rows[layout.SCALING, 0])

    @property
    def trajectory_time(self) -> float:
        """[s]."""
        return float(self.rows[layout.LAST_TRAJECTORY_TIME, 0])

    @property
    def time_from_start(self) -> float:
        """How far the motion is, [s]; 0 without one."""
        if self.motion is None:
            return 0.0
        return self.trajectory_time - self.motion.start
