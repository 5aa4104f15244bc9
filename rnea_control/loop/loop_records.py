"""Data that the ticks of a loop leave to other threads, in memory that is allocated once.

These are histograms of the ticks' times, and the last torques, which show the age of the torque
that the robot applies. Log messages are queued, as a log call writes to the console, a file and a
topic: a tick has no time for that.

Every bin of a histogram is 2.3 % wide, from 1 us to 10 s; values outside are counted in the first
or the last bin.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray, IntArray, RecordArray
from rnea_control.jit.group import group
from rnea_control.jit.inlining import inlined
from rnea_control.jit.record import Record

BINS_PER_DECADE = 100
SHORTEST = 1e-6
BINS = 7 * BINS_PER_DECADE

# Rows of the histograms; see `LoopStatistics`.
TICK_DURATION = 0
STATE_AGE = 1
PERIOD_JITTER = 2
STATE_INTERVAL = 3
NAMES = ("tick duration", "state age", "period jitter", "time between states")

# How many commands are remembered: a second at 1 kHz.
REMEMBERED = 1024
# Relative difference up to which a measured effort is a command that came through unchanged.
SAME = 1e-9

# Messages of one kind come no more often than this, [s].
THROTTLE = 1.0
MOST_WAITING = 100
# By severity: rclpy allows each line of code one.
LOG: dict[str, Callable[[Any, str], object]] = {
    "info": lambda logger, text: logger.info(text),
    "warning": lambda logger, text: logger.warning(text),
    "error": lambda logger, text: logger.error(text),
    "fatal": lambda logger, text: logger.fatal(text),
}


class _LeftOut(NamedTuple):
    """Messages of one kind that came within a second of a logged one."""

    severity: str  # severity of the last message
    text: str  # text of the last message
    count: int  # number of messages


class Counts(Record):
    """Counts of joint states and of trajectories."""

    late: int = 0  # states that arrived more than half a period after they were due
    missed: int = 0  # states that were never taken, by the sequence numbers
    foreign: int = 0  # states of publishers that are not followed
    dropped: int = 0  # trajectories that ended as the stamps went back or jumped


@group(histograms="i8[:,::1]", largest="f8[::1]", counts="Counts[::1]")
class StatisticsArrays(NamedTuple):
    """Arrays in which ticks are counted."""

    histograms: IntArray
    largest: FloatArray
    counts: RecordArray


@group(torques="f8[:,::1]", times="f8[::1]", place="i8[::1]")
class AppliedArrays(NamedTuple):
    """Arrays in which torques are noted."""

    torques: FloatArray
    times: FloatArray
    place: IntArray


class LoopStatistics:
    """Histograms of four durations, and counts of states.

    - tick duration: from when the loop has the state's bytes to when it has published the command.
    - state age: from the state's stamp to when the loop has published the command.
    - period jitter: difference between the time from one state to the next as the loop took them
      and as they were stamped.
    - time between states: as the loop took them, by the steady clock.

    Attributes:
        histograms: one row for each duration, shape (4, BINS).
        largest: the largest of each, [s].
        counts: of states.
    """

    def __init__(self) -> None:
        self.histograms: IntArray = np.zeros((len(NAMES), BINS), dtype=np.int64)
        self.largest: FloatArray = np.zeros(len(NAMES))
        self.counts = Counts()
        self.arrays = StatisticsArrays(self.histograms, self.largest, self.counts.array)

    @property
    def ticks(self) -> int:
        """How many states were answered: each has a duration."""
        return int(self.histograms[TICK_DURATION].sum())

    def since(self, earlier: LoopStatistics) -> LoopStatistics:
        """The records since an earlier copy; the largest values are edges of bins."""
        difference = LoopStatistics()
        difference.histograms[:] = self.histograms - earlier.histograms
        for row, histogram in enumerate(difference.histograms):
            bins = np.flatnonzero(histogram)
            difference.largest[row] = _upper_edge(bins[-1]) if bins.size else 0.0
        np.minimum(difference.largest, self.largest, out=difference.largest)
        for name in difference.counts.names:
            now, before = getattr(self.counts, name), getattr(earlier.counts, name)
            setattr(difference.counts, name, now - before)
        return difference

    def copy(self) -> LoopStatistics:
        """A copy as of now."""
        return self.since(LoopStatistics())

    def quantiles(self, row: int, *parts: float) -> list[float]:
        """Quantiles of a row's measurements, [s]; 0 without any. A part is 0.99 for 99 %."""
        cumulative = self.histograms[row].cumsum()
        ranks = [max(math.ceil(part * int(cumulative[-1])), 1) for part in parts]
        largest = float(self.largest[row])  # 0 without any
        return [min(_upper_edge(int(j)), largest) for j in cumulative.searchsorted(ranks)]

    def summary(self, row: int) -> str:
        """Median, 99 %, 99.9 % and largest value of a row in words."""
        if not self.histograms[row].any():
            return "not measured"
        seconds = *self.quantiles(row, 0.5, 0.99, 0.999), self.largest[row]
        names = "median", "99 %", "99.9 %", "largest"
        times = (f"{name} {1e6 * s:.0f} us" for name, s in zip(names, seconds, strict=True))
        return ", ".join(times)

    def __str__(self) -> str:
        rows = "".join(f"\n  {name}: {self.summary(row)}" for row, name in enumerate(NAMES))
        counts = self.counts
        return f"{self.ticks} ticks, {counts.missed} states missed, {counts.late} late{rows}"


def _upper_edge(index: int) -> float:
    return SHORTEST * 10.0 ** ((index + 1) / BINS_PER_DECADE)


@inlined
def record(
    arrays: StatisticsArrays,
    duration: float,
    age: float,
    interval: float,
    period: float,
    missed: int,
) -> None:
    """Counts one tick, with those of its measurements [s] that are not NaN; allocates nothing.

    Args:
        arrays: arrays of a `LoopStatistics`, which describes the measurements.
        period: difference of the stamps of the state before and of this state.
        missed: number of states that were missed right before this state.
    """
    for row, value in enumerate((duration, age, abs(interval - period), interval)):
        if math.isnan(value):
            continue
        place = math.log10(max(value, SHORTEST) / SHORTEST) * BINS_PER_DECADE
        arrays.histograms[row, int(min(place, BINS - 1.0))] += 1
        arrays.largest[row] = max(arrays.largest[row], value)
    counts = arrays.counts[0]
    counts.missed += missed
    if interval > 1.5 * period > 0.0:
        counts.late += 1


class AppliedTorque:
    """The last commands, to find the one that the robot has applied.

    Hardware in simulation, and some drives, report the commanded torque as measured effort. One
    thread has kernels call `note`, a different thread calls `age`.

    Args:
        joints: how many there are.

    Attributes:
        arrays: for kernels that call `note`.
    """

    def __init__(self, joints: int) -> None:
        torques, times = np.full((REMEMBERED, joints), math.nan), np.full(REMEMBERED, math.nan)
        self.arrays = AppliedArrays(torques, times, np.zeros(1, dtype=np.int64))

    def age(self, efforts: FloatArray, seen_at: float) -> float:
        """How long before `seen_at` these efforts were commanded last, [s]; NaN if they were not.

        Args:
            efforts: as measured, shape (nv,), [Nm] or [N].
            seen_at: when the state with them came, by the steady clock, [s].
        """
        torques, times = self.arrays.torques.copy(), self.arrays.times.copy()
        same = np.isclose(torques, efforts, rtol=SAME, atol=0.0).all(axis=1) & (times < seen_at)
        return seen_at - float(times[same].max()) if same.any() else math.nan


@inlined
def note(arrays: AppliedArrays, torque: FloatArray, now: float) -> None:
    """Keeps a torque that is commanded."""
    row = arrays.place[0]
    for j in range(torque.shape[0]):
        arrays.torques[row, j] = torque[j]
    arrays.times[row] = now
    arrays.place[0] = (row + 1) % arrays.times.shape[0]


class DeferredLog:
    """A queue in front of a logger that logs messages of one kind at most once a second, with the
    number of those that were left out.

    Attributes:
        logger: writes the messages.
        wake: called when a message waits for `flush`, in the thread that it comes from.
    """

    def __init__(self, logger: Any) -> None:
        self.logger = logger
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MOST_WAITING)
        self._last: dict[str, float] = {}  # time of the last logged message of each kind [s]
        self._left_out: dict[str, _LeftOut] = {}  # since then, by kind
        self.wake: Callable[[], object] = lambda: None

    def say(self, severity: str, kind: str, text: str) -> None:
        """Keeps a message for `flush`. If one of its kind came within the last second, it is
        counted, and the last one of that second is logged with the count.

        Args:
            severity: "info", "warning", "error" or "fatal".
            kind: what it is about; messages of one kind are throttled.
            text: the message.
        """
        now = time.monotonic()
        count = 0 if (left_out := self._left_out.get(kind)) is None else left_out.count
        if now - self._last.get(kind, -math.inf) < THROTTLE:
            self._left_out[kind] = _LeftOut(severity, text, count + 1)
            return
        if len(self._last) >= MOST_WAITING:
            self._last.clear()  # kinds with numbers in them would fill it for ever
        self._log(severity, kind, text, count, now)
        self.wake()

    def flush(self) -> None:
        """Logs the messages that wait, and once a second those that were left out. To be called at
        least once a second."""
        now = time.monotonic()
        for kind, (severity, text, count) in list(self._left_out.items()):
            if now - self._last.get(kind, -math.inf) >= THROTTLE:
                self._log(severity, kind, text, count - 1, now)
        while self._waiting:
            severity, text = self._waiting.popleft()
            LOG[severity](self.logger, text)

    def _log(self, severity: str, kind: str, text: str, count: int, now: float) -> None:
        """Has a message logged by the next `flush`, and says that `count` of its kind were not."""
        since = now - self._last.get(kind, now)
        more = f" ({count} more of this kind within {since:.1f} s)" if count else ""
        self._left_out.pop(kind, None)
        self._last[kind] = now
        self._waiting.append((severity, text + more))
