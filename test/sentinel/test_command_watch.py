"""What the sentinel takes for its own command, and what for a wrong one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.sentinel.command_watch import CommandWatch

LIMIT = np.array([10.0, 20.0])
TIMEOUT = 0.015


def message(*torques: float) -> bytes:
    encoder = Float64MultiArrayEncoder(len(torques))
    encoder.values[:] = torques
    return encoder.encode()


@pytest.fixture
def watch() -> CommandWatch:
    return CommandWatch(("a", "b"), LIMIT)


def test_own_command_comes_back_once(watch: CommandWatch) -> None:
    watch.sent(message(1.0, 2.0), 0.0)
    watch.sent(message(1.0, 2.0), 0.001)
    assert watch.is_own(message(1.0, 2.0), 0.01)
    assert watch.is_own(message(1.0, 2.0), 0.01)
    assert not watch.is_own(message(1.0, 2.0), 0.01)
    watch.sent(message(1.0, 2.0), 0.02)
    assert not watch.is_own(message(1.0, 2.0), 0.13)


@pytest.mark.parametrize(
    ("torques", "words"),
    [
        ((20.2, 0.0), "a command has 20.2 for a, whose effort limit is 10"),
        ((10.2, 0.0), ""),
        ((0.0, math.inf), "number 1 is inf"),
        ((1.0,), "has 1 numbers; it must have 2"),
        ((1.0, 2.0, 3.0), "has 3 numbers; it must have 2"),
    ],
)
def test_absurd_commands(watch: CommandWatch, torques: tuple[float, ...], words: str) -> None:
    found = watch.fault(message(*torques), 0.0, 0.0, 0.0, TIMEOUT)
    assert words in found and bool(words) == bool(found)


def test_command_just_beyond_the_limit_is_wrong_when_it_lasts(watch: CommandWatch) -> None:
    """The limit may just have been lowered, or raised and the sentinel not told yet."""
    assert watch.fault(message(5.0, 0.0), 0.0, 0.0, 0.0, TIMEOUT) == ""
    assert watch.fault(message(10.2, 0.0), 0.4, 0.4, 0.0, TIMEOUT) == ""
    assert watch.fault(message(10.05, -20.15), 0.5, 0.5, 0.0, TIMEOUT) == ""  # rounding
    assert watch.fault(message(10.2, 0.0), 0.9, 0.9, 0.0, TIMEOUT) == ""
    assert "a command has 10.2 for a" in watch.fault(message(10.2, 0.0), 1.1, 1.1, 0.0, TIMEOUT)
    watch.effort_limit = np.array([11.0, 20.0])
    assert watch.fault(message(10.2, 0.0), 1.2, 1.2, 0.0, TIMEOUT) == ""


def frozen(watch: CommandWatch, speed: float, rate: float, *torques: float) -> int:
    """After how many equal commands at 1 kHz there is a fault; -1 for none."""
    for i in range(100):
        if watch.fault(message(*torques), 1e-3 * i, 1e-3 * rate * i, speed, TIMEOUT):
            return i
    return -1


def test_frozen_command_of_a_moving_arm(watch: CommandWatch) -> None:
    assert frozen(watch, 0.06, 1.0, 1.0, 2.0) == pytest.approx(15, abs=1)


@pytest.mark.parametrize(
    ("speed", "rate", "torques"),
    [(0.04, 1.0, (1.0, 2.0)), (1.0, 0.0, (1.0, 2.0)), (1.0, 1.0, (10.0, -20.0))],
    ids=["at rest", "paused", "saturated"],
)
def test_equal_commands_that_are_right(
    watch: CommandWatch, speed: float, rate: float, torques: tuple[float, float]
) -> None:
    assert frozen(watch, speed, rate, *torques) == -1
