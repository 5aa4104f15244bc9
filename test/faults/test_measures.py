"""What faults and hand-overs are judged by notices what it must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fast_motion import panda
from handover_history import RATE, TIMEOUT, Command, Event, draw, faults
from measures import Measures, measure
from recording import Recording
from rows import Bound

START, FAULT, END = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]), 100, 600
STRICT = Bound(astray=0.01, rest=200, silence=5, handovers=0, goal=0.01)


class Run:
    """A recording of an arm at rest, to be spoiled."""

    def __init__(self, folder: Path) -> None:
        recording = Recording(folder, 7, create=True)
        self.periods, self.commands = recording.periods[:END], recording.commands[:END]
        self.periods["stamp"] = 10**6 * np.arange(1, END + 1)
        self.periods["q"] = START
        self.commands["tick"] = np.arange(END)
        self.commands["publisher"] = b"controller"
        self.commands["values"] = 7

    def measures(self) -> Measures:
        path = np.array([START])
        return measure(panda().model, self.periods, self.commands, FAULT, END, path)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_nothing_is_wrong_with_an_arm_at_rest(run: Run) -> None:
    assert STRICT.broken(run.measures()) == []
    assert run.measures().rest == 0


@pytest.mark.parametrize(
    ("of", "what", "where", "value", "words"),
    [
        ("commands", "torque", (200, 1), 88.0, "torque 1.01 > 1"),
        ("periods", "command", (slice(200, None), 6), 4.0, "rate 66.7 > 60"),
        ("periods", "v", (200, 3), -2.3, "speed 1.06 > 1"),
        ("periods", "q", (200, 3), -0.06, "beyond 0.0098 > 0"),
        ("periods", "q", (200, 0), 0.02, "astray 0.02 > 0.01"),
        ("periods", "q", (-1, 0), 0.02, "goal 0.02 > 0.01"),
        ("periods", "v", (slice(FAULT, FAULT + 201), 5), 0.06, "rest 201 > 200"),
        ("periods", "v", (-1, 0), 0.1, "rest never"),
        ("commands", "tick", slice(200, 210), 200, "silence 10 > 5"),
        ("commands", "publisher", 200, b"sentinel", "handovers 2 > 0"),
        ("commands", "torque", (200, 2), np.nan, "not finite"),
        ("commands", "values", 200, 6, "of the wrong size"),
    ],
)
def test_a_broken_bound_is_found(
    run: Run, of: str, what: str, where: object, value: float, words: str
) -> None:
    getattr(run, of)[what][where] = value
    assert any(words in found for found in STRICT.broken(run.measures()))


# Hand-overs.

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
