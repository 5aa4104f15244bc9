"""`Guard`: listens to states and commands, and commands the arm itself when it must.

While it guards, it looks every `LOOK` at what has come, and more often while no command comes.
While it commands, it answers every state.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rclpy.clock import Clock
from rclpy.guard_condition import GuardCondition

from rnea_control.array_types import FloatArray
from rnea_control.control import Controller, ControllerSettings
from rnea_control.control.handover import Handover, HandoverTimes, Phase
from rnea_control.control.output_stage import LATENESS
from rnea_control.control.supervisor import FACTS
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.joint_state import JointStateError, OtherJoints
from rnea_control.messages.state_intake import AnothersState, StateIntake
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import Settings, row
from rnea_control.ros import native_loop as native
from rnea_control.ros.applied_torque import AppliedTorque
from rnea_control.ros.deferred_log import DeferredLog
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.loop_statistics import LoopStatistics
from rnea_control.ros.native_ticks import NativeTicks, NativeWork
from rnea_control.ros.node_clock import NodeClock
from rnea_control.ros.rcl_calls import Taken
from rnea_control.ros.real_time import RealTime
from rnea_control.sentinel.command_watch import STILL, CommandWatch
from rnea_control.sentinel.feed import Feed

# Between two looks while it guards, and while it guards and has just heard no command, [s].
LOOK, CLOSE_LOOK = 0.002, 0.0005
# For how long close looks are worth their cost, [s].
LONGEST_CLOSE_LOOK = 0.5
# Between two commands without states, [s].
PREDICTION_PERIOD = 0.004
# Of the subscription beside that of the states.
KINDS = (native.COMMAND,)
# After how many gaps in the states another publisher of them is followed.
SILENT_GAPS = 5.0


@dataclass(frozen=True)
class GuardSettings(Settings):
    """When the guard steps in.

    Attributes:
        velocity_limit_factor: an arm beyond its velocity limits times this is taken over.
        prediction_gap: without a state for longer, commands come from a predicted one, [s].
        revokes_frozen: whether the same torques again and again are wrong while the arm moves.
    """

    velocity_limit_factor: float = row("velocity_limit_factor")
    prediction_gap: float = row("prediction_gap")
    revokes_frozen: bool = row("revoke_frozen_commands", True)


class Guard:
    """The loop in the sentinel's thread; other threads may call everything without an underscore.

    Args:
        controller: computes the sentinel's own torques.
        command: publishes them.
        feed: the states and commands that it listens to.
        handover: the sentinel's side of the protocol.
        watch: judges the commands of others.
        settings: when it steps in.
        clock: of the node.
        log: its messages.
        on_change: called in the thread with the label of the old mode when the mode has changed.
        wake: has the waiting messages logged.

    Attributes:
        controller, states: it computes the sentinel's own torques from these.
        work: the arrays of machine code, while it commands.
        takeovers: how often it has taken the arm.
        refused_states: how many states it could not read, or not believe.
        failure: of the program; empty if there was none.
    """

    def __init__(
        self,
        controller: Controller,
        command: EffortCommand,
        feed: Feed,
        handover: Handover,
        watch: CommandWatch,
        settings: GuardSettings,
        clock: NodeClock | Clock,
        log: DeferredLog,
        on_change: Callable[[str], None],
        wake: GuardCondition,
    ) -> None:
        self.handover = handover
        self.takeovers = self.refused_states = self._sent = 0
        self.failure = ""
        self.controller = controller
        self._command = command
        self._feed = feed
        self._watch = watch
        self._settings = settings
        self._clock = clock
        self._log = log
        self._on_change = on_change
        silence = SILENT_GAPS * settings.prediction_gap
        self.states = StateIntake(controller.model.joint_names, silence)
        self._fastest = settings.velocity_limit_factor * controller.model.velocity_limit
        self._applied = True  # the commands, as far as the controller knows
        self._was_slow = False  # within `_fastest`, since they are applied
        self._last_round = self._heard_at = -math.inf
        self._pause = LOOK
        self._published = Phase.idle
        applied = AppliedTorque(controller.model.nv)
        self.work = NativeWork(np.zeros(FACTS, dtype=np.int64), LoopStatistics(), applied)
        self.work.numbers[native.IGNORES_REPEATED] = 1
        self._times = self.work.times
        self._times[native.STATE_GAP : native.LONGEST_WAIT + 1] = (
            *(settings.prediction_gap, math.inf, PREDICTION_PERIOD),
        )
        self._times[native.PREDICTION] = PREDICTION_PERIOD
        self._times[native.LONGEST_HANG] = math.inf
        self._times[native.PUBLISHED_AT] = -math.inf
        controller.post = lambda: self.work.post(controller)
        self._own = self._feed.own()
        table = self._feed.table(command, wake) if self._own else None
        self._ticks = None if table is None else NativeTicks(self, table, KINDS, self._own)
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, real_time: RealTime) -> None:
        """Guards from now on; returns once the thread is set up."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(real_time, ready), name="guard")
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Ends the thread; if it commands, the gravity torque is its last command."""
        with self.work.paused():
            self._rest("the sentinel has ended")
            self._stopping = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._ticks is not None:
            self._ticks.destroy()
            self._ticks = None

    @property
    def holds(self) -> bool:
        """Whether the sentinel commands the arm."""
        return self.handover.phase is Phase.commanding

    @property
    def speed(self) -> float:
        """Of the fastest joint in the last state, [rad/s] or [m/s]."""
        return float(np.abs(self.states.v).max())

    @property
    def commands_sent(self) -> int:
        """How many commands it has published."""
        return self._sent + int(self.work.numbers[native.TICKS])

    @property
    def observer(self) -> None:
        """What pushes the arm is the controller's concern."""

    @property
    def torque(self) -> FloatArray:
        """The torques that are commanded, shape (nv,)."""
        return self._command.torque

    def is_usual(self) -> bool:
        """Whether it would simply answer the next state."""
        self.work.numbers[native.SYSTEM_TIME] = not self._clock.ros_time_is_active
        return not self._stopping

    @property
    def moving(self) -> bool:
        """Whether the arm moves."""
        return self.speed > STILL

    def release(self) -> str:
        """Gives the arm to the controller; why not, or empty."""
        with self.work.paused():
            if not self.holds:
                return f"the sentinel does not command the arm: it is {self.handover.phase.value}"
            if self.moving:
                return f"the arm still moves at {self.speed:.2g} rad/s or m/s; it is being braked"
            self.handover.give(time.monotonic())
        return ""

    def stand_down(self) -> str:
        """Stops holding the arm until commands come again; why not, or empty."""
        with self.work.paused():
            if self.holds and self.moving:
                return f"the arm still moves at {self.speed:.2g} rad/s or m/s; it is being braked"
            self._rest("told to stand down")
        return ""

    def heed(self, applied: bool) -> None:
        """Hears from the controller whether its commands are applied: while they are not, nobody
        has the arm, and the sentinel is idle, unless it commands itself."""
        with self.work.paused():
            self._applied = applied
            if not applied and not self.holds:
                self.handover.stop("the controller waits, and does not hold the arm")

    def change(self, model: RobotModel, settings: ControllerSettings, times: HandoverTimes) -> None:
        """Puts another model, other settings and other times in force, between two ticks.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        with self.work.paused():
            self.controller.change(model, settings)
            self.handover.times = times
            self._watch.effort_limit = settings.effort_limit(model)

    def _rest(self, reason: str) -> None:
        if self.holds:
            self.controller.holding_torque(self.states.q, self._command.torque)
            if self.handover.may_command(time.monotonic()):
                self._publish()
        self.handover.stop(reason)

    def _run(self, real_time: RealTime, ready: threading.Event) -> None:
        try:
            try:
                real_time.enter_thread()
            finally:
                ready.set()
            while not self._stopping:
                taken, command = None, None
                if self._ticks is not None and self._ticks.possible():
                    taken, command = self._natively(self._ticks)
                elif self.holds:
                    taken = self._feed.take(PREDICTION_PERIOD)
                else:
                    time.sleep(self._pause)
                    taken = self._feed.poll()
                self._round(taken, command)
        except Exception:  # a bug; the controller, if it lives, takes the arm
            self.failure = f"the sentinel has failed:\n{traceback.format_exc()}"
            self.handover.stop("the sentinel has failed")
            self._log.say("fatal", "failure", self.failure)

    def _natively(self, ticks: NativeTicks) -> tuple[Taken | None, Taken | None]:
        """Has machine code answer states; returns the state and the command that are left to look
        at."""
        reason, found = ticks.run()
        self._last_round = time.monotonic()  # machine code was awake
        if reason == native.COMMANDED:
            return None, found
        outcome = int(self.work.numbers[native.ANSWER])
        if reason == native.REFUSED:
            states, torque = self.states, self._command.torque
            error = self.controller.refusal(outcome, states.time, states.q, states.v, torque)
            self._refuse(error)
        return found, None

    def _refuse(self, error: Exception) -> None:
        if isinstance(error, TorqueError):  # the torque is the gravity torque
            self._log.say("error", "torque", str(error))
            return
        self.refused_states += 1
        self._log.say("error", "state", f"{error}; the state is ignored")

    def _round(self, taken: Taken | None, command: Taken | None = None) -> None:
        """Runs for every state, or every `LOOK`: takes in all that has come, then acts on it."""
        with self.work.paused():
            if self._stopping:
                return
            now = time.monotonic()
            handover = self.handover
            if now - self._last_round > handover.times.arming and handover.phase is Phase.guarding:
                handover.guard(now)  # it was stopped itself, and may be thought gone
            self._last_round = now
            before = self._heard_at
            if command is not None:
                self._hear_command(now, command)
            while (taken_command := self._feed.poll_command()) is not None:
                self._hear_command(now, taken_command)
            silent = self._heard_at == before and now - before < LONGEST_CLOSE_LOOK
            self._pause = CLOSE_LOOK if silent else LOOK
            fresh = taken is not None and self._hear_state(now, *taken)
            if not fresh:
                handover.hear_nothing(now)
            if handover.look(now):
                self._catch()
                fresh = True
            if handover.phase is Phase.commanding:
                self._command_arm(now, fresh)
        if handover.phase is not self._published:
            before, self._published = self._published, handover.phase
            self._on_change(before.value)

    def _hear_command(self, now: float, command: Taken) -> None:
        handover, watch, message = self.handover, self._watch, command.data
        if command.publisher is not None and command.publisher == self._own:
            return
        if self._own is None and watch.is_own(message, now):
            return
        stranger = self._feed.stranger(command.publisher)
        if stranger:
            handover.hear_foreign(now, stranger)
            self._log.say("error", "stranger", f"{stranger} commands the arm too: stop it")
            return
        self._heard_at = now
        if handover.phase is Phase.idle:
            if self._applied and self.states.begun:
                handover.guard(now)
            return
        handover.hear_command(now)
        longest = handover.times.timeout if self._settings.revokes_frozen else math.inf
        fault = watch.fault(message, now, self.states.time, self.speed, longest)
        if fault and handover.phase is Phase.guarding and handover.revoke(now, fault):
            self._log.say("error", "revoking", f"commands are wrong: {fault}")

    def _hear_state(
        self, now: float, message: bytes, number: int | None, publisher: bytes | None
    ) -> bool:
        """Decodes a state; whether it is of use."""
        states = self.states
        try:
            stamp = states.take(message, number, publisher, now)
        except (OtherJoints, AnothersState):
            return False
        except (CdrError, JointStateError) as error:
            self.refused_states += 1
            self._log.say("error", "state", str(error))
            return False
        if stamp == 0:  # some hardware does not set it
            stamp = self._clock.now().nanoseconds
        if states.begun and stamp == states.stamp:
            return False  # the same state again tells nothing new
        states.place(stamp, now)
        self.handover.hear_state(states.time, now, number)
        excess = np.abs(states.v) - self._fastest
        j = int(excess.argmax())
        if not self._applied or excess[j] <= 0.0:
            self._was_slow = self._applied
        elif self._was_slow and self.handover.phase is Phase.guarding:
            name = self.controller.model.joint_names[j]
            fault = f"{name} moves at {states.v[j]:.3g} rad/s or m/s"
            if self.handover.revoke(now, fault):
                self._log.say("error", "revoking", f"the arm is too fast: {fault}")
        return True

    def _catch(self) -> None:
        """Brakes the arm from where it is, and holds it then."""
        self.takeovers += 1
        q, v = self.states.q, self.states.v
        self.controller.in_force = self._watch.in_force
        self.controller.start(self.states.time, q)
        self.controller.catch(self.states.time, q, v, self.handover.reason)

    def _command_arm(self, now: float, fresh: bool) -> None:
        """Answers a state; without one for long, or one that cannot be true, a predicted one."""
        late = now - self.states.came_at
        missing = late > self._settings.prediction_gap and not self._clock.ros_time_is_active
        if not (fresh or missing) or not self.handover.may_answer(now):
            return
        t = self.states.time + late
        if not fresh and self.controller.repeats(t):
            return
        if not self._clock.ros_time_is_active:  # the rate limit counts no time ahead of the clock
            self.controller.limit_rate_step(now - self._times[native.PUBLISHED_AT] + LATENESS)
        try:
            if not (fresh and self._answer()):
                self.controller.predict(t, self._command.torque)
        except TorqueError as error:
            self._refuse(error)
        if self.handover.may_command(time.monotonic()):
            self._publish()

    def _answer(self) -> bool:
        """Computes the torque for the newest state; whether that can be true.

        Raises:
            TorqueError: see `Controller.step`.
        """
        try:
            self.controller.step(
                self.states.time, self.states.q, self.states.v, self._command.torque
            )
        except TorqueError:
            raise
        except ControllerError as error:
            self._refuse(error)
            return False
        return True

    def _publish(self) -> None:
        now = self._times[native.PUBLISHED_AT] = time.monotonic()
        self._watch.sent(self._command.publish(), now)
        self._sent += 1
