r"""Joint trajectories as piecewise polynomials: immutable, checked when made, sampled in constant
time.

Between two waypoints the motion is what joint_trajectory_controller makes of the same fields:
linear where only positions are given, cubic where both points have velocities, quintic where both
have accelerations too. After the last waypoint the arm holds its position. Each segment is one
polynomial of the time since its start,

.. math:: q(s) = \sum_{k=0}^{5} c_k s^k

and the hold after the end is a last segment that never ends, so that sampling knows no special
case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rnea_control.dynamics.kernel import inlined, kernel
from rnea_control.dynamics.vector3 import FloatArray
from rnea_control.exceptions import TrajectoryError

COEFFICIENTS = 6


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


class Trajectory:
    """A motion of all joints over time.

    Attributes:
        starts: when each segment starts, ascending, shape (m,), [s]; the last one never ends.
        coefficients: of each segment and joint, lowest power first, shape (m, nv, 6).
    """

    def __init__(self, starts: FloatArray, coefficients: FloatArray) -> None:
        """Takes finished segments; `through`, `hold` and `then` are the ways to make them."""
        self.starts = np.ascontiguousarray(starts, dtype=np.float64)
        self.coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)

    @classmethod
    def through(cls, waypoints: Sequence[Waypoint], joint_names: Sequence[str]) -> Trajectory:
        """The trajectory through `waypoints`, at rest in the last one's position afterwards.

        Raises:
            TrajectoryError: no waypoint, sizes that differ, numbers that are not finite, times that
                do not rise, a velocity at the end. The message names the waypoint and the joint.
        """
        check_waypoints(waypoints, joint_names)
        return cls._from_points(waypoints)

    @classmethod
    def hold(cls, time: float, position: FloatArray) -> Trajectory:
        """Rest at `position`, shape (nv,), from `time` on and before."""
        return cls(np.array([time]), np.array([_rest(position)]))

    @property
    def end_time(self) -> float:
        """When the last waypoint is reached, [s]."""
        return float(self.starts[-1])

    @property
    def nv(self) -> int:
        return self.coefficients.shape[1]

    def at(self, time: float) -> FloatArray:
        """Rows of position, velocity and acceleration at a time, shape (3, nv); allocates."""
        desired = np.zeros((3, self.nv))
        _sample(self.starts, self.coefficients, np.zeros(1, dtype=np.int64), time, desired)
        return desired

    def largest_speeds(self, begin: float) -> FloatArray:
        """The largest speed of each joint in each segment that starts at `begin` or later.

        Shape (segments, nv), without the rest at the end; found at points an eighth of a segment
        apart.
        """
        first = int(np.searchsorted(self.starts, begin, side="left"))
        s = np.diff(self.starts[first:])[:, None, None] * np.linspace(0.0, 1.0, 9)[None, :, None]
        c = self.coefficients[first:-1, None, :, :]
        powers = [k * c[..., k] * s ** (k - 1) for k in range(1, COEFFICIENTS)]
        return np.abs(sum(powers)).max(axis=1)

    def then(
        self, waypoints: Sequence[Waypoint], now: float, start: float, continuous: FloatArray
    ) -> Trajectory:
        """This trajectory until `start`, then smoothly to the first of `waypoints` and on
        through them all.

        Waypoints at or before `start` have passed and are left out, as are this trajectory's
        segments before `now`.

        Args:
            waypoints: checked ones, at least one of them after `start`.
            now: the time from which the new trajectory will be sampled, [s].
            start: when the new motion takes over, not before `now`, [s].
            continuous: 1 for each joint that turns without end, shape (nv,): it starts whole turns
                away where that brings it nearest to its first waypoint.
        """
        ahead = [waypoint for waypoint in waypoints if waypoint.time > start]
        position, velocity, acceleration = self.at(start)
        turns = np.round((ahead[0].position - position) / (2.0 * math.pi)) * continuous
        shift = 2.0 * math.pi * turns
        first = max(int(np.searchsorted(self.starts, now, side="right")) - 1, 0)
        after = int(np.searchsorted(self.starts, start, side="left"))
        kept = self.coefficients[first:after].copy()
        kept[:, :, 0] += shift
        joined = Waypoint(start, position + shift, velocity, acceleration)
        new = Trajectory._from_points([joined, *ahead])
        return Trajectory(
            np.concatenate([self.starts[first:after], new.starts]),
            np.concatenate([kept, new.coefficients]),
        )

    @classmethod
    def _from_points(cls, points: Sequence[Waypoint]) -> Trajectory:
        with np.errstate(over="ignore", invalid="ignore"):
            segments = [_segment(a, b) for a, b in pairwise(points)]
        segments.append(_rest(points[-1].position))
        return cls(np.array([point.time for point in points]), np.array(segments))


def check_waypoints(waypoints: Sequence[Waypoint], joint_names: Sequence[str]) -> None:
    """Refuses waypoints that no arm can follow.

    Raises:
        TrajectoryError: as `Trajectory.through`.
    """
    if not waypoints:
        raise TrajectoryError("the trajectory has no points; it needs one at least")
    for i, waypoint in enumerate(waypoints):
        _check_fields(i, waypoint, joint_names)
        if not math.isfinite(waypoint.time):
            raise TrajectoryError(f"point {i}: its time is {waypoint.time}; it must be finite")
        if i > 0 and waypoint.time <= waypoints[i - 1].time:
            raise TrajectoryError(
                f"point {i}: its time {waypoint.time:g} s is not after that of point {i - 1}, "
                f"{waypoints[i - 1].time:g} s; times must rise from point to point"
            )
    last = waypoints[-1].velocity
    if last is not None and last.any():
        joint = int(np.argmax(np.abs(last)))
        raise TrajectoryError(
            f"point {len(waypoints) - 1}: joint {joint_names[joint]!r} has velocity "
            f"{last[joint]:g} at the end; "
            "the last point must be at rest"
        )


def _check_fields(i: int, waypoint: Waypoint, joint_names: Sequence[str]) -> None:
    for name in ("position", "velocity", "acceleration"):
        values = getattr(waypoint, name)
        if values is None and name != "position":
            continue
        if np.shape(values) != (len(joint_names),):
            raise TrajectoryError(
                f"point {i}: has {np.size(values)} {name} values for {len(joint_names)} joints; "
                "it must have one for each"
            )
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise TrajectoryError(
                f"point {i}: the {name} of joint {joint_names[bad[0]]!r} is {values[bad[0]]}; it "
                "must be finite"
            )
    if waypoint.acceleration is not None and waypoint.velocity is None:
        raise TrajectoryError(f"point {i}: has accelerations but no velocities; give both")


def _rest(position: FloatArray) -> FloatArray:
    coefficients = np.zeros((len(position), COEFFICIENTS))
    coefficients[:, 0] = position
    return coefficients


def _segment(start: Waypoint, end: Waypoint) -> FloatArray:
    """Coefficients (nv, 6) of the lowest polynomials that meet the fields both points have."""
    T = end.time - start.time
    c = np.zeros((len(start.position), COEFFICIENTS))
    step = end.position - start.position
    c[:, 0] = start.position
    if start.velocity is None or end.velocity is None:
        c[:, 1] = step / T
    elif start.acceleration is None or end.acceleration is None:
        v0, v1 = start.velocity, end.velocity
        c[:, 1] = v0
        c[:, 2] = (3.0 * step / T - 2.0 * v0 - v1) / T
        c[:, 3] = (-2.0 * step / T + v0 + v1) / T**2
    else:
        v0, v1 = start.velocity, end.velocity
        a0, a1 = start.acceleration, end.acceleration
        c[:, 1] = v0
        c[:, 2] = 0.5 * a0
        c[:, 3] = (20.0 * step / T - (8.0 * v1 + 12.0 * v0) - (3.0 * a0 - a1) * T) / (2.0 * T**2)
        c[:, 4] = (-30.0 * step / T + (14.0 * v1 + 16.0 * v0) + (3.0 * a0 - 2.0 * a1) * T) / (
            2.0 * T**3
        )
        c[:, 5] = (12.0 * step / T - 6.0 * (v1 + v0) - (a0 - a1) * T) / (2.0 * T**4)
    return c


@inlined
def sample(
    starts: FloatArray, coefficients: FloatArray, segment: int, time: float, desired: FloatArray
) -> int:
    """Fills rows 0, 1, 2 of `desired` with position, velocity and acceleration at `time`; returns
    the segment used.

    `segment` is the one used last: from there the right one is a step or none away while time runs
    on.
    """
    last = starts.shape[0] - 1
    segment = min(max(segment, 0), last)
    while segment < last and time >= starts[segment + 1]:
        segment += 1
    while segment > 0 and time < starts[segment]:
        segment -= 1
    s = time - starts[segment]
    before_start = s < 0.0
    if before_start:
        s = 0.0
    for j in range(coefficients.shape[1]):
        c0, c1, c2 = (
            coefficients[segment, j, 0],
            coefficients[segment, j, 1],
            coefficients[segment, j, 2],
        )
        c3, c4, c5 = (
            coefficients[segment, j, 3],
            coefficients[segment, j, 4],
            coefficients[segment, j, 5],
        )
        desired[0, j] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
        desired[1, j] = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
        desired[2, j] = 2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
        if before_start:
            desired[1, j] = 0.0
            desired[2, j] = 0.0
    return segment


@kernel("void(f8[::1], f8[:,:,::1], i8[::1], f8, f8[:,::1])")
def _sample(
    starts: FloatArray,
    coefficients: FloatArray,
    segment: FloatArray,
    time: float,
    desired: FloatArray,
) -> None:
    segment[0] = sample(starts, coefficients, segment[0], time, desired)
