r"""Waypoints: positions of an arm and their times; one by one, and as arrays; and the checks that
refuse them. Also the smooth motion through waypoints that have only positions, such as the chunks
of a policy.

Missing positions are integrated from velocities, and missing velocities from accelerations, by the
trapezoidal rule.

A smooth motion joins its waypoints by cubics whose acceleration is continuous, :math:`\ddot
q(t_i^-) = \ddot q(t_i^+)`, which is a tridiagonal system for the velocities. The first segment is a
quartic, so that it also starts with the acceleration that the arm has: chunks follow each other
without a step of it. At the last waypoint the acceleration is zero; the arm either rests there, and
the last segment is a quartic too, or moves on, as within a stream of chunks [de Boor 2001, ch. IV].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, Matrices, Vector
from rnea_control.exceptions import (
    TrajectoryEndError,
    TrajectoryLimitsError,
    TrajectoryPassedError,
    TrajectoryPointsError,
    TrajectoryStartError,
    TrajectoryTimesError,
    distinct,
)
from rnea_control.jit.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

FIELDS = ("position", "velocity", "acceleration", "effort")
POSITION = 0  # place of the field in FIELDS
VELOCITY = 1
ACCELERATION = 2
EFFORT = 3
AT_REST = 1.2e-7  # speed of rest, at most, as in joint_trajectory_controller [rad/s] or [m/s]
START_DISTANCE = 0.1  # largest distance of the arm from a first point at time 0 [rad] or [m]
SHORTEST_SETTLING = 0.2  # least time to settle after a last point in motion [s]
SHORTEST_SEGMENT = 1e-6  # shortest segment that does not drown in the rounding of its times [s]


@dataclass(frozen=True)
class Waypoint:
    """Desired state of the arm at a time; any field may be left out, but not all. Fields have the
    shape (nv,)."""

    time: float  # [s]
    position: FloatArray | None  # [rad] or [m]
    velocity: FloatArray | None = None  # [rad/s] or [m/s]
    acceleration: FloatArray | None = None  # [rad/s^2] or [m/s^2]
    effort: FloatArray | None = None  # added to the controller's torque, [Nm] or [N]

    def __post_init__(self) -> None:
        for name in FIELDS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))


def _field(k: int) -> Any:
    """A row of `Waypoints.fields` as an attribute."""
    return property(lambda points: points.fields[k])


@dataclass(frozen=True)
class Waypoints:
    """The n waypoints of a trajectory."""

    times: FloatArray  # shape (n,), [s]
    # Positions, velocities, accelerations and efforts, shape (4, n, nv); 0 where a point does not
    # have them.
    fields: FloatArray
    has: BoolArray  # which fields each point has, shape (4, n)
    joints: BoolArray  # which joints the waypoints move, shape (nv,)

    @classmethod
    def of(cls, points: Sequence[Waypoint] | Waypoints, nv: int) -> Waypoints:
        """The points as arrays, of all joints; a `Waypoints` is returned as it is.

        Raises:
            TrajectoryPointsError: a field of a point that does not have `nv` numbers.
        """
        if isinstance(points, Waypoints):
            if points.nv != nv:
                raise TrajectoryPointsError(f"the waypoints are of {points.nv} joints, not of {nv}")
            return points
        fields = np.zeros((len(FIELDS), len(points), nv))
        has = np.zeros((len(FIELDS), len(points)), dtype=bool)
        for (k, name), (i, point) in product(enumerate(FIELDS), enumerate(points)):
            values = getattr(point, name)
            if values is not None:
                if np.shape(values) != (nv,):
                    raise TrajectoryPointsError(
                        f"point {i}: has {np.size(values)} {name} values for {nv} joints; "
                        "it must have one for each"
                    )
                fields[k, i], has[k, i] = values, True
        times = np.array([point.time for point in points], dtype=np.float64)
        return cls(times, fields, has, np.ones(nv, dtype=bool))

    def check(self, joint_names: Sequence[str], integrates: bool) -> None:
        """Refuses waypoints that no arm can follow, and missing positions unless the controller
        `integrates` velocities.

        Raises:
            TrajectoryPointsError, TrajectoryTimesError: the message names the waypoint and the
                joint.
        """
        if len(self) == 0:
            raise TrajectoryPointsError(
                "the trajectory has no points; it needs one at least. To stop the arm, cancel the "
                "goal or send the point where it is"
            )
        for k, i, j in np.argwhere(~np.isfinite(self.fields)):
            raise TrajectoryPointsError(
                f"point {i}: the {FIELDS[k]} of joint {joint_names[j]!r} is "
                f"{self.fields[k, i, j]}; it must be finite"
            )
        times, has = self.times, self.has
        wrong = (  # at which points, in the order of the reports
            (
                ~has[: ACCELERATION + 1].any(axis=0),
                TrajectoryPointsError,
                "has no positions, velocities or accelerations; give positions",
            ),
            (
                has[ACCELERATION] & ~has[VELOCITY] & has[POSITION],
                TrajectoryPointsError,
                "has positions and accelerations but no velocities; give all three",
            ),
            (~np.isfinite(times), TrajectoryTimesError, "its time is {time}; it must be finite"),
            (
                times[:1] < 0.0,
                TrajectoryTimesError,
                "its time is {time:g} s; times are counted from the start and must not be negative",
            ),
            (
                np.diff(times, prepend=-1.0) <= 0.0,
                TrajectoryTimesError,
                "its time {time:g} s is not after that of point {previous}, {before:g} s; times "
                "must rise from point to point",
            ),
            (
                ~(has[POSITION] | integrates),
                TrajectoryPointsError,
                "has no positions; give them, or set the parameter "
                "allow_integration_in_goal_trajectories to have them integrated from velocities",
            ),
        )
        for at, error, text in wrong:
            if at.any():
                i = int(np.argmax(at))
                found = text.format(time=times[i], previous=i - 1, before=times[i - 1])
                raise error(f"point {i}: {found}")

    def check_efforts(self, model: RobotModel, limit: FloatArray) -> None:
        """Refuses an effort beyond the `limit` of its joint, shape (nv,), [Nm] or [N].

        Raises:
            TrajectoryLimitsError: an effort is beyond its limit; names the waypoint and the joint.
        """
        for i, j in np.argwhere(np.abs(self.efforts) > limit):
            unit = units(model, j).effort
            raise TrajectoryLimitsError(
                f"point {i}: the effort of joint {model.joint_names[j]!r} is "
                f"{self.efforts[i, j]:.4g} {unit}; its effort limit is {limit[j]:.4g} {unit}, for "
                "the whole torque"
            )

    def ahead(self, asked: float | None, start: float, begin: float, now: float) -> Waypoints:
        """The waypoints after `begin`, when they take over, with trajectory times.

        Args:
            asked: requested start by the controller's time, [s]; None if none was requested.
            start: trajectory time of the start, the zero of the waypoints' times, [s].
            begin: trajectory time at which they take over, [s].
            now: trajectory time now, [s].

        Raises:
            TrajectoryTimesError, TrajectoryPassedError: a start that is not finite or too far from
                `now`, or waypoints that leave no time from `begin` on.
        """
        duration, until = self.times[-1], start - now
        if asked is not None and not math.isfinite(asked):
            raise TrajectoryTimesError(f"its start is {asked} s; it must be finite")
        if duration <= 0.0:
            raise TrajectoryTimesError(
                f"the last point's time is {duration:g} s; the arm does not rest there, and needs "
                "time to get there: give it more than 0"
            )
        if until > 0.0 and start + duration == start:
            raise TrajectoryTimesError(f"its start, {until:g} s from now, is too far ahead")
        if start + duration <= begin:
            raise TrajectoryPassedError(
                f"the trajectory ended {begin - start - duration:.3f} s ago; send it earlier, or "
                "with stamp 0 to start now"
            )
        ahead = replace(self, times=start + self.times)
        ahead = ahead[int(np.searchsorted(ahead.times, begin, side="right")) :]
        if np.diff(ahead.times, prepend=begin).min() < SHORTEST_SEGMENT:
            raise TrajectoryTimesError(
                f"at its start, {until:g} s from now, points are less than {SHORTEST_SEGMENT:g} s "
                "apart; give them more time"
            )
        return ahead

    def stay_at(self, position: FloatArray, slack: FloatArray, continuous: FloatArray) -> bool:
        """True if this is a single waypoint at rest and at time 0, within `slack` of a position.
        Such a goal needs no motion.

        Args:
            position: position of the arm, shape (nv,), [rad] or [m].
            slack: largest distances, shape (nv,), [rad] or [m].
            continuous: 1 for each continuous joint, else 0.
        """
        if len(self) != 1 or self.times[0] != 0.0 or not self.has[POSITION, 0]:
            return False
        if np.abs(self.velocities[0]).max() > AT_REST:
            return False
        away = self.positions[0] - position
        away = np.abs(away - whole_turns(away, continuous)) * self.joints
        return bool((away <= slack).all())

    def fastest(self) -> FloatArray:
        """Largest speed of each joint at the waypoints and between them, shape (nv,), [rad/s] or
        [m/s]. All waypoints must have positions."""
        between = np.diff(self.positions, axis=0) / np.diff(self.times)[:, None]
        speeds: FloatArray = np.abs([*self.velocities, *between]).max(axis=0)
        return speeds

    def rejoined(
        self, position: FloatArray, begin: float, continuous: FloatArray, most: FloatArray
    ) -> Waypoints:
        """The waypoints from the first one that all joints can reach within their bounds of speed;
        only the last waypoint if there is no such waypoint.

        Args:
            position: position where the way begins, shape (nv,), [rad] or [m].
            begin: time when it begins, [s].
            continuous: 1 for each continuous joint, else 0.
            most: bounds of the speeds, shape (nv,), [rad/s] or [m/s].
        """
        ways = self.positions - position
        ways = np.abs(ways - whole_turns(ways, continuous)) * self.joints
        slow = (ways <= most * (self.times - begin)[:, None]).all(axis=1)
        return self[int(np.argmax(slow)) if slow.any() else len(self) - 1 :]

    def check_start(self, position: FloatArray, model: RobotModel) -> None:
        """Refuses a first point at time 0, the start, that is away from the arm's desired
        `position` then, shape (nv,), [rad] or [m].

        Raises:
            TrajectoryStartError: the point is further away than START_DISTANCE.
        """
        if self.times[0] > 0.0 or not self.has[POSITION, 0]:
            return
        away = (self.positions[0] - position) * self.joints
        away = np.abs(away - whole_turns(away, model.continuous))
        j = int(np.argmax(away))
        if away[j] > START_DISTANCE:
            raise TrajectoryStartError(
                f"point 0 is at time 0, but joint {model.joint_names[j]!r} is {away[j]:.3g} "
                f"{units(model, j).position} away from it at the start, {START_DISTANCE:g} "
                "allowed. Start where the arm is, or give the point the time to get there"
            )

    def check_positions_and_end(
        self, start: float, model: RobotModel, allow_moving_end: bool
    ) -> None:
        """Refuses waypoints outside the position limits, and a velocity at the end unless that is
        allowed; `start`: the zero of the times in errors, [s].

        Raises:
            TrajectoryLimitsError: a waypoint is outside the position limits.
            TrajectoryEndError: the last waypoint has a velocity that is not allowed.
        """
        positions, lower, upper = self.positions, model.lower, model.upper
        for i, j in np.argwhere(((positions < lower) | (positions > upper)) & self.joints):
            at, least, most = distinct(positions[i, j], lower[j], upper[j])
            raise TrajectoryLimitsError(
                f"the point at {self.times[i] - start:g} s: joint {model.joint_names[j]!r} at "
                f"{at} is outside its limits {least} to {most}"
            )
        velocity = self.velocities[-1]
        j = int(np.argmax(np.abs(velocity)))
        if abs(velocity[j]) > AT_REST and not allow_moving_end:
            raise TrajectoryEndError(
                f"the last point: joint {model.joint_names[j]!r} has velocity {velocity[j]:g} at "
                "the end; the last point of a goal must be at rest. Send streams by the topic, or "
                "set the parameter allow_nonzero_velocity_at_trajectory_end"
            )

    def __len__(self) -> int:
        return len(self.times)

    positions, velocities, efforts = (_field(k) for k in (POSITION, VELOCITY, EFFORT))

    @property
    def nv(self) -> int:
        return self.fields.shape[2]

    @property
    def has_only_positions(self) -> bool:
        """True if no point has a velocity or an acceleration."""
        return not self.has[VELOCITY : ACCELERATION + 1].any()

    def __getitem__(self, part: slice) -> Waypoints:
        times, fields, has = self.times[part], self.fields[:, part], self.has[:, part]
        return replace(self, times=times, fields=fields, has=has)

    def stretched(self, factor: float, begin: float) -> Waypoints:
        """The same path at 1/`factor` of the speed, from time `begin` on."""
        fields = self.fields.copy()
        fields[VELOCITY] /= factor
        fields[ACCELERATION] /= factor**2
        return replace(self, times=begin + factor * (self.times - begin), fields=fields)

    def inserted(self, at: int, time: float, state: FloatArray) -> Waypoints:
        """The waypoints with an additional one before number `at`; `state`: its fields, shape
        (4, nv)."""
        return replace(
            self,
            times=np.insert(self.times, at, time),
            fields=np.insert(self.fields, at, state, axis=1),
            has=np.insert(self.has, at, True, axis=1),
        )

    def integrated(self) -> Waypoints:
        """The waypoints with all positions; the first one must have all fields."""
        if self.has[POSITION].all():
            return self
        (p, v, a), has = self.fields[:3].copy(), self.has.copy()
        for i in np.flatnonzero(~has[POSITION]):
            half = 0.5 * (self.times[i] - self.times[i - 1])
            if not has[VELOCITY, i]:
                v[i] = v[i - 1] + half * (a[i - 1] + a[i])
            p[i] = p[i - 1] + half * (v[i - 1] + v[i])
            has[:ACCELERATION, i] = True
        return replace(self, fields=np.stack([p, v, a, self.fields[3]]), has=has)

    def led_by(
        self, time: float, state: FloatArray, continuous: FloatArray
    ) -> tuple[Waypoints, FloatArray]:
        """The waypoints with all positions, led by the state in which the arm leaves for them; and
        whole turns by which that state is shifted, shape (nv,), [rad].

        Args:
            time: time of the state, [s].
            state: position, velocity, acceleration and effort, shape (4, nv).
            continuous: 1 for each continuous joint, else 0, shape (nv,): these joints go the
                shortest way to the first waypoint.
        """
        points = self.inserted(0, time, state * self.joints).integrated()
        # Integrated positions continue from the start: only given positions may be turns away.
        given = np.flatnonzero(self.has[POSITION])
        turns = np.zeros(self.nv)
        if given.size:
            first = int(given[0]) + 1
            away = points.positions[first] - points.positions[first - 1]
            turns = whole_turns(away, continuous) * self.joints
            points.positions[:first] += turns
        return points, turns

    def upsampled(self, at_rest: bool) -> Waypoints:
        """The waypoints with the velocities and accelerations of the smooth motion. All must have
        positions, the first one all fields. `at_rest`: True if the motion ends at rest, False if it
        moves on there."""
        fields, has = self.fields.copy(), self.has.copy()
        _solve(self.times, fields, at_rest, np.zeros(len(self)))
        has[VELOCITY : ACCELERATION + 1] = True
        return replace(self, fields=fields, has=has)

    def settled(self, max_deceleration: FloatArray) -> Waypoints:
        """The waypoints, with a return to the last one to rest there if the arm moves on;
        `max_deceleration`: shape (nv,), [rad/s^2] or [m/s^2]."""
        speed = np.abs(self.velocities[-1]) * self.has[VELOCITY, -1]
        if speed.max() <= AT_REST:
            self.fields[VELOCITY, -1] = 0.0
            return self
        # A cubic back to the same place brakes with 4 v / T at most, a quintic with 3.94 v / T.
        time = max(SHORTEST_SETTLING, float((4.0 * speed / max_deceleration).max()))
        last = self.fields[:, -1].copy()
        last[VELOCITY] = last[ACCELERATION] = 0.0
        return self.inserted(len(self), float(self.times[-1]) + time, last)


def whole_turns(way: FloatArray, continuous: FloatArray) -> FloatArray:
    """Whole turns to subtract from distances of all joints, shape (nv,), [rad] or [m], for the
    shortest way; `continuous`: 1 for each continuous joint, else 0."""
    return 2.0 * math.pi * np.round(way / (2.0 * math.pi)) * continuous


@kernel(nogil=True)
def _solve(times: Vector, fields: Matrices, at_rest: bool, ratio: Vector) -> None:
    """Fills velocities and accelerations from row 1 on, by the Thomas algorithm.

    Equation i has the unknown velocities of waypoints i - 1, i and i + 1.
    """
    n = times.shape[0]
    for j in range(fields.shape[2]):
        p, v, a = fields[0, :, j], fields[1, :, j], fields[2, :, j]
        last = n - 2 if at_rest else n - 1  # the last unknown velocity
        if at_rest:
            v[n - 1] = 0.0
        for i in range(1, last + 1):
            # Acceleration at the end of the segment before, minus that at the start of the one
            # after, is zero.
            T = times[i] - times[i - 1]
            d = (p[i] - p[i - 1]) / T
            lower, diagonal, upper = 2.0 / T, 4.0 / T, 0.0
            right = 6.0 * d / T
            if i == 1:  # a quartic
                lower, diagonal = 0.0, 6.0 / T
                right = (12.0 * d - 6.0 * v[0]) / T - a[0]
            if i < n - 1:
                T = times[i + 1] - times[i]
                d = (p[i + 1] - p[i]) / T
                if at_rest and i == n - 2:  # a quartic
                    diagonal += 6.0 / T
                    right += 12.0 * d / T
                else:
                    diagonal += 4.0 / T
                    upper = 2.0 / T
                    right += 6.0 * d / T
            diagonal -= lower * ratio[i - 1]
            ratio[i] = upper / diagonal
            v[i] = (right - lower * v[i - 1]) / diagonal
        for i in range(last - 1, 0, -1):
            v[i] -= ratio[i] * v[i + 1]
        for i in range(1, n - 1):
            T = times[i + 1] - times[i]
            d = (p[i + 1] - p[i]) / T
            if at_rest and i == n - 2:
                a[i] = (12.0 * d - 6.0 * v[i]) / T
            else:
                a[i] = (6.0 * d - 4.0 * v[i] - 2.0 * v[i + 1]) / T
        a[n - 1] = 0.0
