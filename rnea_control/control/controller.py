"""`Controller`: measured state in, torques out, once a tick, without any allocation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import controller_state, layout, requests, tolerances
from rnea_control.control.advance import step_once
from rnea_control.control.controller_state import ControllerState
from rnea_control.control.laws import ControlLaw, Model, is_hand_law
from rnea_control.control.motion import EndKind, Motion, MotionRequest
from rnea_control.control.output_stage import LONGEST_RATE_STEP
from rnea_control.control.path import Path, settle
from rnea_control.control.planner import Plan, Planner
from rnea_control.control.requests import Box, serve_now
from rnea_control.control.settings import ControllerSettings, Gains, TrajectorySettings
from rnea_control.control.splicing import Situation
from rnea_control.control.state_check import LONGEST_STANDSTILL, MOVING, doubt
from rnea_control.control.step import (
    BAD_JUMP,
    BAD_STATE,
    FOUND,
    NO_TRAJECTORY,
    PRESSED,
    SATURATED,
    SHAKEN,
    TORN_AWAY,
    step,
)
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.waypoints import Waypoint, Waypoints
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ArgumentError, ControllerError
from rnea_control.kernels.compilation import address
from rnea_control.model import RobotModel

# Stiffness and damping of a braced controller, [1/s^2] and [1/s]: known to hold an arm at 50 states
# a second and more.
BRACING_GAINS = 100.0, 20.0
NOTHING_TO_FOLLOW = "the controller has no trajectory yet; call hold(t, q) with the measured state"
# Findings for which the desired position is taken from the arm.
GAVE_WAY = (TORN_AWAY, PRESSED, SHAKEN)
# For how long the torque of an arm that is predicted to be at rest is repeated, [s].
LONGEST_REPEAT = 0.2


class Controller:
    """Moves the joints of a model along trajectories; between trajectories it holds the position.

    Times are seconds on any clock that the caller keeps to. One thread steps it; meanwhile another
    may set `settings` and call `plan`.

    Args:
        model: the robot; its joint order is the controller's.
        settings: gains, control law and limits.

    Attributes:
        gave_way_reason: why it gave way the last time.
        given_way: why each time, and whether a joint shook; the supervisor takes the entries out.
        box: a request; see requests.py.
        post: has the request in the box carried out, and returns when it is.
        arrays: of `advance`, for machine code that steps.

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
        self.workspace = Workspace(model)
        self._state = np.zeros((layout.STATE_ROWS, model.nv))
        self._state[layout.TARGET_SCALING] = 1.0
        settle(self._state)
        self._path = Path(model.nv, self.workspace, self._state)
        self._numbers = self._path.numbers
        self._numbers[layout.STEP_CODE] = address(step) or 0
        self._rows = np.zeros((2, layout.SETTINGS_ROWS, model.nv))
        self._findings = np.zeros((layout.MOST_FINDINGS, layout.FINDING_SIZE))
        self._tolerances = np.full((tolerances.ROWS, model.nv), math.inf)
        self.arrays = (
            *(self._numbers, self._rows, self._tolerances),
            *(self._state, self._findings),
        )
        self._told = 0  # findings that were told
        self._motions: dict[int, Motion] = {}
        self._last_motion = 0
        self.gave_way_reason = ""
        self.given_way: deque[tuple[str, bool]] = deque(maxlen=layout.MOST_FINDINGS)
        self._state[layout.COMMAND] = math.nan
        self.believe()
        self._state[layout.RATE_STEP] = LONGEST_RATE_STEP
        rows = self._state[layout.PREDICTED_POSITION], self._state[layout.PREDICTED_VELOCITY]
        self._predicted = rows  # what the last torque was computed for
        self.box = Box.empty(model.nv)
        self.post = self.serve
        self.change(model, settings)

    @property
    def settings(self) -> ControllerSettings:
        """Gains, control law and limits. New ones take effect in the next step, with the friction
        that the model has when they are set."""
        return self._settings

    @settings.setter
    def settings(self, settings: ControllerSettings) -> None:
        self.change(self.model, settings)

    @property
    def model(self) -> RobotModel:
        """The robot; its joint order is the controller's."""
        return self._model

    def change(self, model: RobotModel, settings: ControllerSettings) -> None:
        """Takes another model of the same robot, and other settings, from the next step on.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        settings.check(model.joint_names)
        braced = replace(
            settings,
            gains=Gains.uniform(model.nv, *BRACING_GAINS),
            control_law=ControlLaw.computed_torque,
            friction_compensation=False,
            feedback_inertia=None,
        )
        self.box.settings[:] = settings.rows(model), braced.rows(model)
        rules = settings.trajectories or TrajectorySettings.default(model.nv)
        self.box.tolerances[:] = self._allowed(rules, self.motion)
        bodies, numbers = model.bodies, self.box.numbers
        numbers[requests.BODIES_AT : requests.BODY_SIZE + 1] = bodies.ctypes.data, *bodies.shape
        self._ask(requests.CHANGE)
        self._model, self._planner = model, Planner(model)
        self._settings, self._rules = settings, rules

    def serve(self) -> None:
        """Carries out a request now; no loop may step meanwhile."""
        serve_now(*self.arrays[:4], *self.box)

    def _ask(self, request: int) -> bool:
        """Has a request carried out; whether it was."""
        self.box.numbers[requests.REQUEST] = request
        self.post()
        return bool(self.box.numbers[requests.DONE])

    @property
    def braced(self) -> bool:
        """Whether the steps go by a law and gains that hold any arm, in place of those of the
        settings; may be set."""
        return bool(self._numbers[layout.BRACED])

    @braced.setter
    def braced(self, on: bool) -> None:
        self.box.numbers[requests.BRACED] = on
        self._ask(requests.BRACE)

    @property
    def _in_force(self) -> FloatArray:
        """The rows of the settings by which steps go."""
        return self._rows[self._numbers[layout.BRACED]]

    @property
    def has_trajectory(self) -> bool:
        """Whether it has been told to hold or to follow anything yet."""
        return self._path.trajectory is not None

    @property
    def trajectory(self) -> Trajectory:
        """The present trajectory; holding a position is one too."""
        trajectory = self._path.trajectory
        if trajectory is None:
            raise ControllerError(NOTHING_TO_FOLLOW)
        return trajectory

    @property
    def desired(self) -> FloatArray:
        """Desired position, velocity and acceleration of the last step, shape (3, nv); a view."""
        return self._state[:3]

    @property
    def position_error(self) -> FloatArray:
        """q_d - q of the last step, shape (nv,); a view."""
        return self._state[layout.POSITION_ERROR]

    @property
    def effort_limit(self) -> FloatArray:
        """The bound of the torques, shape (nv,), [Nm] or [N]; a view."""
        return self._in_force[layout.EFFORT_LIMIT]

    @property
    def speed_scaling(self) -> float:
        """How fast trajectory time runs, 0 to 1: what it follows smoothly when set.

        Raises:
            ControllerError: when set to a value outside 0 to 1.
        """
        return float(self._state[layout.SCALING, 0])

    @speed_scaling.setter
    def speed_scaling(self, factor: float) -> None:
        if not 0.0 <= factor <= 1.0:
            raise ControllerError(
                f"the speed scaling factor is {factor}; it must be 0 to 1: limits were checked at "
                "full speed"
            )
        self._state[layout.TARGET_SCALING, 0] = factor

    @property
    def trajectory_time(self) -> float:
        """Trajectory time of the last step, [s]."""
        return float(self._state[layout.LAST_TRAJECTORY_TIME, 0])

    @property
    def time(self) -> float:
        """Time of the last step, [s]."""
        return float(self._state[layout.LAST_TIME, 0])

    @property
    def measured(self) -> tuple[FloatArray, FloatArray]:
        """Position and velocity of the last step, shape (nv,) each; views."""
        return self._state[layout.LAST_POSITION], self._state[layout.LAST_VELOCITY]

    def is_frozen(self, q: FloatArray, v: FloatArray) -> bool:
        """Whether this state still has the positions of those that were refused as frozen."""
        stands = self._state[layout.STANDSTILL, 0] > LONGEST_STANDSTILL
        moves = np.abs(v).max() > MOVING
        return bool(stands and moves and (q == self.measured[0]).all())

    @property
    def doubts(self) -> bool:
        """Whether the last state was one that no motion leads to."""
        return not math.isnan(self._state[layout.DOUBTED_AT, 0])

    def doubt(self, t: float, q: FloatArray, v: FloatArray) -> str:
        """Why no motion leads to a state that is not stepped; empty if one may."""
        if doubt(self._in_force, self._state, t, q, v) < 0:
            return ""
        return str(self.refusal(BAD_JUMP, t, q, v, q))

    def believe(self) -> None:
        """Takes the next state for true, wherever it is."""
        self._state[layout.LAST_MEASURED] = self._state[layout.DOUBTED_AT] = math.nan
        self._state[layout.RESTS_SINCE] = math.nan

    def disregard(self) -> None:
        """Forgets measurements and counts so far, as nobody applied the torques."""
        self.believe()
        self._state[layout.POSITION_LIMITED : layout.RATE_LIMITED + 1] = 0.0
        self._numbers[layout.GAVE_WAY] = 0
        self.given_way.clear()

    @property
    def gave_way(self) -> int:
        """How often the desired position was taken from the arm, as it was too far off, torque was
        at its limit for too long, or a joint shook."""
        return int(self._numbers[layout.GAVE_WAY])

    @property
    def guided(self) -> bool:
        """Whether a hand guides the arm."""
        return bool(self._state[layout.GUIDED, 0])

    @property
    def at_work(self) -> FloatArray:
        """For how long each stage limited each joint, shape (4, nv), [s]: soft position limits,
        velocity limit, effort limit, rate limit; a view."""
        return self._state[layout.POSITION_LIMITED : layout.RATE_LIMITED + 1]

    @property
    def saturated(self) -> bool:
        """Whether a torque of the last step is at its limit."""
        return bool(self._numbers[layout.OUTCOME] % FOUND == SATURATED)

    @property
    def motion(self) -> Motion | None:
        """The motion that the trajectory belongs to; None if it has ended."""
        return self._motions.get(int(self._numbers[layout.MOTION]))

    @property
    def is_moving(self) -> bool:
        """Whether the trajectory had not ended at the last step."""
        return self.trajectory_time < float(self._state[layout.PATH_END, 0])

    def hold(
        self, t: float, q: FloatArray, reason: str = "the controller was told to hold a position"
    ) -> None:
        """Drops the trajectory and holds position `q`, shape (nv,), [rad] or [m], from `t` [s] on,
        with an integral term of 0; `reason` is for those who wait for the end of the motion.

        Raises:
            ArgumentError: `q` is not nv finite numbers.
        """
        if np.shape(q) != (self.model.nv,) or not np.isfinite(q).all():
            raise ArgumentError(f"q is {q}; it must be {self.model.nv} finite numbers")
        self.drop(reason)
        state = self._state
        self._path.follow(Trajectory.hold(t, q))
        state[: layout.TARGET_SCALING] = 0.0  # which another thread may be setting
        state[layout.TARGET_SCALING + 1 : layout.GUIDED] = 0.0
        state[layout.GUIDED] = is_hand_law(self._in_force)
        state[layout.DESIRED_POSITION] = q
        state[layout.LAST_TIME] = state[layout.LAST_TRAJECTORY_TIME] = t
        state[layout.UNSCALED_UNTIL] = -math.inf
        state[layout.STANDSTILL] = 0.0
        self.believe()
        settle(state)

    @property
    def in_force(self) -> FloatArray:
        """The torque that acts, shape (nv,), [Nm] or [N]: the last one that left, or what another
        has commanded since, if that is set; NaN while it is not known. A view."""
        return self._state[layout.COMMAND]

    @in_force.setter
    def in_force(self, torque: FloatArray | float) -> None:
        self._state[layout.COMMAND] = torque

    def start(self, t: float, q: FloatArray) -> None:
        """As `hold`, after another has had the arm.

        The difference between the torque in force and the control law's fades out. Where the torque
        in force is not known, the first torque is the gravity torque.
        """
        self.hold(t, q, reason="the controller starts anew")
        known = bool(np.isfinite(self.in_force).all())
        self._state[layout.BLEND_START] = math.nan if known else -math.inf
        if not known and self.settings.control_law.model is Model.none:
            self.in_force = 0.0
        elif not known:
            self.holding_torque(q, self.in_force)

    def catch(
        self, t: float, q: FloatArray, v: FloatArray, reason: str, kind: EndKind = EndKind.DROPPED
    ) -> None:
        """Ends the motion, takes the desired position and velocity from the arm, and brakes as hard
        as the settings and the effort limits allow. Performs no allocation but for the ending.

        Args:
            t, q, v: the time now, [s], and the measured state, shape (nv,), finite.
            reason, kind: why, for those who wait for the end of the motion.
        """
        self.box.values[requests.NOW] = t
        self.box.measured[:] = q, v
        self._finish(kind, reason, requests.CATCH)

    def guide(self) -> None:
        """Lets a hand guide the arm, until `catch`, `hold` or `start`: the desired position follows
        the measured one."""
        self._finish(EndKind.DROPPED, "a hand guides the arm", requests.GUIDE)

    def drop(self, reason: str) -> None:
        """Ends the motion, if there is one, but not the trajectory."""
        self._finish(EndKind.DROPPED, reason)

    def stop(
        self, kind: EndKind, reason: str, guided: bool = False, predicted: bool = False
    ) -> None:
        """Ends the motion, and brakes as hard as the settings and the effort limits allow. Performs
        no allocation but for the ending.

        Args:
            kind, reason: why, for those who wait for the end of the motion.
            guided: whether a hand guides the arm, or has done so until now: then it brakes straight
                on, else along its path.
            predicted: whether the last state was predicted.
        """
        self.box.numbers[[requests.GUIDED, requests.PREDICTED]] = guided, predicted
        self._finish(kind, reason, requests.BRAKE)

    def follow(self, t: float, waypoints: Sequence[Waypoint] | Waypoints, start: float) -> Motion:
        """Replaces the trajectory from `start` on by one through `waypoints`; returns the motion,
        which tells how it ends.

        Until then the old one goes on, and its desired state is where the new one begins. Points
        that have only positions are joined by lines, as joint_trajectory_controller does: there the
        velocity steps.

        Args:
            t: the time now, [s].
            waypoints: their times are counted from `start`.
            start: when the waypoints' time is zero, [s]. If that is past, the waypoints that have
                passed are left out.

        Raises:
            TrajectoryError: as `Planner.plan`. The trajectory stays as it was.
            ArgumentError: `t` is before the last step.
        """
        request = MotionRequest(Waypoints.of(waypoints, self.model.nv), start)
        plan = self.plan(request, self.situation(t), 0.0)
        if not self.adopt(plan):
            raise ArgumentError(f"t is {t} s; it must not be before the last step")
        return plan.motion

    def situation(self, t: float) -> Situation:
        """The state that a plan made at time `t` starts from."""
        state, trajectory = self._state, self.trajectory
        scaling = layout.SCALING if self.is_moving else layout.TARGET_SCALING  # as `adopt` does
        # The trajectory may have changed since the last step.
        desired = trajectory.sampled(self.trajectory_time)[0]
        error = desired - (state[layout.DESIRED_POSITION] - state[layout.POSITION_ERROR])
        error -= 2.0 * math.pi * np.round(error / (2.0 * math.pi)) * self.model.continuous
        return Situation(
            trajectory.copy() if self._path.stops else trajectory,
            int(self._numbers[layout.REVISION]),
            t,
            t - float(state[layout.BEHIND, 0]),
            self.settings.dead_time * float(state[layout.SCALING, 0]),
            float(state[scaling, 0]),
            desired - error,
            state[layout.DESIRED_VELOCITY] - state[layout.VELOCITY_ERROR],
            error,
        )

    def snapshot(self) -> ControllerState:
        """A copy of what the last step did."""
        return ControllerState(self._state.copy(), self.motion)

    def plan(self, request: MotionRequest, situation: Situation, lead: float) -> Plan:
        """The plan for a request, for `adopt`. Changes nothing, so it may run in another thread;
        see `Planner.plan`."""
        return self._planner.plan(request, situation, self.settings, lead)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan, and ends the motion before it.

        Refuses, and returns False, if it is too late or another trajectory has come between.
        """
        trajectory, motion, box = plan.trajectory, plan.motion, self.box
        starts, coefficients = trajectory.starts, trajectory.coefficients
        self._last_motion += 1
        self._motions[self._last_motion] = motion
        box.numbers[requests.STARTS_AT : requests.MOTION + 1] = (
            starts.ctypes.data,
            coefficients.ctypes.data,
            len(starts),
            plan.revision,
            self._last_motion,
        )
        box.values[requests.BEGIN :] = plan.begin, trajectory.end_time, motion.start, motion.end
        box.tolerances[:] = self._allowed(self._rules, motion)
        if not self._ask(requests.ADOPT):
            del self._motions[self._last_motion]
            return False
        self._path.given = trajectory
        self._end(EndKind.REPLACED, "a new trajectory has replaced it")
        return True

    def step(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> FloatArray:
        """The torques for the state measured at time `t`. Performs no allocation.

        Args:
            t: time of the measurement, [s].
            q: measured positions, shape (nv,), [rad] or [m].
            v: measured velocities, shape (nv,), [rad/s] or [m/s].
            tau: output, shape (nv,), [Nm] or [N]; overwritten and returned. Always finite and
                within the limits.

        Raises:
            ControllerError: the state is not finite or jumps, or there is no trajectory; `tau` is
                untouched.
            TorqueError: the control law gives no finite torque; `tau` holds the gravity torque, or
                what is nearest to it within the limits.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        if self._step(t, q, v, tau, False) > SATURATED:
            self.tell()
        return tau

    def predict(self, t: float, tau: FloatArray) -> FloatArray:
        """The torques at time `t` if no state has come: from one that the model predicts, while the
        motion slows down. Performs no allocation.

        Args:
            t: the time now, [s].
            tau: as of `step`.

        Raises:
            ControllerError, TorqueError, ArgumentError: as `step`, but for the state.
        """
        q, v = self._predicted
        self._step(t, q, v, tau, True)
        if self.is_moving:
            self._state[layout.RESTS_SINCE] = math.nan
        return tau

    def refusal(
        self, outcome: int, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> Exception:
        """The error for a step that did not come to an end."""
        if outcome == NO_TRAJECTORY:
            return ControllerError(NOTHING_TO_FOLLOW)
        return controller_state.refusal(self.model, self._state, outcome, t, q, v, tau)

    def repeats(self, t: float) -> bool:
        """Whether the predicted arm has been at rest for so long that its torque is not commanded
        again: the hardware keeps it, and hardware that starts anew elsewhere must not get it. Ask
        before `predict`: a torque that is not sent is not in force."""
        return bool(t - self._state[layout.RESTS_SINCE, 0] > LONGEST_REPEAT)

    def _step(
        self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray, predicted: bool
    ) -> int:
        try:
            outcome: int = step_once(
                self._numbers,
                self._rows,
                self._tolerances,
                self._state,
                self._findings,
                t,
                q,
                v,
                tau,
                predicted,
            )
        except TypeError as error:
            raise ArgumentError(
                "q, v and tau must each be a C-contiguous float64 array of shape "
                f"({self.model.nv},)"
            ) from error
        if outcome >= BAD_STATE:
            raise self.refusal(outcome, t, q, v, tau)
        return outcome

    def limit_rate_step(self, elapsed: float) -> None:
        """Bounds the time that the rate limit counts in the next step, [s]: for a state whose stamp
        is further from the last one than it can be."""
        self._state[layout.RATE_STEP, 0] = min(elapsed, LONGEST_RATE_STEP)

    def approach(self, target: FloatArray, dt: float, tau: FloatArray) -> bool:
        """Fills `tau`, shape (nv,), [Nm] or [N], with the next torque on the way from the last one,
        `dt` [s] ago, to `target`, within the rate limit; returns whether it is `target`."""
        last = self._state[layout.COMMAND]
        change = dt * self._in_force[layout.TORQUE_RATE_LIMIT]
        known = np.isfinite(last)
        low = np.where(known, last - change, -math.inf)
        high = np.where(known, last + change, math.inf)
        np.clip(target, low, high, out=tau)
        last[:] = tau
        return bool((tau == target).all())

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
        np.clip(tau, -self.effort_limit, self.effort_limit, out=tau)
        if not np.isfinite(tau).all():
            raise ControllerError(f"the gravity torque at q = {q} is not finite: {tau}")
        return tau

    def _finish(self, kind: EndKind, text: str, request: int = requests.FINISH) -> None:
        self._ask(request)
        self._end(kind, text)

    def _end(self, kind: EndKind, text: str) -> None:
        """Reports the end of the motion that the last request has ended."""
        self.tell()
        if motion := self._motions.pop(int(self.box.numbers[requests.ENDED]), None):
            motion.finish(kind, text)

    def tell(self) -> None:
        """Says in words what steps have found: ends the motions that have ended."""
        forgotten = int(self._numbers[layout.FINDINGS]) - layout.MOST_FINDINGS - self._told
        self._told += max(forgotten, 0)
        while self._told < self._numbers[layout.FINDINGS]:
            finding = self._findings[self._told % layout.MOST_FINDINGS]
            self._told += 1
            motion = self._motions.pop(int(finding[layout.ENDED]), None)
            end = controller_state.ending(self.model, finding, motion)
            if finding[layout.KIND] in GAVE_WAY:
                self.gave_way_reason = end.text
                self.given_way.append((end.text, finding[layout.KIND] == SHAKEN))
            if motion is not None:
                motion.finish(end.kind, end.text)
        if forgotten > 0:
            for number in self._motions.keys() - {int(self._numbers[layout.MOTION])}:
                self._motions.pop(number).finish(EndKind.DROPPED, "too much has befallen the arm")

    def _allowed(self, rules: TrajectorySettings, motion: Motion | None) -> FloatArray:
        """The tolerances of a motion: those of the settings with those that it brought."""
        allowed, joints = rules.tolerances, np.ones(self._state.shape[1], dtype=bool)
        if motion is not None:
            joints = motion.joints
            allowed = allowed.overridden(motion.tolerances, self.model.joint_names)
        return allowed.rows(joints, rules.tolerances)
