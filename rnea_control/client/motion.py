"""Motions of the arm from rest to rest, within the limits in force in the controller. No ROS."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.client.profile import MotionLimits, Profile, straight
from rnea_control.control.settings import reference_speed
from rnea_control.control.waypoints import whole_turns
from rnea_control.exceptions import (
    TrajectoryLimitsError,
    TrajectoryTimesError,
    distinct,
)
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.node.parameters import InForce

LONGEST = 3600.0  # longest duration of a motion [s]


def motion_limits(
    given: InForce, speed: float, acceleration: FloatArray | None = None
) -> MotionLimits:
    """Bounds of velocity and acceleration.

    Args:
        given: model and settings in force in the controller.
        speed: share of the velocity limits, above 0 and at most 1.
        acceleration: largest accelerations, shape (nv,), [rad/s^2] or [m/s^2]; None for the
            default.
    """
    safety = given.controller.safety
    scale = 1.0 if safety is None else min(safety.velocity_limit_scale, 1.0)
    return MotionLimits.of(scale * reference_speed(given.model), speed, acceleration)


def motion_to(
    target: FloatArray, held: FloatArray, model: RobotModel, limits: MotionLimits, turns: bool
) -> Profile:
    """Straight motion from the position at which the arm is held.

    Args:
        target: position at the end, shape (nv,), [rad] or [m].
        held: position at the start, shape (nv,), [rad] or [m].
        model: model of the arm.
        limits: bounds of the motion.
        turns: True if continuous joints turn as far as the target says; else they take the shortest
            way.

    Raises:
        TrajectoryLimitsError: the target is beyond the position limits.
    """
    check_target(target, model)
    return straight(held, target if turns else held + shortest(target - held, model), limits)


def check_target(target: FloatArray, model: RobotModel, where: str = "") -> None:
    """Raises TrajectoryLimitsError for a target outside the position limits; `where` begins the
    message."""
    for j in np.flatnonzero(~((target >= model.lower) & (target <= model.upper))):
        at, least, most = distinct(target[j], model.lower[j], model.upper[j])
        unit = units(model, j).position
        raise TrajectoryLimitsError(
            f"{where}{model.joint_names[j]} would go to {at} {unit}; its limits are {least} to "
            f"{most} {unit}"
        )


def check_duration(profile: Profile) -> None:
    """Raises TrajectoryTimesError for a motion of more than `LONGEST`."""
    if not profile.duration <= LONGEST:
        raise TrajectoryTimesError(
            f"the motion would take {profile.duration:.3g} s, more than {LONGEST:g} s; give a "
            "larger speed or acceleration, or a nearer target"
        )


def shortest(way: FloatArray, model: RobotModel) -> FloatArray:
    """Displacement without whole turns of continuous joints."""
    return way - whole_turns(way, model.continuous)
