"""What the process may do, by its limits."""

from __future__ import annotations

import resource

import pytest

from rnea_control.ros import real_time


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The process's soft limits, to be set; it has no capability."""
    soft = {resource.RLIMIT_RTPRIO: 0, resource.RLIMIT_MEMLOCK: 1 << 16}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft[kind], resource.RLIM_INFINITY))
    monkeypatch.setattr(real_time, "_status", lambda field: "0")
    return soft


@pytest.mark.parametrize(("limit", "largest"), [(0, 0), (50, 50), (resource.RLIM_INFINITY, 99)])
def test_largest_priority_is_the_limit(limits: dict[int, int], limit: int, largest: int) -> None:
    limits[resource.RLIMIT_RTPRIO] = limit
    assert real_time.largest_priority() == largest


def test_memory_may_be_locked_without_a_limit(limits: dict[int, int]) -> None:
    assert not real_time.may_lock_memory()
    limits[resource.RLIMIT_MEMLOCK] = resource.RLIM_INFINITY
    assert real_time.may_lock_memory()


def test_capabilities_go_beyond_the_limits(
    limits: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_time, "_status", lambda field: f"{1 << 14 | 1 << 23:x}")
    assert real_time.largest_priority() == 99
    assert real_time.may_lock_memory()
