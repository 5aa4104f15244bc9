"""The planner: makes a trajectory that the arm can follow from its present state, from waypoints.
All trajectories come from here.

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
from rnea_control.control.motion import Motion, MotionRequest, end_slack
from rnea_control.control.settings import ControllerSettings, ExcessiveEffort
from rnea_control.control.trajectory import Trajectory, merged, rest, spliced
from rnea_control.control.trajectory_limits import EffortPeak, check_limits, peak_efforts
from rnea_control.control.waypoints import POSITION, Waypoints
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import TrajectoryError, TrajectoryLimitsError, TrajectoryModeError
from rnea_control.model import RobotModel

JUST_PASSED = 0.1  # age of a start up to which the start was meant to be now [s]
# Scaling below which a moving arm counts as at rest, as its velocity by trajectory time would be
# very large.
SLOWEST_SCALING = 0.01
CATCHING_UP = 1.5  # speed at which the arm joins a late stream, relative to the stream's points
EFFORT_TOLERANCE = 5e-6  # accuracy of slowing down to the effort limits, as a part of them
MOST_ROUNDS = 30  # rounds of slowing down, at most
LEAST_STEP = 1.001  # factor by which each round is slower at least, until one meets the limits


@dataclass(frozen=True)
class Situation:
    """The state that a plan starts from."""

    trajectory: Trajectory  # followed now
    revision: int  # number of trajectories so far
    t: float  # controller's time now, [s]
    s: float  # trajectory time now, [s]
    ahead: float  # trajectory time until the torque that is computed now acts, [s]
    scaling: float  # speed of trajectory time
    position: FloatArray  # measured, shape (nv,), [rad] or [m]
    velocity: FloatArray  # measured, shape (nv,), [rad/s] or [m/s]
    error: FloatArray  # desired minus measured position, shape (nv,), [rad] or [m]

    def trajectory_time(self, t: float) -> float:
        """Trajectory time at time `t`, if the scaling stays as it is."""
        return self.s + (t - self.t) * (self.scaling if t > self.t else 1.0)

    def measured(
        self, joints: BoolArray, astray: BoolArray, velocity_limit: FloatArray
    ) -> Trajectory:
        """A trajectory that replaces the present one, and begins at the measured state.

        Args:
            joints: joints that continue from the measured state, shape (nv,). The others continue
                as before.
            astray: joints that continue from the measured position if not in `joints`, shape (nv,).
            velocity_limit: bound of the velocities, shape (nv,), [rad/s] or [m/s].
        """
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
    """A trajectory to change to, and the time until when that can be done."""

    trajectory: Trajectory  # until `begin` the present trajectory, then the new one
    motion: Motion  # motion of the new trajectory
    begin: float  # trajectory time, [s]
    revision: int  # number of trajectories when it was planned


class _Attempt(NamedTuple):
    """A trajectory that is `factor` times slower than requested."""

    factor: float
    times: FloatArray  # times of the waypoints ahead, [s]
    trajectory: Trajectory
    peak: EffortPeak

    @property
    def excess(self) -> float:
        """The part of the effort limit by which the peak exceeds it."""
        return self.peak.ratio - 1.0


def check_law(law: ControlLaw) -> None:
    """Raises TrajectoryModeError if trajectories are not followed under this law."""
    if not law.follows_trajectories:
        raise TrajectoryModeError(
            f"under {law.name} the arm follows the hand, not trajectories; choose another "
            "control_law"
        )


class Planner:
    """Plans motions of a model's robot by the controller's settings. For one thread."""

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
        """The plan for a request in a situation.

        Args:
            request: the waypoints, their start and tolerances.
            at: the situation.
            lead: time for which the present trajectory continues at least, [s].
            alive: function called now and then meanwhile.

        Raises:
            TrajectoryError: waypoints that no arm can follow, that this arm cannot follow within
                its limits, or that the settings do not allow.
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
        old = at.trajectory
        astray = np.abs(at.error) > tolerances.path_position
        if start <= earliest and (astray.any() or not rules.start_from_desired_state):
            old = at.measured(points.joints, astray, model.velocity_limit)
        # A goal where the arm rests already is reached in the first state within its tolerances.
        slack = np.minimum(tolerances.goal_position, end_slack(model))
        stays = points.stay_at(at.position, slack, model.continuous)
        if stays and begin >= at.trajectory.end_time:
            motion = Motion(request, begin, begin + points.times, points.joints, "")
            return Plan(at.trajectory, motion, begin, at.revision)
        ahead = points.ahead(request.start, start, begin, at.s)
        # A message of which no point has passed is in time: all its points are met.
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
            # If the efforts of the points use up a limit, nothing is left for the feedback.
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

    def _slowed(
        self, attempt: Callable[[float], _Attempt], fast: _Attempt, start: float
    ) -> _Attempt:
        """The fastest attempt within the effort limits, by the secant method, from an attempt
        beyond them; `start`: the zero of the times in errors, [s].

        From rest the first step meets the limit. If the start is in motion, only the waypoints
        ahead of it are stretched, so that the first step may miss the limit on either side.
        """
        slow, factor = None, fast.peak.stretch
        high, low = fast.excess, 0.0  # ends of the secant
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
        """The old trajectory, sampled from `now` on, and from `begin` on the trajectory through the
        waypoints ahead; `start`: the zero of the times in errors, [s]."""
        model, rules = self._model, self._rules
        smooth = rules.upsample_positions and ahead.has_only_positions
        points, turns = ahead.led_by(begin, old.sampled(begin), model.continuous)
        # The next message of a stream comes before this message ends, or the arm settles there.
        moving_end = rules.allow_moving_end or is_stream
        points[1:].check_positions_and_end(start, model, moving_end)

        def joined(at_rest: bool) -> Trajectory:
            used = points.upsampled(at_rest) if smooth else points
            trajectory = spliced(old, now, turns, used.settled(rules.max_deceleration))
            check_limits(trajectory, begin, start, model)
            return trajectory

        if smooth and is_stream:
            with suppress(TrajectoryError):  # with an end at rest it may be within the limits
                return joined(at_rest=False)
        return joined(at_rest=True)
