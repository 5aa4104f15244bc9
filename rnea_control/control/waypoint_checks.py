"""Refuses waypoints that the settings do not allow, that are outside the position limits, or that
begin where the arm is not."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.settings import TrajectorySettings
from rnea_control.control.waypoints import POSITION, Waypoints
from rnea_control.exceptions import TrajectoryError
from rnea_control.model import RobotModel
from rnea_control.model.units import units

# How far the arm may be from a first point at time 0, [rad] or [m].
START_DISTANCE = 0.1
# A start that passed no longer ago than this was meant to be now, [s].
JUST_PASSED = 0.1
# A velocity below this counts as rest, as it does for joint_trajectory_controller, [rad/s].
AT_REST = 1.2e-7


def check_fields(points: Waypoints, rules: TrajectorySettings) -> None:
    """Raises TrajectoryError for positions left out that are not to be integrated."""
    bare = np.flatnonzero(~points.has[POSITION])
    if bare.size and not rules.allow_integration:
        raise TrajectoryError(
            f"point {bare[0]}: has no positions; give them, or set the parameter "
            "allow_integration_in_goal_trajectories to have them integrated from velocities"
        )


def check_end(points: Waypoints, rules: TrajectorySettings, joint_names: tuple[str, ...]) -> None:
    """Raises TrajectoryError for a velocity at the end that is not allowed."""
    last = np.abs(points.velocities[-1])
    if last.max() > AT_REST and not rules.allow_moving_end:
        j = int(np.argmax(last))
        raise TrajectoryError(
            f"the last point: joint {joint_names[j]!r} has velocity "
            f"{points.velocities[-1, j]:g} at the end; the last point must be at rest, unless the "
            "parameter allow_nonzero_velocity_at_trajectory_end is set"
        )


def check_position_limits(waypoints: Waypoints, start: float, model: RobotModel) -> None:
    """Raises TrajectoryError for a waypoint outside the position limits; `start`: the zero of the
    time in the error, [s]."""
    positions = waypoints.positions
    outside = ((positions < model.lower) | (positions > model.upper)) & waypoints.joints
    if outside.any():
        i, j = np.argwhere(outside)[0]
        raise TrajectoryError(
            f"the point at {waypoints.times[i] - start:g} s: joint {model.joint_names[j]!r} at "
            f"{positions[i, j]:g} is outside its limits {model.lower[j]:g} to {model.upper[j]:g}"
        )


def check_first_point(waypoints: Waypoints, position: FloatArray, model: RobotModel) -> None:
    """Raises TrajectoryError for a first point at time 0 that is not where the arm is then.

    Args:
        waypoints: their times are counted from the start.
        position: desired position at the start, shape (nv,), [rad] or [m].
        model: the robot.
    """
    if waypoints.times[0] > 0.0:
        return
    away = (waypoints.positions[0] - position) * waypoints.joints
    turns = np.round(away / (2.0 * math.pi)) * model.continuous
    away = np.abs(away - 2.0 * math.pi * turns)
    if away.max() > START_DISTANCE:
        j = int(np.argmax(away))
        raise TrajectoryError(
            f"point 0 is at time 0, but joint {model.joint_names[j]!r} is {away[j]:.3g} "
            f"{units(model, j).position} away from it at the start, {START_DISTANCE:g} allowed. "
            "Start where the arm is, or give the point the time to get there"
        )
