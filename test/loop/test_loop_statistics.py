"""What the control loop measures: its times, and which command the robot has applied. Its log, and
its real-time set-up."""

from __future__ import annotations

import math
import os
import sys
import threading
from _thread import start_new_thread
from pathlib import Path

import numpy as np
import pytest

from rnea_control.loop import loop_records
from rnea_control.loop.loop_records import (
    REMEMBERED,
    AppliedTorque,
    DeferredLog,
    LoopStatistics,
    note,
    record,
)
from rnea_control.ros.real_time import CPU_LATENCY, RealTime, RealTimeSettings


def test_quantiles_are_within_a_bin() -> None:
    values = np.random.default_rng(0).lognormal(-8.0, 1.0, 5000)
    statistics = LoopStatistics()
    for value in values:
        record(statistics.arrays, value, math.nan, math.nan, 0.001, 0)
    for part in (0.5, 0.9, 0.99, 0.999):
        exact = np.quantile(values, part, method="inverted_cdf")
        assert exact <= statistics.quantiles(0, part)[0] <= 1.03 * exact
    assert statistics.largest[0] == values.max()
    assert statistics.histograms.sum(axis=1).tolist() == [5000, 0, 0, 0]
    assert statistics.ticks == 5000 and statistics.counts.late == 0


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e3, math.inf])
def test_what_lies_outside_counts_at_the_edge(value: float) -> None:
    statistics = LoopStatistics()
    record(statistics.arrays, value, value, value, value, 0)
    jitter = 0 if math.isinf(value) else 1  # which is zero
    assert statistics.histograms[:, [0, -1]].sum() == 3 + jitter


def test_difference_of_two_times() -> None:
    statistics = LoopStatistics()
    record(statistics.arrays, 0.5, 0.5, 0.5, 0.5, 0)
    statistics.counts.missed = 4
    earlier = statistics.copy()
    record(statistics.arrays, 0.001, 0.001, 0.0016, 0.001, 0)  # more than half a period late
    statistics.counts.missed = 5
    recent = statistics.since(earlier)
    assert (recent.ticks, recent.counts.missed, recent.counts.late) == (1, 1, 1)
    assert recent.quantiles(0, 0.99)[0] == pytest.approx(0.001, rel=0.03)
    assert recent.largest[0] == pytest.approx(0.001, rel=0.03)
    assert "median 500000 us" in earlier.summary(0)
    assert LoopStatistics().summary(0) == "not measured"


def commanded(count: int) -> AppliedTorque:
    """One command a millisecond, each with a torque of its own."""
    applied = AppliedTorque(2)
    for i in range(count):
        note(applied.arrays, np.array([i, 0.0]), 0.001 * i)
    return applied


@pytest.mark.parametrize("count", [10, REMEMBERED + 10, 3 * REMEMBERED])
@pytest.mark.parametrize("back", [1, 3, 9])
def test_age_is_that_of_the_command_with_the_same_torque(count: int, back: int) -> None:
    seen_at = 0.001 * (count - 1) + 0.0005
    efforts = np.array([count - back, 0.0])
    assert commanded(count).age(efforts, seen_at) == pytest.approx(0.001 * back - 0.0005)


def test_the_newest_of_equal_torques_counts_but_none_from_after_the_state() -> None:
    applied = commanded(10)
    note(applied.arrays, np.array([3.0, 0.0]), 0.02)
    assert applied.age(np.array([3.0, 0.0]), 0.021) == pytest.approx(0.001)
    assert applied.age(np.array([3.0, 0.0]), 0.0195) == pytest.approx(0.0165)


def test_efforts_that_were_never_commanded_tell_nothing() -> None:
    for efforts in ([3.0001, 0.0], [math.nan, 0.0], [5000.0, 0.0]):
        assert math.isnan(commanded(10).age(np.array(efforts), 1.0))
    assert math.isnan(AppliedTorque(2).age(np.zeros(2), 1.0))


def test_messages_of_a_kind_are_throttled_and_none_is_lost_without_a_count(monkeypatch) -> None:
    class Logger:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def error(self, text: str) -> None:
            self.lines.append(text)

    log = DeferredLog(Logger())
    lines = log.logger.lines
    monkeypatch.setattr(loop_records, "THROTTLE", 1000.0)
    for k in range(50):
        log.say("error", "refused", f"refused {k}")
    log.say("error", "other", "another kind")
    log.flush()
    assert lines == ["refused 0", "another kind"]
    monkeypatch.setattr(loop_records, "THROTTLE", 0.0)
    log.flush()  # the last one says how many were left out
    assert len(lines) == 3
    assert lines[2].startswith("refused 49 (48 more of this kind within ")
    monkeypatch.setattr(loop_records, "THROTTLE", 1000.0)
    log.say("error", "refused", "refused again")
    monkeypatch.setattr(loop_records, "THROTTLE", 0.0)
    log.say("error", "refused", "refused at last")  # before a flush
    log.flush()
    log.flush()
    assert len(lines) == 4 and lines[3].startswith("refused at last (1 more of this kind within ")


@pytest.mark.skipif(not os.access(CPU_LATENCY, os.W_OK), reason=f"{CPU_LATENCY} is not ours")
def test_cpus_are_kept_awake_until_it_is_over() -> None:
    def in_force() -> int:
        return int.from_bytes(CPU_LATENCY.read_bytes(), sys.byteorder, signed=True)

    before = in_force()
    real_time = RealTime(RealTimeSettings(cpu_dma_latency=0))
    real_time.enter_process()
    try:
        assert in_force() == 0
        assert "CPUs awake within 0 us" in str(real_time)
    finally:
        real_time.leave()
    assert in_force() == before


def may_have_real_time() -> bool:
    before = os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(51))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, before)
    return True


@pytest.mark.skipif(not may_have_real_time(), reason="SCHED_FIFO is denied")
def test_what_is_granted_is_in_force_and_taken_back() -> None:
    def policies() -> set[tuple[int, int]]:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
        classes = (os.sched_getscheduler(each) & ~os.SCHED_RESET_ON_FORK for each in threads)
        priorities = (os.sched_getparam(each).sched_priority for each in threads)
        return set(zip(classes, priorities, strict=True))

    before, cpus = policies(), os.sched_getaffinity(0)
    one = min(cpus)
    for _ in range(2):
        real_time = RealTime(RealTimeSettings(51, (one,), True))
        real_time.enter_process()
        try:
            real_time.enter_thread()
            assert not real_time.denied
            assert policies() <= {(os.SCHED_FIFO, priority) for priority in (41, 49, 50, 51)}
            assert os.sched_getaffinity(0) == {one}
            assert "MB locked in memory" in str(real_time)
        finally:
            real_time.leave()
            os.sched_setaffinity(0, cpus)
        assert policies() == before
        locked = Path("/proc/self/status").read_text().split("VmLck:")[1].split()[0]
        assert locked == "0"


@pytest.mark.skipif(not may_have_real_time(), reason="SCHED_FIFO is denied")
def test_threads_that_spin_come_after_those_that_they_wait_for(
    request: pytest.FixtureRequest,
) -> None:
    """Fast DDS starts them when it first needs them; at one priority with all others they have kept
    both CPUs from the thread that they waited for."""
    ends = threading.Event()
    request.addfinalizer(ends.set)

    def start(name: str) -> int:
        before = set(os.listdir("/proc/self/task"))
        start_new_thread(ends.wait, ())  # of which `threading` knows nothing
        (thread,) = set(os.listdir("/proc/self/task")) - before
        Path(f"/proc/self/task/{thread}/comm").write_text(name)
        return int(thread)

    def priority(thread: int) -> int:
        return os.sched_getparam(thread).sched_priority

    early, listener = start("dds.asyn.0.0"), start("dds.udp.7400")
    python = threading.Thread(target=ends.wait)
    python.start()
    real_time = RealTime(RealTimeSettings(51))
    real_time.enter_process()
    try:
        late, second = start("dds.asyn.1.0"), start("dds.udp.7401")
        assert priority(late) == priority(second) == 0  # whoever starts them
        real_time.housekeeping()
        assert priority(early) == priority(late) == 49
        assert priority(listener) == priority(second) == 50
        assert priority(python.native_id) == 41
    finally:
        real_time.leave()
    lowest = RealTime(RealTimeSettings(1))
    lowest.enter_process()
    try:
        assert (priority(early), priority(listener)) == (0, 1)
    finally:
        lowest.leave()


def test_what_is_denied_is_said_and_the_rest_is_in_force(monkeypatch, tmp_path: Path) -> None:
    def denied(*arguments) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.sched_setscheduler", denied)
    real_time = RealTime(RealTimeSettings(50, (4095,), False, 0))
    monkeypatch.setattr("rnea_control.ros.real_time.CPU_LATENCY", tmp_path / "none" / "here")
    real_time.enter_process()
    real_time.enter_thread()
    try:
        denied_parts = ", ".join(real_time.denied.values())
        assert "SCHED_FIFO (Operation not permitted" in denied_parts
        assert "CPU 4095 (" in denied_parts
        assert "CPU latency (No such file or directory; needs to write" in denied_parts
    finally:
        real_time.leave()
