"""`ControlLoop`: answers every joint state with an effort command, and logs those it refuses.

All time is that of the states' stamps, counted from the first one: the code is the same for
simulated and real time. On hardware the steady clock tells when states are missing; in simulated
time a pause or a slow simulator is no fault, and the stamps alone decide.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from rclpy.clock import Clock

from rnea_control.control import (
    Controller,
    ControllerSettings,
    ControllerState,
    Mode,
    Motion,
    Plan,
    Situation,
    SupervisionSettings,
    Supervisor,
)
from rnea_control.control.handover import Handover, Phase
from rnea_control.control.momentum_observer import MomentumObserver
from rnea_control.control.output_stage import LATENESS
from rnea_control.control.stopping import LONGEST_STOP, RAMP
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError
from rnea_control.messages.cdr import CdrError, boolean
from rnea_control.messages.float64_multi_array import (
    Float64MultiArrayDecoder,
    Float64MultiArrayError,
)
from rnea_control.messages.joint_state import (
    JointStateDecoder,
    JointStateError,
    OtherJoints,
    measured_efforts,
)
from rnea_control.messages.one_publisher import ANOTHERS, OnePublisher
from rnea_control.model import RobotModel
from rnea_control.node.applied_torque import AppliedTorque
from rnea_control.node.statistics import LoopStatistics
from rnea_control.ros.deferred_log import DeferredLog, Logger
from rnea_control.ros.effort_command import Command
from rnea_control.ros.node_clock import NodeClock

# An arm slower than this is at rest, [rad/s] or [m/s].
STILL = 0.05
# States that seem to be older than this were stamped by another clock, [s].
LONGEST_AGE = 1.0
# How long a stop takes at most, [s].
LONGEST_HALT = LONGEST_STOP + 2.0 * RAMP
# How often the loop looks, as a part of the lease, whether a state has come.
LOOKS = 0.3
LISTENING = "to hear whether the sentinel commands"
HELD_BY_SENTINEL = "the sentinel commands the arm; ~/resume takes it back"
# How often a torque is commanded while no state comes, or none that can be used, [s].
PREDICTION_PERIOD = 0.001
# The last torques come at this period, until the very last one and for this long at most, [s].
APPROACH_PERIOD, LONGEST_APPROACH = 0.001, 0.2
# Changes of the mode that wait to be told; older ones are forgotten.
MOST_CHANGES = 100
# Modes that are an error in diagnostics.
_ERRORS = (Mode.FAULT, Mode.BLIND, Mode.GUARDED)

T = TypeVar("T")


@dataclass(frozen=True)
class LoopSettings:
    """Settings of a `ControlLoop`.

    Attributes:
        supervision: when to start, and when to do without states.
        trusts_effort: whether the measured effort is the torque in force.
        ends_with_gravity: whether the last command is the gravity torque; else it is zero.
    """

    supervision: SupervisionSettings
    trusts_effort: bool = False
    ends_with_gravity: bool = True


class ControlLoop:
    """What runs between activation and deactivation.

    One thread calls `tick` and `watch`, another one may call everything else.

    Args:
        controller: computes the torques.
        command: publishes them.
        handover: who commands the arm, this loop or the sentinel.
        settings: see `LoopSettings`.
        logger, clock: of the node.
        observer: tells collisions; None for no such check.

    Attributes:
        running: whether states are answered.
        now: stamp of the last state since that of the first, [s]; None before there is one.
        failure: the bug that ended the loop; empty without one.
        refused: why the last state was refused; empty if it was not.
        statistics: of the ticks since activation.
        log: what the ticks say.
        last_state: the bytes of the last state that was answered.
        changes: of the mode, oldest first: old and new one, and the reason.
        changed_at: the time `now` when the mode changed last, [s].
    """

    def __init__(
        self,
        controller: Controller,
        command: Command,
        handover: Handover,
        settings: LoopSettings,
        logger: Logger,
        clock: NodeClock | Clock,
        observer: MomentumObserver | None = None,
    ) -> None:
        self.controller = controller
        supervision = settings.supervision
        self.supervisor = Supervisor(controller, supervision, observer, self._note_change)
        self.command = command
        self.handover = handover
        self.settings = settings
        self.statistics = LoopStatistics()
        self.running = False
        self.now: float | None = None
        self.failure = self.refused = ""
        self.log = DeferredLog(logger)
        self.last_state: bytes | None = None
        self.changes: deque[tuple[Mode, Mode, str]] = deque(maxlen=MOST_CHANGES)
        self.changed_at = 0.0
        self._state_timeout, self._trusts_effort = supervision.state_timeout, settings.trusts_effort
        self._logger = logger
        self._clock = clock
        self._system_time = True
        # Held through every tick; elsewhere only to read, or to swap one object for another.
        self._lock = threading.Lock()
        self._take_command: Callable[[], tuple[bytes, int | None] | None] | None = None
        self._command_decoder = Float64MultiArrayDecoder(controller.model.nv)
        self._heard = False  # a command of the sentinel, since that has the arm
        self._decoder = JointStateDecoder(controller.model.joint_names)
        self._applied = AppliedTorque(controller.model.nv)
        self._tells_efforts = False  # whether the states bring efforts
        self._origin = 0  # stamp that the controller's time is counted from, [ns]
        self._stamp = 0  # of the last state, [ns]
        self._taken_at = 0.0  # when the loop took it, by the steady clock, [s]
        self._publisher = OnePublisher(supervision.state_timeout)
        self._missed = 0  # right before the last state
        self._received_at = 0.0  # when the last state with a new stamp came, by the steady clock
        self._published_at = math.nan  # when the last torque was commanded, likewise
        self._predicted_at = 0.0  # when the last torque without a state was commanded

    def like(self, controller: Controller, command: Command) -> ControlLoop:
        """A new loop with this controller and command."""
        return ControlLoop(
            controller,
            command,
            Handover(self.handover.times),
            self.settings,
            self._logger,
            self._clock,
        )

    @property
    def without_clock(self) -> bool:
        """Whether simulated time is asked for, and nothing has come on /clock."""
        return not self._system_time and self._clock.now().nanoseconds == 0

    @property
    def listens(self) -> bool:
        """Whether it must hear what the sentinel commands."""
        return self.running and not self.handover.commanding

    @property
    def fault(self) -> str:
        """What is wrong now; empty if nothing is."""
        if self.failure:
            return self.failure
        return self.supervisor.reason if self.supervisor.mode in _ERRORS else self.refused

    def start(self, sentinel: str = "") -> None:
        """Answers states from now on; holds the position of the first one that allows it.

        Args:
            sentinel: the sentinel's mode, as `hear_sentinel`.
        """
        self.now = None
        self._publisher.reset()
        self._published_at = math.nan
        self.failure = self.refused = ""
        self._heard = False
        self.statistics = LoopStatistics()
        self._system_time = not self._clock.ros_time_is_active
        alone = sentinel in ("", Phase.idle.value)
        self.supervisor.activate("for joint_states" if alone else LISTENING)
        now = time.monotonic()
        self.handover.hear_mode(now, sentinel)
        self.handover.start(now, alone)
        if sentinel == Phase.commanding.value:
            self.supervisor.guarded(HELD_BY_SENTINEL)
        self.running = True

    def stop(self, reason: str = "the controller was deactivated") -> bool:
        """Ends with a defined torque, which the hardware applies for ever; whether it was sent."""
        with self._lock:
            if not self.running:
                return False
            commanded = self.supervisor.mode not in (Mode.WAITING, Mode.GUARDED, Mode.INACTIVE)
            self.running = False
            self.now = None
            self.supervisor.deactivate(reason)
            if commanded:
                self._publish_last_command()
            self.handover.stop(reason)
        self.log.flush()
        if commanded:
            self._logger.info(f"since activation: {self.statistics}")
        return commanded

    def fail(self, reason: str) -> None:
        """Ends for good after a bug in this program: brakes by the model, then as `stop`."""
        with self._lock:
            self.running = False
            self.failure = reason
            commanded = self.supervisor.mode not in (Mode.WAITING, Mode.GUARDED, Mode.INACTIVE)
            if commanded and self.now is not None:
                try:
                    self._brake_blindly(reason)
                finally:
                    self._publish_last_command()
            self.supervisor.deactivate("the controller has failed")
            self.handover.stop("the controller has failed")
        self.log.say("fatal", "failure", reason)

    @property
    def speed(self) -> float:
        """Of the fastest joint in the last state, [rad/s] or [m/s]."""
        return float(np.abs(self._decoder.v).max())

    def halt(self, reason: str) -> bool:
        """Starts to bring a moving arm to rest; returns whether it still moves."""
        with self._lock:
            return self.running and self.now is not None and self.supervisor.end(reason)

    def hear_sentinel(self, label: str) -> None:
        """The sentinel has published its mode; "" when it has gone."""
        with self._lock:
            now = time.monotonic()
            self.handover.hear_mode(now, label)
            commands = label == Phase.commanding.value
            if commands:
                self.handover.hear_command(now)
            if commands or self.supervisor.mode is not Mode.WAITING:
                self._yield_if_asked()

    def hear_command(self, message: bytes) -> None:
        """Another node has commanded the arm."""
        with self._lock:
            self._hear_command(message)

    def _hear_command(self, message: bytes) -> None:
        try:
            self._command_decoder.decode(message)
            self.controller.in_force = self._command_decoder.values
        except (CdrError, Float64MultiArrayError) as error:
            self.log.say("error", "command", f"another node's command: {error}")
        self.handover.hear_command(time.monotonic())
        self._yield_if_asked()
        self._heard = True

    def _hear_waiting_commands(self) -> None:
        while self.listens and self._take_command and (command := self._take_command()):
            self._hear_command(command[0])

    def listen(self, take: Callable[[], tuple[bytes, int | None] | None] | None) -> None:
        """Has the ticks take the commands of the sentinel by this function, until None is given."""
        with self._lock:
            self._take_command = take

    def knows_torque(self) -> bool:
        """Whether it has heard what the sentinel commands, since that has the arm."""
        with self._lock:
            self._hear_waiting_commands()
            return self._heard

    def receive(self, requested_at: float) -> bool:
        """The sentinel has given the arm, asked for it at `requested_at` by the steady clock;
        whether the loop has it."""
        with self._lock:
            if not self.running or self.now is None:
                return False
            self._hear_waiting_commands()  # the last of them is in force
            if not self.handover.receive(time.monotonic(), requested_at):
                return False
            self._take_over("the sentinel has given the arm back")
            return True

    def call(self, request: Callable[[Supervisor], T]) -> T:
        """What an operator asks of the supervisor, between two ticks."""
        with self._lock:
            return request(self.supervisor)

    def change(
        self, model: RobotModel, settings: ControllerSettings, observer: MomentumObserver | None
    ) -> None:
        """Puts another model and other settings in force, between two ticks.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        with self._lock:
            self.controller.change(model, settings)
            self.supervisor.observer = observer

    def cancel(self, motion: Motion) -> None:
        """Brings the arm to rest if it still follows this motion."""
        with self._lock:
            self.supervisor.cancel(motion)

    def situation(self) -> Situation:
        """What a new trajectory starts from.

        Raises:
            TrajectoryError: none may be followed now.
        """
        with self._lock:
            if self.now is None:
                raise TrajectoryError(
                    "the controller is not active or has no joint_states yet; send it again later"
                )
            return self.supervisor.situation(self.now)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan, unless it is too late for it."""
        with self._lock:
            return self.now is not None and self.supervisor.adopt(plan)

    def time_of(self, stamp: int) -> float:
        """The controller's time of a stamp [ns], [s]."""
        return (stamp - self._origin) * 1e-9

    def snapshot(self) -> tuple[int, ControllerState] | None:
        """Stamp of the last state [ns], and the controller's state then; None before there is
        one."""
        with self._lock:
            return None if self.now is None else (self._stamp, self.controller.snapshot())

    def housekeeping(self) -> None:
        """Work beside the ticks, once a second and when log messages wait."""
        self._system_time = not self._clock.ros_time_is_active
        self.log.flush()

    def hear_stop(self, message: bytes, publisher: bytes | None = None) -> None:
        """An emergency stop is pressed or released.

        Args:
            message: a serialised Bool.
            publisher: the GID of who publishes it; None where that is not known.
        """
        pressed = boolean(message)
        if pressed is None:
            self.log.say("error", "stop", "emergency_stop: the message is no std_msgs/Bool")
            return
        with self._lock:
            self.supervisor.emergency_stop(pressed, publisher)

    def tick(self, state: bytes, count: int | None = None, publisher: bytes | None = None) -> bool:
        """Answers one state; whether that is done, so that `watch` has nothing to do.

        Args:
            state: a serialised JointState.
            count: its publisher's count of it.
            publisher: the GID of that; None where that is not known.
        """
        taken_at = time.monotonic()
        with self._lock:
            if not self.running:
                return False
            try:
                if self._answer(state, count, publisher, taken_at):
                    return True
            except OtherJoints as error:
                self.log.say("info", "others", f"{error}; such messages are ignored")
            except (CdrError, JointStateError) as error:
                if self._follows(count, publisher, taken_at):
                    self._refuse(str(error))
            except TorqueError as error:
                self._publish()
                self.log.say("error", "torque", str(error))
            except ControllerError as error:
                self.refused = str(error)
                self.log.say("error", "state", f"{error}; the state is ignored")
            self.handover.hear_nothing(taken_at)
            return False

    def hear_nothing(self) -> None:
        """No state waits; to be told every `longest_wait` while that is so."""
        with self._lock:
            self.handover.hear_nothing(time.monotonic())

    @property
    def longest_wait(self) -> float:
        """For how long to wait for a state, [s]."""
        return min(0.5 * self.settings.supervision.state_gap, LOOKS * self.handover.times.lease)

    def watch(self) -> bool:
        """Commands a torque if no state has come for long, or none that can be used; whether that
        is so."""
        now = time.monotonic()
        missing = now - self._received_at
        if not self._system_time or self.now is None:
            return False
        if not self.refused and missing <= self.settings.supervision.state_gap:
            return False
        if now - self._predicted_at < PREDICTION_PERIOD:
            return True
        with self._lock:
            if not self.running or self.now is None:
                return False
            self._predicted_at = now
            if not self.handover.may_answer(now):  # a torque that does not leave is not in force
                self.supervisor.miss(missing)
                self._yield_if_asked()
                return True
            try:
                t = self.now + missing
                if not self.supervisor.answer_gap(t, missing, self.command.torque):
                    return True
            except TorqueError as error:
                self.log.say("error", "torque", str(error))
            self._publish()
        return True

    def state_age(self) -> float:
        """Time since the last usable state with a new stamp, by the steady clock, [s]."""
        return time.monotonic() - self._received_at

    def torque_age(self) -> float:
        """How old the torque was that the robot applied when the last state came, [s]; NaN if its
        measured efforts are none of the last commands."""
        with self._lock:
            state, seen_at = self.last_state, self._received_at
        if state is None:
            return math.nan
        efforts = measured_efforts(state, self.controller.model.joint_names)
        self._tells_efforts = bool(np.isfinite(efforts).all())
        return self._applied.age(efforts, seen_at) if self._tells_efforts else math.nan

    def _note_change(self, old: Mode, new: Mode, reason: str) -> None:
        self.changes.append((old, new, reason))
        if new is not old:
            self.changed_at = self.now or 0.0
        severity = "error" if new in (*_ERRORS, Mode.EMERGENCY_STOP) else "info"
        if new is Mode.WAITING and self.supervisor.obstacle:
            severity = "warning"
        self.log.say(severity, f"{new.value}: {reason}", f"{new.value}: {reason}")
        self.log.wake()

    def _follows(self, count: int | None, publisher: bytes | None, taken_at: float) -> bool:
        """Whether a state is of the publisher that is followed, as far as that can be told."""
        missed = self._publisher.follow(count, publisher, taken_at)
        if missed == ANOTHERS:
            self.statistics.foreign += 1
            self.log.say(
                "error",
                "publisher",
                "joint_states come from a second publisher too; its states are ignored. Stop it: "
                "only one may publish them",
            )
            return False
        self._missed = missed
        return True

    def _refuse(self, text: str, kind: str = "state") -> None:
        self.refused = text
        self.supervisor.refuse_state(text)
        self.log.say("error", kind, f"{text}; the state is ignored")

    def _answer(
        self, state: bytes, count: int | None, publisher: bytes | None, taken_at: float
    ) -> bool:
        """Publishes the command for a state; whether it was one with a new stamp."""
        decoder = self._decoder
        stamp = decoder.decode(state)
        if not self._follows(count, publisher, taken_at):
            if self.last_state is not None:
                decoder.decode(self.last_state)  # whose state it is to remember
            return False
        self.last_state = state
        clock = time.time_ns() if self._system_time else self._clock.now().nanoseconds
        age = (clock - stamp) * 1e-9
        if stamp == 0:  # some hardware does not set it
            stamp, age = clock, math.nan
        if self.now is None:
            self._origin = self._stamp = stamp
            self.now, self._taken_at, self._received_at = 0.0, math.nan, taken_at
        now = (stamp - self._origin) * 1e-9
        gap = now - self.now
        if gap < 0.0 or gap > self._state_timeout:
            bridged = self._bridge(stamp, gap)
            if bridged is None:
                return False
            now = bridged
        if gap == 0.0 and self.supervisor.predicting:
            return False  # the same state again tells nothing new
        self.now = now
        if gap != 0.0:
            self._received_at = taken_at
        supervisor, handover = self.supervisor, self.handover
        handover.hear_state(now, taken_at, count)
        if not handover.may_answer(taken_at):
            if handover.commanding:
                return False  # it was away, and a state that is fresh must tell for how long
            self._hear_waiting_commands()
            if not handover.look(taken_at):
                return False
            self._take_over("the sentinel commands no more")
        if self._trusts_effort and supervisor.mode is Mode.WAITING:
            efforts = measured_efforts(state, self.controller.model.joint_names)
            self.controller.in_force = efforts
        if self._system_time and gap > (elapsed := taken_at - self._published_at + LATENESS):
            self.controller.limit_rate_step(elapsed)  # no torque changes by what has not passed
        answered = supervisor.answer(now, decoder.q, decoder.v, self.command.torque)
        if not answered:
            self._stamp = stamp
            return False
        self.refused = ""
        if not self._publish():
            return False
        self._record(stamp, taken_at, age)
        return gap != 0.0

    def _publish(self) -> bool:
        """Commands the torques, if the arm is still this loop's."""
        now = time.monotonic()
        if self.handover.may_command(now):
            self.command.publish()
            self._published_at = now
            if self._tells_efforts:
                self._applied.note(self.command.torque, now)
            return True
        self._yield_if_asked()
        return False

    def _yield_if_asked(self) -> None:
        if not self.handover.commanding:
            self._heard &= self.supervisor.mode is Mode.GUARDED
            self.supervisor.guarded(f"{HELD_BY_SENTINEL}: {self.handover.reason}")

    def _take_over(self, reason: str) -> None:
        self.supervisor.take_over(self.now or 0.0, self._decoder.q, self._decoder.v, reason)

    def _bridge(self, stamp: int, gap: float) -> float | None:
        """The controller's time of a state whose stamp is not soon after the last one; None if the
        state is refused."""
        jump = f"the stamps of joint_states jumped by {gap:+.3f} s"
        if not self._system_time and self.now is not None:  # the simulation was reset, or is slow
            self.log.say("info", "reset", f"{jump}; the motion goes on, as the time is simulated")
            longest = self.settings.supervision.state_timeout
            now = max(self.now, self.controller.time) + min(max(gap, 0.0), longest)
            self._stamp, self._origin = stamp, stamp - round(now * 1e9)
            return now
        blind = self.supervisor.mode is Mode.BLIND
        if gap < 0.0 and not blind:
            self._refuse(jump, "stamps")
            if self.supervisor.mode is not Mode.BLIND:
                return None
        elif not blind:
            self.supervisor.lose(jump)
        self.statistics.dropped += 1
        self._stamp = stamp
        # The controller's time goes on from where it is, whatever the clock of the stamps does.
        now = max(self.now or 0.0, self.controller.time)
        self._origin = stamp - round(now * 1e9)
        return now

    def _record(self, stamp: int, taken_at: float, age: float) -> None:
        period = (stamp - self._stamp) * 1e-9
        # Nobody is late by the steady clock where another one makes the stamps.
        interval = taken_at - self._taken_at if self._system_time else math.nan
        self._stamp, self._taken_at = stamp, taken_at
        if not 0.0 <= age < LONGEST_AGE:
            age = math.nan  # the stamps are of another clock
        duration = time.monotonic() - taken_at
        self.statistics.record(duration, age + duration, interval, period)
        self.statistics.missed += self._missed

    def _brake_blindly(self, reason: str) -> None:
        """Brings the arm to rest by the model, while no state is answered any more."""
        start, begin = self.now or 0.0, time.monotonic()
        self.supervisor.lose(reason)
        while self.controller.is_moving and (elapsed := time.monotonic() - begin) < LONGEST_HALT:
            self.handover.hear_nothing(time.monotonic())
            self.supervisor.answer_gap(start + elapsed, elapsed, self.command.torque)
            if not self._publish():
                return
            time.sleep(PREDICTION_PERIOD)

    def _publish_last_command(self) -> None:
        target = np.zeros(self.controller.model.nv)
        try:
            if self.settings.ends_with_gravity:
                self.controller.holding_torque(self._decoder.q, target)
        except ControllerError as error:
            self.log.say("error", "holding torque", f"{error}; the last command stays in force")
            return
        for _ in range(round(LONGEST_APPROACH / APPROACH_PERIOD)):
            there = self.controller.approach(target, APPROACH_PERIOD, self.command.torque)
            if not self._publish() or there:
                return
            time.sleep(APPROACH_PERIOD)
