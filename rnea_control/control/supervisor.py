"""`Supervisor`: runs a controller on good states, on bad states and without states.

Everything that happens to the arm is an event of mode.py. The supervisor has no clock, no topics
and no locks: its caller passes the time, and calls it from one thread at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import feasibility, layout, mode, observer_margin
from rnea_control.control.activation_check import ActivationCheck, Strictness, Verdict
from rnea_control.control.arm_answer import Answer
from rnea_control.control.braking_check import ArmState, BrakingCheck, Candidate
from rnea_control.control.controller import STILL_FROZEN, Controller, Recorded
from rnea_control.control.laws import TASK_LAWS, ControlLaw
from rnea_control.control.miswiring import NONE, explain
from rnea_control.control.mode import Event, Machine, Mode
from rnea_control.control.motion import Ending
from rnea_control.control.references import Reference
from rnea_control.control.settings import ControllerSettings, SupervisionSettings
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.model import RobotModel

FALL = 1.0  # longest fall of an arm since its effort controller became active [s]
COMPLAINT_PERIOD = 1.0  # time between updates of the reason for not starting or answering [s]
# Time without an obstacle after which it counts as gone, while no subscriber applies the commands:
# an arm that is not held swings, and bounces at its stops [s].
LONGEST_BOUNCE = 5.0
EXPLAINED = 0.4  # time before a fault in which its cause is searched [s]
FEWEST_STATES = 10  # fewest states that can show a cause
# Factor on the score of a push for an unchecked arm that has just started, which is more likely
# miswired than pushed.
PUSH_AT_START = 3.0


class Supervisor(Machine):
    """Runs a controller in all its modes.

    Attributes:
        bad_states: number of states ignored since activation.
        listening: True if a subscriber applies the commands. Until then the hold position follows
            the arm.
        state_period: period of the states since the last start.
        obstacle: why the controller does not start from the received states; None if it may, or has
            started.
        seen_delay: time after which torques act, as far as known, [s]; may be set.
        misfit: why the hardware does not match the model; may be set, and prevents a start.
        verdict: result of the last check of the wires; None before the first check.
        checked_cause: likely cause of that result; empty if there is none, or while it is not
            known.
        weak_braking: why the arm can be braked less well than usual with the values of the start,
            or would swing after a push; empty if there is no such reason, or before that is judged.
    """

    _check: ActivationCheck  # set in mode checking
    verdict: Verdict | None = None
    checked_cause = weak_braking = ""
    _braking_is_judged = False
    _is_brakable = True
    _judged_delays: observer_margin.Delays | None = (
        None  # delays that the robustness was judged for
    )

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
        self.tip_objection = ""  # why the tip may not follow poses
        self._waits_for = "for a subscription to the commands"  # while there is no subscriber

    def forget(self) -> None:
        """Resets the values that apply to one activation only."""
        super().forget()
        self.bad_states = self._bad_in_row = 0
        self.obstacle: feasibility.Obstacle | None = None
        self._besides, self._besides_at = "", -math.inf  # the last obstacle without a subscriber
        self._judged = False  # True if a usable state has come since the activation
        self._streaming = False  # True while the gravity torque is sent without a subscriber
        self._has_held = False  # True if the controller has held the arm
        self._unheard_torque_at = -math.inf  # last gravity torque without a subscriber [s]
        self._doubt_told_at = math.nan  # last update of the reason [s]

    @property
    def streaming(self) -> bool:
        """True if the gravity torque is commanded while no subscriber applies it."""
        return self._streaming and self.mode is Mode.WAITING

    @property
    def gaps(self) -> int:
        """Number of times that states were missing, or not usable, and were predicted."""
        return int(self.controller.arm.gaps)

    @property
    def steps(self) -> bool:
        """True if a step of the controller alone answers a state, and `note_step` follows."""
        return self.mode not in mode.UNUSUAL

    @property
    def predicts(self) -> bool:
        """True if a torque is commanded while states are missing."""
        return self.mode in (*mode.HAS_ARM, Mode.POWERLESS)

    @property
    def steady(self) -> bool:
        """True if each credible state is answered by a step, and the period of the states is
        known."""
        return self.steps and self.state_period.is_known

    def activate(self, reason: str = "for joint_states") -> None:
        """Starts with the next state that allows it; the reason names the missing condition."""
        self.forget()
        self.controller.in_force = math.nan
        self.happen(Event.ACTIVATED, reason)

    def hear_listeners(self, listening: bool, reason: str) -> None:
        """Handles a change of the subscribers that apply the commands.

        With a new subscriber the controller starts as after an activation. Without subscribers a
        motion ends.

        Args:
            listening: True if there is a subscriber.
            reason: the missing condition.
        """
        self.listening = listening
        before, self._waits_for = self._waits_for, reason
        if not listening and self.mode is Mode.WAITING:
            if reason != before:
                self._say_what_is_missing()
        elif self.happen(Event.LISTENERS_CHANGED, reason):
            self.controller.in_force = math.nan
            self._streaming, self._besides = False, ""

    def take_over(self, t: float, q: FloatArray, v: FloatArray, reason: str) -> None:
        """Brakes from the measured state after the sentinel has given the arm back or has ended."""
        if self.mode is Mode.GUARDED:
            self._start_controller(t, q)
            self.happen(Event.CAUGHT, reason, (t, q, v))

    def answer(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau` with the answer to a measured state; returns True if it is to be commanded.

        Args:
            t: time of the measurement, [s]; it does not run backward.
            q: measured positions, shape (nv,), [rad] or [m].
            v: measured velocities, shape (nv,), [rad/s] or [m/s].
            tau: output, shape (nv,), [Nm] or [N].

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
        self.note_step(t, q, v, found)
        return True

    def note_step(self, t: float, q: FloatArray, v: FloatArray, found: Sequence[Ending]) -> None:
        """Handles a step that has answered a state, with its findings; see `steps`."""
        self._bad_in_row = 0
        if self.state_period.measure(t, v):
            noise, model = self.state_period.velocity_noise, self.controller.model
            momentum = feasibility.momentum_noise(model, self._workspace, q, noise)
            self.controller.expect_noise(noise, momentum)
            self._judge_tip()
            if objection := self._objection():
                self.fail(objection, t, q, v, law_failed=True)
        self.follow_up(found)

    def refuse_step(self, error: Exception, t: float, q: FloatArray, v: FloatArray) -> None:
        """Handles a step that has refused a state, or found no torque for it."""
        if isinstance(error, TorqueError):
            self.fail(str(error), t, q, v, law_failed=True)
        else:
            self.refuse_state(str(error))

    def lack_states(self, why: str) -> bool:
        """Puts into the reason why the states since the activation cannot be used. Returns True if
        the controller waits, and no state could be used."""
        lacks = self.mode is Mode.WAITING and not self._judged
        if lacks:
            reason = f"for joint_states that can be used: {why}"
            self.obstacle = feasibility.Obstacle("no joint_states can be used", reason)
            self._say_what_is_missing()
        return lacks

    def refuse_state(self, text: str) -> None:
        """Counts a state that cannot be used; too many in a row count as missing states."""
        self.lack_states(text)
        self.bad_states += 1
        self._bad_in_row += 1
        if self._bad_in_row > self.settings.max_bad_states:
            self.happen(Event.LOST, text)

    def _resumes(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts, or continues after a time without states; returns True if this state is to be
        answered."""
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
        """Updates the reason for staying in this mode, at most once per COMPLAINT_PERIOD."""
        if not abs(t - self._doubt_told_at) < COMPLAINT_PERIOD:
            self._doubt_told_at = t
            self.happen(event, reason)

    def _start(self, t: float, q: FloatArray, v: FloatArray) -> bool:
        """Starts from a state if it allows that; returns True if a torque is to be commanded."""
        # The controller catches a moving arm that it held, or that fell without a torque until the
        # effort controller became active. Without a subscriber the arm may move.
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
        # Slow motion may be noise, and does not prevent the check of the wires.
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
        """Why the controller may not start from this state; None if it may. `may_move`: True to
        accept any velocity."""
        model, ws, settings = self.controller.model, self._workspace, self.controller.settings
        if self.misfit:
            return feasibility.Obstacle(self.misfit, f"as {self.misfit}")
        found = feasibility.obstacle_to_start(model, self.settings, q, v, may_move)
        if found is None and (load := feasibility.excessive_load(model, ws, settings, q)):
            return feasibility.Obstacle("the arm is too heavy there to be held", f"as {load}")
        return found

    def _note_obstacle(self, t: float) -> None:
        """Remembers the obstacle in a state at time `t` [s] while no subscriber applies the
        commands. An arm that is not held bounces at its stops: the obstacle is replaced only after
        LONGEST_BOUNCE without it."""
        kind = "" if self.obstacle is None else self.obstacle.kind
        if kind == self._besides:
            self._besides_at = t
        elif not self._besides or t - self._besides_at > LONGEST_BOUNCE:
            self._besides, self._besides_at = kind, t

    def _say_what_is_missing(self) -> None:
        """Sets the reason: usable states, if none has come; the subscriber; the obstacle that would
        remain."""
        missing = []
        if not self._judged:
            missing.append("for joint_states" if self.obstacle is None else self.obstacle.reason)
        if not self.listening:
            missing.append(self._waits_for)
        also = f"; nor can it start while {self._besides}" if self._besides else ""
        self.happen(Event.WAITS_ON, ", and ".join(missing) + also)

    def _must_check(self) -> bool:
        """True if the wires are to be checked before the start."""
        wanted = Strictness(self.settings.activation_check) is not Strictness.off
        return wanted and not self._latched

    def _go_on_checking(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Fills `tau` with the next torques of the check, or after its end with the torques of the
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
        """The likely cause of a fault, of having let go, or of the findings of the check at
        activation, in a sentence; empty if no cause is likely. Takes tenths of a second, and
        changes nothing: call it outside the ticks.

        Args:
            rows: result of `Controller.recorded` for the last `EXPLAINED` seconds.
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
        self._judge_tip()
        self.use(observer_margin.Robustness.none(self.controller.model.nv))
        self.judge_braking_again()

    def judge_braking_again(self) -> None:
        """Discards the judgement of braking, as the arm or the values for braking have changed."""
        self._braking_is_judged, self.weak_braking, self._is_brakable = False, "", True
        self._judged_delays = None

    def answer_gap(self, t: float, tau: FloatArray) -> bool:
        """Fills `tau` with torques while no state comes; returns True if they are to be commanded.
        The motion slows down, and `miss` ends it.

        Args:
            t: time now, [s].
            tau: output, shape (nv,), [Nm] or [N].

        Raises:
            TorqueError: the control law gives no finite torque; `tau` is to be commanded.
        """
        if not self.predicts:
            return False
        self.controller.predict(t, tau)
        return True

    def miss(self, missing: float) -> None:
        """Takes the time without a state, [s]: after the timeout the motion ends."""
        if missing > self.settings.state_timeout and self.mode is not Mode.BLIND:
            self.happen(Event.LOST, f"no joint_states with a new stamp for {missing:.3g} s")

    def objection(self, model: RobotModel, settings: ControllerSettings) -> str:
        """Why an arm that is held cannot continue with another model and other settings; empty if
        it can. After a failure of the law the gains are not judged, so that they can be corrected
        one by one: `reset_fault` judges them."""
        if self.mode not in mode.HAS_ARM:
            return ""  # the arm is not held; the start judges
        objection = self.law_objection(settings.control_law)
        if objection := objection or self.task_law_objection(settings.task_law):
            return objection
        gain = "" if self._law_failed else self.excessive_gain(model, settings)
        if not gain and self.controller.follows_poses:
            law = settings.task_law
            gain = self._excessive_task_gain(law, model, settings, settings.rows(model))
        if not gain and self.state_period.is_known:
            gain = observer_margin.bandwidth_objection(model, settings, self._delays(settings))
        q, ws = self.controller.last_state[0], self._workspace
        return gain or feasibility.excessive_load(model, ws, settings, q)

    def excessive_gain(self, model: RobotModel, settings: ControllerSettings) -> str:
        """The first gain that is too high for the rate of the states and the delay of torques, and
        the largest value allowed; empty if there is none, or while the rate is not known."""
        period, q = self.state_period, self.controller.last_state[0]
        if not period.is_known:
            return ""
        law, delays = settings.control_law, (period.shortest, self.seen_delay)
        gain = feasibility.excessive_gain(model, self._workspace, settings, q, *delays)
        if not gain and law in TASK_LAWS:
            gain = self._excessive_task_gain(law, model, settings, settings.rows(model))
        return gain

    def change(self, model: RobotModel, settings: ControllerSettings) -> None:
        super().change(model, settings)
        self._judge_tip()
        self._judged_delays = None

    def _judge_tip(self) -> None:
        """Decides whether the tip may follow poses with the gains in force."""
        self.tip_objection = "the rate of joint_states is not known yet"
        if self.state_period.is_known:
            rows = self.controller.arrays.settings[0]
            model, settings = self._in_force
            laws = [settings.law_of(each) for each in Reference if each.of_task]
            objections = (self._excessive_task_gain(law, model, settings, rows) for law in laws)
            self.tip_objection = next(filter(None, objections), "")
            self.controller.arm.most_tip_frequency = feasibility.largest_tip_frequency(
                ControlLaw.cartesian_impedance,
                settings,
                rows,
                self.state_period.shortest,
                self.seen_delay,
            )
        self.controller.arm.takes_poses = not self.tip_objection

    def robustness_to_judge(self) -> tuple[Candidate, observer_margin.Delays] | None:
        """The values in force for `observer_margin.judge`, whose result goes to `use`; None if that
        was done, or the rate of the states is not known. The judgement takes too long for a
        tick."""
        if not self.steady:
            return None
        delays = self._delays(self.controller.settings)
        if delays == self._judged_delays:
            return None
        self._judged_delays = delays
        return self._in_force, delays

    def use(self, found: observer_margin.Robustness) -> None:
        """Takes the inertia that the feedback adds, and the bandwidths of the disturbance
        observer."""
        self.controller.rows.added_inertia = found.added_inertia
        self.controller.rows.bandwidth = found.bandwidth
        self.controller.rows.longest_age = found.longest_age

    def judge_robustness(self) -> str:
        """Does both; returns the objection. For programs without a thread beside the ticks."""
        if (to_judge := self.robustness_to_judge()) is None:
            return ""
        found = observer_margin.judge(*to_judge[0], to_judge[1])
        self.use(found)
        return found.objection

    def _delays(self, settings: ControllerSettings) -> observer_margin.Delays:
        late = self.seen_delay > settings.dead_time
        delay = self.seen_delay if late else settings.dead_time
        return observer_margin.Delays(self.state_period.shortest, delay, settings.dead_time)

    def _excessive_task_gain(
        self,
        law: ControlLaw,
        model: RobotModel,
        settings: ControllerSettings,
        rows: layout.Settings,
    ) -> str:
        """Why the tip would shake by a law of task space with these settings, also as `rows`; empty
        if it would not."""
        q = self.controller.last_state[0]
        delays = self.state_period.shortest, self.seen_delay
        of_arm = model, self._workspace, law, settings, rows, q
        return feasibility.excessive_task_gain(*of_arm, *delays)

    def _objection(self) -> str:
        """Why the arm cannot continue with the model and settings in force; empty if it can."""
        given, q = self._in_force, self.controller.last_state[0]
        gain = self.excessive_gain(*given)
        return gain or feasibility.excessive_load(given.model, self._workspace, given.settings, q)

    def braking_check(self) -> BrakingCheck:
        """A check that the arm could be braked with other values, from its present state."""
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
        """The check of the values that the arm was started with, and these values; None if it was
        done. The check takes too long for a tick; pass its result to `weak_brakes`."""
        if self._braking_is_judged or not self.steady or self.mode not in mode.HAS_ARM:
            return None
        self._braking_is_judged = True
        return BrakingCheck.at_start(self._in_force, self._arm_state), self._in_force

    def weak_brakes(self, reason: str, hardly: bool) -> None:
        """Takes the finding that the arm can be braked less well than usual with the values in
        force, or would swing after a push. If it can `hardly` be braked at all, it is held, and
        trajectories are rejected."""
        self.weak_braking, self._is_brakable = reason, not hardly
        if hardly:
            q, v = self.controller.last_state
            self.fail(reason, self.controller.time, q.copy(), v.copy())

    def reset_fault(self) -> str:
        """Ends a fault, if the arm could be held then. Succeeds without a fault too, but not for an
        arm that was let go."""
        if Mode.FAULT not in self._latched:
            if self.mode is Mode.POWERLESS:
                raise ControllerError(mode.REFUSALS[self.mode].format(reason=self.reason))
            return f"no fault to reset: the controller is {self.mode.value}"
        unbrakable = "" if self._is_brakable else self.weak_braking
        if self.mode in mode.HAS_ARM and (objection := self._objection() or unbrakable):
            raise ControllerError(objection)
        del self._latched[Mode.FAULT]
        self._law_failed = False
        if self.mode is Mode.FAULT:
            self.happen(Event.RELEASED, "fault reset")
        return (self._rest if self.mode is Mode.BRAKING else self.mode).value
