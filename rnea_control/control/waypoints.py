"""Waypoints: where an arm is to be, and when; one by one, and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import TrajectoryError

FIELDS = ("position", "velocity", "acceleration", "effort")
POSITION, VELOCITY, ACCELERATION, EFFORT = range(len(FIELDS))


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
