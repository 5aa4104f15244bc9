"""`Guard`: receives states and commands, and commands the arm itself when it must.

While it guards, it processes messages several times within the time that counts as absence, and
more often once commands are late. While it is idle, it processes them now and then. While it
commands, it answers every state.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.clock import Clock

from rnea_control.array_types import FloatArray
from rnea_control.control import Act, Controller, ControllerSettings, motion_watch, step
from rnea_control.control.belief import MOVING
from rnea_control.control.braking_check import ArmState, BrakingCheck, Candidate
from rnea_control.control.controller_state import LONGEST_REPEAT
from rnea_control.control.feasibility import StatePeriod
from rnea_control.control.motion import Ending
from rnea_control.exceptions import ControllerError
from rnea_control.loop import native_loop as native
from rnea_control.loop.arm_loop import ArmLoop
from rnea_control.loop.commander import Commander
from rnea_control.loop.handover import Handover, HandoverTimes, Phase
from rnea_control.loop.state_intake import AnothersState
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.joint_state import JointStateError, OtherJoints
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import Settings, row
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.rcl_calls import Taken
from rnea_control.sentinel.command_watch import FOLLOWED, CommandWatch
from rnea_control.sentinel.give_backs import PERIOD, GiveBacks
from rnea_control.sentinel.statements import Statements

# Time between two looks at the messages, by phase.
IDLE_LOOK = 0.02  # while the guard is idle [s]
LOOK = 0.6  # while it guards, as a fraction of `HandoverTimes.awake`
LONGEST_LOOK = 0.004  # while it guards, upper bound [s]
CLOSE_LOOK = 0.0005  # while commands are late [s]
# Close looks count the states that silence needs, in the rest of `HandoverTimes.timeout`.
LATE = 0.35  # fraction of `HandoverTimes.timeout` after which commands are late
LONGEST_CLOSE_LOOK = 0.5  # silence after which commands have stopped [s]
# Time between two commands without states [s].
PREDICTION_PERIOD = 0.004
# Silence of the states, as a multiple of `prediction_gap`, after which another publisher is
# followed, and stamps have jumped.
SILENT_GAPS = 5.0
GIVEN = "the sentinel commands nothing; the controller may begin"
# Number of ticks of the warm-up.
WARM_UP = 10


@dataclass(frozen=True)
class GuardSettings(Settings):
    """Thresholds of the guard.

    Attributes:
        velocity_limit_factor: factor on the velocity limits beyond which the arm is taken over.
        prediction_gap: time without a state after which commands use a predicted state [s].
        revokes_frozen: True if commands that stay the same while the arm moves are wrong.
        most_give_backs: number of give-backs within a minute after which the arm is kept.
    """

    velocity_limit_factor: float = row("velocity_limit_factor")
    prediction_gap: float = row("prediction_gap")
    revokes_frozen: bool = row("revoke_frozen_commands", True)
    most_give_backs: int = row("give_back_limit", 0)


class Guard(Commander):
    """The sentinel's command of an `ArmLoop`. Other threads may call everything without an
    underscore, except the functions of `Commander`.

    Args:
        controller: computes the torques.
        command: publishes the torques.
        handover: decides whether the arm may be commanded.
        watch: judges the commands of others.
        settings: thresholds of the guard.
        clock: the node's clock.
        logger: the node's logger.
        on_change: called in the thread with the label of the old mode when the mode has changed.
        statements: what controllers publish about themselves.

    Attributes:
        loop: takes states and publishes torques.
        controller: computes the torques.
        handover: decides whether the arm may be commanded.
        takeovers: number of times that it has taken over the arm.
        refused_states: number of states that were unreadable or implausible.
        let_go: why it commands no torque when it has the arm; empty if it would hold it.
        give_backs: count of the times that it gave the arm back by itself.
    """

    let_go = ""

    def __init__(
        self,
        controller: Controller,
        command: EffortCommand,
        handover: Handover,
        watch: CommandWatch,
        settings: GuardSettings,
        clock: Clock,
        logger: Any,
        on_change: Callable[[str], None],
        statements: Statements,
    ) -> None:
        gap = settings.prediction_gap
        silence = SILENT_GAPS * gap
        times = {
            "state_gap": gap,
            "state_timeout": silence,
            "longest_wait": PREDICTION_PERIOD,
            "prediction_period": PREDICTION_PERIOD,
            "published_at": -math.inf,
        }
        parts = controller, command, handover, silence, times, clock, logger
        self.loop = ArmLoop(self, *parts)
        self.controller, self.handover = controller, handover
        self.loop.shared.ignores_repeated = True
        self.loop.on_published = self._note_published
        self.takeovers = self.refused_states = self._sent = self._heard = 0
        self._watch = watch
        self._settings = settings
        self.give_backs = GiveBacks(settings.most_give_backs)
        self._on_change = on_change
        self._statements = statements
        self._fastest = settings.velocity_limit_factor * controller.model.velocity_limit
        self._applied = statements.current.applied  # True if the controller's commands are applied
        self._was_slow = False  # True if the arm was within `_fastest` since commands are applied
        self._period = StatePeriod(0.0)
        self._last_round = self._heard_at = -math.inf
        self._pause = CLOSE_LOOK
        self._published = Phase.idle.value

    def stop(self) -> None:
        """Ends the thread; if it commands, the gravity torque is its last command."""
        with self.loop.paused():
            self._rest("the sentinel has ended")
            self.loop.stopping = True
        self.loop.end()

    @property
    def holds(self) -> bool:
        """True if the sentinel commands the arm."""
        return self.handover.phase is Phase.commanding

    @property
    def commands_sent(self) -> int:
        """Number of commands that it has published."""
        return self._sent + self.loop.shared.ticks

    def release(self) -> str:
        """Gives the arm to the controller, on an operator's request; returns a status message.

        Raises:
            ControllerError: the sentinel does not command the arm, it has let go of the arm, or the
                arm still moves.
        """
        with self.loop.paused():
            self._give()
            self.give_backs.forget()
        return GIVEN

    def give_back(self) -> str:
        """Gives the arm, once at rest, to a controller whose pause is over; returns a status
        message.

        Raises:
            ControllerError: the sentinel does not command the arm, has let go of it, or did not
                take it because of a pause; the arm still moves or its states cannot be used; or the
                controller was paused too often.
        """
        with self.loop.paused():
            handover, given, now = self.handover, self.give_backs, time.monotonic()
            if self.holds and not handover.won_by_silence:
                raise ControllerError(
                    f"the arm was not taken because of a pause, but as {handover.reason}: call "
                    "~/resume of the controller"
                )
            if self.holds and (self.controller.predicting or self.controller.is_moving):
                raise ControllerError("the arm is still being braked, or its states are missing")
            if self.holds and not self.let_go and given.is_refused(now):
                self.loop.log.say("error", "kept", f"keeps the arm: {given.words}")
                raise ControllerError(given.words)
            self._give()
            given.note(now)
            times = f"{given.within_period(now)} times within {PERIOD:g} s"
        self.loop.log.say(
            "warning",
            "given back",
            f"gave the arm back to the controller after a pause of that: {times}, {given.most} are "
            "allowed; docs/realtime.md says what pauses a controller",
        )
        return GIVEN

    def _give(self) -> None:
        if not self.holds:
            phase = self.handover.phase.value
            raise ControllerError(f"the sentinel does not command the arm: it is {phase}")
        if self.let_go:
            raise ControllerError(
                f"{self.let_go}; mend that, call ~/stand_down, and activate the controller anew"
            )
        self._demand_rest()
        self.handover.give(time.monotonic())

    def stand_down(self) -> str:
        """Stops holding the arm until commands come again, on an operator's request; returns a
        status message.

        Raises:
            ControllerError: the sentinel commands the arm, and it still moves.
        """
        with self.loop.paused():
            self._demand_rest()
            self._rest("requested by ~/stand_down")
        return (
            "the sentinel is idle until it receives a command. A controller that stands by now "
            "takes over the arm. Without one the torque stays frozen, which holds an arm only for "
            "moments: support the arm, or engage its brakes"
        )

    def _demand_rest(self) -> None:
        if self.holds and self.loop.speed > MOVING:
            raise ControllerError(
                f"the arm still moves at {self.loop.speed:.2g} rad/s or m/s; it is being braked"
            )

    @property
    def armed(self) -> bool:
        """True if the followed controller commands now: hand-over times may not change then."""
        recent = time.monotonic() - self._heard_at < FOLLOWED
        return self.handover.phase is not Phase.idle and recent

    @property
    def _torque_in_force(self) -> FloatArray:
        """Torque that the hardware applies, shape (nv,), [Nm] or [N]: the torque of the latest
        command, which is the sentinel's own if it has just lost the arm by a pause."""
        is_own = self.loop.shared.published_at >= self._watch.torque_at
        return self.controller.in_force if is_own else self._watch.in_force

    def heed(self) -> None:
        """Applies the statement of the controller that commands. Unless the sentinel
        commands, it is idle while those commands are not applied. It lets go of the arm if the
        controller has."""
        with self.loop.paused():
            self._heed()

    def _heed(self) -> None:
        current = self._statements.current
        self._applied, reason = current.applied, current.let_go
        if not self._applied and not self.holds:
            self.handover.stop("the controller waits, and does not hold the arm")
        if reason and not self.let_go:  # the sentinel cannot hold what the controller could not
            self._lets_go(reason)
        elif self.let_go and not reason and not self.holds:  # the controller begins anew
            self._forget()

    def braking_check(self) -> BrakingCheck:
        """Check of whether the arm could be braked with other values, from the last state."""
        with self.loop.lock:
            return self.loop.consistent(self._braking_check)

    def _braking_check(self) -> BrakingCheck:
        controller, states = self.controller, self.loop.states
        begun = states.begun
        q = states.q if begun else controller.model.neutral()
        torque = controller.in_force if self.holds else self._watch.in_force
        v = states.v if begun else np.zeros(len(q))
        now = ArmState(q.copy(), v.copy(), torque.copy())
        return BrakingCheck(Candidate(controller.model, controller.settings), now, begun)

    def change(self, model: RobotModel, settings: ControllerSettings, times: HandoverTimes) -> None:
        """Applies another model, other settings and other times, between two ticks.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        with self.loop.paused():
            self.controller.change(model, settings)
            self.handover.times = times
            self._watch.effort_limit = settings.effort_limit(model)

    def _rest(self, reason: str) -> None:
        if self.holds and not self.let_go:
            self.controller.holding_torque(self.loop.states.q, self.loop.command.torque)
            self.loop.publish()
        self.handover.stop(reason)
        self._forget()

    def _lets_go(self, reason: str) -> None:
        self.controller.let_go()
        self.let_go = reason
        self._on_change(self._published)

    def _forget(self) -> None:
        """Allows the sentinel to hold the arm again."""
        self.let_go = ""
        self.controller.forget()

    def fail(self, reason: str) -> None:
        """Stops for good after a bug; the controller, if it lives, takes over the arm."""
        self.handover.stop("the sentinel has failed")

    def attend(self) -> None:
        """Reports in words the findings of ticks in machine code."""
        with self.loop.lock:
            self._note(self.controller.tell())
        self.loop.log.flush()

    def _note(self, found: Sequence[Ending]) -> None:
        """Logs the findings of steps; publishes at once that a step has let go of the arm."""
        for end in found:
            if end.let_go:
                self._lets_go(end.text)
            elif end.faulty or end.gave_way:
                self.loop.log.say("error", "found", end.text)

    def is_usual(self) -> bool:
        return True

    def answer_next(self, verdict: int | None, taken: Taken | None) -> None:
        command, heard = None, self.loop.heard
        if verdict is not None:
            self._last_round = time.monotonic()  # machine code was awake
            if verdict == native.COMMANDED:
                taken, command = heard.poll(), taken
            elif verdict == native.REFUSED:
                self._refuse(self.loop.refusal())
        elif self.holds:
            taken = heard.take(PREDICTION_PERIOD)
        else:
            time.sleep(self._pause)
            taken = heard.take(0.0)  # polling alone would leave arrivals in the semaphore
        self._round(taken, command)

    def _refuse(self, error: Exception) -> bool:
        """Logs why a step was refused; returns True if the state is ignored, and counted."""
        ignored = self.loop.is_ignored(error)
        self.refused_states += ignored
        return ignored

    def _round(self, taken: Taken | None, command: Taken | None = None) -> None:
        """Runs for every state, or every `LOOK`: processes all messages, then acts on them."""
        with self.loop.paused():
            if self.loop.stopping:
                return
            now = time.monotonic()
            handover = self.handover
            self.loop.look_at_clock()
            was_paused = now - self._last_round > handover.times.arming
            self._last_round = now
            if command is not None:
                self._hear_command(now, command)
            while (taken_command := self.loop.heard.poll(1)) is not None:
                self._hear_command(now, taken_command)
            if was_paused and handover.phase is Phase.guarding:
                handover.resume_guarding(now)  # the commands had waited
            self._pause = self._look_after(now - self._heard_at)
            verdict = native.IGNORED if taken is None else self._hear_state(now, *taken)
            if verdict == native.IGNORED:
                handover.hear_nothing(now)
            if handover.look(now):
                self._catch()
                verdict = self.loop.step(now, predicted=False)
            elif verdict == native.IGNORED and self.holds:
                verdict = self.loop.answer_nothing(now, False, math.inf, True)
            self._interpret(verdict, now)
        if handover.label != self._published:
            before, self._published = self._published, handover.label
            self._on_change(before)

    def _look_after(self, silence: float) -> float:
        """Time until the next look [s].

        Args:
            silence: time since the last command [s].
        """
        times = self.handover.times
        if self.handover.phase is Phase.idle:
            return IDLE_LOOK
        if LATE * times.timeout < silence < LONGEST_CLOSE_LOOK:
            return CLOSE_LOOK
        return max(min(LOOK * times.awake, LONGEST_LOOK), CLOSE_LOOK)

    def _hear_command(self, now: float, command: Taken) -> None:
        handover, watch, message = self.handover, self._watch, command.data
        if watch.is_own(message, command.publisher, now):
            return
        stranger = watch.stranger(command.publisher, now)
        if watch.commander != self._statements.commander:
            self._statements.commander = watch.commander
            self._heed()
            self.loop.log.wake()  # its parameters
        if stranger:
            handover.hear_foreign(now, stranger)
            self.loop.log.say("error", "stranger", f"{stranger} commands the arm too: stop it")
            return
        self._heard_at = now
        if handover.phase is Phase.idle:
            if self._applied and self.loop.states.begun:
                handover.guard(now)
            return
        handover.hear_command(now)
        longest = handover.times.timeout if self._settings.revokes_frozen else math.inf
        if self.let_go:
            return  # the same torque again and again is intended
        fault = watch.fault(
            message, now, self.loop.states.time, self._heard, self.loop.speed, longest
        )
        if fault and handover.phase is Phase.guarding and handover.revoke(now, fault):
            self.loop.log.say("error", "revoking", f"commands are wrong: {fault}")

    def _hear_state(
        self, now: float, message: bytes, number: int | None, publisher: bytes | None
    ) -> int:
        """Answers a state if the guard commands, and judges the motion if it guards; returns the
        verdict, IGNORED for a state of no use."""
        states = self.loop.states
        try:
            verdict = self.loop.answer(message, number, publisher, now, self.holds)
        except (OtherJoints, AnothersState):
            return native.IGNORED
        except (CdrError, JointStateError) as error:
            self.refused_states += 1
            self.loop.log.say("error", "state", str(error))
            return native.IGNORED
        if verdict == native.REPEATED:
            return native.IGNORED
        if verdict == native.JUMPED:
            verdict = self.loop.answer_at(self._time_after_jump(), now, self.holds)
        if not self._period.is_known:
            self._period.measure(states.time, states.v)
            shortest = self._period.shortest
            self.loop.shared.period = 0 if math.isnan(shortest) else round(shortest * 1e9)
        self._heard += 1
        if states.interval > LONGEST_REPEAT:  # a controller that has braked may be silent meanwhile
            self.handover.miss_commands(now)
        excess = np.abs(states.v) - self._fastest
        j = int(excess.argmax())
        if not self._applied or excess[j] <= 0.0:
            self._was_slow = self._applied
        elif self._was_slow and not self.let_go and self.handover.phase is Phase.guarding:
            name = self.controller.model.joint_names[j]
            fault = f"{name} moves at {states.v[j]:.3g} rad/s or m/s"
            if self.handover.revoke(now, fault):
                self.loop.log.say("error", "revoking", f"the arm is too fast: {fault}")
        return verdict

    def _time_after_jump(self) -> float:
        """Time of a state whose stamp does not closely follow the last stamp [s]; logs that."""
        words = f"{self.loop.jump:+.3f} s; time goes on without that"
        severity = "warning" if self.loop.system_time else "info"
        self.loop.log.say(severity, "stamps", f"the stamps of joint_states jumped by {words}")
        return self.loop.time_after_jump()

    def _catch(self) -> None:
        """Brakes the arm from its present state, then holds it. An arm that was let go gets no
        torque, in place of the last torque of a controller that has ended."""
        self.takeovers += 1
        controller = self.controller
        controller.in_force = self._torque_in_force
        controller.forget()
        controller.watch = motion_watch.STOPPED
        controller.start(self.loop.states.time, self.loop.states.q)
        if self.let_go:
            controller.let_go()
        controller.finish(self.handover.reason, Act.IS_CAUGHT, state=self.loop.state)

    def _interpret(self, verdict: int, now: float) -> None:
        """Acts on a verdict about a state. In place of a state that a step has refused, a predicted
        one is answered."""
        if verdict == native.REFUSED:
            self._refuse(self.loop.refusal())
            verdict = self.loop.step(now, predicted=True)
        if verdict != native.ANSWERED:
            return
        if self.loop.shared.outcome == step.BAD_TORQUE:
            self._refuse(self.loop.refusal())
        else:
            self._note(self.controller.findings_of(self.loop.shared.outcome))
        self.loop.publish()

    def _note_published(self, message: bytes, now: float) -> None:
        self._watch.sent(message, now)
        self._sent += 1

    def warm_up(self) -> None:
        """Steps a separate controller with the same model and settings, from a position within the
        limits and without effect, so that the first real torque finds code and memory ready."""
        model = self.controller.model
        idle = Controller(model, self.controller.settings)
        position = np.clip(0.0, model.lower, model.upper)
        velocity, torque = np.zeros((2, model.nv))
        for i in range(WARM_UP):
            idle.start(i * 1e-3, position)
            idle.finish("", Act.IS_CAUGHT, state=(i * 1e-3, position, velocity))
            idle.step(i * 1e-3, position, velocity, torque)
            idle.predict(i * 1e-3, torque)
            idle.holding_torque(position, torque)
