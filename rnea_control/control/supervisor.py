"""`Supervisor`: what a controller does with good states, with bad ones and without any.

It alone decides the mode (mode.py). It knows no clock, no topic and no lock: who calls it says what
time it is, and calls it from one thread at a time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control.controller import Controller
from rnea_control.control.feasibility import excessive_gain, excessive_load
from rnea_control.control.mode import Mode, Modes
from rnea_control.control.momentum_observer import MomentumObserver
from rnea_control.control.motion import EndKind, Motion
from rnea_control.control.planner import Plan
from rnea_control.control.settings import ControllerSettings
from rnea_control.control.situation import Situation
from rnea_control.control.supervision import SupervisionSettings, obstacle_to_start
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError, listed
from rnea_control.model import RobotModel
from rnea_control.model.units import units

# Modes in which trajectories are taken; why not in the others.
_TAKES_TRAJECTORIES = (Mode.HOLDING, Mode.MOVING, Mode.BRAKING)
_REFUSALS = {
    Mode.INACTIVE: "the controller is not active; activate it first",
    Mode.WAITING: "the controller waits, {reason}; send it again later",
    Mode.GRAVITY_COMPENSATION: "a hand guides the arm; call ~/resume first",
    Mode.EMERGENCY_STOP: "emergency stop; release it and call ~/resume first",
    Mode.FAULT: "{reason}; call ~/reset_fault first",
    Mode.BLIND: "{reason}; send it again when states are back",
    Mode.GUARDED: "the sentinel commands the arm; call ~/resume first",
}
# Modes in which nothing is commanded.
_SILENT = (Mode.INACTIVE, Mode.GUARDED)
# In which the arm brakes and holds, whatever the law.
_STOPPED = (Mode.EMERGENCY_STOP, Mode.FAULT)
# In which a state is not simply answered.
_IDLE_OR_BLIND = (*_SILENT, Mode.WAITING, Mode.BLIND)
# Names to look up in a tick: enumerations take several times as long.
_HOLDING, _MOVING = Mode.HOLDING, Mode.MOVING

# Rows of `Supervisor.facts`: whether the last torques were for a predicted state, how often that
# has begun, and whether the mode is one in which nothing may push the arm.
PREDICTING, GAPS, WATCHES = range(3)
FACTS = 3
# An arm slower than this is held at once where it is, [rad/s] or [m/s].
STILL = 0.01
# An arm that fell since its effort controller became active has done so for this long at most, [s].
FALL = 1.0
STILL_FROZEN = "the measured positions still do not change"
# An arm that has given way so often within so long, [s], has a law that shakes it.
MOST_GIVEN_WAY, GIVING_WAY = 4, 3.0
# States after a start whose shortest period is taken for that of all.
MEASURED_STATES = 50
# How often the reason for not starting, or for not seeing, is brought up to date, [s].
COMPLAINT_PERIOD = 1.0


class Supervisor:
    """Runs a controller in all its modes.

    Args:
        controller: that computes the torques.
        settings: see `SupervisionSettings`.
        observer: tells collisions; None for no such check.
        on_change: called at every change of the mode or its reason; see `Modes`.

    Attributes:
        bad_states: how many were ignored since activation.
        facts: see above; machine code writes them too.
        listening: whether somebody takes the commands. Until then the hold position follows the
            arm.
        observer: tells collisions; None for no such check.
        period: of the states, the shortest of the first ones, [s]; NaN until it is known.
        obstacle: why it does not start from the states that come; empty if it may, or has.
    """

    def __init__(
        self,
        controller: Controller,
        settings: SupervisionSettings,
        observer: MomentumObserver | None = None,
        on_change: Callable[[Mode, Mode, str], None] = lambda old, new, reason: None,
    ) -> None:
        self.controller = controller
        self.settings = settings
        self.listening = True
        self.bad_states = 0
        self.facts: IntArray = np.zeros(FACTS, dtype=np.int64)
        self.period = math.nan
        self.obstacle = ""
        self._modes = Modes(on_change)
        self._workspace = Workspace(controller.model)
        self.observer = observer
        self._bad_in_row = 0
        self._fault = ""
        self._holders: set[Hashable] = set()  # who hold the emergency stop
        self._stopped = False  # was pressed, and the controller was not resumed since
        self._ending = False
        self._streaming = False
        self._held = False  # the arm, since activation
        self._streamed_at = -math.inf  # when the gravity torque was commanded to nobody
        self._awaited = "for a subscription to the commands"  # while nobody listens
        self._gave_way = 0
        self._gave_way_at: deque[float] = deque(maxlen=MOST_GIVEN_WAY)
        self._law_failed = False  # it is not asked again before the fault is reset
        self._unmeasured = 0  # states until `period` is known
        self._seen_at = 0.0
        self._complained = math.nan

    @property
    def mode(self) -> Mode:
        return self._modes.mode

    @property
    def streaming(self) -> bool:
        """Whether the gravity torque is commanded while nobody takes it."""
        return self._streaming and self.mode is Mode.WAITING

    @property
    def predicting(self) -> bool:
        """Whether the last torques were for a predicted state."""
        return bool(self.facts[PREDICTING])

    @property
    def gaps(self) -> int:
        """How often states were missing, or of no use, and were predicted."""
        return int(self.facts[GAPS])

    @property
    def steady(self) -> bool:
        """Whether every state that can be true is simply answered."""
        return self.mode not in _IDLE_OR_BLIND and self._unmeasured == 0

    @property
    def reason(self) -> str:
        """Why it is in this mode."""
        return self._modes.reason

    def _change(self, mode: Mode, reason: str) -> None:
        """Changes the mode, and with it whether the arm is braced: it brakes and holds under every
        law, and under one that has failed."""
        self._modes.change(mode, reason)
        self.facts[WATCHES] = mode in _TAKES_TRAJECTORIES
        holds = self.controller.settings.control_law.holds_position
        braced = mode in _STOPPED and (self._law_failed or not holds)
        if braced != self.controller.braced:
            self.controller.brace(braced)

    # Start and end.

    def activate(self, reason: str = "for joint_states") -> None:
        """Starts with the next state that allows it; the reason says what it waits for."""
        self.bad_states = self._bad_in_row = 0
        self.facts[:] = 0
        self.obstacle = ""
        self._fault = ""
        self._law_failed = False
        self._stopped = bool(self._holders)
        self._ending = self._streaming = self._held = False
        self._streamed_at = -math.inf
        self._complained = math.nan
        self.controller.in_force = math.nan
        self._change(Mode.WAITING, reason)

    def deactivate(self, reason: str) -> None:
        """Commands nothing from now on."""
        self.controller.drop(reason)
        if self.mode is not Mode.INACTIVE:
            self._change(Mode.INACTIVE, reason)

    def end(self, reason: str) -> bool:
        """Begins to bring the arm to rest, to deactivate the controller then; whether it moves."""
        if self.mode in (*_SILENT, Mode.WAITING):
            return False
        if not self._ending:
            self._ending = True
            self._stop(EndKind.DROPPED, reason)
            if self.mode in (Mode.MOVING, Mode.GRAVITY_COMPENSATION):
                self._change(Mode.BRAKING, reason)
        return self.controller.is_moving

    def wait_for_listener(self, reason: str) -> None:
        """Nobody takes the commands: a motion ends."""
        self.listening = False
        before, self._awaited = self._awaited, reason
        if self.mode not in (*_SILENT, Mode.WAITING):
            self._wait(reason)
        elif self._streaming and reason != before:
            self._change(Mode.WAITING, reason)

    def start_anew(self, reason: str) -> None:
        """Somebody takes the commands now: starts as after an activation."""
        self.listening = True
        if self.mode not in _SILENT:
            self._wait(reason)

    def _wait(self, reason: str) -> None:
        self.controller.drop(reason)
        self.controller.in_force = math.nan
        self._streaming = False
        self._change(Mode.WAITING, reason)

    def guarded(self, reason: str) -> None:
        """The sentinel has taken the arm."""
        if self.mode not in _SILENT:
            self.controller.drop(reason)
            self._change(Mode.GUARDED, reason)

    def take_over(self, t: float, q: FloatArray, v: FloatArray, reason: str) -> None:
        """The sentinel has given the arm back, or has gone: brakes from the measured state."""
        if self.mode is Mode.GUARDED:
            self._start_controller(t, q)
            self.controller.catch(t, q, v, reason)
            self._change_unless_latched(Mode.BRAKING, reason)

    # States.

    def answer(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau` with the answer to a measured state; whether it is to be commanded.

        Args:
            t: time of the measurement, [s]; not before that of the last one.
            q, v: measured, shape (nv,).
            tau: output, shape (nv,), [Nm] or [N].

        Raises:
            ControllerError: the state cannot be true, or no torque can be computed from it. With
                TorqueError, `tau` is to be commanded.
        """
        mode = self._modes.mode
        # The usual modes first: to look an enumeration up in a tuple takes several times as long.
        if (
            mode is not _HOLDING
            and mode is not _MOVING
            and mode in _IDLE_OR_BLIND
            and not self._resumes(t, q, v)
        ):
            return False
        self.facts[PREDICTING] = 0
        try:
            self.controller.step(t, q, v, tau)
        except ControllerError as error:
            self._refuse_step(error, t, q, v)
        self._bad_in_row = 0
        if self._unmeasured:
            self._measure_period(t, q, v)
        if self.observer is not None:
            self._observe(self.observer, t, q, v, tau)
        mode, controller = self._modes.mode, self.controller
        if self._gave_way != controller.gave_way or (
            mode is not _HOLDING and (mode is not _MOVING or controller.motion is None)
        ):
            self.follow_up()
        return True

    def refuse_step(
        self, outcome: int, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> None:
        """A step that was taken for it has refused a state; raises as `answer`."""
        self._refuse_step(self.controller.refusal(outcome, t, q, v, tau), t, q, v)

    def _refuse_step(self, error: Exception, t: float, q: FloatArray, v: FloatArray) -> None:
        if isinstance(error, TorqueError):
            self.fail(str(error), t, q, v, law_failed=True)
        else:
            self.refuse_state(str(error))
        raise error

    def _resumes(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts, or goes on after a time without states; whether this state is to be answered."""
        if self._modes.mode is Mode.WAITING:
            return self._start(t, q, v)
        if self._modes.mode is not Mode.BLIND:
            return False
        if np.isfinite(q).all() and np.isfinite(v).all():
            frozen = STILL_FROZEN if self.controller.is_frozen(q, v) else ""
            if self.settings.simulated and not frozen:
                self.controller.believe()
            doubt = frozen or self.controller.doubt(t, q, v)
            if doubt:
                self.refuse_state(doubt)
                if not frozen and not abs(t - self._complained) < COMPLAINT_PERIOD:
                    self._complained = t
                    self._change(Mode.BLIND, f"{doubt}; ~/resume takes that for true")
                raise ControllerError(doubt)
            self._see_again(t, q, v)
        return True

    def refuse_state(self, text: str) -> None:
        """Counts a state that cannot be used; too many in a row are as none."""
        self.bad_states += 1
        self._bad_in_row += 1
        if self._bad_in_row > self.settings.max_bad_states:
            self.lose(text)

    def answer_gap(self, t: float, missing: float, tau: FloatArray) -> bool:
        """Fills `tau` with torques for when no state comes; whether they are to be commanded. The
        motion slows down, and ends after the timeout.

        Args:
            t: the time now, [s].
            missing: for how long no state has come, [s].
            tau: output, shape (nv,), [Nm] or [N].

        Raises:
            TorqueError: as of `Controller.predict`.
        """
        mode = self._modes.mode
        if mode in _SILENT or mode is Mode.WAITING:
            return False
        self.miss(missing)
        if not self.predicting:
            self.facts[PREDICTING] = 1
            self.facts[GAPS] += 1
            if self.observer is not None:
                self.observer.reset()  # it does not know the predicted torques
        self.controller.predict(t, tau)
        return True

    def miss(self, missing: float) -> None:
        """No state has come for so long, [s]: after the timeout the motion ends."""
        if missing > self.settings.state_timeout and self._modes.mode is not Mode.BLIND:
            self.lose(f"no joint_states with a new stamp for {missing:.3g} s")

    def lose(self, reason: str) -> None:
        """Goes on without states: the motion ends, and the arm brakes by the model."""
        if self._modes.mode in (*_SILENT, Mode.WAITING, Mode.BLIND):
            return
        self._stop(EndKind.DROPPED, reason)
        self._change(Mode.BLIND, reason)

    def _see_again(self, t: float, q: FloatArray, v: FloatArray) -> None:
        self.controller.catch(t, q, v, "joint_states are back")
        self._bad_in_row = 0
        self._change_unless_latched(Mode.BRAKING, "joint_states are back")

    def _start(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts from a state if it allows that; whether a torque is to be commanded."""
        # An arm that it held, and that moves now, is caught; so is one that fell without a torque
        # until the effort controller became active. While nobody takes the commands, it may move.
        held = self._held or not self.listening or t - self._streamed_at < FALL
        controller = self.controller
        self.obstacle = obstacle_to_start(controller.model, self.settings, q, v, held)
        if not self.obstacle and (
            load := excessive_load(controller.model, self._workspace, controller.settings, q)
        ):
            self.obstacle = f"as {load}"
        if self.obstacle:
            self._streaming = False
            if not abs(t - self._complained) < COMPLAINT_PERIOD:
                self._complained = t
                self._change(Mode.WAITING, self.obstacle)
            return False
        self.controller.disregard()
        self._gave_way = 0
        if not self._streaming or self.listening:
            self._start_controller(t, q)
        self._held |= self.listening
        if self.listening and np.abs(v).max() > STILL and self._rest is Mode.HOLDING:
            self.controller.catch(t, q, v, "the controller starts")
            self._change_unless_latched(Mode.BRAKING, "to rest, from where the arm was")
        elif self.listening:
            self._change_unless_latched(self._rest, "at the measured position")
        else:
            self._streamed_at = t
            if not self._streaming:
                self._streaming = True
                self.controller.guide()
                self._change(Mode.WAITING, self._awaited)
        return True

    def _start_controller(self, t: float, q: FloatArray) -> None:
        self.controller.start(t, q)
        self._gave_way = self.controller.gave_way
        self._gave_way_at.clear()
        self._unmeasured, self._seen_at, self.period = MEASURED_STATES, t, math.nan
        if self.observer is not None:
            self.observer.reset()

    def _measure_period(self, t: float, q: FloatArray, v: FloatArray) -> None:
        """Judges the settings once the rate of the states is known."""
        if not t > self._seen_at:
            return
        gap, self._seen_at = t - self._seen_at, t
        self.period = gap if math.isnan(self.period) else min(gap, self.period)
        self._unmeasured -= 1
        if self._unmeasured == 0:
            objection = self._objection(q)
            if objection:
                self.fail(objection, t, q, v, law_failed=True)

    def objection(self, model: RobotModel, settings: ControllerSettings) -> str:
        """Why an arm that it holds cannot go on with another model and other settings; empty if it
        can."""
        if self.mode in (*_SILENT, Mode.WAITING):
            return ""  # nothing is held; the start asks
        return self._objection(self.controller.measured[0], model, settings)

    def _objection(
        self,
        q: FloatArray,
        model: RobotModel | None = None,
        settings: ControllerSettings | None = None,
    ) -> str:
        controller, ws = self.controller, self._workspace
        model, settings = model or controller.model, settings or controller.settings
        known = self._unmeasured == 0
        gain = excessive_gain(model, ws, settings, q, self.period) if known else ""
        return gain or excessive_load(model, ws, settings, q)

    def _observe(
        self, observer: MomentumObserver, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> None:
        """Ends the motion if something pushes the arm."""
        j = observer.update(t, q, v, observer.applied)
        observer.applied[:] = tau
        if j >= 0 and self.facts[WATCHES]:
            self.collide(j, t, q, v)

    def collide(self, j: int, t: float, q: FloatArray, v: FloatArray) -> None:
        """Ends the motion, as something pushes a joint in this state."""
        if (observer := self.observer) is not None:
            model = self.controller.model
            self.fail(
                f"collision? {observer.residual[j]:.3g} {units(model, j).effort} act on "
                f"{model.joint_names[j]} from outside, more than "
                f"{observer.thresholds[j]:.3g}",
                t,
                q,
                v,
            )

    # Trajectories.

    def situation(self, t: float) -> Situation:
        """What a new trajectory starts from.

        Raises:
            TrajectoryError: none may be followed now.
        """
        if self.mode not in _TAKES_TRAJECTORIES:
            raise TrajectoryError(_REFUSALS[self.mode].format(reason=self.reason))
        if self._ending:
            raise TrajectoryError("the controller is bringing the arm to rest, to stop")
        return self.controller.situation(t)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan, unless it is too late for it or the mode has changed."""
        if self.mode not in _TAKES_TRAJECTORIES or self._ending:
            return False
        if not self.controller.adopt(plan):
            return False
        self._change(Mode.MOVING, "following a trajectory")
        return True

    def cancel(self, motion: Motion) -> None:
        """Brings the arm to rest if it still follows this motion."""
        if motion is self.controller.motion:
            self._stop(EndKind.CANCELLED, "cancelled by the client")
            self._change(Mode.BRAKING, "cancelled by the client")

    # What an operator asks for.

    def hold(self) -> str:
        """Brings the arm to rest and holds it; says what comes.

        Raises:
            ControllerError: not in this mode.
        """
        self._demand((*_TAKES_TRAJECTORIES, Mode.GRAVITY_COMPENSATION), "hold")
        if self._rest is Mode.GRAVITY_COMPENSATION:
            raise ControllerError("control_law is gravity_compensation, which holds no position")
        self._stop(EndKind.DROPPED, "told to hold")
        self._change(Mode.BRAKING, "told to hold")
        return "braking, then holding"

    def guide(self) -> str:
        """Lets a hand guide the arm; says what comes.

        Raises:
            ControllerError: not in this mode.
        """
        self._demand((Mode.HOLDING, Mode.GRAVITY_COMPENSATION), "begin gravity compensation")
        if self._ending:
            raise ControllerError("the controller is bringing the arm to rest, to stop")
        if self.mode is Mode.HOLDING:
            self.controller.guide()
            self._change(Mode.GRAVITY_COMPENSATION, "told so")
        return "the arm follows the hand; ~/resume has it hold again"

    def resume(self, present: Mapping[Hashable, str] | None = None) -> str:
        """Ends hand guiding or an emergency stop, or takes a position for true that no motion leads
        to; says what comes.

        Args:
            present: the names of all that could release an emergency stop, by what `emergency_stop`
                knows them by; None if that is not known. A stop that somebody has pressed and who
                has gone since is overridden.

        Raises:
            ControllerError: not in this mode, or the emergency stop is still on.
        """
        if self.mode is Mode.BLIND and self.controller.doubts:
            self.controller.believe()
            return "the measured positions are taken for true"
        self._demand((Mode.GRAVITY_COMPENSATION, Mode.EMERGENCY_STOP), "resume")
        there = self._holders if present is None else self._holders & present.keys()
        if there:
            names = sorted((present or {}).get(who) or "somebody" for who in there)
            raise ControllerError(
                f"the emergency stop is still on, held by {listed(names)}: publish false there "
                "first"
            )
        overridden = len(self._holders)
        self._holders.clear()
        self._stopped = False
        if self.mode is Mode.GRAVITY_COMPENSATION:
            self._stop(EndKind.DROPPED, "told to resume")
        self._change_unless_latched(Mode.BRAKING, "told to resume")
        if self.mode is Mode.FAULT:
            return self.reason
        over = f", over the emergency stop of {overridden} publisher(s) that have gone"
        return "holding" + (over if overridden else "")

    def reset_fault(self) -> str:
        """Ends a fault; says what comes.

        Raises:
            ControllerError: there is none.
        """
        if not self._fault:
            raise ControllerError("there is no fault to reset")
        if self.mode is Mode.FAULT and (objection := self._objection(self.controller.measured[0])):
            raise ControllerError(objection)
        self._fault = ""
        self._law_failed = False
        if self.mode is Mode.FAULT:
            self._change_unless_latched(Mode.BRAKING, "fault reset")
        return "holding" if self.mode is Mode.BRAKING else self.mode.value

    def emergency_stop(self, pressed: bool, who: Hashable = None) -> None:
        """Brakes and holds, and takes no trajectory before all who have pressed it have released it
        and it is resumed.

        Args:
            pressed: whether it is pressed, or released.
            who: did so; anything that tells one from another.
        """
        if not pressed:
            self._holders.discard(who)
            return
        pressed_before = bool(self._holders)
        self._holders.add(who)
        self._stopped = True
        if not pressed_before and self.mode not in (*_SILENT, Mode.WAITING):
            guided = self.controller.guided
            if self.mode is not Mode.BLIND:
                self._change(Mode.EMERGENCY_STOP, "emergency stop")
            self._stop(EndKind.DROPPED, "emergency stop", guided)

    def fail(
        self, reason: str, t: float, q: FloatArray, v: FloatArray, law_failed: bool = False
    ) -> None:
        """Brakes, holds, and takes no trajectory before the fault is reset.

        Args:
            reason: why.
            t, q, v: the last state.
            law_failed: whether the control law is the reason; then another one brakes.
        """
        self._fault = reason
        self._law_failed |= law_failed
        if self.mode in (*_SILENT, Mode.WAITING):
            return
        if self.mode in (Mode.EMERGENCY_STOP, Mode.BLIND):
            self._change(self.mode, self.reason)  # it may have to be braced now
        else:
            self._change(Mode.FAULT, reason)
        self.controller.catch(t, q, v, reason)

    @property
    def _rest(self) -> Mode:
        """What an arm at rest is in without any fault."""
        holds = self.controller.settings.control_law.holds_position
        return Mode.HOLDING if holds else Mode.GRAVITY_COMPENSATION

    def _change_unless_latched(self, mode: Mode, reason: str) -> None:
        """Changes to a mode, or to that which an emergency stop or a fault asks for."""
        if self._stopped:
            mode, reason = Mode.EMERGENCY_STOP, "emergency stop"
        elif self._fault:
            mode, reason = Mode.FAULT, self._fault
        self._change(mode, reason)

    def _demand(self, modes: tuple[Mode, ...], what: str) -> None:
        if self.mode not in modes:
            raise ControllerError(
                f"cannot {what} in mode {self.mode.value} ({self.reason}), only in "
                f"{', '.join(mode.value for mode in modes)}"
            )

    def _stop(self, kind: EndKind, reason: str, guided: bool = False) -> None:
        """Brakes along the path, or straight on where a hand guides the arm, or has done so."""
        controller = self.controller
        controller.stop(kind, reason, guided or controller.guided, self.predicting)

    def follow_up(self) -> None:
        """Changes the mode for what the last step did."""
        controller, mode = self.controller, self._modes.mode
        if self._gave_way != controller.gave_way:
            self._gave_way = controller.gave_way
            if mode is Mode.WAITING:
                controller.guide()  # nobody takes the commands, and the arm moves as it likes
                return
            times, ended = self._gave_way_at, mode is Mode.GRAVITY_COMPENSATION
            often = False
            if mode is not Mode.BRAKING:  # in which an arm that is caught may do so again and again
                times.append(controller.time)
                often = len(times) == MOST_GIVEN_WAY and times[-1] - times[0] < GIVING_WAY
            if often or controller.shakes:
                reason = controller.gave_way_reason
                if often:
                    times.clear()
                    reason = (
                        f"gave way {MOST_GIVEN_WAY} times within {GIVING_WAY:g} s, the last time "
                        f"as {reason}: are gains, payload and limits right?"
                    )
                self.fail(reason, controller.time, *controller.measured, law_failed=True)
            elif mode in _TAKES_TRAJECTORIES or (ended and not controller.guided):
                self._change(Mode.BRAKING, controller.gave_way_reason)
        elif mode is Mode.MOVING and controller.motion is None:
            if controller.is_moving:
                self._change(Mode.BRAKING, "the motion has ended")
            else:
                self._change(Mode.HOLDING, "the motion has ended")
        elif mode is Mode.BRAKING and not controller.is_moving:
            self._change(self._rest, "at rest")
