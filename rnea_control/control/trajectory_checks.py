"""Refuses trajectories, in one place: waypoints that no arm can follow, times that have passed,
what the settings do not allow, and what leaves the robot's limits of position, velocity and effort,
at the points and between them. All functions named `check` raise TrajectoryError.

Times in the messages are counted from the zero of the waypoints' times, `start`, [s].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import trajectory_limits as limits
from rnea_control.control.motion import DEFAULT, NO_TOLERANCE, GoalTolerances, Motion, Tolerances
from rnea_control.control.settings import TrajectorySettings
from rnea_control.control.trajectory import EFFORT, Trajectory
from rnea_control.control.trajectory_limits import EffortPeak
from rnea_control.control.waypoints import (
    ACCELERATION,
    AT_REST,
    FIELDS,
    POSITION,
    VELOCITY,
    Waypoints,
)
from rnea_control.exceptions import (
    TrajectoryError,
    TrajectoryJointsError,
    TrajectoryLimitsError,
    TrajectoryPassedError,
    TrajectoryPointsError,
    TrajectoryStartError,
    TrajectoryTimesError,
    listed,
)
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# How far the arm may be from a first point at time 0, [rad] or [m].
START_DISTANCE = 0.1
# A start that passed no longer ago than this was meant to be now, [s].
JUST_PASSED = 0.1
# Segments shorter than this drown in the rounding of their times, [s].
SHORTEST_SEGMENT = 1e-6
# What may be wrong with a waypoint, in the order of the checks.
_WRONG_POINTS = (
    (TrajectoryPointsError, "has no positions, velocities or accelerations; give positions"),
    (TrajectoryPointsError, "has positions and accelerations but no velocities; give all three"),
    (TrajectoryTimesError, "its time is {time}; it must be finite"),
    (
        TrajectoryTimesError,
        "its time is {time:g} s; times are counted from the start and must not be negative",
    ),
    (
        TrajectoryTimesError,
        "its time {time:g} s is not after that of point {previous}, {before:g} s; times must rise "
        "from point to point",
    ),
    (
        TrajectoryPointsError,
        "has no positions; give them, or set the parameter allow_integration_in_goal_trajectories "
        "to have them integrated from velocities",
    ),
)


def check_waypoints(
    points: Waypoints, rules: TrajectorySettings, joint_names: Sequence[str]
) -> None:
    """Refuses waypoints that no arm can follow, and positions left out that are not to be
    integrated. The message names the waypoint and the joint."""
    if len(points) == 0:
        raise TrajectoryPointsError(
            "the trajectory has no points; it needs one at least. To stop the arm, cancel the "
            "goal or send the point where it is"
        )
    for k, i, j in np.argwhere(~np.isfinite(points.fields)):
        raise TrajectoryPointsError(
            f"point {i}: the {FIELDS[k]} of joint {joint_names[j]!r} is {points.fields[k, i, j]}; "
            "it must be finite"
        )
    times, has = points.times, points.has
    wrong = (
        ~has[: ACCELERATION + 1].any(axis=0),
        has[ACCELERATION] & ~has[VELOCITY] & has[POSITION],
        ~np.isfinite(times),
        times[:1] < 0.0,
        np.diff(times, prepend=-1.0) <= 0.0,
        ~(has[POSITION] | rules.allow_integration),
    )
    for at, (error, text) in zip(wrong, _WRONG_POINTS, strict=True):
        if at.any():
            i = int(np.argmax(at))
            found = text.format(time=times[i], previous=i - 1, before=times[i - 1])
            raise error(f"point {i}: {found}")


def overridden(default: Tolerances, goal: GoalTolerances, joint_names: Sequence[str]) -> Tolerances:
    """The default tolerances, with those of a goal in their place.

    Raises:
        TrajectoryJointsError: a joint that the controller does not control.
        TrajectoryError: a tolerance that is not a number, or negative and not -1.
    """
    names = "path_position", "path_velocity", "goal_position", "goal_velocity"
    columns = {name: getattr(default, name).copy() for name in names}
    for part, wanted in (("path", goal.path), ("goal", goal.goal)):
        for tolerance in wanted:
            where = f"{part}_tolerance of joint {tolerance.joint!r}"
            if tolerance.joint not in joint_names:
                raise TrajectoryJointsError(
                    f"{where}: this controller does not control it; its joints are "
                    f"{listed(joint_names)}"
                )
            j = list(joint_names).index(tolerance.joint)
            for quantity in ("position", "velocity"):
                column = columns[f"{part}_{quantity}"]
                value = getattr(tolerance, quantity)
                column[j] = _resolved(f"{where}, {quantity}", value, column[j])
    time = _resolved("goal_time_tolerance", goal.time, default.goal_time)
    return replace(default, **columns, goal_time=time)


def allowed_rows(
    rules: TrajectorySettings, motion: Motion | None, joint_names: Sequence[str]
) -> FloatArray:
    """The tolerances of a motion for `motion.check`: those of the settings with those that it
    brought."""
    if motion is None:
        return rules.tolerances.rows(np.ones(len(joint_names), dtype=bool), rules.tolerances)
    allowed = overridden(rules.tolerances, motion.tolerances, joint_names)
    return allowed.rows(motion.joints, rules.tolerances)


def _resolved(what: str, value: float, default: float) -> float:
    if value == DEFAULT:
        return default
    if value == NO_TOLERANCE:
        return math.inf
    if not value > 0.0:
        raise TrajectoryError(
            f"{what} is {value}; it must be above 0, or 0 for the default, or -1 for none"
        )
    return value


def check_times(
    points: Waypoints, asked: float | None, start: float, begin: float, now: float
) -> None:
    """Refuses a start that was asked for and is no time, and waypoints that leave no time from
    `begin` on, when they would take over, or start too far from `now`, by trajectory time."""
    duration, until = points.times[-1], start - now
    if asked is not None and not math.isfinite(asked):
        raise TrajectoryTimesError(f"its start is {asked} s; it must be finite")
    if duration <= 0.0:
        raise TrajectoryTimesError(
            f"the last point's time is {duration:g} s; the arm needs time to get there, give "
            "it more than 0"
        )
    if until > 0.0 and start + duration == start:
        raise TrajectoryTimesError(f"its start, {until:g} s from now, is too far ahead")
    if start + duration <= begin:
        raise TrajectoryPassedError(
            f"the trajectory ended {begin - start - duration:.3f} s ago; send it earlier, or with "
            "stamp 0 to start now"
        )
    ahead = points.delayed(start).after(begin).times
    if not ahead.size or np.diff(ahead, prepend=begin).min() < SHORTEST_SEGMENT:
        raise TrajectoryTimesError(
            f"at its start, {until:g} s from now, points are less than {SHORTEST_SEGMENT:g} s "
            "apart; give them more time"
        )


def check_first_point(points: Waypoints, position: FloatArray, model: RobotModel) -> None:
    """Refuses a first point at time 0, the start, that is not where the arm is then: at `position`,
    the desired one, shape (nv,), [rad] or [m]."""
    if points.times[0] > 0.0 or not points.has[POSITION, 0]:
        return
    away = (points.positions[0] - position) * points.joints
    turns = np.round(away / (2.0 * math.pi)) * model.continuous
    away = np.abs(away - 2.0 * math.pi * turns)
    j = int(np.argmax(away))
    if away[j] > START_DISTANCE:
        raise TrajectoryStartError(
            f"point 0 is at time 0, but joint {model.joint_names[j]!r} is {away[j]:.3g} "
            f"{units(model, j).position} away from it at the start, {START_DISTANCE:g} allowed. "
            "Start where the arm is, or give the point the time to get there"
        )


def check_positions_and_end(
    points: Waypoints, start: float, rules: TrajectorySettings, model: RobotModel
) -> None:
    """Refuses waypoints outside the position limits, and a velocity at the end that is not
    allowed."""
    positions, lower, upper = points.positions, model.lower, model.upper
    for i, j in np.argwhere(((positions < lower) | (positions > upper)) & points.joints):
        raise TrajectoryLimitsError(
            f"the point at {points.times[i] - start:g} s: joint {model.joint_names[j]!r} at "
            f"{positions[i, j]:g} is outside its limits {lower[j]:g} to {upper[j]:g}"
        )
    velocity = points.velocities[-1]
    j = int(np.argmax(np.abs(velocity)))
    if abs(velocity[j]) > AT_REST and not rules.allow_moving_end:
        raise TrajectoryError(
            f"the last point: joint {model.joint_names[j]!r} has velocity {velocity[j]:g} at the "
            "end; the last point must be at rest, unless the parameter "
            "allow_nonzero_velocity_at_trajectory_end is set"
        )


def check_limits(trajectory: Trajectory, begin: float, start: float, model: RobotModel) -> None:
    """Refuses splines that themselves leave the limits of position and velocity from `begin` on,
    [s]."""
    if not np.isfinite(trajectory.coefficients[:, :, EFFORT:]).all():
        raise TrajectoryLimitsError("its efforts are too large; are they in Nm or N?")
    what, segment, j, time, value = limits.first_violation(trajectory, begin, model)
    if what == limits.NOTHING:
        return
    if what == limits.NOT_FINITE:
        raise TrajectoryLimitsError("its numbers are too large; are they in rad and s?")
    unit, limit = units(model, j), model.velocity_limit[j]
    left, right = trajectory.starts[segment : segment + 2] - start
    does = (
        f"be at {value:.4g} {unit.position}, outside its limits {model.lower[j]:g} to "
        f"{model.upper[j]:g}. Add a point there, or lower the velocities at its neighbors"
    )
    if what == limits.BEYOND_VELOCITY:
        does = (
            f"move at {abs(value):.3g} {unit.velocity}; its limit is {limit:g}. Make the "
            f"trajectory {abs(value) / limit:.3g} times slower"
        )
    raise TrajectoryLimitsError(
        f"at {time - start:.3g} s, between the points at {max(left, 0.0):g} s and {right:g} s, "
        f"joint {model.joint_names[j]!r} would {does}"
    )


def excessive_effort(peak: EffortPeak, start: float, model: RobotModel) -> str:
    """What a peak beyond the effort limit asks for, and how to mend it."""
    joint, unit = model.joint_names[peak.joint], units(model, peak.joint).effort
    remedy = f"Make the trajectory {peak.stretch:.3g} times slower"
    if not peak.stretch < math.inf:
        remedy = "Going slower does not help, as the arm cannot hold itself there"
    return (
        f"{peak.time - start:.3g} s into it, joint {joint!r} needs {peak.torque:.4g} {unit}; "
        f"its effort limit is {peak.limit:.4g}. {remedy}"
    )
