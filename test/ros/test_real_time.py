"""What the process may do, by its limits."""

from __future__ import annotations

import os
import resource
import threading

import pytest

from rnea_control.ros import real_time


def test_priority_and_locked_memory_by_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = {resource.RLIMIT_RTPRIO: 0, resource.RLIMIT_MEMLOCK: 1 << 16}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft[kind], resource.RLIM_INFINITY))
    monkeypatch.setattr(real_time, "_status", lambda field: "0")
    for limit, largest in ((resource.RLIM_INFINITY, 99), (50, 50), (0, 0)):
        soft[resource.RLIMIT_RTPRIO] = limit
        assert real_time.largest_priority() == largest
    assert not real_time.may_lock_memory()
    soft[resource.RLIMIT_MEMLOCK] = resource.RLIM_INFINITY
    assert real_time.may_lock_memory()
    soft[resource.RLIMIT_MEMLOCK] = 1 << 16
    monkeypatch.setattr(real_time, "_status", lambda field: f"{1 << 14 | 1 << 23:x}")
    assert real_time.largest_priority() == 99
    assert real_time.may_lock_memory()


def test_long_work_has_no_real_time_priority() -> None:
    seen = []

    def look() -> None:
        seen.append((os.sched_getscheduler(0), os.sched_getparam(0).sched_priority))

    def work() -> None:
        look()
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except PermissionError:
            return
        look()
        with real_time.at_usual_priority():
            look()
        look()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if len(seen) == 1:
        pytest.skip("the system allows no real-time priority")
    usual, raised, meanwhile, after = (
        (policy & ~os.SCHED_RESET_ON_FORK, priority) for policy, priority in seen
    )
    assert usual == meanwhile
    assert raised == after == (os.SCHED_FIFO, 1)
