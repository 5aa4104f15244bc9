"""`Controller`: measured state in, torques out, once a tick, without any allocation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import law as layout
from rnea_control.control.law import ControlLaw
from rnea_control.control.settings import ControllerSettings
from rnea_control.control.step import BAD_SIZE, BAD_TORQUE, SATURATED, step
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.trajectory_limits import (
    JUST_PASSED,
    check_first_point,
    check_limits,
    check_position_limits,
)
from rnea_control.control.waypoints import Waypoint, Waypoints
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ArgumentError, ControllerError, TrajectoryError
from rnea_control.model import RobotModel

# Segments shorter than this drown in the rounding of their times, [s].
SHORTEST_SEGMENT = 1e-6

# How long a smooth stop takes, [s].
STOPPING_TIME = 0.5


class Controller:
    """Moves the joints of a model along trajectories; between trajectories it holds the position.

    Times are seconds on any clock that the caller keeps to. One thread steps it; meanwhile another
    may set `settings` and call `plan`.

    Args:
        model: the robot; its joint order is the controller's.
        settings: gains, control law and limits.

    Raises:
        ControllerError: settings that do not fit the model; a joint of several degrees of freedom.
    """

    def __init__(self, model: RobotModel, settings: ControllerSettings) -> None:
        several = [
            f"{name} ({kind})"
            for name, kind in zip(model.joint_names, model.joint_types, strict=True)
            if model.v_slices[name].stop - model.v_slices[name].start > 1
        ]
        if several:
            raise ControllerError(
                f"{', '.join(several)} cannot be controlled, only joints with one degree of "
                "freedom can; leave them out of `joints`"
            )
        self.model = model
        self.workspace = Workspace(model)
        self._state = np.zeros((layout.STATE_ROWS, model.nv))
        self._trajectory: Trajectory | None = None
        self.saturated = False
        self.settings = settings

    @property
    def settings(self) -> ControllerSettings:
        """Gains, control law and limits. New ones take effect in the next step, with the friction
        that the model has when they are set."""
        return self._settings

    @settings.setter
    def settings(self, settings: ControllerSettings) -> None:
        settings.check(self.model.joint_names)
        rows, gains = np.zeros((layout.SETTINGS_ROWS, self.model.nv)), settings.gains
        rows[layout.P_GAIN], rows[layout.I_GAIN], rows[layout.D_GAIN] = gains.p, gains.i, gains.d
        rows[layout.I_CLAMP_MAX], rows[layout.I_CLAMP_MIN] = gains.i_clamp_max, gains.i_clamp_min
        rows[layout.EFFORT_LIMIT] = settings.effort_limit_scale * self.model.effort_limit
        rows[layout.CONTINUOUS] = self.model.continuous
        if settings.friction_compensation:
            rows[layout.FRICTION : layout.FRICTION + 3] = self.model.friction_parameters
        rows[layout.LAW] = settings.control_law
        rows[layout.HARDWARE_ADDS_GRAVITY] = settings.hardware_compensates_gravity
        self._settings_array = rows  # all at once, whatever thread steps meanwhile
        self._settings = settings

    @property
    def trajectory(self) -> Trajectory:
        """The present trajectory; holding a position is one too."""
        if self._trajectory is None:
            raise ControllerError(
                "the controller has no trajectory yet; call hold(t, q) with the measured state"
            )
        return self._trajectory

    @property
    def desired(self) -> FloatArray:
        """Desired position, velocity and acceleration of the last step, shape (3, nv); a view."""
        return self._state[:3]

    @property
    def position_error(self) -> FloatArray:
        """q_d - q of the last step, shape (nv,); a view."""
        return self._state[layout.POSITION_ERROR]

    def hold(self, t: float, q: FloatArray, keep_integral: bool = False) -> None:
        """Drops the trajectory and holds position `q`, shape (nv,), from `t` on.

        Args:
            t: the time now, [s].
            q: the position, [rad] or [m].
            keep_integral: whether the integral term is kept, as part of the holding torque; else it
                starts at 0.

        Raises:
            ArgumentError: `q` is not nv finite numbers.
        """
        if np.shape(q) != (self.model.nv,) or not np.isfinite(q).all():
            raise ArgumentError(f"q is {q}; it must be {self.model.nv} finite numbers")
        integral = self._state[layout.INTEGRAL].copy()
        self._trajectory = Trajectory.hold(t, q)
        self._state[:] = 0.0
        self._state[layout.DESIRED_POSITION] = q
        if keep_integral:
            self._state[layout.INTEGRAL] = integral
        self._state[layout.LAST_TIME] = t

    def is_moving(self, t: float) -> bool:
        """Whether the trajectory has not yet ended at time `t`."""
        return t < self.trajectory.end_time

    def halt(self, t: float) -> None:
        """Replaces the trajectory by a smooth stop, from the desired state at time `t` on."""
        position, velocity, _ = self.trajectory.at(t)
        rest = np.zeros(self.model.nv)
        end = position + 0.5 * STOPPING_TIME * velocity
        stop = Waypoint(t + STOPPING_TIME, end, rest, rest)
        self.adopt(self.trajectory.then([stop], t, t, rest))

    def follow(self, t: float, waypoints: Sequence[Waypoint] | Waypoints, start: float) -> None:
        """Replaces the trajectory from `start` on by one through `waypoints`.

        Until then the old one goes on, and its desired state is where the new one begins. Points
        that have only positions are joined by lines, as joint_trajectory_controller does: there the
        velocity steps.

        Args:
            t: the time now, [s].
            waypoints: their times are counted from `start`.
            start: when the waypoints' time is zero, [s]. If that is past, the waypoints that have
                passed are left out.

        Raises:
            TrajectoryError: as `Trajectory.through`; control law gravity_compensation; a trajectory
                that has ended, starts too far ahead or has points too close in time; a position or
                velocity beyond the joint's limits, between the points too; a first point at time 0
                where the arm is not. The trajectory stays as it was.
        """
        self.adopt(self.plan(self.trajectory, t, t, waypoints, start))

    def plan(
        self,
        current: Trajectory,
        t: float,
        earliest: float,
        waypoints: Sequence[Waypoint] | Waypoints,
        start: float,
    ) -> Trajectory:
        """The trajectory that `follow` would change to, for `adopt`. Changes nothing, so it may run
        in another thread.

        Args:
            current: the trajectory that goes on until the new one takes over.
            t: the time now, [s].
            earliest: when the new trajectory may take over, not before `t`, [s].
            waypoints, start: as of `follow`, with its errors.
        """
        if self.settings.control_law == ControlLaw.gravity_compensation:
            raise TrajectoryError(
                "under gravity_compensation the arm follows the hand, not trajectories; choose "
                "another control_law"
            )
        points = Waypoints.of(waypoints, self.model.nv)
        points.check(self.model.joint_names)
        if not math.isfinite(start):
            raise TrajectoryError(f"its start is {start} s; it must be finite")
        duration = points.times[-1]
        if duration <= 0.0:
            raise TrajectoryError(
                f"the last point's time is {duration:g} s; the arm needs time to get there, give "
                "it more than 0"
            )
        begin = max(start, earliest)
        end = start + duration
        if start > t and end == start:
            raise TrajectoryError(f"its start, {start - t:g} s from now, is too far ahead")
        if end <= begin:
            raise TrajectoryError(
                f"the trajectory ended {begin - end:.3f} s ago; send it earlier, or with stamp 0 "
                "to start now"
            )
        ahead = points.delayed(start).after(begin)
        times = np.concatenate([[begin], ahead.times])
        if len(ahead) == 0 or np.diff(times).min() < SHORTEST_SEGMENT:
            raise TrajectoryError(
                f"at its start, {start - t:g} s from now, points are less than "
                f"{SHORTEST_SEGMENT:g} s apart; give them more time"
            )
        check_position_limits(points[len(points) - len(ahead) :], self.model)
        if start >= t - JUST_PASSED:
            check_first_point(points, current.at(begin)[0], self.model)
        joined = current.then(ahead, t, begin, self.model.continuous)
        check_limits(joined, begin, start, self.model)
        return joined

    def adopt(self, trajectory: Trajectory) -> None:
        """Changes to a trajectory that `plan` made; it must continue the present one."""
        self._trajectory = trajectory

    def step(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> FloatArray:
        """The torques for the state measured at time `t`. Performs no allocation.

        Args:
            t: time of the measurement, [s].
            q: measured positions, shape (nv,), [rad] or [m].
            v: measured velocities, shape (nv,), [rad/s] or [m/s].
            tau: output, shape (nv,), [Nm] or [N]; overwritten and returned. Always finite and
                within the limits.

        Raises:
            ControllerError: the state is not finite, or there is no trajectory; `tau` is untouched.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        trajectory = self._trajectory or self.trajectory
        try:
            outcome = step(
                self.model.bodies,
                self.workspace.memory,
                trajectory.starts,
                trajectory.coefficients,
                self._settings_array,
                self._state,
                t,
                q,
                v,
                tau,
            )
        except TypeError as error:
            raise ArgumentError(
                "q, v and tau must each be a C-contiguous float64 array of shape "
                f"({self.model.nv},)"
            ) from error
        if outcome > SATURATED:
            raise self._refusal(outcome, t, q, v, tau)
        self.saturated = outcome == SATURATED
        return tau

    def holding_torque(self, q: FloatArray, tau: FloatArray) -> FloatArray:
        """Fills and returns `tau` with the gravity torques at `q`, within the limits; with 0 if the
        hardware compensates gravity. ros2_control keeps the last command in force: send this last.

        Raises:
            ControllerError: a torque that is not finite.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        if self.settings.hardware_compensates_gravity:
            tau[:] = 0.0
            return tau
        gravity(self.model, self.workspace, q, tau)
        limit = self._settings_array[layout.EFFORT_LIMIT]
        np.clip(tau, -limit, limit, out=tau)
        if not np.isfinite(tau).all():
            raise ControllerError(f"the gravity torque at q = {q} is not finite: {tau}")
        return tau

    def _refusal(
        self, outcome: int, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> Exception:
        if outcome == BAD_SIZE:
            return ArgumentError(
                f"q, v and tau must each have {self.model.nv} numbers, one for each joint; they "
                f"have shapes {q.shape}, {v.shape} and {tau.shape}"
            )
        names = self.model.joint_names
        if outcome == BAD_TORQUE:
            return ControllerError(
                f"the torque for the state measured at t = {t} s is not finite; are its positions "
                "and velocities in rad and rad/s, and the gains in their units?"
            )
        bad = [name for name, x, y in zip(names, q, v, strict=True) if not math.isfinite(x + y)]
        return ControllerError(
            f"the measured state at t = {t} s is not finite"
            + (f" (joint {', '.join(bad)})" if bad else "")
            + "; no torque is computed from it"
        )
