"""Waypoints: where an arm is to be, and when; one by one, and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import TrajectoryError

FIELDS = ("position", "velocity", "acceleration", "effort")
POSITION, VELOCITY, ACCELERATION, EFFORT = range(len(FIELDS))
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
