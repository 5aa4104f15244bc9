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
from rnea_control.control import trajectory_checks as checks
from rnea_control.control.motion import Motion, MotionRequest
from rnea_control.control.settings import ControllerSettings, ExcessiveEffort, TrajectorySettings
from rnea_control.control.trajectory import Trajectory, from_the_old, merged, rest, spliced
from rnea_control.control.trajectory_limits import EffortPeak, peak_efforts
from rnea_control.control.waypoints import ACCELERATION, AT_REST, VELOCITY, Waypoints, upsampled
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import TrajectoryError, TrajectoryLimitsError, TrajectoryModeError
from rnea_control.model import RobotModel

# Below this scaling an arm that is measured to move counts as at rest: its velocity by trajectory
# time would be very large.
SLOWEST_SCALING = 0.01
# The least time that an arm takes to settle after a trajectory that ends in motion, [s].
SHORTEST_SETTLING = 0.2
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
        starts = np.array([self.s + self.ahead])
        if joints.all():
            return Trajectory(starts, coefficients[None])
        others = self.trajectory.copy()
        others.coefficients[:, :, 0] -= self.error * astray
        return Trajectory(*merged(others, starts, coefficients[None], joints), others.end_time)


@dataclass(frozen=True)
class Plan:
    """A trajectory to change to, and until when that can be done."""

    trajectory: Trajectory  # the one followed so far, and from `begin` on the new one
    motion: Motion  # that it belongs to
    begin: float  # by trajectory time, [s]
    revision: int  # of the situation that it was planned in


class _Attempt(NamedTuple):
    """A trajectory `factor` times slower than asked for, with the times of the waypoints ahead, and
    the part of the effort limit by which its peak exceeds it."""

    factor: float
    times: FloatArray
    trajectory: Trajectory
    peak: EffortPeak
    excess: float


class Planner:
    """Plans motions of one robot, the model's; one thread uses it."""

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self._workspace = Workspace(model)

    def plan(
        self,
        request: MotionRequest,
        at: Situation,
        settings: ControllerSettings,
        lead: float,
        alive: Callable[[], object] = lambda: None,
    ) -> Plan:
        """The plan that answers a request in a situation, by the controller's settings; the present
        trajectory goes on for `lead`, [s], at least. `alive` is called now and then meanwhile.

        Raises:
            TrajectoryError: waypoints that no arm can follow, that this one cannot follow within
                its limits, or that its settings do not allow.
            TrajectoryPassedError: the trajectory has ended.
        """
        if not settings.control_law.holds_position:
            raise TrajectoryModeError(
                f"under {settings.control_law.name} the arm follows the hand, not "
                "trajectories; choose another control_law"
            )
        model = self._model
        rules = settings.trajectories or TrajectorySettings.default(model.nv)
        points = Waypoints.of(request.waypoints, model.nv)
        checks.check_waypoints(points, rules, model.joint_names)
        tolerances = checks.overridden(rules.tolerances, request.tolerances, model.joint_names)
        start = earliest = at.s + at.ahead + lead
        if request.start is not None:
            start = at.trajectory_time(request.start)
        begin = max(start, earliest)
        checks.check_times(points, request.start, start, begin, at.s)
        ahead = points.delayed(start).after(begin)
        old = at.trajectory
        astray = np.abs(at.error) > tolerances.path_position
        if start <= earliest and (astray.any() or not rules.start_from_desired_state):
            old = at.measured(points.joints, astray, model.velocity_limit)
        if start >= at.s - checks.JUST_PASSED:
            checks.check_first_point(points, old.at(begin)[0], model)
        friction = model.friction_parameters * settings.friction_compensation
        effort_limit = settings.effort_limit(model)

        def attempt(factor: float) -> _Attempt:
            alive()
            with np.errstate(over="ignore", invalid="ignore"):  # the limits are checked later
                points = ahead.stretched(factor, begin) if factor > 1.0 else ahead
                trajectory = self._joined(old, points, begin, start, request, at, rules)
            alive()
            peak = peak_efforts(
                *(model, self._workspace, trajectory, begin, trajectory.end_time),
                *(effort_limit, friction, settings.hardware_compensates_gravity),
            )
            return _Attempt(factor, points.times, trajectory, peak, peak.ratio - 1.0)

        chosen, note = attempt(1.0), ""
        if not chosen.excess <= EFFORT_TOLERANCE:
            note = checks.excessive_effort(chosen.peak, start, model)
            if rules.excessive_effort == ExcessiveEffort.refuse:
                raise TrajectoryLimitsError(note)
            if rules.excessive_effort == ExcessiveEffort.slow_down:
                chosen = self._slowed(attempt, chosen, start)
                slower = f"{chosen.factor:.4g} times slower than asked for"
                note = f"{slower}, to stay within the effort limits"
        times = points.delayed(start).times
        times[len(times) - len(ahead) :] = chosen.times
        motion = Motion(request, start, times, points.joints, note)
        return Plan(chosen.trajectory, motion, begin, at.revision)

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
                raise TrajectoryLimitsError(checks.excessive_effort(fast.peak, start, self._model))
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
            reason = checks.excessive_effort(fast.peak, start, self._model)
            raise TrajectoryLimitsError(f"{reason}, which going slower does not mend")
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
        checks.check_positions_and_end(points[1:], start, rules, model)

        def joined(at_rest: bool) -> Trajectory:
            used = _settling(upsampled(points, at_rest) if smooth else points, rules)
            trajectory = spliced(old, situation.s, turns, used)
            checks.check_limits(trajectory, begin, start, model)
            return trajectory

        if smooth and request.is_stream:
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
