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
from collections.abc import Iterable
from dataclasses import dataclass

from rnea_control.control import Event, Mode, SupervisionSettings, Supervisor, step
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.loop import native_loop as native
from rnea_control.loop import other_inputs
from rnea_control.loop.native_loop import PREDICTION_PERIOD
from rnea_control.loop.state_intake import AnothersState
from rnea_control.messages.cdr import CdrError, boolean, decoding
from rnea_control.messages.joint_state import JointStateError, OtherJoints, measured_efforts
from rnea_control.node.shared_arm import SharedArm
from rnea_control.parameters.settings import row
from rnea_control.ros.rcl_calls import Taken

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


class PythonTicks:
    """Answers states, and predicts the state for a while if none comes.

    Args:
        arm: arm that the loop shares with the sentinel.
        supervisor: decides the mode.
        settings: see `LoopSettings`.

    Attributes:
        refused: why the last state was refused; empty if it was not.
    """

    refused = ""
    _watching = False  # True if no usable state has come for long

    def __init__(self, arm: SharedArm, supervisor: Supervisor, settings: LoopSettings) -> None:
        self._arm, self._loop = arm, arm.loop
        self._supervisor, self._settings = supervisor, settings

    def answer_next(self, verdict: int | None, taken: Taken | None) -> None:
        """See `Commander.answer_next`."""
        loop = self._loop
        heard = loop.heard
        if verdict is not None:
            self.act(verdict)
        if verdict in (native.YIELDED, native.REFUSED):
            return
        if taken is None:
            wait = PREDICTION_PERIOD if self._watching else loop.shared.longest_wait
            taken = heard.take(0.0 if self._idle(wait) else wait)
        self.hear_beside(heard.beside())
        if taken is not None and self.tick(*taken):
            self._watching = False
            return
        if taken is None and not heard.node.context.ok():
            loop.stopping = True  # no more messages can come
            return
        self._watching = self.watch()

    def hear_beside(self, messages: Iterable[tuple[int, Taken]]) -> None:
        """Processes messages beside the states, each with the index of its subscription, from 1
        on."""
        loop = self._loop
        for which, (message, _, publisher) in messages:
            kind = loop.others.arrays.kinds[which - 1]
            if kind == other_inputs.STOP:
                with loop.lock:
                    self.hear_stop(boolean(message), publisher)
            elif kind >= other_inputs.TARGET_JOINT:
                with loop.lock:
                    loop.hear_targets(kind, message, publisher, time.monotonic())
                    self._supervisor.follow_up(loop.controller.tell())

    @property
    def _idles(self) -> bool:
        """True if some states need no answer: the commands are not applied, and the loop does not
        wait for commands of the sentinel."""
        waits = self._supervisor.mode is Mode.WAITING and not self._supervisor.listening
        return waits and self._loop.handover.commanding

    def _idle(self, step: float) -> bool:
        """Waits in steps [s], each as long as a lease allows, while no answer is needed; returns
        True if it waited."""
        begin = time.monotonic()
        idled = False
        while self._idles and time.monotonic() - begin < WAITING_PERIOD and not self._loop.stopping:
            idled = True
            time.sleep(step)
            self.hear_nothing()
        return idled

    def hear_stop(self, pressed: bool | None, publisher: bytes | None) -> None:
        """Processes a message on the emergency stop.

        Args:
            pressed: True for pressed, False for released; None if the message is not a Bool.
            publisher: GID of the message's publisher; None where it is not known.
        """
        if pressed is None:
            self._loop.log.say(
                "error", "stop", "emergency_stop: the message is not a std_msgs/Bool"
            )
        else:
            # Without the graph's GIDs, a publisher that has ended cannot be recognized, and would
            # seem to keep the stop pressed.
            who = publisher if self._loop.names_publishers else None
            self._supervisor.emergency_stop(pressed, who)

    def hear_nothing(self) -> None:
        """Renews the lease while no state waits; call every `longest_wait` meanwhile."""
        with self._loop.lock:
            self._loop.handover.hear_nothing(time.monotonic())

    def tick(self, state: bytes, count: int | None = None, publisher: bytes | None = None) -> bool:
        """Answers one state; returns True if that is done, so that `watch` has nothing to do.

        Args:
            state: serialized JointState.
            count: the publisher's count of the message; None where it is not known.
            publisher: GID of the publisher; None where it is not known.
        """
        taken_at = time.monotonic()
        with self._loop.lock:
            if not self._arm.running:
                return False
            try:
                verdict = self._loop.answer(
                    state, count, publisher, taken_at, self._supervisor.steps
                )
                if verdict == native.JUMPED and (t := self._time_after_jump()) is not None:
                    verdict = self._loop.answer_at(t, taken_at, self._supervisor.steps)
                if self._interpret(verdict, state, taken_at):
                    return self._loop.shared.advanced
            except OtherJoints as error:
                if not self._supervisor.lack_states(str(error)):
                    self._loop.log.say("info", "others", f"{error}; such messages are ignored")
            except AnothersState as error:
                self._loop.statistics.counts.foreign += 1
                hint = "its states are ignored. Stop it: only one node may publish joint_states"
                self._loop.log.say("error", "publisher", f"{error}; {hint}")
            except (CdrError, JointStateError) as error:
                self._refuse(str(error))
            except ControllerError as error:  # by the supervisor
                if isinstance(error, TorqueError):
                    self._arm.command()
                self._note_refusal(error)
            self._loop.handover.hear_nothing(taken_at)
            return False

    def _note_refusal(self, error: ControllerError) -> None:
        if self._loop.is_ignored(error):
            self.refused = str(error)

    def act(self, verdict: int) -> None:
        """Acts on the verdict with which machine code has ended: the arm is another node's, a step
        has refused a state, or there is no finite torque without states."""
        with self._loop.lock:
            if verdict == native.YIELDED:
                self._arm.yield_if_asked()
            elif verdict == native.REFUSED:
                self._refuse_step()
                self._loop.handover.hear_nothing(time.monotonic())
            elif verdict == native.SILENT and self._loop.shared.outcome == step.BAD_TORQUE:
                self._loop.is_ignored(self._loop.refusal())

    def watch(self) -> bool:
        """Renews the lease while no usable state waits; commands a torque if none has come for
        long, and returns True if that is the case."""
        with self._loop.lock:
            now = time.monotonic()
            if not self._arm.running or not self._loop.states.begun:
                self._loop.handover.hear_nothing(now)
                return False
            verdict = self._predict(now, self._settings.state_timeout)
            if verdict == native.SILENT:
                self._supervisor.miss(now - self._loop.states.came_at)
                verdict = self._predict(now, math.inf)
            waits = self._supervisor.mode is Mode.WAITING  # then there is no arm to lose
            if verdict == native.YIELDED and not waits:
                self._arm.yield_if_asked()
            elif verdict == native.ANSWERED:
                if self._loop.shared.outcome == step.BAD_TORQUE:
                    self._loop.is_ignored(self._loop.refusal())
                if native.gives_torque(self._loop.shared.outcome):
                    self._arm.command()
            return verdict != native.NOT_MISSING

    def _predict(self, now: float, longest: float) -> int:
        return self._loop.answer_nothing(
            now, bool(self.refused), longest, self._supervisor.predicts
        )

    def _refuse(self, text: str, kind: str = "state") -> None:
        self.refused = text
        self._supervisor.refuse_state(text)
        self._loop.log.say("error", kind, f"{text}; the state is ignored")

    def _interpret(self, verdict: int, state: bytes, taken_at: float) -> bool:
        """Acts on a verdict of `answer` about a state; returns True if a command was published."""
        if verdict == native.REFUSED:
            self._refuse_step()
            return False
        if verdict == native.YIELDED and self._takes_over(taken_at):
            self._loop.limit_rate(taken_at)
            verdict = native.ADMITTED
        if verdict == native.ADMITTED and not self._answer_by_mode(state):
            return False
        if verdict not in (native.ADMITTED, native.ANSWERED):
            return False
        self.refused = ""
        if not self._arm.command():
            return False
        if verdict == native.ANSWERED:
            if self._loop.shared.outcome == step.BAD_TORQUE:
                self._refuse_step()
                return False
            found = self._loop.controller.findings_of(self._loop.shared.outcome)
            self._supervisor.note_step(*self._loop.state, found)
        self._loop.record(taken_at, 0 if self._idles else self._loop.states.missed)
        return True

    def _takes_over(self, now: float) -> bool:
        """Listens to the sentinel; returns True if the arm is this loop's from now on."""
        if self._supervisor.mode is not Mode.WAITING:
            self._arm.yield_if_asked()
        self._arm.hear_waiting_commands()
        if not self._loop.handover.look(now):
            return False
        self._supervisor.take_over(*self._loop.state, "the sentinel commands no more")
        return True

    def _answer_by_mode(self, state: bytes) -> bool:
        """Has the supervisor answer a state that needs more than a step; returns True if there is a
        torque to publish."""
        if self._settings.trusts_effort and self._supervisor.mode is Mode.WAITING:
            names = self._loop.controller.model.joint_names
            with decoding("joint_states"):
                self._loop.controller.in_force = measured_efforts(state, names)
        return self._supervisor.answer(*self._loop.state, self._loop.command.torque)

    def _refuse_step(self) -> None:
        """Handles a step that has refused a state, or found no finite torque."""
        error = self._loop.refusal()
        self._supervisor.refuse_step(error, *self._loop.state)
        self._note_refusal(error)

    def _time_after_jump(self) -> float | None:
        """Time of a state whose stamp does not closely follow the last stamp; None if the state is
        refused."""
        gap = self._loop.jump
        jump = f"the stamps of joint_states jumped by {gap:+.3f} s"
        if not self._loop.system_time:  # the simulation was reset, or is slow
            self._loop.log.say(
                "info", "reset", f"{jump}; the motion goes on, as the time is simulated"
            )
            return self._loop.time_after_jump()
        motion = self._loop.controller.motion
        if gap < 0.0 and self._supervisor.mode is not Mode.BLIND:
            self._refuse(jump, "stamps")
            if self._supervisor.mode is not Mode.BLIND:
                return None
        else:
            self._supervisor.happen(Event.LOST, jump)
        dropped = motion is not None and self._loop.controller.motion is None
        self._loop.statistics.counts.dropped += dropped
        return self._loop.time_after_jump()
