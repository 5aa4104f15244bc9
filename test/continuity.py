"""Whether the desired motion of a controller is continuous, seen from outside.

Every trajectory is looked at as a whole, by the one-sided limits at its breakpoints, when it is
taken; and every tick by Taylor's theorem: between two ticks position, velocity and acceleration
change by no more than the integrals of their derivatives, whose bounds the polynomials give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rnea_control.control import (
    Controller,
    Ending,
    EndKind,
    Motion,
    MotionRequest,
    Plan,
    Situation,
    Trajectory,
    TrajectorySettings,
)
from rnea_control.control.trajectory import LAG_TIME
from rnea_control.control.waypoints import ACCELERATION, VELOCITY

# What is continuous at a breakpoint: position, velocity too, acceleration too.
LINE, CUBIC, QUINTIC = range(3)
# Scalings are 0 to 1, and follow two lags.
STEEPEST, SHARPEST = 1.0 / LAG_TIME, 2.0 / LAG_TIME**2
TERMS = [[math.perm(i, k) if i >= k else 0.0 for i in range(6)] for k in range(6)]
DERIVATIVES = np.array(TERMS, dtype=float)
POWERS = np.array([[max(i - k, 0) for i in range(6)] for k in range(6)])
FACTORIALS = np.array([math.factorial(n) for n in range(6)])


def derivatives(c: np.ndarray, u: float) -> np.ndarray:
    """Position and its five derivatives of a segment (nv, 8) at `u`, shape (6, nv)."""
    return (DERIVATIVES * u**POWERS) @ c[:, :6].T


def bounds(trajectory: Trajectory, begin: float, end: float) -> np.ndarray:
    """Of the first three derivatives of the positions between two times, and of the first of the
    effort; shape (4, nv)."""
    starts, highest = trajectory.starts, np.zeros((4, trajectory.nv))
    first = max(int(np.searchsorted(starts, begin, side="right")) - 1, 0)
    for i in range(first, max(int(np.searchsorted(starts, end, side="left")), first + 1)):
        right = end if i == len(starts) - 1 else min(end, starts[i + 1])
        left = max(begin, starts[i])
        w = max(right - left, 0.0)
        d = np.abs(derivatives(trajectory.coefficients[i], left - starts[i]))
        taylor = w ** np.arange(6.0) / FACTORIALS
        for k in range(1, 4):
            highest[k - 1] = np.maximum(highest[k - 1], taylor[: 6 - k] @ d[k:])
        highest[3] = np.maximum(highest[3], np.abs(trajectory.coefficients[i, :, 7]))
    return highest


class MotionCheck:
    """Watches one controller.

    Attributes:
        kinds: of the endings, once they are asserted.
    """

    def __init__(self, controller: Controller, continuous: np.ndarray, t: float) -> None:
        self.kinds: list[EndKind] = []
        self._controller, self._continuous, self._t = controller, continuous, t
        self._levels: dict[float, np.ndarray] = {}  # of breakpoints; QUINTIC where there is none
        self._counts: dict[int, list[int]] = {}
        self._motions: list[tuple[Motion, list[int]]] = []
        self._rows = controller.snapshot().desired.copy()
        self._clock_step = 4.0 * np.spacing(max(t, 4.0))

    def counted(self, request: MotionRequest) -> MotionRequest:
        """The same; whether it ends once is seen."""
        count = [0]

        def ended(_: Ending) -> None:
            count[0] += 1

        counted = replace(request, on_end=ended)
        self._counts[id(counted)] = count
        return counted

    def step(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        """A step that is looked at."""
        c = self._controller
        trajectory, before = c.trajectory, c.snapshot()
        c.step(t, q, v, tau)
        now = c.snapshot()
        left = c.trajectory is not trajectory  # the arm left its tolerances
        if left:
            now.rows.scaling, now.rows.scaling_rate = 1.0, STEEPEST  # of the stop
        self._assert_continues(trajectory, before.rows, now.rows, t - self._t, left)
        self._t, self._rows = t, now.desired.copy()
        if before.motion is not None and now.motion is None:
            self._assert_rightly_ended(before.motion, now.rows)
        if left:
            broken = (EndKind.PATH_TOLERANCE_VIOLATED, EndKind.GOAL_TOLERANCE_VIOLATED)
            assert before.motion.ending.kind in broken
            self._assert_same(self._modulo_turns(q, now.desired[0] - now.errors[0]), 0.0, 1e-12)
            self._rows[0] = now.desired[0] - now.errors[0]
            self._changed(np.full(len(q), QUINTIC))

    def changing(self, change: Callable[[], None]) -> None:
        """What may make the arm stop."""
        trajectory = self._controller.trajectory
        change()
        if self._controller.trajectory is not trajectory:
            self._changed(np.full(len(self._rows[0]), QUINTIC))

    def adopt(
        self,
        plan: Plan,
        request: MotionRequest,
        situation: Situation,
        rules: TrajectorySettings,
        lead: float,
    ) -> None:
        """Adopts a plan, if it still can be; the others are what it was made of."""
        c = self._controller
        s = c.trajectory_time
        possible = situation.revision == c.situation(self._t).revision and s <= plan.begin
        assert c.adopt(plan) == possible
        if not possible:
            return
        self._motions.append((plan.motion, self._counts[id(request)]))
        joints, nv = request.waypoints.joints, len(self._rows[0])
        names = c.model.joint_names
        tolerances = rules.tolerances.overridden(request.tolerances, names)
        astray = np.abs(situation.error) > tolerances.path_position
        jumps = np.zeros(nv, dtype=bool)
        at_once = plan.begin <= situation.s + lead
        if at_once and (astray.any() or not rules.start_from_desired_state):
            jumps = joints | astray
        self._take_levels(plan, request, rules)
        level = self._levels[plan.begin] if plan.begin <= s else np.full(nv, QUINTIC)
        if jumps.any():
            there = plan.trajectory.sampled(situation.s)[0]
            away = self._modulo_turns(there, situation.position)
            self._assert_same(away * jumps, 0.0, 1e-9)
            rows = self._scaled()
            self._rows[:, jumps] = rows[:, jumps]
        self._changed(level)

    def assert_ended(self) -> None:
        """Every motion that was followed has ended once; what was not followed has not."""
        followed = {id(count) for _, count in self._motions}
        for motion, count in self._motions:
            assert count == [1] and motion.ending is not None
            self.kinds.append(motion.ending.kind)
        for count in self._counts.values():
            assert id(count) in followed or count == [0]

    def _take_levels(self, plan: Plan, request: MotionRequest, rules: TrajectorySettings) -> None:
        """How smooth the new trajectory is promised to be at its breakpoints."""
        points, motion = request.waypoints, plan.motion
        nv, joints = points.nv, points.joints
        ahead = motion.times > plan.begin
        met = np.isin(motion.times[ahead], plan.trajectory.starts)
        # Only a stream's message that comes late leaves points out, the first ones.
        assert met.all() or (request.is_stream and not ahead.all() and met[-1])
        assert (np.diff(met.astype(int)) >= 0).all()
        ahead[ahead] = met
        velocity = points.has[VELOCITY] | ~points.has[0]
        given = points.has[VELOCITY : ACCELERATION + 1, ahead]
        smooth = rules.upsample_positions and not given.any()
        degree = np.where(velocity, np.where(points.has[ACCELERATION], QUINTIC, CUBIC), LINE)[ahead]
        if smooth:
            degree[:] = QUINTIC
        ends = np.concatenate([[QUINTIC], degree])  # the state at the beginning has all fields
        segments = np.minimum(ends[:-1], ends[1:])
        last = QUINTIC if degree[-1] == QUINTIC and not points.fields[2, -1].any() else CUBIC
        if smooth or points.fields[1:3, -1].any():  # integrated, or settling
            last = QUINTIC if smooth else LINE if degree[-1] == LINE else CUBIC
        after = np.append(segments[1:], min(last, segments[-1]))
        knots = dict(zip(motion.times[ahead], np.minimum(segments, after), strict=True))
        knots[plan.begin] = segments[0]
        old, self._levels = self._levels, {}
        for start in plan.trajectory.starts:
            levels = old.get(start, np.full(nv, QUINTIC)).copy()
            if start > plan.begin:
                levels[joints] = knots.get(start, CUBIC if start > motion.end else QUINTIC)
            elif start == plan.begin:
                levels[joints] = np.minimum(levels, knots[start])[joints]
            self._levels[start] = levels

    def _changed(self, level: np.ndarray) -> None:
        """The controller follows another trajectory, which goes on from the last desired state."""
        rows, old = self._scaled(), self._rows
        self._assert_same(self._modulo_turns(rows[0], old[0]), 0.0, 1e-9)
        self._assert_same(rows[1], old[1], 1e-8, level >= CUBIC)
        self._assert_same(rows[2], old[2], 1e-5, level >= QUINTIC)
        self._assert_same(rows[3], old[3], 1e-8)
        self._rows = rows
        trajectory = self._controller.trajectory.copy()
        starts, c = trajectory.starts, trajectory.coefficients
        if (
            trajectory.starts[0] not in self._levels
            or not np.isfinite(self._controller.trajectory.starts).all()
        ):
            self._levels = {}  # a stop
        for i in range(len(starts) - 1):
            h = starts[i + 1] - starts[i]
            assert h > 0.0
            left, right = derivatives(c[i], h), derivatives(c[i + 1], 0.0)
            level = self._levels.get(starts[i + 1], np.full(trajectory.nv, QUINTIC))
            rounding = 1e-14 * (1.0 + np.abs(right[0]))
            self._assert_same(left[0], right[0], 1e-9)
            self._assert_same(left[1], right[1], 1e-8 + rounding / h, level >= CUBIC)
            self._assert_same(left[2], right[2], 1e-6 + rounding / h**2, level >= QUINTIC)
            self._assert_same(c[i, :, 6] + h * c[i, :, 7], c[i + 1, :, 6], 1e-8)

    def _assert_continues(
        self, trajectory: Trajectory, before: np.ndarray, now: np.ndarray, dt: float, left: bool
    ) -> None:
        s0, s1 = before.last_trajectory_time, now.last_trajectory_time
        assert -self._clock_step <= s1 - s0 <= dt + self._clock_step
        for rows in (before, now):
            assert 0.0 <= rows.scaling <= 1.0
        assert left or abs(now.scaling - before.scaling) <= STEEPEST * dt + 1e-15
        speed, acceleration, jerk, effort = bounds(trajectory, s0, max(s1, s0))
        sigma = min(max(now.scaling, before.scaling) + STEEPEST * dt, 1.0)
        rate = np.abs([before.scaling_rate, now.scaling_rate]).max() + SHARPEST * dt
        slack = self._clock_step
        a = acceleration * sigma**2 + speed * rate
        j = jerk * sigma**3 + 3.0 * acceleration * sigma * rate + speed * SHARPEST
        crossed = [level for start, level in self._levels.items() if s0 < start <= s1]
        level = np.min(crossed, axis=0) if crossed else np.full(len(speed), QUINTIC)
        (q0, v0, a0, f0), (q1, v1, a1, f1) = self._rows, now[:4]
        self._assert_same(q1, q0, 1e-11 + speed * (s1 - s0 + slack) * (1.0 + 1e-9))
        self._assert_same(q1 - q0, v0 * dt, 1e-9 + speed * slack + 0.5 * a * dt**2, level >= CUBIC)
        self._assert_same(v1, v0, 1e-8 + a * (dt + slack), level >= CUBIC)
        self._assert_same(a1, a0, 1e-4 + j * (dt + slack), level >= QUINTIC)
        self._assert_same(f1, f0, 1e-9 + effort * (s1 - s0 + slack))

    def _assert_rightly_ended(self, motion: Motion, rows: np.ndarray) -> None:
        s, kind = rows.last_trajectory_time, motion.ending.kind
        assert (kind == EndKind.PATH_TOLERANCE_VIOLATED) == (s < motion.end)

    def _scaled(self) -> np.ndarray:
        """What the trajectory followed now asks for at the time of the last step."""
        rows = self._controller.snapshot().rows
        sigma, rate = rows.scaling, rows.scaling_rate
        q, v, a, f = self._controller.trajectory.sampled(rows.last_trajectory_time)
        return np.array([q, v * sigma, a * sigma**2 + v * rate, f])

    def _modulo_turns(self, q: np.ndarray, other: np.ndarray) -> np.ndarray:
        away = q - other
        return away - 2.0 * math.pi * np.round(away / (2.0 * math.pi)) * self._continuous

    @staticmethod
    def _assert_same(one, other, tolerance, where=True) -> None:
        away = np.where(where, np.abs(one - other), 0.0)
        assert (away <= tolerance * (1.0 + np.abs(other))).all(), (one, other, tolerance, where)
