"""What the process may do, by its limits."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from rnea_control.ros import real_time

# How long a thread's priority was the usual one, each time in two seconds, [s].
WATCHER = """
import json, os, sys, time
thread, rests, since = int(sys.argv[1]), [], None
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
end = time.monotonic() + 2.0
while (now := time.monotonic()) < end:
    if os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK != os.SCHED_OTHER:
        rests += [] if since is None else [now - since]
        since = None
    elif since is None:
        since = now
    time.sleep(0.0003)
print(json.dumps(rests))
"""


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


def test_python_that_never_rests_gives_way_again_and_again() -> None:
    seen = [os.SCHED_OTHER]
    deadline = time.monotonic() + 30.0

    def work() -> None:
        while len(seen) < 4 and time.monotonic() < deadline:
            now = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
            if now != seen[-1]:
                seen.append(now)

    of_process = real_time.RealTime(real_time.RealTimeSettings(thread_priority=20))
    of_process.enter_process()
    try:
        if of_process.denied:
            pytest.skip("the system allows no real-time priority")
        thread = threading.Thread(target=work)
        thread.start()
        of_process.housekeeping()
        thread.join()
    finally:
        of_process.leave()
    assert seen == [os.SCHED_OTHER, os.SCHED_FIFO] * 2
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_OTHER


def test_python_that_keeps_the_interpreter_rests_no_longer() -> None:
    """Each call below keeps the interpreter's lock for tens of milliseconds."""
    of_process = real_time.RealTime(real_time.RealTimeSettings(thread_priority=20))
    of_process.enter_process()
    rests: list[float] = []
    try:
        if of_process.denied:
            pytest.skip("the system allows no real-time priority")
        running = [True]

        def work() -> None:
            while running:
                sum(range(3_000_000))

        thread = threading.Thread(target=work)
        thread.start()
        of_process.housekeeping()
        told = subprocess.run(
            [sys.executable, "-c", WATCHER, str(thread.native_id)], capture_output=True, check=True
        )
        rests = json.loads(told.stdout)
        running.clear()
        thread.join()
    finally:
        of_process.leave()
    assert len(rests) > 3
    assert np.median(rests) < 2.0 * real_time.REST, rests
