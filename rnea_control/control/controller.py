"""`Controller`: measured state in, torques out, once a tick, without any allocation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control import belief, laws, layout, motion_watch, step, unrest
from rnea_control.control.controller_state import NOTHING_TO_FOLLOW, ControllerState, StepRows
from rnea_control.control.feasibility import controllable
from rnea_control.control.laws import Model, resting_reference
from rnea_control.control.momentum_observer import LONGEST_GAP
from rnea_control.control.motion import (
    Act,
    Ending,
    EndKind,
    Motion,
    MotionRequest,
    Motions,
    ToleranceRows,
)
from rnea_control.control.output_stage import LONGEST_RATE_STEP
from rnea_control.control.own_law import OwnLaw
from rnea_control.control.planner import Plan, Planner, Situation
from rnea_control.control.settings import ControllerSettings
from rnea_control.control.stopping import Path
from rnea_control.control.trajectory import Trajectory, settle
from rnea_control.control.waypoints import Waypoint, Waypoints, whole_turns
from rnea_control.dynamics import Workspace, crba, gravity
from rnea_control.exceptions import ArgumentError, ControllerError, TorqueError
from rnea_control.jit.compilation import address
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# Times, positions, velocities and commands of some states.
Recorded = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
LET_GO_DAMPING_RATE = 20.0  # damping of an arm that was let go, per inertia [1/s]
SETTLED_SCALING = 0.01  # target minus scaling below which a pause is over
STILL_FROZEN = "the measured positions still do not change"


class Controller(StepRows):
    """Moves the joints of a model along trajectories; between trajectories it holds the position.

    Times are seconds on any clock, always the same one. One thread steps the controller; meanwhile
    another thread may set `settings` and call `plan`.

    Args:
        model: the robot; its joint order is the controller's.
        settings: gains, control law and limits.

    Attributes:
        model: the robot; only `change` sets it.
        box: a request; see step.py.
        post: function that has the request in the box carried out, and returns when this is done.
        arm, rows: see layout.py; machine code that steps writes them too.
        arrays: arguments of the step's kernels.
        planned_gains: gains in the last message of a planner, shape (nv, 2 nv); machine code writes
            them.

    Raises:
        ControllerError: settings that do not fit the model; a joint of several degrees of freedom.
    """

    def __init__(self, model: RobotModel, settings: ControllerSettings) -> None:
        controllable(model)
        self.workspace = Workspace(model)
        self.rows = layout.State.zeros(model.nv)
        self.rows.target_scaling, self.rows.command[:] = 1.0, math.nan
        self.rows.rate_step = LONGEST_RATE_STEP
        motion_watch.start_anew(self.rows)
        settle(self.rows)
        self.believe()
        self._path = Path(self.workspace, self.rows)
        self.arm = self._path.arm
        self.arm.step_code = address(step.step) or 0
        self.arm.watch_code = address(motion_watch.watch) or 0
        self._record = np.zeros((layout.RECORD_ROWS, 1 + 3 * model.nv))
        self.arm.record_at = self._record.ctypes.data
        self.planned_gains = np.zeros((model.nv, 2 * model.nv))
        self.arm.gains_at = self.planned_gains.ctypes.data
        self._motions = Motions(self.arm)
        self.arrays = step.StepArrays(
            arm=self.arm.argument,
            settings=layout.Settings.zeros(model.nv, 2),
            tolerances=ToleranceRows.none(model.nv),
            state=self.rows,
            findings=self._motions.findings,
        )
        self.box = step.Box.for_joints(model.nv)
        # The state that the last torque was computed for.
        self._predicted = self.rows.predicted_position, self.rows.predicted_velocity
        self.post, self.model = self.serve, model
        self.change(model, settings)
        if settings.own_law is not None:
            self._check_own_law(settings.own_law)

    @property
    def settings(self) -> ControllerSettings:
        """Gains, control law and limits. New settings take effect in the next step, with the
        friction that the model has when they are set."""
        return self._settings

    @settings.setter
    def settings(self, settings: ControllerSettings) -> None:
        self.change(self.model, settings)

    def change(self, model: RobotModel, settings: ControllerSettings) -> None:
        """Takes another model of the same robot, and other settings, from the next step on.

        Raises:
            ControllerError: settings that do not fit the model; nothing changes then.
        """
        settings.check(model.joint_names)
        planner = Planner(model, settings)
        rows = settings.rows(model)
        same_bodies = np.array_equal(model.bodies, self.model.bodies)
        same_friction = np.array_equal(rows.friction, self.arrays.settings[0].friction)
        # The observer starts anew with another model only, not with each change of a gain.
        request = self.box.request
        request.new_model = not (same_bodies and same_friction)
        self.box.arrays.settings[:] = rows, settings.braced().rows(model)
        tolerances = settings.rules.tolerances
        self.box.arrays.tolerances[:] = tolerances.rows(self.motion, model.joint_names)
        request.bodies_at = model.bodies.ctypes.data
        if settings.own_law is not None:
            self.arm.own_code = settings.own_law.code
        self._ask(step.CHANGE)
        self.model, self._settings, self._planner = model, settings, planner

    def _check_own_law(self, law: OwnLaw) -> None:
        """Refuses a law of a user that is too slow, or gives no finite torque, at the middle
        position; raises ControllerError."""
        model, settings = self.model, self.arrays.settings[0]
        within = np.isfinite(model.lower) & np.isfinite(model.upper)
        q = np.where(within, 0.5 * (model.lower + model.upper), 0.0)
        state, v, tau = layout.State.zeros(model.nv), np.zeros(model.nv), np.zeros(model.nv)
        state.desired_position = q

        def call() -> FloatArray:
            laws.own_torque_once(self.arm.argument, settings, state, q, v, tau)
            return tau

        law.check(call)

    @property
    def braced(self) -> bool:
        """True if the steps use a law and gains that hold any arm, in place of those in the
        settings; may be set."""
        return bool(self.arm.braced)

    @braced.setter
    def braced(self, on: bool) -> None:
        self.box.request.braced = on
        self._ask(step.BRACE)

    @property
    def _settings_in_force(self) -> layout.Settings:
        """The settings that steps use."""
        return self.arrays.settings[self.arm.braced]

    @property
    def effort_limit(self) -> FloatArray:
        """The bound of the torques, shape (nv,), [Nm] or [N]; a view."""
        return self._settings_in_force.effort_limit

    @property
    def watch(self) -> int:
        """The bounds that the motion has, UNWATCHED, FREE or STOPPED of motion_watch.py. May be
        set."""
        return int(self.arm.watch)

    @watch.setter
    def watch(self, bounds: int) -> None:
        self.arm.watch = bounds

    @property
    def arresting(self) -> bool:
        """True while a moving arm is brought to rest after a fault, or since it was caught."""
        return not math.isnan(self.rows.braked_since)

    @property
    def joints_move(self) -> bool:
        """True if the last state shows a joint in motion; false while states are missing, or before
        the noise of the velocities is known."""
        v = self.last_state[1]
        return (
            not self.predicting and unrest.moving_joint(self._settings_in_force, self.rows, v) >= 0
        )

    @property
    def restless(self) -> bool:
        """True if a joint moves although the arm is held."""
        return bool(self.arm.is_restless)

    def expect_noise(self, velocity: FloatArray, momentum: FloatArray) -> None:
        """Takes the standard deviations of the noise of the measured velocities, [rad/s] or [m/s],
        and of the momenta computed from them, shapes (nv,)."""
        self.rows.velocity_noise = velocity
        # The residual follows fast changes of the momentum by this factor.
        self.rows.residual_noise = self.arrays.settings[0].observer_gain * momentum

    @property
    def powerless(self) -> bool:
        """True if the controller has let go of the arm, and commands no torque any more."""
        return bool(self.arm.powerless)

    def command(
        self,
        t: float,
        q: FloatArray,
        v: FloatArray,
        wanted: FloatArray,
        elapsed: float,
        tau: FloatArray,
    ) -> None:
        """Commands torques that do not come from the control law.

        Args:
            t: time of the measured state, [s].
            q, v: measured positions and velocities, shapes (nv,).
            wanted: the torques, shape (nv,), [Nm] or [N].
            elapsed: time since the last command, for the rate limit, [s].
            tau: output, shape (nv,): the torques within the rate limit.
        """
        self.rows.last_time = self.rows.last_measured = t
        self.last_state[:] = q, v
        self.approach(wanted, max(elapsed, 0.0), tau)

    def support(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Fills `tau` with the gravity torque for a state while no subscriber applies the commands.

        There is no feedback, no limit torque and no rate limit, as the commands move nothing. A
        subscriber that begins to apply them starts with the torque that holds the arm. The torque
        is zero under a law without a model.

        Args:
            t: time of the measurement, [s].
            q: measured positions, finite, shape (nv,), [rad] or [m].
            v: measured velocities, finite, shape (nv,), [rad/s] or [m/s].
            tau: output, shape (nv,), [Nm] or [N]; overwritten.

        Raises:
            ControllerError: a torque that is not finite.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        rows = self.rows
        rows.last_time = rows.last_measured = t
        rows.last_trajectory_time = t - rows.behind
        rows.clear_motion()
        rows.desired_position = rows.model_position = rows.predicted_position = q
        rows.velocity_error = -v
        rows.predicted_velocity = v
        self.last_state[:] = q, v
        if self.settings.control_law.model is Model.none:
            tau[:] = 0.0
        else:
            self.holding_torque(q, tau)
        rows.previous_command = self.in_force
        rows.torque = rows.command = tau

    def damp_when_let_go(self, joints: BoolArray) -> None:
        """Has `joints`, shape (nv,), damped at the present position, instead of powerless, once the
        controller has let go; until the next activation."""
        ws, q = Workspace(self.model), self.last_state[0]
        inertia = np.diag(crba(self.model, ws, q, ws.matrix))
        self.rows.let_go_damping = np.where(joints, LET_GO_DAMPING_RATE * inertia, 0.0)

    def let_go(self) -> None:
        """Fades to no torque from the next step on, until the next activation."""
        self.arm.powerless = True

    def recorded(self, seconds: float) -> Recorded:
        """The states of the last `seconds` [s] without a gap, and the commands computed for them:
        times, shape (n,), [s]; positions, velocities and torques, shape (n, nv). Copies."""
        count, nv = int(self.arm.recorded), self.model.nv
        kept = min(count, layout.RECORD_ROWS)
        rows = self._record[np.arange(count - kept, count) % layout.RECORD_ROWS]
        t = rows[:, layout.RECORD_TIME]
        steps = np.diff(t)
        breaks = np.flatnonzero(~((steps > 0.0) & (steps < LONGEST_GAP)))
        begin = int(breaks[-1]) + 1 if len(breaks) else 0
        if kept:
            begin = max(begin, int(np.searchsorted(t[begin:], t[-1] - seconds)) + begin)
        t, states = t[begin:], rows[begin:, layout.RECORD_STATE :]
        return t, states[:, :nv], states[:, nv : 2 * nv], states[:, 2 * nv :]

    def forget(self) -> None:
        """Resets the values that apply to one activation only."""
        arm = self.arm
        arm.predicting = arm.powerless = arm.is_restless = False
        arm.gaps, arm.watch = 0, motion_watch.UNWATCHED
        self.rows.let_go_damping[:] = 0.0

    def serve(self) -> None:
        """Carries out a request now; no loop may step meanwhile."""
        step.serve_now(self.arrays, self.box.arrays)

    def _ask(self, request: int) -> bool:
        """Has a request carried out; returns True if it was."""
        self.box.request.kind = request
        self.post()
        return self.box.request.done

    @property
    def has_trajectory(self) -> bool:
        """True once the controller has been requested to hold or to follow anything."""
        return self._path.given is not None

    @property
    def trajectory(self) -> Trajectory:
        """The present trajectory; holding a position is a trajectory too. Later stops overwrite the
        memory of a stop: copy the trajectory to keep it."""
        for stop in self._path.stops:
            if stop.addresses[0] == self.arm.starts_at:
                stop.end_time = float(self.rows.path_end)
                return stop
        if self._path.given is None:
            raise ControllerError(NOTHING_TO_FOLLOW)
        return self._path.given

    @property
    def motion(self) -> Motion | None:
        """The motion that the trajectory belongs to; None if it has ended."""
        return self._motions.under_way.get(int(self.arm.motion))

    def hold(
        self,
        t: float,
        q: FloatArray,
        reason: str = "the controller was requested to hold a position",
    ) -> None:
        """Drops the trajectory and holds a position, with an integral term of 0.

        Args:
            t: time from which the position is held, [s].
            q: the position, shape (nv,), [rad] or [m].
            reason: text of the ending, for the sender of the motion.

        Raises:
            ArgumentError: `q` is not nv finite numbers.
        """
        if np.shape(q) != (self.model.nv,) or not np.isfinite(q).all():
            raise ArgumentError(f"q is {q}; it must be {self.model.nv} finite numbers")
        self.finish(reason)
        self._path.rest(t, q, resting_reference(self._settings_in_force))
        motion_watch.start_anew(self.rows)
        self.believe()

    def start(self, t: float, q: FloatArray) -> None:
        """Like `hold`, for a start after another node has commanded the arm.

        The difference between the torque in force and the torque of the control law fades out. If
        the torque in force is not known, the first torque is the gravity torque.
        """
        self.hold(t, q, reason="the controller starts again")
        known = np.isfinite(self.in_force).all()
        self.rows.blend_start = math.nan if known else -math.inf
        if not known and self.settings.control_law.model is Model.none:
            self.in_force = 0.0
        elif not known:
            self.holding_torque(q, self.in_force)

    def finish(
        self,
        reason: str,
        act: Act = Act.GOES_ON,
        kind: EndKind = EndKind.DROPPED,
        state: tuple[float, FloatArray, FloatArray] | None = None,
        guided: bool = False,
    ) -> None:
        """Ends the motion, if there is one. Performs no allocation but for the ending.

        Args:
            reason, kind: why the motion ends, for its sender.
            act: what the arm does then.
            state: for `IS_CAUGHT`, the time now, [s], and the measured state, finite.
            guided: for `BRAKES`, True if a hand guides the arm, or has done so until now.
        """
        self.box.request.guided = guided
        if state is not None:
            self.box.request.now = state[0]
            self.box.arrays.measured[:] = state[1:]
        self._ask(act)
        self._end_motion(kind, reason)

    def _end_motion(self, kind: EndKind, reason: str) -> None:
        """Ends the motion that the last request ended, unless a step has done so."""
        self._motions.read(self.model)
        if motion := self._motions.under_way.pop(self.box.request.ended, None):
            motion.finish(kind, reason)

    def follow(self, t: float, waypoints: Sequence[Waypoint] | Waypoints, start: float) -> Motion:
        """Replaces the trajectory from `start` on; returns the new motion, which reports its end.

        The old trajectory is followed until then, and the new one begins at its desired state.
        Points that have only positions are joined by lines, as in joint_trajectory_controller, so
        that the velocity has steps there.

        Args:
            t: time now, [s].
            waypoints: the points of the new trajectory; their times are counted from `start`.
            start: controller's time at which the new trajectory starts, [s].

        Raises:
            TrajectoryError: waypoints that no arm can follow, that this arm cannot follow within
                its limits, or that the settings do not allow. The trajectory stays as it was.
            ArgumentError: `t` is before the last step.
        """
        request = MotionRequest(Waypoints.of(waypoints, self.model.nv), start)
        plan = self.plan(request, self.situation(t), 0.0)
        if not self.adopt(plan):
            raise ArgumentError(f"t is {t} s; it must not be before the last step")
        return plan.motion

    def situation(self, t: float) -> Situation:
        """The state that a plan made at time `t` starts from."""
        rows, trajectory = self.rows, self.trajectory
        if trajectory is not self._path.given:
            trajectory = trajectory.copy()  # the memory of a stop is reused
        if self.streams:  # a stream has no trajectory
            trajectory = Trajectory.hold(self.trajectory_time, self.desired[0])
        # The scaling settles when a request to adopt a plan finds the arm at the path's end.
        scaling = rows.scaling if self.is_moving else rows.target_scaling
        # The trajectory may have changed since the step.
        desired = trajectory.sampled(self.trajectory_time)[0]
        measured, velocity = self.measured
        error = desired - measured
        error -= whole_turns(error, self.model.continuous)
        return Situation(
            trajectory=trajectory,
            revision=int(self.arm.revision),
            t=t,
            s=t - float(rows.behind),
            ahead=self.settings.dead_time * self.speed_scaling,
            scaling=float(scaling),
            position=desired - error,
            velocity=velocity,
            error=error,
        )

    def plan(
        self,
        request: MotionRequest,
        situation: Situation,
        lead: float,
        alive: Callable[[], object] = lambda: None,
    ) -> Plan:
        """The plan for a request, for `adopt`. Changes nothing, so that it may run in another
        thread; see `Planner.plan`."""
        return self._planner.plan(request, situation, lead, alive)

    def plan_to_catch_up(
        self,
        motion: Motion,
        situation: Situation,
        lead: float,
        alive: Callable[[], object] = lambda: None,
    ) -> Plan:
        """The plan that removes the delay of the present motion by pauses of the states: it meets
        the points of the motion at their original times.

        Args:
            motion: the motion that is followed.
            situation: the state that the plan starts from.
            lead: time for which the present trajectory continues at least, [s].
            alive: function called now and then meanwhile.

        Raises:
            TrajectoryError: see `Planner.plan`.
        """
        start = situation.t + (motion.start - situation.s) - self.pause_delay
        return self.plan(replace(motion.request, start=start), situation, lead, alive)

    def adopt(self, plan: Plan, continued: Motion | None = None) -> bool:
        """Changes to a plan, and ends the motion before it, unless that motion is `continued`: then
        it takes the plan's times.

        Returns False if it is too late for the plan, or if the trajectory has changed since.
        """
        trajectory, motion, request = plan.trajectory, continued or plan.motion, self.box.request
        number = self._motions.add(motion)
        request.starts_at, request.coefficients_at, request.segments = trajectory.addresses
        request.revision, request.motion = plan.revision, number
        request.begin, request.rest = plan.begin, trajectory.end_time
        request.start, request.end = plan.motion.start, plan.motion.end
        tolerances = self.settings.rules.tolerances
        self.box.arrays.tolerances[:] = tolerances.rows(motion, self.model.joint_names)
        if not self._ask(step.ADOPT):
            self._motions.under_way.pop(number, None)
            return False
        self._path.given = trajectory
        if continued is None:
            self._end_motion(EndKind.REPLACED, "a new trajectory has replaced it")
        else:
            continued.start, continued.times = plan.motion.start, plan.motion.times
            self._motions.read(self.model)
            self._motions.under_way.pop(request.ended, None)
        return True

    def step(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> Sequence[Ending]:
        """Fills in the torques for the state measured at time `t`; returns the findings of `tell`.
        Performs no allocation, except for findings.

        Args:
            t: time of the measurement, [s].
            q: measured positions, shape (nv,), [rad] or [m].
            v: measured velocities, shape (nv,), [rad/s] or [m/s].
            tau: output, shape (nv,), [Nm] or [N]; overwritten. Always finite and within the limits.

        Raises:
            ControllerError: the state is not finite or jumps, or there is no trajectory; `tau` is
                untouched.
            TorqueError: the control law gives no finite torque; `tau` holds the gravity torque, or
                the nearest torque to it within the limits.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        return self.findings_of(self._step(t, q, v, tau, False))

    def findings_of(self, outcome: int) -> Sequence[Ending]:
        """Findings of `tell` after a step with this result, below BAD_STATE of step.py."""
        if outcome > step.SATURATED or self._motions.found:
            return self.tell()
        return ()

    def tell(self) -> Sequence[Ending]:
        """Findings of the steps since the last call, steps of machine code included: why motions
        have ended, and why the arm has given way. Ends those motions. While states are predicted,
        the findings wait for the next call."""
        self._motions.read(self.model)
        if self.predicting:
            return ()
        found = tuple(self._motions.found)
        self._motions.found.clear()
        return found

    def predict(self, t: float, tau: FloatArray) -> None:
        """Fills in the torques at time `t` without a measured state: for the state that the model
        predicts, while the motion slows down. Performs no allocation.

        Args:
            t: time now, [s].
            tau: output, shape (nv,), [Nm] or [N]; overwritten. Always finite and within the limits.

        Raises:
            ControllerError: there is no trajectory; `tau` is untouched.
            TorqueError: the control law gives no finite torque; `tau` holds the gravity torque, or
                the nearest torque to it within the limits.
            ArgumentError: an array that is not C-contiguous float64 of shape (nv,).
        """
        q, v = self._predicted
        self._step(t, q, v, tau, True)

    def _step(
        self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray, predicted: bool
    ) -> int:
        try:
            outcome: int = step.step_once(self.arrays, t, q, v, tau, predicted)
        except TypeError as error:
            raise self.refusal(step.BAD_SIZE, t, q, v, tau) from error
        if outcome >= step.BAD_STATE:
            raise self.refusal(outcome, t, q, v, tau)
        return outcome

    def refusal(
        self, outcome: int, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> Exception:
        """The error for a step that failed.

        Args:
            outcome: result of the step, from BAD_STATE on.
            t, q, v: time [s], positions and velocities of the state, shapes (nv,).
            tau: output of the step.
        """
        names = self.model.joint_names
        if outcome == step.NO_TRAJECTORY:
            return ControllerError(NOTHING_TO_FOLLOW)
        if outcome == step.BAD_SIZE:
            wanted = f"a C-contiguous float64 array of shape ({len(names)},)"
            return ArgumentError(f"q, v and tau must each be {wanted}")
        if outcome == step.BAD_TORQUE:
            return TorqueError(
                f"the torque for the state measured at t = {t} s is not finite; are its positions "
                "and velocities in rad and rad/s, and the gains in their units?"
            )
        if outcome == step.BAD_JUMP:
            j = int(self.rows.jumping_joint)
            return ControllerError(
                f"the measured position of {names[j]} has jumped from {self.last_state[0, j]:.4g} "
                f"to {q[j]:.4g}, faster than its velocity limit and its measured velocity allow"
            )
        if outcome == step.FROZEN:
            j = int(np.argmax(np.abs(v)))
            return ControllerError(
                f"the measured positions do not change, while {names[j]} is measured to move at "
                f"{v[j]:.3g} {units(self.model, j).velocity}: are the states frozen?"
            )
        bad = [name for name, x, y in zip(names, q, v, strict=True) if not math.isfinite(x + y)]
        which = f" (joint {', '.join(bad)})" if bad else ""
        return ControllerError(
            f"the measured state at t = {t} s is not finite{which}; no torque is computed from it"
        )

    def snapshot(self) -> ControllerState:
        """A copy of what the last step did."""
        return ControllerState(self.rows.copy(), self.motion)

    def doubt(self, t: float, q: FloatArray, v: FloatArray, believes: bool = False) -> str:
        """Why a state that is not stepped cannot be true; empty if it can. `believes`: True to
        accept any motion."""
        stands = self.rows.standstill > belief.LONGEST_STANDSTILL
        if stands and np.abs(v).max() > belief.MOVING and (q == self.last_state[0]).all():
            return STILL_FROZEN
        if believes:
            self.believe()
        if belief.doubt(self._settings_in_force, self.rows, t, q, v) < 0:
            return ""
        return str(self.refusal(step.BAD_JUMP, t, q, v, q))

    def disregard(self) -> None:
        """Forgets measurements, counts and findings, as no subscriber applied the torques."""
        self.believe()
        self.at_work[:] = 0.0
        self.arm.gave_way = 0
        self._motions.found.clear()

    @property
    def gave_way(self) -> int:
        """Number of times that the desired position was taken from the arm; see `Ending`."""
        return int(self.arm.gave_way)

    @property
    def gave_way_reason(self) -> str:
        """Why the desired position was taken from the arm the last time."""
        return self._motions.gave_way_reason

    @property
    def predicting(self) -> bool:
        """True if the last torques were for a predicted state."""
        return bool(self.arm.predicting)

    @property
    def pause_lasts(self) -> bool:
        """True while states are missing, or trajectory time is still markedly slower since then."""
        wanted = float(self.rows.target_scaling)
        return self.predicting or wanted - self.speed_scaling > SETTLED_SCALING

    @property
    def saturated(self) -> bool:
        """True if a torque of the last step is at its limit."""
        return bool(self.arm.outcome % step.FOUND == step.SATURATED)

    def approach(self, target: FloatArray, dt: float, tau: FloatArray) -> bool:
        """Moves the command toward `target` within the rate limit; returns True if it is reached.

        Args:
            target: the torques to reach, shape (nv,), [Nm] or [N].
            dt: time since the last torque, [s].
            tau: output, shape (nv,), [Nm] or [N]: the next torques.
        """
        last, change = self.in_force, dt * self._settings_in_force.torque_rate_limit
        known = np.isfinite(last)
        low = np.where(known, last - change, -math.inf)
        high = np.where(known, last + change, math.inf)
        np.clip(target, low, high, out=tau)
        self.rows.previous_command = last
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
