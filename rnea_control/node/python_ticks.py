"""`PythonTicks`: the ticks of the controller's loop that machine code leaves to Python.

These are the ticks at the start and of the first states, of bad states, and without states. The
kernels of loop/native_loop.py decide about a state here as well, with one call; Python interprets
their verdicts:

- ANSWERED, REFUSED, PAUSED: as machine code does.
- ADMITTED: in the modes waiting, checking, blind and guarded a state needs more than a step. The
  supervisor gives the torque.
- YIELDED: the loop listens to the commands of the sentinel, and may take over.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rnea_control.control import Event, Mode, SupervisionSettings, step
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.loop import native_loop as native
from rnea_control.loop.native_loop import PREDICTION_PERIOD
from rnea_control.loop.state_intake import AnothersState
from rnea_control.messages.cdr import CdrError, boolean, decoding
from rnea_control.messages.joint_state import JointStateError, OtherJoints, measured_efforts
from rnea_control.node.sentinel_link import SharedArm
from rnea_control.parameters.settings import row

# Time between two answered states while the commands are not applied [s].
WAITING_PERIOD = 0.012


@dataclass(frozen=True)
class LoopSettings(SupervisionSettings):
    """Settings of a `ControlLoop`, including those of its supervisor.

    Attributes:
        trusts_effort: True if the measured effort is the torque in force.
        last_command: "gravity" or "zero", the last torque of the loop.
        longest_hang: pause of the interpreter after which a motion ends [s].
    """

    trusts_effort: bool = row("measured_effort_is_trusted", False)
    last_command: str = row("last_command", "gravity")
    longest_hang: float = row("interpreter_timeout", math.inf)


class PythonTicks(SharedArm):
    """A loop that answers states, and predicts the state for a while if none comes.

    Attributes:
        settings: see `LoopSettings`.
        refused: why the last state was refused; empty if it was not.
    """

    settings: LoopSettings
    refused = ""
    _watching = False  # True if no usable state has come for long

    def answer_next(self) -> None:
        heard, taken = self.heard, None
        if self.may_run_natively():
            reason, taken = self.run_natively()
            self.after_native(reason)
            if reason in (native.YIELDED, native.REFUSED):
                return
        if taken is None:
            wait = PREDICTION_PERIOD if self._watching else self.shared.longest_wait
            taken = heard.take(0.0 if self._idle(wait) else wait)
        for which, (message, _, publisher) in heard.beside():
            if self.kinds[which - 1] == native.STOP:
                with self.lock:
                    self._hear_stop(boolean(message), publisher)
        if taken is not None and self.tick(*taken):
            self._watching = False
            return
        if taken is None and not heard.node.context.ok():
            self._stopping = True  # no more messages can come
            return
        self._watching = self.watch()

    @property
    def _idles(self) -> bool:
        """True if some states need no answer: the commands are not applied, and the loop does not
        wait for commands of the sentinel."""
        waits = self.supervisor.mode is Mode.WAITING and not self.supervisor.listening
        return waits and self.handover.commanding

    def _idle(self, step: float) -> bool:
        """Waits in steps [s], each as long as a lease allows, while no answer is needed; returns
        True if it waited."""
        begin = time.monotonic()
        idled = False
        while self._idles and time.monotonic() - begin < WAITING_PERIOD and not self._stopping:
            idled = True
            time.sleep(step)
            self.hear_nothing()
        return idled

    def _hear_stop(self, pressed: bool | None, publisher: bytes | None) -> None:
        """Processes a message on the emergency stop.

        Args:
            pressed: True for pressed, False for released; None if the message is not a Bool.
            publisher: GID of the message's publisher; None where it is not known.
        """
        if pressed is None:
            self.log.say("error", "stop", "emergency_stop: the message is not a std_msgs/Bool")
        else:
            # Without the graph's GIDs, a publisher that has ended cannot be recognized, and would
            # seem to keep the stop pressed.
            who = publisher if self.names_publishers else None
            self.supervisor.emergency_stop(pressed, who)

    def hear_nothing(self) -> None:
        """Renews the lease while no state waits; call every `longest_wait` meanwhile."""
        with self.lock:
            self.handover.hear_nothing(time.monotonic())

    def tick(self, state: bytes, count: int | None = None, publisher: bytes | None = None) -> bool:
        """Answers one state; returns True if that is done, so that `watch` has nothing to do.

        Args:
            state: serialized JointState.
            count: the publisher's count of the message; None where it is not known.
            publisher: GID of the publisher; None where it is not known.
        """
        taken_at = time.monotonic()
        with self.lock:
            if not self.running:
                return False
            try:
                verdict = self._answer(state, count, publisher, taken_at)
                if self._interpret(verdict, state, taken_at):
                    return self.shared.advanced
            except OtherJoints as error:
                if not self.supervisor.lack_states(str(error)):
                    self.log.say("info", "others", f"{error}; such messages are ignored")
            except AnothersState as error:
                self.statistics.counts.foreign += 1
                hint = "its states are ignored. Stop it: only one node may publish joint_states"
                self.log.say("error", "publisher", f"{error}; {hint}")
            except (CdrError, JointStateError) as error:
                self._refuse(str(error))
            except ControllerError as error:  # by the supervisor
                if isinstance(error, TorqueError):
                    self._command_arm()
                self._note_refusal(error)
            self.handover.hear_nothing(taken_at)
            return False

    def _note_refusal(self, error: ControllerError) -> None:
        if self._is_ignored(error):
            self.refused = str(error)

    def after_native(self, reason: int) -> None:
        """Handles a return of machine code: the arm is another node's, a state is faulty, or there
        is no finite torque without states."""
        with self.lock:
            if reason == native.YIELDED:
                self._yield_if_asked()
            elif reason == native.REFUSED:
                self._refuse_step()
                self.handover.hear_nothing(time.monotonic())
            elif reason == native.SILENT and self.shared.outcome == step.BAD_TORQUE:
                self._is_ignored(self._refusal())

    def watch(self) -> bool:
        """Renews the lease while no usable state waits; commands a torque if none has come for
        long, and returns True if that is the case."""
        with self.lock:
            now = time.monotonic()
            if not self.running or not self.states.begun:
                self.handover.hear_nothing(now)
                return False
            verdict = self._predict(now, self.settings.state_timeout)
            if verdict == native.SILENT:
                self.supervisor.miss(now - self.states.came_at)
                verdict = self._predict(now, math.inf)
            waits = self.supervisor.mode is Mode.WAITING  # then there is no arm to lose
            if verdict == native.YIELDED and not waits:
                self._yield_if_asked()
            elif verdict == native.ANSWERED:
                if self.shared.outcome == step.BAD_TORQUE:
                    self._is_ignored(self._refusal())
                if native.gives_torque(self.shared.outcome):
                    self._command_arm()
            return verdict != native.NOT_MISSING

    def _predict(self, now: float, longest: float) -> int:
        return self._answer_nothing(now, bool(self.refused), longest, self.supervisor.predicts)

    def _refuse(self, text: str, kind: str = "state") -> None:
        self.refused = text
        self.supervisor.refuse_state(text)
        self.log.say("error", kind, f"{text}; the state is ignored")

    @property
    def steps(self) -> bool:
        return self.supervisor.steps

    def _interpret(self, verdict: int, state: bytes, taken_at: float) -> bool:
        """Acts on a verdict of `answer` about a state; returns True if a command was published."""
        if verdict == native.REFUSED:
            self._refuse_step()
            return False
        if verdict == native.YIELDED and self._takes_over(taken_at):
            native.limit_rate(self.shared, self.controller.rows, self.states.time, taken_at)
            verdict = native.ADMITTED
        if verdict == native.ADMITTED and not self._answer_by_mode(state):
            return False
        if verdict not in (native.ADMITTED, native.ANSWERED):
            return False
        self.refused = ""
        if not self._command_arm():
            return False
        if verdict == native.ANSWERED:
            if self.shared.outcome == step.BAD_TORQUE:
                self._refuse_step()
                return False
            found = self.controller.findings_of(self.shared.outcome)
            self.supervisor.note_step(*self.state, found)
        self._record(taken_at, 0 if self._idles else self.states.missed)
        return True

    def _takes_over(self, now: float) -> bool:
        """Listens to the sentinel; returns True if the arm is this loop's from now on."""
        if self.supervisor.mode is not Mode.WAITING:
            self._yield_if_asked()
        self._hear_waiting_commands()
        if not self.handover.look(now):
            return False
        self.supervisor.take_over(*self.state, "the sentinel commands no more")
        return True

    def _answer_by_mode(self, state: bytes) -> bool:
        """Has the supervisor answer a state that needs more than a step; returns True if there is a
        torque to publish."""
        if self.settings.trusts_effort and self.supervisor.mode is Mode.WAITING:
            names = self.controller.model.joint_names
            with decoding("joint_states"):
                self.controller.in_force = measured_efforts(state, names)
        return self.supervisor.answer(*self.state, self.command.torque)

    def _refuse_step(self) -> None:
        """Handles a step that has refused a state, or found no finite torque."""
        error = self._refusal()
        self.supervisor.refuse_step(error, *self.state)
        self._note_refusal(error)

    def time_after_jump(self, gap: float) -> float | None:
        jump = f"the stamps of joint_states jumped by {gap:+.3f} s"
        if not self.system_time:  # the simulation was reset, or is slow
            self.log.say("info", "reset", f"{jump}; the motion goes on, as the time is simulated")
            return self._time_after_jump(gap)
        motion = self.controller.motion
        if gap < 0.0 and self.supervisor.mode is not Mode.BLIND:
            self._refuse(jump, "stamps")
            if self.supervisor.mode is not Mode.BLIND:
                return None
        else:
            self.supervisor.happen(Event.LOST, jump)
        dropped = motion is not None and self.controller.motion is None
        self.statistics.counts.dropped += dropped
        return self._time_after_jump(gap)
