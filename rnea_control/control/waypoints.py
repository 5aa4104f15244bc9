"""Waypoints: where an arm is to be, and when; one by one, and as arrays. Refuses those that the
settings do not allow, that are outside the position limits, or that begin where the arm is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control.settings import TrajectorySettings
from rnea_control.exceptions import TrajectoryError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

FIELDS = ("position", "velocity", "acceleration", "effort")
POSITION, VELOCITY, ACCELERATION, EFFORT = range(len(FIELDS))
# How far the arm may be from a first point at time 0, [rad] or [m].
START_DISTANCE = 0.1
# A start that passed no longer ago than this was meant to be now, [s].
JUST_PASSED = 0.1
# A velocity below this counts as rest, as it does for joint_trajectory_controller, [rad/s].
AT_REST = 1.2e-7


@dataclass(frozen=True)
class Waypoint:
    """Where the arm is to be at a time; any field may be left out, but not all.

    Attributes:
        time: [s].
        position: shape (nv,), [rad] or [m], or None.
        velocity: shape (nv,), [rad/s] or [m/s], or None.
        acceleration: shape (nv,), [rad/s^2] or [m/s^2], or None.
        effort: added to the controller's torque, shape (nv,), [Nm] or [N], or None.
    """

    time: float
    position: FloatArray | None
    velocity: FloatArray | None = None
    acceleration: FloatArray | None = None
    effort: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in FIELDS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))


@dataclass(frozen=True)
class Waypoints:
    """The n waypoints of a trajectory.

    Attributes:
        times: shape (n,), [s].
        fields: positions, velocities, accelerations and efforts, shape (4, n, nv); 0 where a point
            does not have them.
        has: which fields each point has, shape (4, n).
        joints: which joints the waypoints move, shape (nv,).
    """

    times: FloatArray
    fields: FloatArray
    has: BoolArray
    joints: BoolArray

    @classmethod
    def of(cls, points: Sequence[Waypoint] | Waypoints, nv: int) -> Waypoints:
        """The points as arrays, of all joints; a `Waypoints` is returned as it is.

        Raises:
            TrajectoryError: a field of a point that does not have `nv` numbers.
        """
        if isinstance(points, Waypoints):
            if points.nv != nv:
                raise TrajectoryError(f"the waypoints are of {points.nv} joints, not of {nv}")
            return points
        fields = np.zeros((len(FIELDS), len(points), nv))
        has = np.zeros((len(FIELDS), len(points)), dtype=bool)
        for k, name in enumerate(FIELDS):
            for i, point in enumerate(points):
                values = getattr(point, name)
                if values is None:
                    continue
                if np.shape(values) != (nv,):
                    raise TrajectoryError(
                        f"point {i}: has {np.size(values)} {name} values for {nv} joints; "
                        "it must have one for each"
                    )
                fields[k, i] = values
                has[k, i] = True
        times = np.array([point.time for point in points], dtype=np.float64)
        return cls(times, fields, has, np.ones(nv, dtype=bool))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def nv(self) -> int:
        return self.fields.shape[2]

    @property
    def positions(self) -> FloatArray:
        return self.fields[POSITION]

    @property
    def velocities(self) -> FloatArray:
        return self.fields[VELOCITY]

    @property
    def has_only_positions(self) -> bool:
        """Whether no point has a velocity or an acceleration."""
        return not self.has[VELOCITY : ACCELERATION + 1].any()

    @property
    def efforts(self) -> FloatArray:
        return self.fields[EFFORT]

    def __getitem__(self, part: slice) -> Waypoints:
        return replace(
            self, times=self.times[part], fields=self.fields[:, part], has=self.has[:, part]
        )

    def after(self, time: float) -> Waypoints:
        """Those later than a time."""
        return self[int(np.searchsorted(self.times, time, side="right")) :]

    def delayed(self, start: float) -> Waypoints:
        """The same with `start` added to every time."""
        return replace(self, times=start + self.times)

    def stretched(self, factor: float, begin: float) -> Waypoints:
        """The same path at 1/`factor` of the speed, from time `begin` on."""
        fields = self.fields.copy()
        fields[VELOCITY] /= factor
        fields[ACCELERATION] /= factor**2
        return replace(self, times=begin + factor * (self.times - begin), fields=fields)

    def led_by(self, time: float, state: FloatArray) -> Waypoints:
        """The same with one more in front, which has all fields; `state`: their values, shape
        (4, nv)."""
        return replace(
            self,
            times=np.concatenate([[time], self.times]),
            fields=np.concatenate([state[:, None], self.fields], axis=1),
            has=np.concatenate([np.ones((len(FIELDS), 1), dtype=bool), self.has], axis=1),
        )

    def check(self, joint_names: Sequence[str]) -> None:
        """Refuses waypoints that no arm can follow.

        Raises:
            TrajectoryError: no waypoint, a waypoint without any field, numbers that are not finite,
                times that do not rise, accelerations without velocities. The message names the
                waypoint and the joint.
        """
        if len(self) == 0:
            raise TrajectoryError(
                "the trajectory has no points; it needs one at least. To stop the arm, cancel the "
                "goal or send the point where it is"
            )
        for k, name in enumerate(FIELDS):
            values = self.fields[k]
            if not np.isfinite(values).all():
                i, j = np.argwhere(~np.isfinite(values))[0]
                raise TrajectoryError(
                    f"point {i}: the {name} of joint {joint_names[j]!r} is {values[i, j]}; it "
                    "must be finite"
                )
        empty = np.flatnonzero(~self.has[:EFFORT].any(axis=0))
        if empty.size:
            raise TrajectoryError(
                f"point {empty[0]}: has no positions, velocities or accelerations; give positions"
            )
        bare = np.flatnonzero(self.has[ACCELERATION] & ~self.has[VELOCITY] & self.has[POSITION])
        if bare.size:
            raise TrajectoryError(
                f"point {bare[0]}: has positions and accelerations but no velocities; give all "
                "three"
            )
        if not np.isfinite(self.times).all():
            i = int(np.flatnonzero(~np.isfinite(self.times))[0])
            raise TrajectoryError(f"point {i}: its time is {self.times[i]}; it must be finite")
        if self.times[0] < 0.0:
            raise TrajectoryError(
                f"point 0: its time is {self.times[0]:g} s; times are counted from the start and "
                "must not be negative"
            )
        falls = np.flatnonzero(np.diff(self.times) <= 0.0)
        if falls.size:
            i = int(falls[0]) + 1
            raise TrajectoryError(
                f"point {i}: its time {self.times[i]:g} s is not after that of point {i - 1}, "
                f"{self.times[i - 1]:g} s; times must rise from point to point"
            )


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
