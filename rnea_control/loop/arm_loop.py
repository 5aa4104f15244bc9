"""`ArmLoop`: the loop of controller and sentinel, and its thread.

A loop takes joint states, computes torques, and commands them while it owns the arm: by machine
code (native_loop.py) as long as states are usual ones. Its `Commander` decides about all others,
and calls the loop for the answers.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
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
from rnea_control.loop import other_inputs
from rnea_control.loop.commander import Commander
from rnea_control.loop.handover import Handover
from rnea_control.loop.loop_records import AppliedTorque, DeferredLog, LoopStatistics
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import OtherInputs
from rnea_control.loop.state_intake import StateIntake, sender
from rnea_control.messages.cdr import decoding
from rnea_control.ros.effort_command import Command
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import BESIDE, GID_SIZE, RclTable, Taken, last_error
from rnea_control.ros.rclpy_internals import RCLError
from rnea_control.ros.real_time import RealTime


class ArmLoop:
    """A loop.

    One thread answers states. Other threads change the loop between two ticks, while they hold
    `lock`, or while it is `paused`. Machine code does not hold the lock; it serves requests to the
    controller between two ticks.

    Args:
        commander: decides what machine code does not decide.
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
        others: data of the messages beside the joint states.
        statistics: histograms and counts of the ticks.
        applied: the last commands.
        heard: subscription to the joint states, once it exists.
        names_publishers: true if messages carry the GID of their publisher.
        log: messages of the ticks.
        on_published: called with each command of Python that was published, and the time then [s].
        stopping: True if the thread is to end; may be set.
        failure: traceback of the bug that ended the loop; empty without one.
    """

    heard: RawSubscription
    names_publishers = True
    failure = ""
    stopping = False
    on_published: Callable[[bytes, float], object] = staticmethod(lambda message, now: None)

    def __init__(
        self,
        commander: Commander,
        controller: Controller,
        command: Command,
        handover: Handover,
        silence: float,
        times: Mapping[str, float],
        clock: Clock,
        logger: Any,
    ) -> None:
        self._commander = commander
        self.controller, self.command, self.handover = controller, command, handover
        self.states = StateIntake(controller.model.joint_names, silence)
        self.statistics = LoopStatistics()
        self.applied = AppliedTorque(controller.model.nv)
        self.shared = LoopState()
        for name, value in times.items():
            setattr(self.shared, name, value)
        self.others = OtherInputs(controller.model.joint_names, controller.model.link_names)
        self.lock = threading.Lock()
        self.log = DeferredLog(logger)
        self._clock = clock
        self._table: RclTable | None = None  # None where machine code may not answer states
        self._ticks_before = 0  # value of `shared.ticks` when machine code began last
        self._thread: threading.Thread | None = None
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

    @property
    def now(self) -> float | None:
        """Stamp of the last state minus that of the first [s]; None before the first state."""
        return self.states.time if self.states.begun else None

    def reset(self) -> None:
        """Forgets all states, and the statistics."""
        self.states.reset()
        self.shared.published_at = math.nan
        self.failure, self.statistics, self.shared.ticks = "", LoopStatistics(), 0
        self.look_at_clock()

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
            kinds: kinds of the subscriptions beside the joint states; see other_inputs.py.
            own: GID of the own publisher of commands, if commands are received as well.
        """
        self.heard, self.log.wake = heard, wake.trigger
        heard.on_failure = self.note_untaken
        self.names_publishers = heard.names_publishers
        if own is not None:
            low, high = np.frombuffer(own, dtype=np.int64)
            self.shared.own_gid_low, self.shared.own_gid_high = low, high
        elif other_inputs.COMMAND in kinds:
            return  # machine code cannot distinguish own commands from others
        self.others.arrays.kinds[: len(kinds)] = kinds
        self._table = heard.table
        if self._table is not None:
            self._table.publish_by(self.command.publisher, self.command.message.memory, wake)

    def begin(self, name: str, real_time: RealTime) -> None:
        """Answers states in a thread of its own until `end`; returns once that is set up. An
        exception in it is a bug, and the loop fails: motors must not keep a moving arm's torque."""
        ready = threading.Event()
        self.stopping = False

        def run() -> None:
            try:
                real_time.enter_thread()
                ready.set()
                while not self.stopping:
                    self._commander.answer_next(*self.run_natively())
            except Exception:
                ready.set()
                self.failure = f"the {name} has failed:\n{traceback.format_exc()}"
                self.log.say("fatal", "failure", self.failure)
                self._commander.fail(self.failure)

        self._thread = threading.Thread(target=run, name=name)
        self._thread.start()
        ready.wait()

    def end(self) -> None:
        """Returns when the thread has ended, if there is one."""
        with self.paused():
            self.stopping = True
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

    def answer(
        self, state: bytes, count: int | None, publisher: bytes | None, now: float, steps: bool
    ) -> int:
        """Answers a state by `native_loop.answer`; returns its verdict. About an unusual state this
        function decides, and the second half of that function answers it.

        Args:
            state: serialized JointState.
            count: sequence number of the message; None if unknown.
            publisher: GID of the publisher; None if unknown.
            now: arrival by the steady clock [s].
            steps: False if Python decides about the torque.

        Returns:
            The verdict. After REPEATED the state is to be ignored. After JUMPED the state is
            decoded, and the commander may pass its time to `answer_at`.

        Raises:
            OtherJoints, AnothersState, CdrError, JointStateError: see `StateIntake.take`.
        """
        states, shared, verdict = self.states, self.shared, native.UNUSUAL
        clock = time.time_ns() if shared.system_time else self._clock.now().nanoseconds
        if states.layouts:
            message = states.put(state), *sender(count, publisher), clock, now
            verdict = native.answer_once(*self._arrays, *message, steps)
        if verdict != native.UNUSUAL:
            states.message = state
            return verdict
        with decoding("joint_states"):
            stamp = states.take(state, count, publisher, now)
        native.note_stamp(shared, stamp, clock)
        look = native.judge_once(shared.argument, states.arrays, self.controller.predicting, now)
        if look in (native.JUMPED, native.REPEATED):
            return int(look)
        return self.answer_at(math.nan, now, steps)

    def answer_at(self, t: float, now: float, steps: bool) -> int:
        """Answers the state that was decoded last, at time `t` [s], or by its stamp if `t` is NaN;
        returns the verdict. Other arguments: see `answer`."""
        return int(native.resolve_once(*self._arrays, t, now, steps))

    @property
    def jump(self) -> float:
        """Time from the stamp of the state before to that of the state decoded last [s]."""
        return self.states.gap(self.shared.stamp)

    def time_after_jump(self) -> float:
        """Time of a state after JUMPED [s]: it goes on from where it is, whatever the clock of the
        stamps does; in simulated time by `jump`, within bounds."""
        t = max(self.states.time, self.controller.time)
        longest = self.shared.state_timeout
        return t if self.system_time else t + min(max(self.jump, 0.0), longest)

    def limit_rate(self, now: float) -> None:
        """Limits the time that the rate limit counts for an answer to the last state; see
        `native_loop.limit_rate`."""
        native.limit_rate(self.shared, self.controller.rows, self.states.time, now)

    def answer_nothing(self, now: float, refused: bool, longest: float, steps: bool) -> int:
        """Computes torques for a predicted state where states are missing; returns the verdict. See
        `native_loop.answer_nothing`."""
        return int(native.answer_nothing_once(*self._arrays, now, refused, longest, steps))

    def step(self, now: float, predicted: bool) -> int:
        """Computes torques for the last state, or for the state that is predicted for `now` [s];
        returns the verdict, ANSWERED or REFUSED."""
        rows, (t, q, v) = self.controller.rows, self.state
        if predicted:
            t += now - self.states.came_at
            q, v = rows.predicted_position, rows.predicted_velocity
        of_state = t, q, v, self.command.torque, predicted, now
        outcome = native.step_once(self.shared.argument, self.controller.arrays, *of_state)
        return native.ANSWERED if native.gives_torque(outcome) else native.REFUSED

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """Arrays that kernels change in a tick."""
        of_loop = self.shared.argument, self.handover.lease.argument
        return *of_loop, self.controller.arrays, self.states.arrays, self.command.torque

    def publish(self) -> bool:
        """Commands the torques, if the arm is still this loop's."""
        now = time.monotonic()
        own, rows = self.handover.lease.argument, self.controller.rows
        if not native.may_command_once(own, rows, now):
            return False
        message, failure = b"", None
        try:
            message = self.command.publish()
        except RCLError as error:
            failure = error
        noted = self.command.torque, self.applied.arrays, now, failure is None
        native.commanded_once(self.shared.argument, own, rows, *noted)
        if failure is None:
            self.on_published(message, now)
        else:
            self._say_unpublished(failure)
        return True

    def record(self, began_at: float, missed: int) -> None:
        """Counts a tick; see `native_loop.count`. `began_at`: steady clock [s]."""
        duration, statistics = time.monotonic() - began_at, self.statistics.arrays
        of_state = self.states.arrays.intake, duration, missed
        native.count_once(self.shared.argument, statistics, *of_state)

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

    def refusal(self) -> Exception:
        """Why the last step of machine code has refused a state."""
        outcome = self.shared.outcome
        return self.controller.refusal(outcome, *self.state, self.command.torque)

    def is_ignored(self, error: ControllerError) -> bool:
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

    def hear_targets(self, kind: int, message: bytes, publisher: bytes | None, now: float) -> None:
        """Takes a message of a stream in a Python tick, with the lock held; see
        `other_inputs.hear_targets`."""
        arrays, size = self.others.arrays, len(message)
        kept = arrays.message[: min(size, len(arrays.message))]
        kept[:] = np.frombuffer(message, np.uint8)[: len(kept)]
        low, high = np.frombuffer(publisher or bytes(GID_SIZE), np.int64)[:2].tolist()
        clock = time.time_ns() if self.system_time else -1
        other_inputs.hear_targets_once(
            *(self.shared.argument, arrays, self.controller.arrays, self.states.intake.argument),
            *(kind, size, (low, high), clock, now),
        )

    def may_run_natively(self) -> bool:
        """True if machine code may answer the next state."""
        return bool(
            self._table is not None
            and not self.stopping
            and self.states.begun
            and self.handover.commanding
            and not self.shared.interruptions
            and self._commander.is_usual()
        )

    def run_natively(self) -> tuple[int | None, Taken | None]:
        """Answers states by machine code, if that is possible, in place of a wait for the next
        state; returns the reason for which it has ended, None if it has not begun, and the message
        that Python has to interpret. Messages that rcl did not take or publish are logged."""
        shared, states, table = self.shared, self.states, self._table
        unpublished = self.unpublished
        if table is None or not self.may_run_natively():
            return None, None
        with self.lock:
            if not self.may_run_natively():  # any more
                return None, None
            controller = self.controller
            loop, own, of_step, of_states, tau = self._arrays
            arrays = (
                *(table.array, loop, self.others.arrays, own, of_step, controller.box.arrays),
                *(of_states, tau, self.statistics.arrays, self.applied.arrays),
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
        if shared.ticks != self._ticks_before or reason in (native.YIELDED, native.REFUSED):
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
