"""From waypoints to a trajectory that the arm can follow from where it is: the one way in."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.effort_check import EffortPeak, peak_efforts
from rnea_control.control.motion import Motion, MotionRequest
from rnea_control.control.settings import ControllerSettings, ExcessiveEffort, TrajectorySettings
from rnea_control.control.splicing import Situation, from_the_old, spliced
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.trajectory_checks import (
    check_first_point,
    check_limits,
    check_positions_and_end,
    check_waypoints,
)
from rnea_control.control.waypoints import (
    ACCELERATION,
    AT_REST,
    POSITION,
    VELOCITY,
    Waypoints,
    upsampled,
)
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import TrajectoryError, TrajectoryPassedError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# A start that passed no longer ago than this was meant to be now, [s].
JUST_PASSED = 0.1
# Segments shorter than this drown in the rounding of their times, [s].
SHORTEST_SEGMENT = 1e-6
# The least time that an arm takes to settle after a trajectory that ends in motion, [s].
SHORTEST_SETTLING = 0.2
# How exactly the effort limits are met by slowing down, as a part of them; in how many rounds, and
# how much slower each of them at least is while none has met them.
EFFORT_TOLERANCE = 5e-6
MOST_ROUNDS = 30
LEAST_STEP = 1.001


@dataclass(frozen=True)
class Plan:
    """A trajectory to change to, and until when that can be done.

    Attributes:
        trajectory: the one followed so far, and from `begin` on the new one.
        motion: that it belongs to.
        begin: by trajectory time, [s].
        revision: of the situation that it was planned in.
    """

    trajectory: Trajectory
    motion: Motion
    begin: float
    revision: int


@dataclass(frozen=True)
class _Attempt:
    """A trajectory `factor` times slower than asked for, with the times of the waypoints ahead."""

    factor: float
    times: FloatArray
    trajectory: Trajectory
    peak: EffortPeak

    @property
    def excess(self) -> float:
        """The part of the effort limit by which the peak exceeds it; negative within it."""
        return self.peak.ratio - 1.0


class Planner:
    """Plans motions of one robot, the model's; one thread uses it."""

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self._workspace = Workspace(model)

    def plan(
        self,
        request: MotionRequest,
        situation: Situation,
        settings: ControllerSettings,
        lead: float,
    ) -> Plan:
        """The plan that answers a request in a situation, by the controller's settings; the present
        trajectory goes on for `lead`, [s], at least.

        Raises:
            TrajectoryError: waypoints that no arm can follow, that this one cannot follow within
                its limits, or that its settings do not allow.
            TrajectoryPassedError: the trajectory has ended.
        """
        if not settings.control_law.holds_position:
            raise TrajectoryError(
                f"under {settings.control_law.name} the arm follows the hand, not "
                "trajectories; choose another control_law"
            )
        model = self._model
        rules = settings.trajectories or TrajectorySettings.default(model.nv)
        points = Waypoints.of(request.waypoints, model.nv)
        check_waypoints(points, rules, model.joint_names)
        tolerances = rules.tolerances.overridden(request.tolerances, model.joint_names)
        earliest = situation.s + situation.ahead + lead
        start = earliest
        if request.start is not None:
            if not math.isfinite(request.start):
                raise TrajectoryError(f"its start is {request.start} s; it must be finite")
            start = situation.trajectory_time(request.start)
        begin = max(start, earliest)
        ahead = _ahead(points, start, begin, situation)
        old = situation.trajectory
        astray = np.abs(situation.error) > tolerances.path_position
        if start <= earliest and (astray.any() or not rules.start_from_desired_state):
            old = situation.measured(points.joints, astray, model.velocity_limit)
        if start >= situation.s - JUST_PASSED and points.has[POSITION, 0]:
            check_first_point(points, old.at(begin)[0], model)
        friction = model.friction_parameters * settings.friction_compensation

        def attempt(factor: float) -> _Attempt:
            with np.errstate(over="ignore", invalid="ignore"):  # the limits are checked later
                points = ahead.stretched(factor, begin) if factor > 1.0 else ahead
                trajectory = self._joined(old, points, begin, start, request, situation, rules)
            peak = peak_efforts(
                model,
                self._workspace,
                trajectory,
                begin,
                trajectory.end_time,
                settings.effort_limit(model),
                friction,
                settings.hardware_compensates_gravity,
            )
            return _Attempt(factor, points.times, trajectory, peak)

        chosen, note = attempt(1.0), ""
        if not chosen.excess <= EFFORT_TOLERANCE:
            note = self._excess(chosen.peak, start)
            if rules.excessive_effort == ExcessiveEffort.refuse:
                raise TrajectoryError(note)
            if rules.excessive_effort == ExcessiveEffort.slow_down:
                chosen = self._slowed(attempt, chosen, start)
                note = (
                    f"{chosen.factor:.4g} times slower than asked for, to stay within the effort "
                    "limits"
                )
        times = points.delayed(start).times
        times[len(times) - len(ahead) :] = chosen.times
        motion = Motion(request, start, times, points.joints, note)
        return Plan(chosen.trajectory, motion, begin, situation.revision)

    def _slowed(
        self, attempt: Callable[[float], _Attempt], fast: _Attempt, start: float
    ) -> _Attempt:
        """The fastest attempt within the effort limits, by the secant method.

        From rest the first step meets the limit. A start in motion is not stretched, only the
        waypoints ahead of it, so that the first step may miss the limit on either side.

        `fast`: an attempt beyond the limits; `start`: the zero of the times in errors, [s].
        """
        slow, factor = None, fast.peak.stretch
        high, low = fast.excess, 0.0  # of the secant
        for _ in range(MOST_ROUNDS):
            if not factor < math.inf:
                raise TrajectoryError(self._excess(fast.peak, start))
            new = attempt(factor)
            if not new.excess <= EFFORT_TOLERANCE:
                fast, high, low = new, new.excess, 0.5 * low
            else:
                slow, high, low = new, 0.5 * high, new.excess
            if slow is None:
                factor *= max(new.peak.stretch, LEAST_STEP)
            elif slow.excess > -EFFORT_TOLERANCE:
                return slow
            else:
                factor = slow.factor + (fast.factor - slow.factor) * low / (low - high)
        if slow is None:
            reason = f"{self._excess(fast.peak, start)}, which going slower does not mend"
            raise TrajectoryError(reason)
        return slow

    def _joined(
        self,
        old: Trajectory,
        ahead: Waypoints,
        begin: float,
        start: float,
        request: MotionRequest,
        situation: Situation,
        rules: TrajectorySettings,
    ) -> Trajectory:
        """The old trajectory, and from `begin` on that through the waypoints ahead."""
        model = self._model
        smooth = rules.upsample_positions and ahead.has_only_positions

        points, turns = from_the_old(old, begin, ahead, model.continuous)
        check_positions_and_end(points[1:], start, rules, model)

        def joined(at_rest: bool) -> Trajectory:
            used = _settling(upsampled(points, at_rest) if smooth else points, rules)
            trajectory = spliced(old, situation.s, turns, used)
            check_limits(trajectory, begin, start, model)
            return trajectory

        if smooth and request.is_stream:
            with suppress(TrajectoryError):  # within the limits it may be if it ends at rest
                return joined(at_rest=False)
        return joined(at_rest=True)

    def _excess(self, peak: EffortPeak, start: float) -> str:
        joint, unit = self._model.joint_names[peak.joint], units(self._model, peak.joint).effort
        remedy = f"Make the trajectory {peak.stretch:.3g} times slower"
        if not peak.stretch < math.inf:
            remedy = "Going slower does not help, as the arm cannot hold itself there"
        return (
            f"{peak.time - start:.3g} s into it, joint {joint!r} needs {peak.torque:.4g} {unit}; "
            f"its effort limit is {peak.limit:.4g}. {remedy}"
        )


def _ahead(points: Waypoints, start: float, begin: float, situation: Situation) -> Waypoints:
    """The waypoints after `begin`, by trajectory time."""
    duration = points.times[-1]
    if duration <= 0.0:
        raise TrajectoryError(
            f"the last point's time is {duration:g} s; the arm needs time to get there, give "
            "it more than 0"
        )
    until = start - situation.s
    if until > 0.0 and start + duration == start:
        raise TrajectoryError(f"its start, {until:g} s from now, is too far ahead")
    if start + duration <= begin:
        raise TrajectoryPassedError(
            f"the trajectory ended {begin - start - duration:.3f} s ago; send it earlier, or with "
            "stamp 0 to start now"
        )
    ahead = points.delayed(start).after(begin)
    if len(ahead) == 0 or np.diff(ahead.times, prepend=begin).min() < SHORTEST_SEGMENT:
        raise TrajectoryError(
            f"at its start, {until:g} s from now, points are less than {SHORTEST_SEGMENT:g} s "
            "apart; give them more time"
        )
    return ahead


def _settling(points: Waypoints, rules: TrajectorySettings) -> Waypoints:
    """The same, and back to the last waypoint to rest there if the arm moves on."""
    speed = np.abs(points.velocities[-1]) * points.has[VELOCITY, -1]
    if speed.max() <= AT_REST:
        points.fields[VELOCITY, -1] = 0.0
        return points
    # A cubic back to the same place brakes with 4 v / T at most, a quintic with 3.94 v / T.
    time = max(SHORTEST_SETTLING, float((4.0 * speed / rules.max_deceleration).max()))
    last = points.fields[:, -1:].copy()
    last[VELOCITY] = last[ACCELERATION] = 0.0
    return replace(
        points,
        times=np.append(points.times, points.times[-1] + time),
        fields=np.concatenate([points.fields, last], axis=1),
        has=np.concatenate([points.has, np.ones((4, 1), dtype=bool)], axis=1),
    )
