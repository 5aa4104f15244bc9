"""What the process may do, by its limits."""

from __future__ import annotations

import resource

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
