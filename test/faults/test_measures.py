"""What the faults are judged by notices what it must."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fast_motion import panda
from measures import Measures, measure
from recording import Recording, publishers
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
        self.commands["sequence"] = np.arange(1, END + 1)
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


def spoil_torque(run: Run) -> None:
    run.commands["torque"][200, 1] = 88.0


def spoil_rate(run: Run) -> None:
    run.periods["command"][200:, 6] = 4.0


def spoil_speed(run: Run) -> None:
    run.periods["v"][200, 3] = -2.3


def spoil_beyond(run: Run) -> None:
    run.periods["q"][200, 3] = -0.06


def spoil_astray(run: Run) -> None:
    run.periods["q"][200, 0] = 0.02


def spoil_goal(run: Run) -> None:
    run.periods["q"][-1, 0] = 0.02


def spoil_rest(run: Run) -> None:
    run.periods["v"][FAULT : FAULT + 201, 5] = 0.06


def spoil_silence(run: Run) -> None:
    run.commands["tick"][200:210] = 200


def spoil_handovers(run: Run) -> None:
    run.commands["sequence"][200] = 7


def spoil_finite(run: Run) -> None:
    run.commands["torque"][200, 2] = np.nan


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_torque, "torque 1.01 > 1"),
        (spoil_rate, "rate 66.7 > 60"),
        (spoil_speed, "speed 1.06 > 1"),
        (spoil_beyond, "beyond 0.0098 > 0"),
        (spoil_astray, "astray 0.02 > 0.01"),
        (spoil_goal, "goal 0.02 > 0.01"),
        (spoil_rest, "rest 201 > 200"),
        (spoil_silence, "silence 10 > 5"),
        (spoil_handovers, "handovers 2 > 0"),
        (spoil_finite, "not finite"),
    ],
)
def test_a_broken_bound_is_found(run: Run, spoil, words: str) -> None:
    spoil(run)
    assert any(words in found for found in STRICT.broken(run.measures()))


def test_an_arm_that_moves_at_the_end_does_not_rest(run: Run) -> None:
    run.periods["v"][-1, 0] = 0.1
    assert run.measures().rest == -1
    assert "rest never" in STRICT.broken(run.measures())


def test_publishers_are_told_apart_by_their_counts(run: Run) -> None:
    sequences = [500, 501, 1, 502, 2, 3, 505, 4, -1]
    run.commands["sequence"][:9] = sequences
    assert publishers(run.commands[:9]).tolist() == [0, 0, 1, 0, 1, 1, 0, 1, -1]
