"""All interleavings of a controller and a sentinel: one of them commands, never both.

See test/handover_world.py. EVENTS=3 makes the exploration go one event deeper, which takes
minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from handover_world import CONTROLLER, REAL, SENTINEL, World, beginning, explore, guarded

from rnea_control.loop import lease
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.loop.lease import Lease, judge_absence

EVENTS = int(os.environ.get("EVENTS", "2"))


@pytest.mark.parametrize("start", [beginning, guarded])
@pytest.mark.parametrize("times", [REAL, (CONTROLLER, SENTINEL)], ids=["real", "simulated"])
@pytest.mark.parametrize("events", [1, pytest.param(EVENTS, marks=pytest.mark.explores)])
def test_one_commands_and_never_both(
    start: Callable[..., World],
    times: tuple[HandoverTimes, HandoverTimes],
    events: int,
    report: Callable[[str], None],
) -> None:
    found = explore(start(*times), events)
    report(f"hand-over, {start.__name__}: {found.worlds} worlds after up to {events} events")
    assert not found.fault, "\n".join([found.fault, *map(str, found.way)])
    assert found.worlds > 1000**events / 100


def without_lease(own: Lease, now: float) -> None:
    """An owner that wakes up goes on commanding."""


def trusting(own: Lease, stamp: float, now: float) -> None:
    """Believes that a state which it finds is the newest."""
    own.evidence_stamp, own.evidence_at = stamp - 1.0, now - 99.0
    judge_absence(own, stamp, now)


def unforgiving(own: Lease, stamp: float, now: float) -> None:
    """An owner that was away has lost the arm, whatever the arm has seen."""
    if own.guarded:
        lease.listen(own, now, own.recovery)
        lease.change(own, lease.GUARDING, lease.NO_STATE_TELLS)
    else:
        judge_absence(own, stamp, now)


class Impatient(Handover):
    """Goes by the steady clock alone."""

    def _over(self, now: float, since: float, since_stamp: float, duration: float) -> bool:
        return now - since > duration

    def _has_passed(self, now: float, wait: float) -> bool:
        return self._over(now, self.lease.silent_since, 0.0, wait)


class Reckoning(Handover):
    """Counts the commands that it finds before it looks at its own lease."""

    def hear_command(self, now: float) -> None:
        awake, self.lease.awake_at = self.lease.awake_at, now
        super().hear_command(now)
        if self.commanding:
            self.lease.awake_at = awake


class Hasty(Handover):
    """Commands as soon as it has revoked."""

    def look(self, now: float) -> bool:
        self.lease.silent_states = 9
        revoking = self.phase.value == "revoking"
        if revoking:
            self.lease.silent_since -= 99.0
            self.lease.silent_since_stamp -= 99.0
        return super().look(now)


BOTH, NOBODY = "both publish in one period", "nobody publishes"
ALTERNATE = "they alternate"
PAUSED = "taken although no states come"
SHARED = "lost in a pause that the hardware shared"
EVICTED = "evicted by one that had lost the arm"


@pytest.mark.explores
@pytest.mark.parametrize(
    ("start", "fault", "broken"),
    [
        (beginning(replace(CONTROLLER, lease=5.0)), BOTH, {}),
        (guarded(sentinel=replace(SENTINEL, lease=8.0)), ALTERNATE, {}),
        (beginning(sentinel=replace(SENTINEL, timeout=1.0)), BOTH, {}),
        (beginning(replace(CONTROLLER, tolerated=99.0)), BOTH, {}),
        (beginning(sentinel=replace(SENTINEL, states=99)), NOBODY, {}),
        (guarded(sentinel=replace(SENTINEL, grace=2.0)), ALTERNATE, {}),
        (beginning(), BOTH, {"notice_absence": without_lease}),
        (beginning(), BOTH, {"judge_absence": trusting}),
        (beginning(), SHARED, {"judge_absence": unforgiving}),
        (guarded(machine=Reckoning), EVICTED, {}),
        (beginning(machine=Hasty), BOTH, {}),
        (beginning(machine=Impatient), PAUSED, {}),
    ],
    ids=[
        "lease longer than timeout",
        "lease of the sentinel longer than the controller's timeout",
        "timeout shorter than a gap",
        "absence longer than arming tolerated",
        "silence that never counts",
        "grace that ends before the request does",
        "no lease",
        "old states taken for new",
        "absences that the hardware shares count",
        "strays counted before the lease",
        "no wait for silence",
        "steady clock alone",
    ],
)
def test_broken_rule_is_found(
    start: World,
    fault: str,
    broken: dict[str, Callable[..., None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, rule in broken.items():
        monkeypatch.setattr(lease, name, rule)
    found = explore(start, 1) if fault == NOBODY else explore(start, 2)
    assert found.fault == fault
    assert found.way
