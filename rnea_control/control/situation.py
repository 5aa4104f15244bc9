"""`Situation`: the state that a new trajectory starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control.splicing import merged
from rnea_control.control.trajectory import Trajectory, rest

# Below this scaling an arm that is measured to move counts as at rest: its velocity by trajectory
# time would be very large.
SLOWEST_SCALING = 0.01


@dataclass(frozen=True)
class Situation:
    """The state that a plan starts from.

    Attributes:
        trajectory: followed now.
        revision: how many there have been.
        t, s: controller's time and trajectory time now, [s].
        ahead: how long until the torque that is computed now acts, in trajectory time, [s].
        scaling: of trajectory time.
        position, velocity: measured, shape (nv,).
        error: desired minus measured position, shape (nv,).
    """

    trajectory: Trajectory
    revision: int
    t: float
    s: float
    ahead: float
    scaling: float
    position: FloatArray
    velocity: FloatArray
    error: FloatArray

    def trajectory_time(self, t: float) -> float:
        """Trajectory time at time `t`, if the scaling stays as it is."""
        return self.s + (t - self.t) * (self.scaling if t > self.t else 1.0)

    def measured(
        self, joints: BoolArray, astray: BoolArray, velocity_limit: FloatArray
    ) -> Trajectory:
        """A trajectory from where the arm is, in place of the one that is followed.

        Args:
            joints: which go on from the measured state, shape (nv,). The other ones go on as
                before.
            astray: which of the others do so from the measured position, shape (nv,).
            velocity_limit: no start is faster, shape (nv,), [rad/s] or [m/s].
        """
        coefficients = rest(self.position)
        if self.scaling > SLOWEST_SCALING:
            velocity = self.velocity / self.scaling
            coefficients[:, 1] = np.clip(velocity, -velocity_limit, velocity_limit)
        starts = np.array([self.s + self.ahead])
        if joints.all():
            return Trajectory(starts, coefficients[None])
        old = self.trajectory
        shifted = old.coefficients.copy()
        shifted[:, :, 0] -= self.error * astray
        others = Trajectory(old.starts, shifted)
        return Trajectory(*merged(others, starts, coefficients[None], joints), old.end_time)
