"""From waypoints to a trajectory that the arm can follow from where it is: the one way in.

A `MotionRequest` that is made in a `Situation` becomes a `Plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control.laws import ControlLaw
from rnea_control.control.motion import Motion, MotionRequest
from rnea_control.control.settings import ControllerSettings, ExcessiveEffort, TrajectorySettings
from rnea_control.control.trajectory import Trajectory, from_the_old, merged, rest, spliced
from rnea_control.control.trajectory_limits import EffortPeak, check_limits, peak_efforts
from rnea_control.control.waypoints import (
    ACCELERATION,
    AT_REST,
    POSITION,
    VELOCITY,
    Waypoints,
    whole_turns,
)
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import TrajectoryError, TrajectoryLimitsError, TrajectoryModeError
from rnea_control.model import RobotModel

# A start that passed no longer ago than this was meant to be now, [s].
JUST_PASSED = 0.1
# Below this scaling an arm that is measured to move counts as at rest: its velocity by trajectory
# time would be very large.
SLOWEST_SCALING = 0.01
# The least time that an arm takes to settle after a trajectory that ends in motion, [s].
SHORTEST_SETTLING = 0.2
# How many times as fast as its own points the arm joins a stream whose message comes late.
CATCHING_UP = 1.5
# How exactly the effort limits are met by slowing down, as a part of them; in how many rounds, and
# how much slower each of them at least is while none has met them.
EFFORT_TOLERANCE = 5e-6
MOST_ROUNDS = 30
LEAST_STEP = 1.001


@dataclass(frozen=True)
class Situation:
    """The state that a plan starts from."""

    trajectory: Trajectory  # followed now
    revision: int  # how many there have been
    t: float  # controller's time now, [s]
    s: float  # trajectory time now, [s]
    ahead: float  # how long until the torque that is computed now acts, in trajectory time, [s]
    scaling: float  # of trajectory time
    position: FloatArray  # measured, shape (nv,), [rad] or [m]
    velocity: FloatArray  # measured, shape (nv,), [rad/s] or [m/s]
    error: FloatArray  # desired minus measured position, shape (nv,), [rad] or [m]

    def trajectory_time(self, t: float) -> float:
        """Trajectory time at time `t`, if the scaling stays as it is."""
        return self.s + (t - self.t) * (self.scaling if t > self.t else 1.0)

    def measured(
        self, joints: BoolArray, astray: BoolArray, velocity_limit: FloatArray
    ) -> Trajectory:
        """A trajectory in place of the one that is followed: these `joints`, shape (nv,), go on
        from the measured state, but not faster than their limits, [rad/s] or [m/s]; the others as
        before, those that are `astray` from the measured position."""
        coefficients = rest(self.position)
        if self.scaling > SLOWEST_SCALING:
            velocity = self.velocity / self.scaling
            coefficients[:, 1] = np.clip(velocity, -velocity_limit, velocity_limit)
        others = self.trajectory.copy()
        others.coefficients[:, :, 0] -= self.error * astray
        measured = Trajectory(np.array([self.s + self.ahead]), coefficients[None])
        return merged(others, measured, joints)


@dataclass(frozen=True)
class Plan:
    """A trajectory to change to, and until when that can be done."""

    trajectory: Trajectory  # the one followed so far, and from `begin` on the new one
    motion: Motion  # that it belongs to
    begin: float  # by trajectory time, [s]
    revision: int  # of the situation that it was planned in


class _Attempt(NamedTuple):
    """A trajectory that is `factor` times slower than requested."""

    factor: float
    times: FloatArray  # of the waypoints ahead, [s]
    trajectory: Trajectory
    peak: EffortPeak

    @property
    def excess(self) -> float:
        """The part of the effort limit by which the peak exceeds it."""
        return self.peak.ratio - 1.0


def check_law(law: ControlLaw) -> None:
    """Raises TrajectoryModeError if no trajectory is followed under this law."""
    if not law.holds_position:
        raise TrajectoryModeError(
            f"under {law.name} the arm follows the hand, not trajectories; choose another "
            "control_law"
        )


class Planner:
    """Plans motions of one robot, the model's, by the controller's settings; one thread uses it."""

    def __init__(self, model: RobotModel, settings: ControllerSettings) -> None:
        self._model, self._settings, self._rules = model, settings, settings.rules
        self._workspace = Workspace(model)

    def plan(
        self,
        request: MotionRequest,
        at: Situation,
        lead: float,
        alive: Callable[[], object] = lambda: None,
    ) -> Plan:
        """The plan that answers a request in a situation; the present trajectory goes on for
        `lead`, [s], at least. `alive` is called now and then meanwhile.

        Raises:
            TrajectoryError: waypoints that no arm can follow, that this one cannot follow within
                its limits, or that its settings do not allow.
            TrajectoryPassedError: the trajectory has ended.
        """
        model, rules = self._model, self._rules
        check_law(self._settings.control_law)
        points = Waypoints.of(request.waypoints, model.nv)
        points.check(model.joint_names, rules.allow_integration)
        points.check_efforts(model, self._settings.effort_limit(model))
        tolerances = rules.tolerances.overridden(request.tolerances, model.joint_names)
        start = earliest = at.s + at.ahead + lead
        if request.start is not None:
            start = at.trajectory_time(request.start)
        begin = max(start, earliest)
        if self._is_there(points, at, begin, tolerances.goal_position):
            # The goal is reached in the first state that is within its tolerances.
            motion = Motion(request, begin, begin + points.times, points.joints, "")
            return Plan(at.trajectory, motion, begin, at.revision)
        ahead = points.ahead(request.start, start, begin, at.s)
        old = at.trajectory
        astray = np.abs(at.error) > tolerances.path_position
        if start <= earliest and (astray.any() or not rules.start_from_desired_state):
            old = at.measured(points.joints, astray, model.velocity_limit)
        # A message of which no point has passed is not late: all its points are met.
        if request.is_stream and len(ahead) < len(points) and points.has[POSITION].all():
            most = CATCHING_UP * points.fastest()
            ahead = ahead.rejoined(old.at(begin)[0], begin, model.continuous, most)
        if start >= at.s - JUST_PASSED:
            points.check_start(old.at(begin)[0], model)

        def attempt(factor: float) -> _Attempt:
            alive()
            with np.errstate(over="ignore", invalid="ignore"):  # the limits are checked later
                points = ahead.stretched(factor, begin) if factor > 1.0 else ahead
                trajectory = self._joined(old, at.s, begin, start, points, request.is_stream)
            alive()
            peak = peak_efforts(model, self._workspace, trajectory, begin, self._settings)
            return _Attempt(factor, points.times, trajectory, peak)

        chosen, note = attempt(1.0), ""
        if not chosen.excess <= EFFORT_TOLERANCE:
            note = chosen.peak.complaint(start, model)
            # A limit that efforts of the points use up leaves nothing for the feedback.
            pushes = points.efforts.any() and chosen.peak.stretch == math.inf
            if pushes or rules.excessive_effort == ExcessiveEffort.refuse:
                raise TrajectoryLimitsError(note)
            if rules.excessive_effort == ExcessiveEffort.slow_down:
                chosen = self._slowed(attempt, chosen, start)
                slower = f"{chosen.factor:.4g} times slower than requested"
                note = f"{slower}, to stay within the effort limits"
        times = start + points.times
        times[len(times) - len(ahead) :] = chosen.times
        motion = Motion(request, start, times, points.joints, note)
        return Plan(chosen.trajectory, motion, begin, at.revision)

    def _is_there(
        self, points: Waypoints, at: Situation, begin: float, tolerance: FloatArray
    ) -> bool:
        """Whether the waypoints are one at time 0 where the arm rests already at `begin`, [s]:
        within the goal tolerance and END_SLACK. Such a goal asks for no motion."""
        if len(points) != 1 or points.times[0] != 0.0 or not points.has[POSITION, 0]:
            return False
        if begin < at.trajectory.end_time or np.abs(points.velocities[0]).max() > AT_REST:
            return False
        slack = self._settings.rows(self._model).end_slack
        away = points.positions[0] - at.position
        away = np.abs(away - whole_turns(away, self._model.continuous)) * points.joints
        return bool((away <= np.minimum(tolerance, slack)).all())

    def _slowed(
        self, attempt: Callable[[float], _Attempt], fast: _Attempt, start: float
    ) -> _Attempt:
        """The fastest attempt within the effort limits, by the secant method, from one beyond them;
        `start`: the zero of the times in errors, [s].

        From rest the first step meets the limit. A start in motion is not stretched, only the
        waypoints ahead of it, so that the first step may miss the limit on either side.
        """
        slow, factor = None, fast.peak.stretch
        high, low = fast.excess, 0.0  # of the secant
        for _ in range(MOST_ROUNDS):
            if not factor < math.inf:
                raise TrajectoryLimitsError(fast.peak.complaint(start, self._model))
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
            reason = fast.peak.complaint(start, self._model)
            raise TrajectoryLimitsError(f"{reason}, also at a lower speed")
        return slow

    def _joined(
        self,
        old: Trajectory,
        now: float,
        begin: float,
        start: float,
        ahead: Waypoints,
        is_stream: bool,
    ) -> Trajectory:
        """The old trajectory, sampled from `now` on, and from `begin` on that through the waypoints
        ahead; `start`: the zero of the times in errors, [s]."""
        model, rules = self._model, self._rules
        smooth = rules.upsample_positions and ahead.has_only_positions
        points, turns = from_the_old(old, begin, ahead, model.continuous)
        # The next message of a stream comes before this one ends, or the arm settles there.
        moving_end = rules.allow_moving_end or is_stream
        points[1:].check_positions_and_end(start, model, moving_end)

        def joined(at_rest: bool) -> Trajectory:
            used = _settling(points.upsampled(at_rest) if smooth else points, rules)
            trajectory = spliced(old, now, turns, used)
            check_limits(trajectory, begin, start, model)
            return trajectory

        if smooth and is_stream:
            with suppress(TrajectoryError):  # within the limits it may be if it ends at rest
                return joined(at_rest=False)
        return joined(at_rest=True)


def _settling(points: Waypoints, rules: TrajectorySettings) -> Waypoints:
    """The same, and back to the last waypoint to rest there if the arm moves on."""
    speed = np.abs(points.velocities[-1]) * points.has[VELOCITY, -1]
    if speed.max() <= AT_REST:
        points.fields[VELOCITY, -1] = 0.0
        return points
    # A cubic back to the same place brakes with 4 v / T at most, a quintic with 3.94 v / T.
    time = max(SHORTEST_SETTLING, float((4.0 * speed / rules.max_deceleration).max()))
    last = points.fields[:, -1].copy()
    last[VELOCITY] = last[ACCELERATION] = 0.0
    return points.inserted(len(points), float(points.times[-1]) + time, last)
