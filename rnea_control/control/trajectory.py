r"""Joint trajectories as piecewise polynomials.

Between two waypoints they are what joint_trajectory_controller makes of the same fields:
linear where only positions are given, cubic where both points have velocities, quintic where both
have accelerations too. After the last waypoint the arm holds its position. Each segment is one
polynomial of the time since its start,

.. math:: q(s) = \sum_{k=0}^{5} c_k s^k

and the effort is a line of it. The hold after the end is a last segment that never ends, so that
sampling knows no special case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.waypoints import Waypoint, Waypoints
from rnea_control.kernels.kernel import inlined, kernel

# Of the position's polynomial, and of the effort's line, which comes after it.
POSITION_COEFFICIENTS = 6
EFFORT = POSITION_COEFFICIENTS
COEFFICIENTS = POSITION_COEFFICIENTS + 2


class Trajectory:
    """The positions of all joints over time. Never changed once made.

    Attributes:
        starts: when each segment starts, ascending, shape (m,), [s]; the last one never ends.
        coefficients: of each segment and joint, lowest power first, six of the position and two of
            the effort, shape (m, nv, 8).
    """

    def __init__(self, starts: FloatArray, coefficients: FloatArray) -> None:
        """Takes finished segments; `through`, `hold` and `then` are the ways to make them."""
        self.starts = np.ascontiguousarray(starts, dtype=np.float64)
        self.coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)

    @classmethod
    def through(cls, waypoints: Sequence[Waypoint], joint_names: Sequence[str]) -> Trajectory:
        """The trajectory through `waypoints`, then at rest at the last one.

        Raises:
            TrajectoryError: sizes that differ; else as `Waypoints.check`.
        """
        points = Waypoints.of(waypoints, len(joint_names))
        points.check(joint_names)
        return cls.from_waypoints(points)

    @classmethod
    def hold(cls, time: float, position: FloatArray) -> Trajectory:
        """Rest at `position`, shape (nv,), at all times; `end_time` is `time`."""
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

    def then(
        self,
        waypoints: Sequence[Waypoint] | Waypoints,
        now: float,
        start: float,
        continuous: FloatArray,
    ) -> Trajectory:
        """This trajectory until `start`, then smoothly to the first of `waypoints` and on
        through them all.

        Waypoints at or before `start` have passed and are left out, as are this trajectory's
        segments before `now`.

        Args:
            waypoints: checked ones, at least one of them after `start`.
            now: the time from which the new trajectory will be sampled, [s].
            start: when the new trajectory takes over, not before `now`, [s].
            continuous: 1 for each continuous joint, else 0, shape (nv,): its position is shifted by
                whole turns to be nearest to its first waypoint.
        """
        ahead = Waypoints.of(waypoints, self.nv).after(start)
        position, velocity, acceleration = self.at(start)
        turns = np.round((ahead.positions[0] - position) / (2.0 * math.pi)) * continuous
        shift = 2.0 * math.pi * turns
        first = max(int(np.searchsorted(self.starts, now, side="right")) - 1, 0)
        after = int(np.searchsorted(self.starts, start, side="left"))
        kept = self.coefficients[first:after].copy()
        kept[:, :, 0] += shift
        joined = Waypoint(start, position + shift, velocity, acceleration)
        new = Trajectory.from_waypoints(ahead.led_by(joined))
        return Trajectory(
            np.concatenate([self.starts[first:after], new.starts]),
            np.concatenate([kept, new.coefficients]),
        )

    @classmethod
    def from_waypoints(cls, points: Waypoints) -> Trajectory:
        coefficients = np.zeros((len(points), points.nv, COEFFICIENTS))
        with np.errstate(over="ignore", invalid="ignore"):
            _fill_segments(points, coefficients[:-1])
        coefficients[-1] = _rest(points.positions[-1])
        return cls(points.times, coefficients)


def _rest(position: FloatArray) -> FloatArray:
    coefficients = np.zeros((len(position), COEFFICIENTS))
    coefficients[:, 0] = position
    return coefficients


def _fill_segments(points: Waypoints, c: FloatArray) -> None:
    """Coefficients, shape (n - 1, nv, 6), of the lowest polynomials that meet the fields that both
    ends of a segment have."""
    T = np.diff(points.times)[:, None]
    x0, v0, a0 = points.positions[:-1], points.velocities[:-1], points.accelerations[:-1]
    v1, a1 = points.velocities[1:], points.accelerations[1:]
    mean = np.diff(points.positions, axis=0) / T
    with_velocity = points.has_velocity[:-1] & points.has_velocity[1:]
    with_acceleration = with_velocity & points.has_acceleration[:-1] & points.has_acceleration[1:]
    cubic = (with_velocity & ~with_acceleration)[:, None]
    quintic = with_acceleration[:, None]
    c[:, :, 0] = x0
    c[:, :, 1] = np.where(with_velocity[:, None], v0, mean)
    c[:, :, 2] = np.where(quintic, 0.5 * a0, np.where(cubic, (3.0 * mean - 2.0 * v0 - v1) / T, 0.0))
    c[:, :, 3] = np.where(
        quintic,
        (20.0 * mean - (8.0 * v1 + 12.0 * v0) - (3.0 * a0 - a1) * T) / (2.0 * T**2),
        np.where(cubic, (-2.0 * mean + v0 + v1) / T**2, 0.0),
    )
    c[:, :, 4] = np.where(
        quintic,
        (-30.0 * mean + (14.0 * v1 + 16.0 * v0) + (3.0 * a0 - 2.0 * a1) * T) / (2.0 * T**3),
        0.0,
    )
    c[:, :, 5] = np.where(
        quintic, (12.0 * mean - 6.0 * (v1 + v0) - (a0 - a1) * T) / (2.0 * T**4), 0.0
    )


@inlined
def sample(
    starts: FloatArray, coefficients: FloatArray, segment: int, time: float, desired: FloatArray
) -> int:
    """Fills rows 0, 1, 2 of `desired` with position, velocity and acceleration at `time`; returns
    the segment used.

    `segment` is the one used last: the search starts there, so it is short while time runs on.
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
