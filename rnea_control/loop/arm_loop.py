"""`ArmLoop`: base class of the loops of controller and sentinel.

A loop takes joint states, computes torques, and commands them while it owns the arm: by machine
code (native_loop.py) as long as states are usual ones, and else in Python.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from rclpy.clock import Clock
from rclpy.guard_condition import GuardCondition

from rnea_control.array_types import FloatArray
from rnea_control.control import Controller
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.jit.linking import barrier
from rnea_control.loop import native_loop as native
from rnea_control.loop.handover import Handover
from rnea_control.loop.loop_records import AppliedTorque, DeferredLog, LoopStatistics
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.state_intake import StateIntake
from rnea_control.messages.cdr import decoding
from rnea_control.ros.effort_command import Command
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import BESIDE, RclTable, Taken, last_error
from rnea_control.ros.rclpy_internals import RCLError
from rnea_control.ros.real_time import RealTime


class ArmLoop:
    """Base class of a loop.

    One thread answers states. Other threads change the loop between two ticks, while they hold
    `lock`, or while it is `paused`. Machine code does not hold the lock; it serves requests to the
    controller between two ticks.

    A subclass has `answer_next`, which answers the next state, or the states that machine code
    answers, or their absence; and `fail`, which ends the loop after a bug in this program.

    Args:
        controller: computes the torques.
        command: publishes the torques.
        handover: decides whether this loop or another node commands the arm.
        silence: time without messages of a publisher after which another publisher of joint states
            is followed, [s].
        times: initial values of fields of `LoopState`, by name, [s].
        clock: clock of the node, a `NodeClock` or a clock with the same interface.
        logger: logger of the node.

    Attributes:
        states: intake of the joint states.
        shared: data that machine code and Python share.
        kinds: kinds of the subscriptions beside the joint states, see native_loop.py.
        stops: emergency stops for Python, records as in native_loop.py.
        statistics: histograms and counts of the ticks.
        applied: the last commands.
        heard: subscription to the joint states, once it exists.
        names_publishers: true if messages carry the GID of their publisher.
        log: messages of the ticks.
        failure: traceback of the bug that ended the loop; empty without one.
    """

    heard: RawSubscription
    names_publishers = True
    failure = ""

    def __init__(
        self,
        controller: Controller,
        command: Command,
        handover: Handover,
        silence: float,
        times: Mapping[str, float],
        clock: Clock,
        logger: Any,
    ) -> None:
        self.controller, self.command, self.handover = controller, command, handover
        self.states = StateIntake(controller.model.joint_names, silence)
        self.statistics = LoopStatistics()
        self.applied = AppliedTorque(controller.model.nv)
        self.shared = LoopState()
        for name, value in times.items():
            setattr(self.shared, name, value)
        self.kinds = np.zeros(native.MOST_KINDS, dtype=np.int64)
        self.stops = native.Stop.several(native.MOST_STOPS)
        self.lock = threading.Lock()
        self.log = DeferredLog(logger)
        self._clock = clock
        self._message = np.zeros(native.LONGEST_MESSAGE, dtype=np.uint8)
        self._table: RclTable | None = None  # None where machine code may not answer states
        self._ticks_before = 0  # value of `shared.ticks` when machine code began last
        self._thread: threading.Thread | None = None
        self._stopping = False
        controller.post = partial(native.post, self.shared, controller.serve)
        self.consistent = partial(native.consistent, self.shared)
        self.look_at_clock()

    @property
    def state(self) -> tuple[float, FloatArray, FloatArray]:
        """The last state: its time, [s], positions and velocities, shape (nv,)."""
        return self.states.time, self.states.q, self.states.v

    @property
    def speed(self) -> float:
        """Speed of the fastest joint in the last state, [rad/s] or [m/s]."""
        return float(np.abs(self.states.v).max())

    def is_usual(self) -> bool:
        """True if a usual state needs no decision of Python."""
        return True

    # Its thread.

    def hear(
        self,
        heard: RawSubscription,
        wake: GuardCondition,
        kinds: tuple[int, ...],
        own: bytes | None = None,
    ) -> None:
        """Takes states from a subscription from now on, by machine code where that is possible.

        Args:
            heard: subscription to the joint states, and subscriptions beside them.
            wake: guard condition that is triggered by a log message, or by machine code.
            kinds: kinds of the subscriptions beside the joint states; see native_loop.py.
            own: GID of the own publisher of commands, if commands are received as well.
        """
        self.heard, self.log.wake = heard, wake.trigger
        heard.on_failure = self.note_untaken
        self.names_publishers = heard.names_publishers
        if own is not None:
            low, high = np.frombuffer(own, dtype=np.int64)
            self.shared.own_gid_low, self.shared.own_gid_high = low, high
        elif native.COMMAND in kinds:
            return  # machine code cannot distinguish own commands from others
        self.kinds[: len(kinds)] = kinds
        self._table = heard.table
        if self._table is not None:
            self._table.publish_by(self.command.publisher, self.command.message.memory, wake)

    def begin(self, name: str, real_time: RealTime) -> None:
        """Answers states in a thread of its own until `end`; returns once that is set up. An
        exception in it is a bug, and the loop fails: motors must not keep a moving arm's torque."""
        ready = threading.Event()
        self._stopping = False

        def run() -> None:
            try:
                real_time.enter_thread()
                ready.set()
                while not self._stopping:
                    self.answer_next()
            except Exception:
                ready.set()
                self.failure = f"the {name} has failed:\n{traceback.format_exc()}"
                self.log.say("fatal", "failure", self.failure)
                self.fail(self.failure)

        self._thread = threading.Thread(target=run, name=name)
        self._thread.start()
        ready.wait()

    def end(self) -> None:
        """Returns when the thread has ended, if there is one."""
        with self.paused():
            self._stopping = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # Ticks in Python.

    @property
    def system_time(self) -> bool:
        """True if the steady clock shows when states are missing: time is not simulated."""
        return self.shared.system_time

    def look_at_clock(self) -> None:
        """Brings `system_time` up to date."""
        self.shared.system_time = not self._clock.ros_time_is_active

    def _take(
        self, state: bytes, count: int | None, publisher: bytes | None, now: float
    ) -> tuple[int, float]:
        """Takes a state in; returns its stamp [ns], and its age [s], NaN where that is not known.
        Arguments and errors as of `StateIntake.take`."""
        with decoding("joint_states"):
            stamp = self.states.take(state, count, publisher, now)
        clock = time.time_ns() if self.system_time else self._clock.now().nanoseconds
        if stamp == 0:  # some hardware does not set it
            return clock, math.nan
        return stamp, (clock - stamp) * 1e-9

    def _time_after_jump(self, gap: float) -> float:
        """Time of a state whose stamp is not soon after the last one [s]: it goes on from where it
        is, whatever the clock of the stamps does; in simulated time by `gap` [s], within bounds."""
        t = max(self.states.time, self.controller.time)
        return t if self.system_time else t + min(max(gap, 0.0), self._longest_step)

    @property
    def _longest_step(self) -> float:
        """A longer step from stamp to stamp is a jump of their clock [s]."""
        return self.shared.state_timeout

    def _place(self, stamp: int, now: float, time: float, last: FloatArray) -> bool:
        """As `native_loop.place`; `last`: positions of the state before, shape (nv,)."""
        states, moved = self.states, bool((self.states.q != last).any())
        return bool(native.place(self.shared, states.intake, stamp, now, time, moved))

    def _limit_rate(self, t: float, now: float) -> None:
        """Has the rate limit count no more time for the step at `t` than has passed at `now`, [s];
        see `native_loop.rate_time`."""
        if self.system_time:
            dt = max(t - self.controller.time, 0.0)
            self.controller.limit_rate_step(native.rate_time(self.shared, now, dt))

    def _publish(self) -> bool:
        """Commands the torques, if the arm is still this loop's."""
        now = time.monotonic()
        if not self.handover.may_answer(now):
            self.controller.withdraw()
            return False
        try:
            message = self.command.publish()
        except RCLError as error:
            self.shared.unpublished += 1
            self.controller.withdraw()
            self._say_unpublished(error)
            return True
        native.sent(self.shared, self.handover.lease, now)
        self.note_command(message, now)
        return True

    @property
    def unpublished(self) -> int:
        """Number of commands that rcl did not publish."""
        return self.shared.unpublished

    def _say_unpublished(self, error: Exception) -> None:
        self.log.say(
            "error",
            "unpublished",
            f"a command was not published: {error}. The hardware keeps the last one; each further "
            f"state is answered by another attempt ({self.unpublished} have failed so far)",
        )

    def note_untaken(self, error: Exception) -> None:
        """A message could not be taken, as rcl says: that is as if it had not come."""
        self.log.say("error", "untaken", f"a message was not taken, and is lost: {error}")

    def note_command(self, message: object, now: float) -> None:
        """This has just been published."""
        if self.shared.has_efforts:
            self.applied.note(self.command.torque, now)

    def _refusal(self) -> Exception:
        """Why the last step of machine code has refused a state."""
        outcome = self.shared.outcome
        return self.controller.refusal(outcome, *self.state, self.command.torque)

    def _is_ignored(self, error: ControllerError) -> bool:
        """Logs why a step was refused; whether the state is ignored: else the torque is the gravity
        torque, or what is nearest to it."""
        if isinstance(error, TorqueError):
            self.log.say("error", "torque", str(error))
            return False
        self.log.say("error", "state", f"{error}; the state is ignored")
        return True

    # Ticks by machine code.

    @property
    def runs_natively(self) -> bool:
        """True while machine code answers states."""
        return self.shared.runs

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Holds the lock, and no machine code answers states meanwhile."""
        with self.lock:
            self.shared.interruptions += 1
            try:
                while self.runs_natively:
                    time.sleep(native.POLL)
                barrier()
                yield
            finally:
                self.shared.interruptions -= 1

    def newest(self) -> bytes | None:
        """The bytes of the state that was answered last; None before there is one."""
        shared, table = self.shared, self._table

        def read() -> bytes | None:
            answered = self.runs_natively and shared.ticks != self._ticks_before
            if table is None or not answered:
                return self.states.message
            return table.taken(shared.newest).data

        return self.consistent(read)

    def may_run_natively(self) -> bool:
        """True if machine code may answer the next state."""
        return bool(
            self._table is not None
            and not self._stopping
            and self.states.begun
            and self.handover.commanding
            and not self.shared.interruptions
            and self.is_usual()
        )

    def run_natively(self) -> tuple[int, Taken | None]:
        """Answers states by machine code, in place of a wait for the next state; returns the reason
        for which it has ended, and the message that Python has to interpret. Messages that rcl did
        not take or publish are logged."""
        shared, states, table = self.shared, self.states, self._table
        unpublished = self.unpublished
        with self.lock:
            if table is None or not self.may_run_natively():
                return native.REQUESTED, None
            controller = self.controller
            arrays = (
                *(table.array, shared.array, self.kinds, self.handover.lease.array),
                *(controller.arrays, controller.box.arrays, states.arrays, self.command.torque),
                *(self.statistics.arrays, self.applied.arrays, self.stops, self._message),
            )
            self._ticks_before = shared.ticks
            # Also the end of a motion that Python has begun is reported.
            shared.under_way = shared.runs = True
        try:
            reason = native.run(*arrays)
        finally:
            barrier()
            shared.runs = False
        which = shared.newest
        if shared.ticks != self._ticks_before or reason in native.STEPPED:
            states.message = table.taken(which).data
        if reason == native.FAILED:
            error = last_error(shared.answer)
            if self.unpublished > unpublished:
                self._say_unpublished(error)
            else:
                self.note_untaken(error)
        if reason == native.COMMANDED:
            return reason, table.taken(BESIDE)
        return reason, table.taken(1 - which) if reason == native.UNUSUAL else None
