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

from rnea_control.control import Controller, ControllerSettings
from rnea_control.control.handover import Handover, HandoverTimes, Phase
from rnea_control.control.output_stage import LATENESS
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.joint_state import JointStateDecoder, JointStateError, OtherJoints
from rnea_control.messages.one_publisher import ANOTHERS, OnePublisher
from rnea_control.model import RobotModel
from rnea_control.ros.deferred_log import DeferredLog
from rnea_control.ros.effort_command import EffortCommand
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
# After how many gaps in the states another publisher of them is followed.
SILENT_GAPS = 5.0


@dataclass(frozen=True)
class GuardSettings:
    """When the guard steps in.

    Attributes:
        velocity_limit_factor: an arm beyond its velocity limits times this is taken over.
        prediction_gap: without a state for longer, commands come from a predicted one, [s].
        revokes_frozen: whether the same torques again and again are wrong while the arm moves.
    """

    velocity_limit_factor: float
    prediction_gap: float
    revokes_frozen: bool = True


class Guard:
    """What runs in the sentinel's thread; other threads may call what has no underscore.

    Args:
        controller: computes the sentinel's own torques.
        command: publishes them.
        states, commands: what it listens to.
        handover: the sentinel's side of the protocol.
        watch: judges the commands of others.
        settings: when it steps in.
        clock: of the node.
        log: what it says.
        on_change: called in the thread with the label of the old mode when the mode has changed.

    Attributes:
        speed: of the fastest joint in the last state, [rad/s] or [m/s].
        takeovers: how often it has taken the arm.
        commands_sent: how many commands it has published.
        refused_states: how many states it could not read, or not believe.
        failure: of the program; empty if there was none.
    """

    def __init__(
        self,
        controller: Controller,
        command: EffortCommand,
        states: Feed,
        commands: Feed,
        handover: Handover,
        watch: CommandWatch,
        settings: GuardSettings,
        clock: NodeClock | Clock,
        log: DeferredLog,
        on_change: Callable[[str], None],
    ) -> None:
        self.handover = handover
        self.speed = 0.0
        self.takeovers = self.commands_sent = self.refused_states = 0
        self.failure = ""
        self._controller = controller
        self._command = command
        self._states = states
        self._commands = commands
        self._watch = watch
        self._settings = settings
        self._clock = clock
        self._log = log
        self._on_change = on_change
        self._decoder = JointStateDecoder(controller.model.joint_names)
        self._publisher = OnePublisher(SILENT_GAPS * settings.prediction_gap)
        self._state = b""  # the newest one
        self._fastest = settings.velocity_limit_factor * controller.model.velocity_limit
        self._origin: int | None = None  # stamp of the first state, [ns]
        self._applied = True  # the commands, as far as the controller knows
        self._was_slow = False  # within `_fastest`, since they are applied
        self._time = 0.0  # of the newest state, counted from the first one
        self._state_at = -math.inf  # when it came, by the steady clock
        self._last_round = self._heard_at = self._published_at = -math.inf
        self._pause = LOOK
        self._published = Phase.idle
        self._lock = threading.Lock()
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
        with self._lock:
            self._rest("the sentinel has ended")
            self._stopping = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def holds(self) -> bool:
        """Whether the sentinel commands the arm."""
        return self.handover.phase is Phase.commanding

    @property
    def moving(self) -> bool:
        """Whether the arm moves."""
        return self.speed > STILL

    def release(self) -> str:
        """Gives the arm to the controller; why not, or empty."""
        with self._lock:
            if not self.holds:
                return f"the sentinel does not command the arm: it is {self.handover.phase.value}"
            if self.moving:
                return f"the arm still moves at {self.speed:.2g} rad/s or m/s; it is being braked"
            self.handover.give(time.monotonic())
        return ""

    def stand_down(self) -> str:
        """Stops holding the arm until commands come again; why not, or empty."""
        with self._lock:
            if self.holds and self.moving:
                return f"the arm still moves at {self.speed:.2g} rad/s or m/s; it is being braked"
            self._rest("told to stand down")
        return ""

    def heed(self, applied: bool) -> None:
        """What the controller says of its commands: while they are not applied, nobody has the
        arm, and it is idle, unless it commands itself."""
        with self._lock:
            self._applied = applied
            if not applied and not self.holds:
                self.handover.stop("the controller waits, and does not hold the arm")

    def change(self, model: RobotModel, settings: ControllerSettings, times: HandoverTimes) -> None:
        """Puts another model, other settings and other times in force, between two ticks.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        with self._lock:
            self._controller.change(model, settings)
            self.handover.times = times
            self._watch.effort_limit = settings.effort_limit(model)

    def _rest(self, reason: str) -> None:
        if self.holds:
            self._controller.holding_torque(self._decoder.q, self._command.torque)
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
                if self.holds:
                    taken = self._states.take(PREDICTION_PERIOD)
                else:
                    time.sleep(self._pause)
                    taken = self._states.poll()
                self._round(taken)
        except Exception:  # a bug; the controller, if it lives, takes the arm
            self.failure = f"the sentinel has failed:\n{traceback.format_exc()}"
            self.handover.stop("the sentinel has failed")
            self._log.say("fatal", "failure", self.failure)

    def _round(self, taken: Taken | None) -> None:
        """Once a state or `LOOK`: all that has come, then what it means."""
        with self._lock:
            if self._stopping:
                return
            now = time.monotonic()
            handover = self.handover
            if now - self._last_round > handover.times.arming and handover.phase is Phase.guarding:
                handover.guard(now)  # it was stopped itself, and may be thought gone
            self._last_round = now
            before = self._heard_at
            while (taken_command := self._commands.poll()) is not None:
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
        if watch.is_own(message, now):
            return
        stranger = self._commands.stranger(command.publisher)
        if stranger:
            handover.hear_foreign(now, stranger)
            self._log.say("error", "stranger", f"{stranger} commands the arm too: stop it")
            return
        self._heard_at = now
        if handover.phase is Phase.idle:
            if self._applied and self._origin is not None:
                handover.guard(now)
            return
        handover.hear_command(now)
        longest = handover.times.timeout if self._settings.revokes_frozen else math.inf
        fault = watch.fault(message, now, self._time, self.speed, longest)
        if fault and handover.phase is Phase.guarding and handover.revoke(now, fault):
            self._log.say("error", "revoking", f"commands are wrong: {fault}")

    def _hear_state(
        self, now: float, message: bytes, number: int | None, publisher: bytes | None
    ) -> bool:
        """Decodes a state; whether it is of use."""
        decoder = self._decoder
        try:
            stamp = decoder.decode(message)
        except OtherJoints:
            return False
        except (CdrError, JointStateError) as error:
            self.refused_states += 1
            self._log.say("error", "state", str(error))
            return False
        if self._publisher.follow(number, publisher, now) == ANOTHERS:
            decoder.decode(self._state)  # whose state it is to remember
            return False
        self._state = message
        if stamp == 0:  # some hardware does not set it
            stamp = self._clock.now().nanoseconds
        if self._origin is None:
            self._origin = stamp
        time_of_state = (stamp - self._origin) * 1e-9
        if time_of_state == self._time and math.isfinite(self._state_at):
            return False  # the same state again tells nothing new
        self._time, self._state_at = time_of_state, now
        self.handover.hear_state(self._time, now, number)
        self.speed = float(np.abs(decoder.v).max())
        excess = np.abs(decoder.v) - self._fastest
        j = int(excess.argmax())
        if not self._applied or excess[j] <= 0.0:
            self._was_slow = self._applied
        elif self._was_slow and self.handover.phase is Phase.guarding:
            name = self._controller.model.joint_names[j]
            fault = f"{name} moves at {decoder.v[j]:.3g} rad/s or m/s"
            if self.handover.revoke(now, fault):
                self._log.say("error", "revoking", f"the arm is too fast: {fault}")
        return True

    def _catch(self) -> None:
        """Brakes the arm from where it is, and holds it then."""
        self.takeovers += 1
        q, v = self._decoder.q, self._decoder.v
        self._controller.in_force = self._watch.in_force
        self._controller.start(self._time, q)
        self._controller.catch(self._time, q, v, self.handover.reason)

    def _command_arm(self, now: float, fresh: bool) -> None:
        """Answers a state; without one for long, or one that cannot be true, a predicted one."""
        late = now - self._state_at
        missing = late > self._settings.prediction_gap and not self._clock.ros_time_is_active
        if not (fresh or missing) or not self.handover.may_answer(now):
            return
        if not self._clock.ros_time_is_active:  # no torque changes by what has not passed
            self._controller.limit_rate_step(now - self._published_at + LATENESS)
        try:
            if not (fresh and self._answer()):
                self._controller.predict(self._time + late, self._command.torque)
        except TorqueError as error:  # the torque is the gravity torque
            self._log.say("error", "torque", str(error))
        if self.handover.may_command(time.monotonic()):
            self._publish()

    def _answer(self) -> bool:
        """Computes the torque for the newest state; whether that can be true.

        Raises:
            TorqueError: see `Controller.step`.
        """
        try:
            self._controller.step(
                self._time, self._decoder.q, self._decoder.v, self._command.torque
            )
        except TorqueError:
            raise
        except ControllerError as error:
            self.refused_states += 1
            self._log.say("error", "state", f"{error}; the state is ignored")
            return False
        return True

    def _publish(self) -> None:
        self._published_at = time.monotonic()
        self._watch.sent(self._command.publish(), self._published_at)
        self.commands_sent += 1
