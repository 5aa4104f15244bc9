"""Waypoints: where an arm is to be, and when; one by one, and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import TrajectoryError


@dataclass(frozen=True)
class Waypoint:
    """Where the arm is to be at a time; velocities and accelerations may be left out.

    Attributes:
        time: [s].
        position: shape (nv,), [rad] or [m].
        velocity: shape (nv,), [rad/s] or [m/s], or None.
        acceleration: shape (nv,), [rad/s^2] or [m/s^2], or None; only together with a velocity.
    """

    time: float
    position: FloatArray
    velocity: FloatArray | None = None
    acceleration: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("position", "velocity", "acceleration"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))


@dataclass(frozen=True)
class Waypoints:
    """The n waypoints of a trajectory.

    Attributes:
        times: shape (n,), [s].
        positions, velocities, accelerations: shape (n, nv); 0 where a point does not have them.
        has_velocity, has_acceleration: which points do, shape (n,).
    """

    times: FloatArray
    positions: FloatArray
    velocities: FloatArray
    accelerations: FloatArray
    has_velocity: BoolArray
    has_acceleration: BoolArray

    @classmethod
    def of(cls, points: Sequence[Waypoint] | Waypoints, nv: int) -> Waypoints:
        """The points as arrays; a `Waypoints` is returned as it is.

        Raises:
            TrajectoryError: a field of a point that does not have `nv` numbers.
        """
        if isinstance(points, Waypoints):
            if points.nv != nv:
                raise TrajectoryError(f"the waypoints are of {points.nv} joints, not of {nv}")
            return points
        fields = np.zeros((3, len(points), nv))
        has = np.zeros((3, len(points)), dtype=bool)
        for k, name in enumerate(("position", "velocity", "acceleration")):
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
        return cls(times, *fields, *has[1:])

    def __len__(self) -> int:
        return len(self.times)

    @property
    def nv(self) -> int:
        return self.positions.shape[1]

    def __getitem__(self, part: slice) -> Waypoints:
        return Waypoints(
            self.times[part],
            self.positions[part],
            self.velocities[part],
            self.accelerations[part],
            self.has_velocity[part],
            self.has_acceleration[part],
        )

    def after(self, time: float) -> Waypoints:
        """Those later than a time."""
        return self[int(np.searchsorted(self.times, time, side="right")) :]

    def delayed(self, start: float) -> Waypoints:
        """The same with `start` added to every time."""
        return Waypoints(
            start + self.times,
            self.positions,
            self.velocities,
            self.accelerations,
            self.has_velocity,
            self.has_acceleration,
        )

    def led_by(self, first: Waypoint) -> Waypoints:
        """The same with one more in front, which must have all fields."""
        return Waypoints(
            np.concatenate([[first.time], self.times]),
            np.concatenate([[first.position], self.positions]),
            np.concatenate([[first.velocity], self.velocities]),
            np.concatenate([[first.acceleration], self.accelerations]),
            np.concatenate([[True], self.has_velocity]),
            np.concatenate([[True], self.has_acceleration]),
        )

    def check(self, joint_names: Sequence[str]) -> None:
        """Refuses waypoints that no arm can follow.

        Raises:
            TrajectoryError: no waypoint, numbers that are not finite, times that do not rise,
                accelerations without velocities, a velocity at the end. The message names the
                waypoint and the joint.
        """
        if len(self) == 0:
            raise TrajectoryError("the trajectory has no points; it needs one at least")
        for name in ("position", "velocity", "acceleration"):
            values = {
                "position": self.positions,
                "velocity": self.velocities,
                "acceleration": self.accelerations,
            }[name]
            if not np.isfinite(values).all():
                i, j = np.argwhere(~np.isfinite(values))[0]
                raise TrajectoryError(
                    f"point {i}: the {name} of joint {joint_names[j]!r} is {values[i, j]}; it "
                    "must be finite"
                )
        bare = np.flatnonzero(self.has_acceleration & ~self.has_velocity)
        if bare.size:
            raise TrajectoryError(
                f"point {bare[0]}: has accelerations but no velocities; give both"
            )
        if not np.isfinite(self.times).all():
            i = int(np.flatnonzero(~np.isfinite(self.times))[0])
            raise TrajectoryError(f"point {i}: its time is {self.times[i]}; it must be finite")
        falls = np.flatnonzero(np.diff(self.times) <= 0.0)
        if falls.size:
            i = int(falls[0]) + 1
            raise TrajectoryError(
                f"point {i}: its time {self.times[i]:g} s is not after that of point {i - 1}, "
                f"{self.times[i - 1]:g} s; times must rise from point to point"
            )
        last = self.velocities[-1]
        if last.any():
            j = int(np.argmax(np.abs(last)))
            raise TrajectoryError(
                f"point {len(self) - 1}: joint {joint_names[j]!r} has velocity {last[j]:g} at the "
                "end; the last point must be at rest"
            )
