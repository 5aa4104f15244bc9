"""`ExcitationLimits`: bounds of an exciting motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.identification.consistent_parameters import check_joints
from rnea_control.model import RobotModel

MARGIN = 0.05  # distance from the position limits as a fraction of the range
LEAST_MARGIN = 0.05  # smallest distance from the limits of angles [rad]
# Velocity limits of joints without one in the URDF, [rad/s] or [m/s].
DEFAULT_VELOCITY = {"revolute": math.pi, "continuous": math.pi, "prismatic": 1.0}
RISE_TIME = 0.5  # time in which joints reach the allowed velocity [s]


@dataclass(frozen=True, eq=False)
class ExcitationLimits:
    """Bounds of a motion, shape (joints,) each."""

    lower: FloatArray  # bounds of the positions, finite, [rad] or [m]
    upper: FloatArray
    velocity: FloatArray  # largest velocity, finite, [rad/s] or [m/s]
    acceleration: FloatArray  # largest acceleration, finite, [rad/s^2] or [m/s^2]
    torque: FloatArray  # largest torque, [Nm] or [N]; infinite without an effort limit in the URDF

    @property
    def middle(self) -> FloatArray:
        """Middle of the range of the positions."""
        return 0.5 * (self.upper + self.lower)

    @property
    def half(self) -> FloatArray:
        """Half the range of the positions."""
        return 0.5 * (self.upper - self.lower)

    @property
    def scales(self) -> FloatArray:
        """`half`, and the largest velocities, accelerations and torques, shape (4, joints)."""
        return np.stack([self.half, self.velocity, self.acceleration, self.torque])

    def shares(self, q: FloatArray, v: FloatArray, a: FloatArray, tau: FloatArray) -> FloatArray:
        """Positions (from the middle), velocities, accelerations and torques of a motion, shape
        (joints, times) each, as fractions of `scales`, shape (4, joints, times)."""
        return np.stack([q - self.middle[:, None], v, a, tau]) / self.scales[:, :, None]


def excitation_limits(
    model: RobotModel,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    speed: float = 0.5,
    torque: float = 0.7,
) -> ExcitationLimits:
    """Limits of a robot's exciting motion.

    Args:
        model: the robot; its joints are revolute, continuous or prismatic.
        ranges: lower and upper position by joint, within the URDF's limits, [rad] or [m]. Other
            joints have the URDF's range less `MARGIN` on both sides; continuous joints -pi to pi.
        speed: allowed fraction of the velocity limits, in (0, 1].
        torque: allowed fraction of the effort limits, in (0, 1].

    Raises:
        IdentificationError: a joint of another type, an unknown joint, a range that is empty or not
            within the limits, a fraction out of range, a limit of 0 in the URDF.
    """
    check_joints(model)
    ranges = ranges or {}
    if model.nv == 0:
        raise IdentificationError(
            f"robot {model.name!r} has no joint that moves; choose the joints to identify"
        )
    efforts = zip(model.joint_names, model.effort_limit, strict=True)
    if zero := [name for name, limit in efforts if limit <= 0.0]:
        raise IdentificationError(
            f"the effort limit of {listed(zero)} in the URDF of {model.name!r} is 0, so that no "
            "motion is allowed; correct the URDF, or do not choose these joints"
        )
    for name, share, limit in (("speed", speed, "velocity"), ("torque", torque, "effort")):
        if not 0.0 < share <= 1.0:
            raise IdentificationError(
                f"{name} is {share}; it must be above 0 and at most 1: the share of the URDF's "
                f"{limit} limits that the motion may use"
            )
    if unknown := [name for name in ranges if name not in model.joint_names]:
        raise IdentificationError(
            f"range of {listed(unknown)}: {model.name!r} moves the joints "
            f"{listed(model.joint_names)}; correct the name"
        )
    bounds = [_range(model, j, ranges.get(name)) for j, name in enumerate(model.joint_names)]
    lower, upper = np.array(bounds).T
    default = [DEFAULT_VELOCITY[kind] for kind in model.joint_types]
    known = np.isfinite(model.velocity_limit)
    velocity = speed * np.where(known, model.velocity_limit, default)
    return ExcitationLimits(
        lower, upper, velocity, velocity / RISE_TIME, torque * model.effort_limit
    )


def _range(model: RobotModel, j: int, given: tuple[float, float] | None) -> tuple[float, float]:
    """Allowed range of joint j."""
    slides = model.joint_types[j] == "prismatic"
    least, most = float(model.lower[j]), float(model.upper[j])
    low, high, width = least, most, most - least
    if given is not None:
        low, high = map(float, given)
    elif math.isfinite(width):
        margin = max(MARGIN * width, 0.0 if slides else LEAST_MARGIN)
        margin = min(margin, 0.25 * width)
        low, high = least + margin, most - margin
    elif not slides:  # a whole turn, about 0 unless there is a limit on one side
        turn = 2.0 * math.pi
        low = min(max(-math.pi, least + LEAST_MARGIN), most - LEAST_MARGIN - turn)
        high = low + turn
    if not (least <= low < high <= most and math.isfinite(high - low)):
        raise IdentificationError(
            f"the range of joint {model.joint_names[j]!r} is {low:g} to {high:g}; it must be two "
            "finite numbers, the lower one first, within the URDF's limits, "
            f"{least:g} to {most:g}. Give such a range, or correct the URDF"
        )
    return low, high
