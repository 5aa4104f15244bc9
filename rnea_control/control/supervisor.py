"""`Supervisor`: runs a controller on good states, on bad ones and without any.

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
from rnea_control.control.feasibility import excessive_gain, excessive_load, obstacle_to_start
from rnea_control.control.mode import (
    FREE,
    HAS_ARM,
    SILENT,
    STOPPED,
    TAKES_TRAJECTORIES,
    Act,
    Event,
    Mode,
)
from rnea_control.control.momentum_observer import MomentumObserver
from rnea_control.control.motion import EndKind, Motion
from rnea_control.control.planner import Plan
from rnea_control.control.settings import ControllerSettings, SupervisionSettings
from rnea_control.control.splicing import Situation
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError, listed
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# Why no trajectory is taken in the other modes.
_REFUSALS = {
    Mode.INACTIVE: "the controller is not active; activate it first",
    Mode.WAITING: "the controller waits, {reason}; send it again later",
    Mode.GRAVITY_COMPENSATION: "a hand guides the arm; call ~/resume first",
    Mode.EMERGENCY_STOP: "emergency stop; release it and call ~/resume first",
    Mode.FAULT: "{reason}; call ~/reset_fault first",
    Mode.BLIND: "{reason}; send it again when states are back",
    Mode.GUARDED: "the sentinel commands the arm; call ~/resume first",
}
# The modes in which a state is not simply answered.
_IDLE_OR_BLIND = (*SILENT, Mode.WAITING, Mode.BLIND)

# Rows of `Supervisor.facts`: whether the last torques were for a predicted state, how often that
# has begun, and whether the mode is one in which nothing may push the arm.
PREDICTING, GAPS, WATCHES = range(3)
FACTS = 3
# An arm slower than this is held at once where it is, [rad/s] or [m/s].
SLOWEST_CAUGHT = 0.01
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
        on_change: called at every change of the mode or its reason with the old mode, the new one
            and the reason, maybe in a tick: it must be quick.

    Attributes:
        mode: the present one; only events change it (mode.py).
        reason: why it is in this mode.
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
        self.mode, self.reason = Mode.INACTIVE, "not activated yet"
        self.listening = True
        self.bad_states = 0
        self.facts: IntArray = np.zeros(FACTS, dtype=np.int64)
        self.period = math.nan
        self.obstacle = ""
        self._on_change = on_change
        self._workspace = Workspace(controller.model)
        self.observer = observer
        self._bad_in_row = 0
        self._fault = ""
        self._holders: set[Hashable] = set()  # who hold the emergency stop
        self._stop_unresumed = False  # was pressed, and the controller was not resumed since
        self._ending = False
        self._streaming = False  # the gravity torque, while nobody takes it
        self._has_held = False  # the arm, since activation
        self._unheard_torque_at = -math.inf  # when the gravity torque was commanded to nobody
        self._waits_for = "for a subscription to the commands"  # while nobody listens
        self._gave_way_at: deque[float] = deque(maxlen=MOST_GIVEN_WAY)
        self._law_failed = False  # it is not asked again before the fault is reset
        self._unmeasured_states = 0  # states until `period` is known
        self._last_stamp = 0.0
        self._doubt_told_at = math.nan  # when it last said why it does not start, or see

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
        return self.mode not in _IDLE_OR_BLIND and self._unmeasured_states == 0

    def _happen(
        self,
        event: Event,
        reason: str,
        state: tuple[float, FloatArray, FloatArray] | None = None,
        kind: EndKind = EndKind.DROPPED,
    ) -> bool:
        """Handles an event by the table; returns whether it counts in this mode. `state`: time and
        the measured state, where the arm is caught; `kind`: of the motion's end."""
        row, controller, guided = event.value, self.controller, self.controller.guided
        if self.mode in row.leads:
            self._change(row.leads[self.mode], reason)
        elif self.mode in row.besides:
            self._change(self.mode, self.reason)  # it may have to be braced now
        else:
            return False
        if row.act is Act.ENDS:
            controller.drop(reason)
        elif row.act is Act.BRAKES:
            controller.stop(kind, reason, guided or controller.guided, self.predicting)
        elif row.act is Act.IS_CAUGHT and state is not None:
            controller.catch(*state, reason)
        elif row.act is Act.IS_GUIDED:
            controller.guide()
        return True

    def _change(self, mode: Mode, reason: str) -> None:
        """Changes the mode, or its reason, and with it whether the arm is braced: it brakes and
        holds under every law, and under one that has failed."""
        if mode in FREE and self._stop_unresumed:
            mode, reason = Mode.EMERGENCY_STOP, "emergency stop"
        elif mode in FREE and self._fault:
            mode, reason = Mode.FAULT, self._fault
        elif mode is Mode.HOLDING:
            mode = self._rest
        old, changed = self.mode, mode is not self.mode or reason != self.reason
        self.mode, self.reason = mode, reason
        if changed:
            self._on_change(old, mode, reason)
        self.facts[WATCHES] = mode in TAKES_TRAJECTORIES
        holds = self._rest is Mode.HOLDING
        failed = self._law_failed and mode in (*STOPPED, Mode.BLIND)
        braced = failed or (mode in STOPPED and not holds)
        if braced != self.controller.braced:
            self.controller.braced = braced

    def activate(self, reason: str = "for joint_states") -> None:
        """Starts with the next state that allows it; the reason says what it waits for."""
        self.bad_states = self._bad_in_row = 0
        self.facts[:] = 0
        self.obstacle = ""
        self._fault = ""
        self._law_failed = False
        self._stop_unresumed = bool(self._holders)
        self._ending = self._streaming = self._has_held = False
        self._unheard_torque_at = -math.inf
        self._doubt_told_at = math.nan
        self.controller.in_force = math.nan
        self._happen(Event.ACTIVATED, reason)

    def await_states(self) -> None:
        """Nobody else has the arm: if it waited for that, it waits for a state now."""
        if self.mode is Mode.WAITING:
            self._change(Mode.WAITING, "for joint_states")

    def deactivate(self, reason: str) -> None:
        """Commands nothing from now on."""
        self._happen(Event.DEACTIVATED, reason)

    def end(self, reason: str) -> bool:
        """Begins to bring the arm to rest, to deactivate the controller then; whether it moves."""
        if self.mode not in HAS_ARM:
            return False
        if not self._ending:
            self._ending = self._happen(Event.ENDING, reason)
        return self.controller.is_moving

    def hear_listeners(self, listening: bool, reason: str) -> None:
        """Somebody takes the commands now, and it starts as after an activation; or nobody does,
        and a motion ends. The reason says what it waits for."""
        self.listening = listening
        before, self._waits_for = self._waits_for, reason
        if not listening and self.mode is Mode.WAITING:
            if self._streaming and reason != before:
                self._change(Mode.WAITING, reason)
        elif self._happen(Event.LISTENERS_CHANGED, reason):
            self.controller.in_force = math.nan
            self._streaming = False

    def guarded(self, reason: str) -> None:
        """The sentinel has taken the arm."""
        self._happen(Event.TAKEN_OVER, reason)

    def take_over(self, t: float, q: FloatArray, v: FloatArray, reason: str) -> None:
        """The sentinel has given the arm back, or has gone: brakes from the measured state."""
        if self.mode is Mode.GUARDED:
            self._start_controller(t, q)
            self._happen(Event.CAUGHT, reason, (t, q, v))

    def answer(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau` with the answer to a measured state; whether it is to be commanded. The
        arguments are those of `Controller.step`; time does not run backward.

        Raises:
            ControllerError: the state cannot be true, or no torque can be computed from it. With
                TorqueError, `tau` is to be commanded.
        """
        if self.mode in _IDLE_OR_BLIND and not self._resumes(t, q, v):
            return False
        self.facts[PREDICTING] = 0
        try:
            self.controller.step(t, q, v, tau)
        except ControllerError as error:
            self._refuse_step(error, t, q, v)
        self._bad_in_row = 0
        if self._unmeasured_states:
            self._measure_period(t, q, v)
        if (observer := self.observer) is not None:
            pushed = observer.update(t, q, v, observer.applied)
            observer.applied[:] = tau
            if pushed >= 0 and self.facts[WATCHES]:
                self.collide(pushed, t, q, v)
        self.follow_up()
        return True

    def refuse_step(
        self, outcome: int, t: float, q: FloatArray, v: FloatArray, tau: FloatArray
    ) -> None:
        """A step of machine code has refused a state; raises as `answer`."""
        self._refuse_step(self.controller.refusal(outcome, t, q, v, tau), t, q, v)

    def _refuse_step(self, error: Exception, t: float, q: FloatArray, v: FloatArray) -> None:
        if isinstance(error, TorqueError):
            self.fail(str(error), t, q, v, law_failed=True)
        else:
            self.refuse_state(str(error))
        raise error

    def _resumes(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts, or goes on after a time without states; whether this state is to be answered."""
        if self.mode is Mode.WAITING:
            return self._start(t, q, v)
        if self.mode is not Mode.BLIND:
            return False
        if np.isfinite(q).all() and np.isfinite(v).all():
            frozen = STILL_FROZEN if self.controller.is_frozen(q, v) else ""
            if self.settings.simulated and not frozen:
                self.controller.believe()
            doubt = frozen or self.controller.doubt(t, q, v)
            if doubt:
                self.refuse_state(doubt)
                if not frozen:
                    self._tell_doubt(t, Mode.BLIND, f"{doubt}; ~/resume takes that for true")
                raise ControllerError(doubt)
            self._happen(Event.CAUGHT, "joint_states are back", (t, q, v))
            self._bad_in_row = 0
        return True

    def _tell_doubt(self, t: float, mode: Mode, text: str) -> None:
        """Says why it stays in this mode, not at every state."""
        if not abs(t - self._doubt_told_at) < COMPLAINT_PERIOD:
            self._doubt_told_at = t
            self._change(mode, text)

    def refuse_state(self, text: str) -> None:
        """Counts a state that cannot be used; too many in a row are as none."""
        self.bad_states += 1
        self._bad_in_row += 1
        if self._bad_in_row > self.settings.max_bad_states:
            self.lose(text)

    def answer_gap(self, t: float, missing: float, tau: FloatArray) -> bool:
        """Fills `tau` with torques for when no state comes, and has not come for `missing`, [s];
        whether they are to be commanded. The motion slows down, and ends after the timeout. Other
        arguments, and what is raised, are those of `Controller.predict`."""
        if self.mode not in HAS_ARM:
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
        if missing > self.settings.state_timeout and self.mode is not Mode.BLIND:
            self.lose(f"no joint_states with a new stamp for {missing:.3g} s")

    def lose(self, reason: str) -> None:
        """Goes on without states: the motion ends, and the arm brakes by the model."""
        self._happen(Event.LOST, reason)

    def _start(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts from a state if it allows that; whether a torque is to be commanded."""
        # An arm that it held, and that moves now, is caught; so is one that fell without a torque
        # until the effort controller became active. While nobody takes the commands, it may move.
        held = self._has_held or not self.listening or t - self._unheard_torque_at < FALL
        model, settings = self.controller.model, self.controller.settings
        self.obstacle = obstacle_to_start(model, self.settings, q, v, held)
        if not self.obstacle and (load := excessive_load(model, self._workspace, settings, q)):
            self.obstacle = f"as {load}"
        if self.obstacle:
            self._streaming = False
            self._tell_doubt(t, Mode.WAITING, self.obstacle)
            return False
        self.controller.disregard()
        if not self._streaming or self.listening:
            self._start_controller(t, q)
        self._has_held |= self.listening
        if self.listening and np.abs(v).max() > SLOWEST_CAUGHT and self._rest is Mode.HOLDING:
            self._happen(Event.CAUGHT, "to rest, from where the arm was", (t, q, v))
        elif self.listening:
            self._happen(Event.STARTED, "at the measured position")
        else:
            self._unheard_torque_at = t
            if not self._streaming:
                self._streaming = True
                self.controller.guide()
                self._change(Mode.WAITING, self._waits_for)
        return True

    def _start_controller(self, t: float, q: FloatArray) -> None:
        self.controller.start(t, q)
        self._gave_way_at.clear()
        self._unmeasured_states, self._last_stamp, self.period = MEASURED_STATES, t, math.nan
        if self.observer is not None:
            self.observer.reset()

    def _measure_period(self, t: float, q: FloatArray, v: FloatArray) -> None:
        """Judges the settings once the rate of the states is known."""
        if not t > self._last_stamp:
            return
        gap, self._last_stamp = t - self._last_stamp, t
        self.period = gap if math.isnan(self.period) else min(gap, self.period)
        self._unmeasured_states -= 1
        controller = self.controller
        if self._unmeasured_states == 0 and (
            objection := self._objection(controller.model, controller.settings)
        ):
            self.fail(objection, t, q, v, law_failed=True)

    def objection(self, model: RobotModel, settings: ControllerSettings) -> str:
        """Why an arm that it holds cannot go on with another model and other settings; empty if it
        can. Gains that a fault keeps out of force may be mended one by one: `reset_fault` judges
        them."""
        if self.mode not in HAS_ARM:
            return ""  # nothing is held; the start asks
        return self._objection(model, settings, not self._law_failed)

    def _objection(
        self, model: RobotModel, settings: ControllerSettings, to_gains: bool = True
    ) -> str:
        q, ws = self.controller.measured[0], self._workspace
        to_gains = to_gains and self._unmeasured_states == 0
        gain = excessive_gain(model, ws, settings, q, self.period) if to_gains else ""
        return gain or excessive_load(model, ws, settings, q)

    def collide(self, j: int, t: float, q: FloatArray, v: FloatArray) -> None:
        """Ends the motion, as something pushes a joint in this state."""
        if (observer := self.observer) is not None:
            model = self.controller.model
            push = f"{observer.residual[j]:.3g} {units(model, j).effort}"
            where = f"act on {model.joint_names[j]} from outside"
            text = f"collision? {push} {where}, more than {observer.thresholds[j]:.3g}"
            self.fail(text, t, q, v)

    def situation(self, t: float) -> Situation:
        """The state that a new trajectory starts from.

        Raises:
            TrajectoryError: none may be followed now.
        """
        if self.mode not in TAKES_TRAJECTORIES:
            raise TrajectoryError(_REFUSALS[self.mode].format(reason=self.reason))
        if self._ending:
            raise TrajectoryError("the controller is bringing the arm to rest, to stop")
        return self.controller.situation(t)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan, unless it is too late for it or the mode has changed."""
        if self.mode not in TAKES_TRAJECTORIES or self._ending:
            return False
        return self.controller.adopt(plan) and self._happen(Event.ADOPTED, "following a trajectory")

    def cancel(self, motion: Motion) -> None:
        """Brings the arm to rest if it still follows this motion."""
        if motion is self.controller.motion:
            self._happen(Event.HELD, "canceled by the client", kind=EndKind.CANCELLED)

    def hold(self) -> str:
        """Brings the arm to rest and holds it. As all that an operator asks for, it says what
        comes, and raises ControllerError if that is not possible in this mode."""
        self._demand(FREE, "hold")
        if self._rest is Mode.GRAVITY_COMPENSATION:
            raise ControllerError("control_law is gravity_compensation, which holds no position")
        self._happen(Event.HELD, "told to hold")
        return "braking, then holding"

    def guide(self) -> str:
        """Lets a hand guide the arm; as `hold`."""
        self._demand((Mode.HOLDING, Mode.GRAVITY_COMPENSATION), "begin gravity compensation")
        if self._ending:
            raise ControllerError("the controller is bringing the arm to rest, to stop")
        self._happen(Event.GUIDED, "told so")
        return "the arm follows the hand; ~/resume has it hold again"

    def resume(self, present: Mapping[Hashable, str] | None = None) -> str:
        """Ends hand guiding or an emergency stop, or takes a position for true that no motion leads
        to; says what comes.

        Args:
            present: the names of all that could release an emergency stop, by the `who` of
                `emergency_stop`; None if that is not known. A stop that somebody has pressed and
                who has gone since is overridden.

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
        self._stop_unresumed = False
        guided = self.mode is Mode.GRAVITY_COMPENSATION
        self._happen(Event.HELD if guided else Event.RELEASED, "told to resume")
        if self.mode is Mode.FAULT:
            return self.reason
        over = f", over the emergency stop of {overridden} publisher(s) that have gone"
        return "holding" + (over if overridden else "")

    def reset_fault(self) -> str:
        """Ends a fault; as `hold`. ControllerError too if the arm could not be held then."""
        if not self._fault:
            raise ControllerError("there is no fault to reset")
        controller = self.controller
        if self.mode in HAS_ARM and (
            objection := self._objection(controller.model, controller.settings)
        ):
            raise ControllerError(objection)
        self._fault = ""
        self._law_failed = False
        if self.mode is Mode.FAULT:
            self._happen(Event.RELEASED, "fault reset")
        return "holding" if self.mode is Mode.BRAKING else self.mode.value

    def emergency_stop(self, pressed: bool, who: Hashable = None) -> None:
        """Brakes and holds, and takes no trajectory before all who have pressed it have released it
        and it is resumed; `who`: any value that tells one from another."""
        if not pressed:
            self._holders.discard(who)
            return
        pressed_before = bool(self._holders)
        self._holders.add(who)
        self._stop_unresumed = True
        if not pressed_before:
            self._happen(Event.PRESSED, "emergency stop")

    def fail(
        self, reason: str, t: float, q: FloatArray, v: FloatArray, law_failed: bool = False
    ) -> None:
        """Brakes from the last state, holds, and takes no trajectory before the fault is reset.
        If it is the control law that has failed, another one brakes."""
        self._fault = reason
        self._law_failed |= law_failed
        self._happen(Event.FAILED, reason, (t, q, v))

    @property
    def _rest(self) -> Mode:
        """The mode of an arm at rest without any fault."""
        holds = self.controller.settings.control_law.holds_position
        return Mode.HOLDING if holds else Mode.GRAVITY_COMPENSATION

    def _demand(self, modes: tuple[Mode, ...], what: str) -> None:
        if self.mode not in modes:
            raise ControllerError(
                f"cannot {what} in mode {self.mode.value} ({self.reason}), only in "
                f"{', '.join(mode.value for mode in modes)}"
            )

    def follow_up(self) -> None:
        """Changes the mode after the last steps."""
        controller = self.controller
        while controller.given_way:
            reason, shaken = controller.given_way.popleft()
            self._give_way(reason, shaken)
        if self.mode is Mode.MOVING and controller.motion is None:
            event = Event.BRAKED if controller.is_moving else Event.RESTED
            self._happen(event, "the motion has ended")
        elif self.mode is Mode.BRAKING and not controller.is_moving:
            self._happen(Event.RESTED, "at rest")

    def _give_way(self, reason: str, shaken: bool) -> None:
        """The desired position was taken from the arm."""
        controller, times = self.controller, self._gave_way_at
        if self.mode is Mode.WAITING:
            controller.guide()  # nobody takes the commands, and the arm moves as it likes
            return
        often = False
        if self.mode is not Mode.BRAKING:  # an arm that is caught may give way again and again
            times.append(controller.time)
            often = len(times) == MOST_GIVEN_WAY and times[-1] - times[0] < GIVING_WAY
        if often:
            times.clear()
            reason = (
                f"gave way {MOST_GIVEN_WAY} times within {GIVING_WAY:g} s, the last time as "
                f"{reason}: are gains, payload and limits right?"
            )
        if often or shaken:
            self.fail(reason, controller.time, *controller.measured, law_failed=True)
        elif self.mode is not Mode.GRAVITY_COMPENSATION or not controller.guided:
            self._happen(Event.BRAKED, reason)
