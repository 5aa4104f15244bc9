"""`Supervisor`: runs a controller on good states, on bad ones and without any.

Whatever befalls the arm is an event of mode.py. It knows no clock, no topic and no lock: who calls
it says what time it is, and calls it from one thread at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import feasibility, mode
from rnea_control.control.activation_check import ActivationCheck, Strictness, Verdict
from rnea_control.control.arm_answer import Answer
from rnea_control.control.braking_check import ArmState, BrakingCheck, Candidate
from rnea_control.control.controller import STILL_FROZEN, Controller, Recorded
from rnea_control.control.miswiring import NONE, explain
from rnea_control.control.mode import Event, Machine, Mode
from rnea_control.control.settings import ControllerSettings, SupervisionSettings
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.model import RobotModel

# An arm that fell since its effort controller became active has done so for this long at most, [s].
FALL = 1.0
# How often the reason for not starting, or for not seeing, is brought up to date, [s].
COMPLAINT_PERIOD = 1.0
# An obstacle counts as gone after a state without it for this long, while no subscriber applies the
# commands: an arm that nobody holds swings, and bounces at its stops [s].
LONGEST_BOUNCE = 5.0
EXPLAINED = 0.4  # time before a fault in which its cause is looked for [s]
FEWEST_STATES = 10  # that may tell a cause
PUSH_AT_START = 3.0  # an unchecked arm that has just started is more likely miswired than pushed


class Supervisor(Machine):
    """Runs a controller in all its modes.

    Attributes:
        bad_states: how many were ignored since activation.
        listening: whether somebody takes the commands. Until then the hold position follows the
            arm.
        state_period: of the states since the last start.
        obstacle: why it does not start from the states that come; None if it may, or has.
        seen_delay: after which torques act, as far as that was seen, [s]; it may be set.
        misfit: why the hardware is not that of the model, which may be set; it does not start then.
        verdict: of the last check of the wires; None before there is one.
        checked_cause: what is likely to be behind that; empty if nothing is, or not known yet.
        weak_braking: why the arm can hardly be braked with the values that it was started with;
            empty if it can, or before that is judged.
    """

    _check: ActivationCheck  # in mode checking
    verdict: Verdict | None = None
    checked_cause = weak_braking = ""
    _braking_is_judged = False

    def __init__(
        self,
        controller: Controller,
        settings: SupervisionSettings,
        on_change: Callable[[Mode, Mode, str], None] = lambda old, new, reason: None,
    ) -> None:
        super().__init__(controller, on_change)
        self.settings, self.listening = settings, True
        self._workspace = Workspace(controller.model)
        self.state_period = feasibility.StatePeriod()
        self.misfit, self.seen_delay = "", math.nan
        self._waits_for = "for a subscription to the commands"  # while nobody listens

    def forget(self) -> None:
        """Forgets what is true since an activation only."""
        super().forget()
        self.bad_states = self._bad_in_row = 0
        self.obstacle: feasibility.Obstacle | None = None
        self._besides, self._besides_at = "", -math.inf  # the last obstacle without a subscriber
        self._judged = False  # whether a usable state has come since the activation
        self._streaming = False  # the gravity torque, while nobody takes it
        self._has_held = False  # the arm
        self._unheard_torque_at = -math.inf  # when the gravity torque was commanded to nobody
        self._doubt_told_at = math.nan  # when it last said why it does not start, or see

    @property
    def streaming(self) -> bool:
        """Whether the gravity torque is commanded while nobody takes it."""
        return self._streaming and self.mode is Mode.WAITING

    @property
    def gaps(self) -> int:
        """How often states were missing, or of no use, and were predicted."""
        return int(self.controller.arm.gaps)

    @property
    def steady(self) -> bool:
        """Whether every state that can be true is simply answered."""
        return self.mode not in mode.UNUSUAL and self.state_period.is_known

    def activate(self, reason: str = "for joint_states") -> None:
        """Starts with the next state that allows it; the reason says what it waits for."""
        self.forget()
        self.controller.in_force = math.nan
        self.happen(Event.ACTIVATED, reason)

    def hear_listeners(self, listening: bool, reason: str) -> None:
        """Somebody takes the commands now, and it starts as after an activation; or nobody does,
        and a motion ends. The reason says what it waits for."""
        self.listening = listening
        before, self._waits_for = self._waits_for, reason
        if not listening and self.mode is Mode.WAITING:
            if reason != before:
                self._say_what_is_missing()
        elif self.happen(Event.LISTENERS_CHANGED, reason):
            self.controller.in_force = math.nan
            self._streaming, self._besides = False, ""

    def take_over(self, t: float, q: FloatArray, v: FloatArray, reason: str) -> None:
        """The sentinel has given the arm back, or has gone: brakes from the measured state."""
        if self.mode is Mode.GUARDED:
            self._start_controller(t, q)
            self.happen(Event.CAUGHT, reason, (t, q, v))

    def answer(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau` with the answer to a measured state; whether it is to be commanded. The
        arguments are those of `Controller.step`; time does not run backward.

        Raises:
            ControllerError: the state cannot be true, or no torque can be computed from it. With
                TorqueError, `tau` is to be commanded.
        """
        if self.mode in mode.UNUSUAL and not self._resumes(t, q, v):
            return False
        if self.mode is Mode.CHECKING:
            self._go_on_checking(t, q, v, tau)
            return True
        if self.mode is Mode.WAITING:
            self.controller.support(t, q, v, tau)
            return True
        try:
            found = self.controller.step(t, q, v, tau)
        except ControllerError as error:
            self.refuse_step(error, t, q, v)
            raise
        self._bad_in_row = 0
        if self.state_period.measure(t, v):
            noise, model = self.state_period.velocity_noise, self.controller.model
            momentum = feasibility.momentum_noise(model, self._workspace, q, noise)
            self.controller.expect_noise(noise, momentum)
            if objection := self._objection():
                self.fail(objection, t, q, v, law_failed=True)
        self.follow_up(found)
        return True

    def refuse_step(self, error: Exception, t: float, q: FloatArray, v: FloatArray) -> None:
        """A step has refused a state, or found no torque for it."""
        if isinstance(error, TorqueError):
            self.fail(str(error), t, q, v, law_failed=True)
        else:
            self.refuse_state(str(error))

    def lack_states(self, why: str) -> bool:
        """Puts into the reason why no state that has come since the activation can be used; whether
        that is so."""
        lacks = self.mode is Mode.WAITING and not self._judged
        if lacks:
            reason = f"for joint_states that can be used: {why}"
            self.obstacle = feasibility.Obstacle("no joint_states can be used", reason)
            self._say_what_is_missing()
        return lacks

    def refuse_state(self, text: str) -> None:
        """Counts a state that cannot be used; too many in a row are as none."""
        self.lack_states(text)
        self.bad_states += 1
        self._bad_in_row += 1
        if self._bad_in_row > self.settings.max_bad_states:
            self.happen(Event.LOST, text)

    def _resumes(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts, or goes on after a time without states; whether this state is to be answered."""
        if self.mode is Mode.CHECKING:
            return True
        if self.mode is not Mode.BLIND:
            return self.mode is Mode.WAITING and self._start(t, q, v)
        if np.isfinite([q, v]).all():
            if doubt := self.controller.doubt(t, q, v, self.settings.simulated):
                self.refuse_state(doubt)
                if doubt is not STILL_FROZEN:
                    self._put_off(t, Event.DOUBTED, f"{doubt}; ~/resume accepts it")
                raise ControllerError(doubt)
            self.happen(Event.CAUGHT, "joint_states are back", (t, q, v))
            self._bad_in_row = 0
        return True

    def _put_off(self, t: float, event: Event, reason: str) -> None:
        """Says why it stays in this mode, not at every state."""
        if not abs(t - self._doubt_told_at) < COMPLAINT_PERIOD:
            self._doubt_told_at = t
            self.happen(event, reason)

    def _start(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts from a state if it allows that; whether a torque is to be commanded."""
        # An arm that it held, and that moves now, is caught; so is one that fell without a torque
        # until the effort controller became active. While nobody takes the commands, it may move.
        held = self._has_held or not self.listening or t - self._unheard_torque_at < FALL
        model, settings = self.controller.model, self.controller.settings
        self.obstacle, self._judged = self._find_obstacle(q, v, held), True
        if not self.listening:
            self._note_obstacle(t)
            self._say_what_is_missing()
        if self.obstacle is not None:
            self._streaming = False
            if self.listening:
                self._put_off(t, Event.WAITS_ON, self.obstacle.reason)
            return False
        self.controller.disregard()
        if not self._streaming or self.listening:
            self._start_controller(t, q)
        self._has_held |= self.listening
        # What moves slowly may be noise, and is asked all the same.
        still = feasibility.ASKED if self._must_check() else feasibility.RESTING
        if self.listening and np.abs(v).max() > still and self._rest is Mode.HOLDING:
            self.happen(Event.CAUGHT, "to rest, from where the arm was", (t, q, v))
        elif self.listening and self._must_check():
            self._check = ActivationCheck(model, settings)
            self.happen(Event.CHECKS, "the answers of the joints to small torques")
        elif self.listening:
            self.happen(Event.STARTED, "at the measured position")
        else:
            self._unheard_torque_at = t
            self._streaming = True
        return True

    def _find_obstacle(
        self, q: FloatArray, v: FloatArray, may_move: bool
    ) -> feasibility.Obstacle | None:
        """Why it may not start from this state; `may_move` as of `obstacle_to_start`."""
        model, ws, settings = self.controller.model, self._workspace, self.controller.settings
        if self.misfit:
            return feasibility.Obstacle(self.misfit, f"as {self.misfit}")
        found = feasibility.obstacle_to_start(model, self.settings, q, v, may_move)
        if found is None and (load := feasibility.excessive_load(model, ws, settings, q)):
            return feasibility.Obstacle("the arm is too heavy there to be held", f"as {load}")
        return found

    def _note_obstacle(self, t: float) -> None:
        """Remembers the obstacle in a state at time `t` while no subscriber applies the commands.
        An arm that nobody holds bounces at its stops: an obstacle counts as gone, and another one
        takes its place, only after a while without it."""
        kind = "" if self.obstacle is None else self.obstacle.kind
        if kind == self._besides:
            self._besides_at = t
        elif not self._besides or t - self._besides_at > LONGEST_BOUNCE:
            self._besides, self._besides_at = kind, t

    def _say_what_is_missing(self) -> None:
        """Names usable states, if none has come, then the subscriber, then the obstacle that would
        be left."""
        missing = []
        if not self._judged:
            missing.append("for joint_states" if self.obstacle is None else self.obstacle.reason)
        if not self.listening:
            missing.append(self._waits_for)
        also = f"; nor can it start while {self._besides}" if self._besides else ""
        self.happen(Event.WAITS_ON, ", and ".join(missing) + also)

    def _must_check(self) -> bool:
        """Whether the joints are to be asked for their answers before the start."""
        wanted = Strictness(self.settings.activation_check) is not Strictness.off
        return wanted and not self._latched

    def _go_on_checking(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Fills `tau` with the next torques of the check, or after its end with those of the
        control law.

        Raises:
            ControllerError: the state cannot be true.
        """
        check, controller = self._check, self.controller
        doubt = "the measured state is not finite"
        if np.isfinite([q, v]).all():
            doubt = controller.doubt(t, q, v, self.settings.simulated)
        if doubt:
            self.refuse_state(doubt)
            raise ControllerError(f"{doubt}; no torque is computed from it")
        gap = self.settings.state_gap
        if not self._latched and check.answer(controller, t, q, v, gap, tau):
            self._bad_in_row = 0
        if self._latched or check.verdict is not None:
            self._end_check(t, q, v, tau)

    def _end_check(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Begins to control the arm, or lets it go if its wires are wrong."""
        self.verdict = self._check.verdict
        if self.verdict is not None:
            self.seen_delay = self.verdict.delay
            if self.settings.power_down == "damp":
                self.controller.damp_when_let_go(self.verdict.verified)
        if self.verdict is not None and self.verdict.words:
            self.unexplained = True
        refuses = Strictness(self.settings.activation_check) is Strictness.refuse
        if self.verdict is not None and self.verdict.wrong and refuses:
            self.controller.let_go()
            self._seen = f"found at activation: {self.verdict.words}"
            self.happen(Event.LET_GO, self._seen)
        else:
            self._start_controller(t, q)
            if np.abs(v).max() > feasibility.RESTING and self._rest is Mode.HOLDING:
                self.happen(Event.CAUGHT, "to rest, from where the arm was", (t, q, v))
            else:
                self.happen(Event.STARTED, "at the measured position")
        self.controller.step(t, q, v, tau)

    def cause(self, rows: Recorded) -> str:
        """The likely cause of a fault, of having let go, or of what the check at activation has
        found, in a sentence; empty if none is likely. Takes tenths of a second, and changes
        nothing: to be called beside the ticks.

        Args:
            rows: what `Controller.recorded` gives of the last `EXPLAINED` seconds.
        """
        controller, verdict, settings = self.controller, self.verdict, self.controller.settings
        checked = "" if verdict is None else verdict.likely(controller.model)
        if self.mode not in (Mode.FAULT, Mode.POWERLESS) or len(rows[0]) < FEWEST_STATES:
            return checked
        answer = Answer.of(*rows, settings.dead_time, settings.hardware_compensates_gravity)
        is_new = verdict is None and rows[0][-1] - rows[0][0] < 0.9 * EXPLAINED
        push_factor = PUSH_AT_START if is_new else 1.0
        found = explain(controller.model, answer, push_factor=push_factor)
        return checked if found is NONE else found.words

    def _start_controller(self, t: float, q: FloatArray) -> None:
        self.controller.start(t, q)
        self._gave_way_at.clear()
        self.state_period = feasibility.StatePeriod(t)
        self.judge_braking_again()

    def judge_braking_again(self) -> None:
        """The values that the arm is braked with, or the arm, are other ones."""
        self._braking_is_judged, self.weak_braking = False, ""

    def answer_gap(self, t: float, tau: FloatArray) -> bool:
        """Fills `tau` with torques for when no state comes; whether they are to be commanded. The
        motion slows down, and `miss` ends it. Arguments, and what is raised, are those of
        `Controller.predict`."""
        if self.mode not in (*mode.HAS_ARM, Mode.POWERLESS):
            return False
        self.controller.predict(t, tau)
        return True

    def miss(self, missing: float) -> None:
        """No state has come for so long, [s]: after the timeout the motion ends."""
        if missing > self.settings.state_timeout and self.mode is not Mode.BLIND:
            self.happen(Event.LOST, f"no joint_states with a new stamp for {missing:.3g} s")

    def objection(self, model: RobotModel, settings: ControllerSettings) -> str:
        """Why an arm that it holds cannot go on with another model and other settings; empty if it
        can. Gains that a fault keeps out of force may be mended one by one: `reset_fault` judges
        them."""
        if self.mode not in mode.HAS_ARM:
            return ""  # nothing is held; the start asks
        gain = "" if self._law_failed else self.excessive_gain(model, settings)
        q, ws = self.controller.last_state[0], self._workspace
        return gain or feasibility.excessive_load(model, ws, settings, q)

    def excessive_gain(self, model: RobotModel, settings: ControllerSettings) -> str:
        """The first gain that the rate of the states and the delay of torques do not allow, and
        what they allow; empty if there is none, or while the rate is not known."""
        period, q = self.state_period, self.controller.last_state[0]
        if not period.is_known:
            return ""
        return feasibility.excessive_gain(
            model, self._workspace, settings, q, period.shortest, self.seen_delay
        )

    def _objection(self) -> str:
        """Why the arm cannot go on with what is in force."""
        given, q = self._in_force, self.controller.last_state[0]
        gain = self.excessive_gain(*given)
        return gain or feasibility.excessive_load(given.model, self._workspace, given.settings, q)

    def braking_check(self) -> BrakingCheck:
        """Judges whether the arm could be braked with other values, from where it is now."""
        return BrakingCheck(self._in_force, self._arm_state, self.mode in mode.HAS_ARM)

    @property
    def _in_force(self) -> Candidate:
        return Candidate(self.controller.model, self.controller.settings)

    @property
    def _arm_state(self) -> ArmState:
        controller, period = self.controller, self.state_period
        q, v = controller.last_state.copy()
        shortest = period.shortest if period.is_known else math.nan
        return ArmState(q, v, controller.in_force.copy(), shortest, self.seen_delay)

    def braking_to_judge(self) -> tuple[BrakingCheck, Candidate] | None:
        """The check of the values that the arm was started with, which takes too long for a tick,
        and these values; None if that was done. `weak_brakes` takes what it finds."""
        if self._braking_is_judged or not self.steady or self.mode not in mode.HAS_ARM:
            return None
        self._braking_is_judged = True
        return BrakingCheck.at_start(self._in_force, self._arm_state), self._in_force

    def weak_brakes(self, reason: str, hardly: bool) -> None:
        """The arm can be braked less well than usual, with the values that are in force, or
        `hardly` at all: then it is held, and no trajectory is taken."""
        self.weak_braking = reason
        if hardly:
            q, v = self.controller.last_state
            self.fail(reason, self.controller.time, q.copy(), v.copy())

    def reset_fault(self) -> str:
        """Ends a fault, if the arm could be held then. It succeeds where there is none, but not for
        an arm that was let go."""
        if Mode.FAULT not in self._latched:
            if self.mode is Mode.POWERLESS:
                raise ControllerError(mode.REFUSALS[self.mode].format(reason=self.reason))
            return f"no fault to reset: the controller is {self.mode.value}"
        if self.mode in mode.HAS_ARM and (objection := self._objection() or self.weak_braking):
            raise ControllerError(objection)
        del self._latched[Mode.FAULT]
        self._law_failed = False
        if self.mode is Mode.FAULT:
            self.happen(Event.RELEASED, "fault reset")
        return (self._rest if self.mode is Mode.BRAKING else self.mode).value
