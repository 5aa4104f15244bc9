"""Joins a new trajectory to the one that is being followed, without a jump, from the `Situation`
that it starts in.

The old trajectory goes on until the new one takes over; joints that the new one does not move
follow the old one to its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory, rest
from rnea_control.control.waypoints import POSITION, Waypoints, integrated, segments, shifted

# Polynomials that differ by less than this part are the same.
ROUNDING = 1e-12
# Below this scaling an arm that is measured to move counts as at rest: its velocity by trajectory
# time would be very large.
SLOWEST_SCALING = 0.01


def continued(
    old: Trajectory, now: float, begin: float, ahead: Waypoints, continuous: FloatArray
) -> Trajectory:
    """The old trajectory until `begin`, then on through the waypoints ahead, unchecked; arguments
    as of `from_the_old` and `spliced`."""
    points, turns = from_the_old(old, begin, ahead, continuous)
    return spliced(old, now, turns, points)


def from_the_old(
    old: Trajectory, begin: float, ahead: Waypoints, continuous: FloatArray
) -> tuple[Waypoints, FloatArray]:
    """The waypoints ahead with all positions, led by the state of the old trajectory at `begin`;
    and whole turns by which that state is shifted, shape (nv,), [rad].

    Args:
        old: followed so far.
        begin: when the new trajectory takes over, [s].
        ahead: waypoints after `begin`.
        continuous: 1 for each continuous joint, else 0, shape (nv,): it goes the shortest way to
            the first waypoint.
    """
    points = integrated(ahead.led_by(begin, old.sampled(begin) * ahead.joints))
    # Positions that are integrated go on from the start: only a given one may be some turns away.
    given = np.flatnonzero(ahead.has[POSITION])
    turns = np.zeros(old.nv)
    if given.size:
        first = int(given[0]) + 1
        away = points.positions[first] - points.positions[first - 1]
        turns = 2.0 * math.pi * np.round(away / (2.0 * math.pi)) * continuous * ahead.joints
        points.positions[:first] += turns
    return points, turns


def spliced(old: Trajectory, now: float, turns: FloatArray, points: Waypoints) -> Trajectory:
    """The old trajectory, shifted by `turns`, until the one through the points takes over.

    Args:
        old: its segments before `now` are left out.
        now: the time from which the result will be sampled, not after the first point, [s].
        turns, points: as of `from_the_old`.
    """
    last = rest(points.positions[-1])
    last[:, EFFORT] = points.efforts[-1]
    starts, coefficients = points.times, np.concatenate([segments(points), last[None]])
    begin = starts[0]
    first = max(int(np.searchsorted(old.starts, now, side="right")) - 1, 0)
    after = int(np.searchsorted(old.starts, begin, side="left"))
    kept = old.coefficients[first:after].copy()
    kept[:, :, 0] += turns
    end = float(starts[-1])
    if not points.joints.all():
        starts, coefficients = merged(old, starts, coefficients, points.joints)
        end = max(end, old.end_time)
    return Trajectory(
        np.concatenate([old.starts[first:after], starts]),
        np.concatenate([kept, coefficients]),
        end,
    )


def merged(
    old: Trajectory, starts: FloatArray, coefficients: FloatArray, joints: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Segments in which some joints follow the new trajectory and the others the old one."""
    later = _breaks(old, ~joints)
    union = np.unique(np.concatenate([starts, later[later > starts[0]]]))
    both = np.empty((len(union), old.nv, COEFFICIENTS))
    for which, its_starts, its_coefficients in (
        (joints, starts, coefficients),
        (~joints, old.starts, old.coefficients),
    ):
        segment = np.maximum(np.searchsorted(its_starts, union, side="right") - 1, 0)
        passed = np.maximum(union - its_starts[segment], 0.0)
        both[:, which] = shifted(its_coefficients[segment][:, which], passed)
    return union, both


def _breaks(trajectory: Trajectory, joints: BoolArray) -> FloatArray:
    """The starts of the segments that some of these joints need; the others are dropped, as they
    would add up with every replacement of the other joints."""
    used = np.isfinite(trajectory.starts)
    starts, c = trajectory.starts[used], trajectory.coefficients[used][:, joints]
    passed = np.diff(starts)
    change = np.abs(c[1:] - shifted(c[:-1], passed))
    return starts[1:][(change > ROUNDING * shifted(np.abs(c[:-1]), passed)).any(axis=(1, 2))]


@dataclass(frozen=True)
class Situation:
    """The state that a plan starts from.

    Attributes:
        trajectory: followed now.
        revision: how many there have been.
        t, s: controller's time and trajectory time now, [s].
        ahead: how long until the torque that is computed now acts, in trajectory time, [s].
        scaling: of trajectory time.
        position, velocity: measured, shape (nv,).
        error: desired minus measured position, shape (nv,).
    """

    trajectory: Trajectory
    revision: int
    t: float
    s: float
    ahead: float
    scaling: float
    position: FloatArray
    velocity: FloatArray
    error: FloatArray

    def trajectory_time(self, t: float) -> float:
        """Trajectory time at time `t`, if the scaling stays as it is."""
        return self.s + (t - self.t) * (self.scaling if t > self.t else 1.0)

    def measured(
        self, joints: BoolArray, astray: BoolArray, velocity_limit: FloatArray
    ) -> Trajectory:
        """A trajectory from where the arm is, in place of the one that is followed.

        Args:
            joints: which go on from the measured state, shape (nv,). The other ones go on as
                before.
            astray: which of the others do so from the measured position, shape (nv,).
            velocity_limit: no start is faster, shape (nv,), [rad/s] or [m/s].
        """
        coefficients = rest(self.position)
        if self.scaling > SLOWEST_SCALING:
            velocity = self.velocity / self.scaling
            coefficients[:, 1] = np.clip(velocity, -velocity_limit, velocity_limit)
        starts = np.array([self.s + self.ahead])
        if joints.all():
            return Trajectory(starts, coefficients[None])
        old = self.trajectory
        shifted = old.coefficients.copy()
        shifted[:, :, 0] -= self.error * astray
        others = Trajectory(old.starts, shifted)
        return Trajectory(*merged(others, starts, coefficients[None], joints), old.end_time)
