"""The judge of random hand-overs, with histories that are written out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from handover_history import RATE, TIMEOUT, Command, Event, draw, faults

PERIOD = 1.0 / RATE
WOKEN = [Event(0.25, "continue", "controller")]
ASKED = [Event(0.199, "resume", "controller")]


def commands(who: str, begin: float, count: int = 50, torque: float = 1.0) -> list[Command]:
    times = [begin + i * PERIOD for i in range(count)]
    return [Command(at, at, who, np.full(2, torque)) for at in times]


BEFORE, TAKEN = commands("controller", 0.0), commands("sentinel", 0.1 + TIMEOUT)
STRAY, LATER = commands("controller", 0.2455 + 0.0055, 1, 3.0), commands("sentinel", 0.252)


@pytest.mark.parametrize(
    ("history", "done", "found"),
    [
        (BEFORE + TAKEN, [], ""),
        (BEFORE + commands("sentinel", 0.11), [], "two commanders"),
        (TAKEN + STRAY + LATER, WOKEN, "two commanders"),  # it was no owner before
        (BEFORE + TAKEN + STRAY + LATER, WOKEN, ""),
        (BEFORE + TAKEN + STRAY + LATER, [], "two commanders"),
        (BEFORE + TAKEN + commands("controller", 0.251, 2) + LATER, WOKEN, "two commanders"),
        (BEFORE + TAKEN + commands("controller", 0.247), ASKED, ""),
        (BEFORE + commands("controller", 0.1, torque=1.5), [], "step"),
        (BEFORE + commands("sentinel", 0.5, torque=2.0), [], "step"),
    ],
)
def test_what_no_history_may_do_is_found(
    history: list[Command], done: list[Event], found: str
) -> None:
    texts = faults(history, done)
    assert any(found in text for text in texts) if found else not texts


def test_seed_draws_the_same_history_again() -> None:
    assert draw(7) == draw(7) != draw(8)
