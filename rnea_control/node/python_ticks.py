"""`PythonTicks`: the ticks of the controller's loop that machine code leaves to Python.

These are the ticks at the start and of the first states, of bad states, and without states. They
call the same kernels as machine code (loop/native_loop.py), which answers all usual states with the
same torques.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rnea_control.control import Event, Mode, SupervisionSettings
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
            if reason in native.STEPPED:
                self.after_native(reason)
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
        if taken is None:
            if not heard.node.context.ok():
                self._stopping = True  # no more messages can come
                return
            self.hear_nothing()
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
                if self._answer(state, count, publisher, taken_at):
                    return True
            except OtherJoints as error:
                if not self.supervisor.lack_states(str(error)):
                    self.log.say("info", "others", f"{error}; such messages are ignored")
            except AnothersState as error:
                self.statistics.counts.foreign += 1
                hint = "its states are ignored. Stop it: only one node may publish joint_states"
                self.log.say("error", "publisher", f"{error}; {hint}")
            except (CdrError, JointStateError) as error:
                self._refuse(str(error))
            except ControllerError as error:
                if isinstance(error, TorqueError):
                    self._command_arm()
                self._note_refusal(error)
            self.handover.hear_nothing(taken_at)
            return False

    def _note_refusal(self, error: ControllerError) -> None:
        if self._is_ignored(error):
            self.refused = str(error)

    def after_native(self, reason: int) -> None:
        """Handles a return of machine code: the arm is another node's, or a state is faulty."""
        with self.lock:
            if reason == native.YIELDED:
                self._yield_if_asked()
                return
            error = self._refusal()
            self.supervisor.refuse_step(error, *self.state)
            self._note_refusal(error)
            self.handover.hear_nothing(time.monotonic())

    def watch(self) -> bool:
        """Commands a torque if no state has come for long, or no usable one; returns True if that
        is the case."""
        now = time.monotonic()
        missing = now - self.states.came_at
        if not self.system_time or self.now is None:
            return False
        if not self.refused and missing <= self.settings.state_gap:
            return False
        if now - self.shared.predicted_at < PREDICTION_PERIOD:
            return True
        with self.lock:
            if not self.running or self.now is None:
                return False
            self.shared.predicted_at = now
            self.supervisor.miss(missing)
            if not self.handover.may_answer(now):  # a torque that is not sent is not in force
                if self.supervisor.mode is not Mode.WAITING:  # a waiting loop has no arm to lose
                    self._yield_if_asked()
                return True
            t = self.states.time + missing
            if not self.refused and self.controller.repeats(t):
                return True
            self._limit_rate(t, now)
            try:
                if not self.supervisor.answer_gap(t, self.command.torque):
                    return True
            except TorqueError as error:
                self.log.say("error", "torque", str(error))
            self._command_arm()
        return True

    def _refuse(self, text: str, kind: str = "state") -> None:
        self.refused = text
        self.supervisor.refuse_state(text)
        self.log.say("error", kind, f"{text}; the state is ignored")

    def _answer(
        self, state: bytes, count: int | None, publisher: bytes | None, taken_at: float
    ) -> bool:
        """Publishes the command for a state; returns True if the state had a new stamp."""
        states, supervisor, handover = self.states, self.supervisor, self.handover
        names = self.controller.model.joint_names
        stamp, age = self._take(state, count, publisher, taken_at)
        gap, now = states.gap(stamp), math.nan
        if gap < 0.0 or gap > self.settings.state_timeout:
            now = self._bridge(gap)
            if now is None:
                return False
        if gap == 0.0 and self.controller.predicting:
            return False  # a repeated state has no new information
        advanced = self._place(stamp, taken_at, now, self.controller.last_state[0])
        now = states.time
        handover.hear_state(now, taken_at, count)
        if not handover.may_answer(taken_at):
            if handover.commanding:
                return False  # the loop was paused, and only a fresh state shows for how long
            self._hear_waiting_commands()
            if not handover.look(taken_at):
                return False
            supervisor.take_over(*self.state, "the sentinel commands no more")
        if self.settings.trusts_effort and supervisor.mode is Mode.WAITING:
            with decoding("joint_states"):
                self.controller.in_force = measured_efforts(state, names)
        self._limit_rate(now, taken_at)
        if not supervisor.answer(now, states.q, states.v, self.command.torque):
            return False
        self.refused = ""
        if not self._command_arm():
            return False
        self._record(taken_at, age)
        return advanced

    def _bridge(self, gap: float) -> float | None:
        """Controller's time of a state whose stamp does not closely follow the last stamp; None if
        the state is refused."""
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

    def _record(self, taken_at: float, age: float) -> None:
        states = self.states
        interval, age = native.measured_times(self.shared, states.intake, age)
        duration = time.monotonic() - taken_at
        missed = 0 if self._idles else states.missed
        self.statistics.record(duration, age + duration, interval, states.period, missed)
