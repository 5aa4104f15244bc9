"""`NativeTicks`: machine code answers the states of a loop, as long as they are usual."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray, IntArray
from rnea_control.control import Controller
from rnea_control.control.handover import Handover
from rnea_control.control.momentum_observer import MomentumObserver, observed
from rnea_control.kernels.linking import barrier
from rnea_control.messages.state_intake import StateIntake
from rnea_control.ros import native_loop as native
from rnea_control.ros.applied_torque import AppliedTorque
from rnea_control.ros.loop_statistics import LoopStatistics
from rnea_control.ros.rcl_calls import RclTable, Taken
from rnea_control.ros.rclpy_internals import RCLError

# Between looks at machine code, [s].
POLL = 5e-5

T = TypeVar("T")


def _numbers() -> IntArray:
    return np.zeros(native.NUMBERS, dtype=np.int64)


@dataclass
class NativeWork:
    """The arrays of machine code, beside those of controller and states; see native_loop.py.

    Attributes:
        numbers, times: of the loop.
        facts: of a supervisor.
        stops: the emergency stops that were taken.
        statistics, applied: of the ticks and of the last commands.
        message: one beside the states.
        lock: see `paused` and `post`.
    """

    facts: IntArray
    statistics: LoopStatistics
    applied: AppliedTorque
    numbers: IntArray = field(default_factory=_numbers)
    times: FloatArray = field(default_factory=lambda: np.zeros(native.TIMES))
    stops: IntArray = field(
        default_factory=lambda: np.zeros((native.MOST_STOPS, 3), dtype=np.int64)
    )
    message: ByteArray = field(
        default_factory=lambda: np.zeros(native.LONGEST_MESSAGE, dtype=np.uint8)
    )

    def __post_init__(self) -> None:
        # Held by all that ask loop or controller for anything; machine code that answers states
        # does not hold it, and serves what they ask for.
        self.lock = threading.Lock()

    @property
    def runs(self) -> bool:
        """Whether machine code answers states now."""
        return bool(self.numbers[native.RUNS])

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Holds the lock, and no machine code answers states meanwhile."""
        with self.lock:
            self.numbers[native.ASKED] += 1
            try:
                while self.runs:
                    time.sleep(POLL)
                barrier()
                yield
            finally:
                self.numbers[native.ASKED] -= 1

    def post(self, controller: Controller) -> None:
        """Has the request in a controller's box carried out: between two ticks of machine code, if
        that answers states. The lock must be held."""
        numbers = self.numbers
        if self.runs:
            barrier()
            numbers[native.POSTED] = native.WAITS
            while self.runs and numbers[native.POSTED] == native.WAITS:
                time.sleep(POLL)
            barrier()
            served = numbers[native.POSTED] == native.SERVED
            numbers[native.POSTED] = native.NOTHING
            if served:
                return
        controller.serve()

    def consistent(self, read: Callable[[], T]) -> T:
        """The result of a function that reads, undisturbed by machine code that writes."""
        while True:
            before = int(self.numbers[native.SEQUENCE])
            barrier()
            found = read()
            barrier()
            if before % 2 == 0 and before == self.numbers[native.SEQUENCE]:
                return found


class Loop(Protocol):
    """Whose states are answered."""

    controller: Controller
    handover: Handover
    states: StateIntake
    work: NativeWork

    @property
    def observer(self) -> MomentumObserver | None:
        """Tells whether something pushes the arm."""

    @property
    def torque(self) -> FloatArray:
        """The torques that are commanded, shape (nv,)."""

    def is_usual(self) -> bool:
        """Whether it would simply answer the next state."""


class NativeTicks:
    """Called by one thread in place of a wait for the next state.

    Args:
        loop: whose states are answered.
        table: how they are taken, and answered; the first subscription is that of the states.
        kinds: of the further subscriptions; see native_loop.py.
        own: the GID of the publisher of the commands, if these are heard as well.
    """

    def __init__(
        self, loop: Loop, table: RclTable, kinds: tuple[int, ...], own: bytes = bytes(16)
    ) -> None:
        self._loop, self._table = loop, table
        self._before = 0  # states that it had answered when it ran last
        numbers = loop.work.numbers
        numbers[native.KINDS : native.KINDS + len(kinds)] = kinds
        numbers[native.OWN : native.OWN + 2] = np.frombuffer(own, dtype=np.int64)

    def possible(self) -> bool:
        """Whether the next state may be answered so."""
        loop = self._loop
        return bool(
            loop.states.begun
            and loop.states.layouts
            and loop.handover.commanding
            and not loop.work.numbers[native.ASKED]
            and loop.is_usual()
        )

    def run(self) -> tuple[int, Taken | None]:
        """Answers states; why it has ended, and the message that is still to be looked at.

        Raises:
            RCLError: rcl does not wait, take or publish.
        """
        loop, work = self._loop, self._loop.work
        with work.lock:
            if not self.possible():
                return native.REQUESTED, None
            states, statistics, applied = loop.states, work.statistics, work.applied
            first = states.layouts[0]
            work.numbers[native.OBSERVER_CODE], of_observer = observed(loop.observer)
            arrays = (
                *(self._table.array, work.numbers, work.times, states.numbers, states.times),
                *(loop.handover.rows, work.facts, *loop.controller.arrays, loop.torque),
                *loop.controller.box,
                *(states.buffer, first.pattern, first.indices, states.bits, states.rows),
                *(statistics.counts, statistics.largest, statistics.numbers),
                *(applied.torques, applied.times, applied.place, work.stops, work.message),
                *of_observer,
            )
            self._before = int(work.numbers[native.TICKS])
            # Whatever Python has begun: that it comes to rest is told.
            work.numbers[native.UNDER_WAY] = work.numbers[native.RUNS] = 1
        try:
            reason = native.run(*arrays)
        finally:
            barrier()
            work.numbers[native.RUNS] = 0
        which = int(work.numbers[native.WHICH])
        if work.numbers[native.TICKS] != self._before or reason in native.STEPPED:
            states.message = self._table.taken(which).data
        if reason == native.FAILED:
            raise RCLError(f"rcl answers {work.numbers[native.ANSWER]}")
        if reason == native.COMMANDED:
            return reason, self._table.taken(native.BESIDE)
        return reason, self._table.taken(1 - which) if reason == native.UNUSUAL else None

    def newest(self) -> bytes | None:
        """The bytes of the state that was answered last."""
        numbers = self._loop.work.numbers
        if not numbers[native.RUNS] or numbers[native.TICKS] == self._before:
            return self._loop.states.message
        return self._table.taken(int(numbers[native.WHICH])).data

    def destroy(self) -> None:
        """Gives the memory back; nobody runs it any more."""
        while self._loop.work.runs:
            time.sleep(POLL)
        self._table.destroy()
