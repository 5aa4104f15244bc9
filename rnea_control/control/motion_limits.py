"""Refuses trajectories beyond a robot's position and velocity limits."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.control.trajectory import Trajectory
from rnea_control.control.waypoints import Waypoints
from rnea_control.exceptions import TrajectoryError
from rnea_control.model import RobotModel

# Cubics and quintics between a planner's waypoints exceed its velocity limit by a little.
VELOCITY_TOLERANCE = 1.1


def check_position_limits(waypoints: Waypoints, model: RobotModel) -> None:
    """Raises TrajectoryError for a waypoint outside the position limits."""
    positions = waypoints.positions
    outside = (positions < model.lower) | (positions > model.upper)
    if outside.any():
        i, j = np.argwhere(outside)[0]
        raise TrajectoryError(
            f"the point at {waypoints.times[i]:g} s: joint {model.joint_names[j]!r} at "
            f"{positions[i, j]:g} is outside its limits {model.lower[j]:g} to {model.upper[j]:g}"
        )


def check_velocity_limits(trajectory: Trajectory, begin: float, model: RobotModel) -> None:
    """Raises TrajectoryError for speeds beyond the limits, often on the way to the first point.

    Args:
        trajectory: to be checked.
        begin: from when on it is checked, [s].
        model: the robot; a velocity limit of 0 is taken as none.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        speed = trajectory.largest_speeds(begin)
    if not np.isfinite(speed).all():
        raise TrajectoryError("its numbers are too large; are they in rad and s?")
    limit = np.where(model.velocity_limit > 0.0, model.velocity_limit, math.inf)
    if (speed > VELOCITY_TOLERANCE * limit).any():
        segment, j = np.unravel_index(np.argmax(speed / limit), speed.shape)
        raise TrajectoryError(
            f"joint {model.joint_names[j]!r} would move at {speed[segment, j]:.3g} rad/s or m/s on "
            f"its way to point {segment} of those ahead; its limit is {limit[j]:g}. Give it more "
            "time"
        )
