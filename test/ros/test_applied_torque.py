"""Which command the robot has applied, by its measured efforts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rnea_control.ros.loop_statistics import REMEMBERED, AppliedTorque


def commanded(count: int) -> AppliedTorque:
    """One command a millisecond, each with a torque of its own."""
    applied = AppliedTorque(2)
    for i in range(count):
        applied.note(np.array([i, 0.0]), 0.001 * i)
    return applied


@pytest.mark.parametrize("count", [10, REMEMBERED + 10, 3 * REMEMBERED])
@pytest.mark.parametrize("back", [1, 3, 9])
def test_age_is_that_of_the_command_with_the_same_torque(count: int, back: int) -> None:
    seen_at = 0.001 * (count - 1) + 0.0005
    efforts = np.array([count - back, 0.0])
    assert commanded(count).age(efforts, seen_at) == pytest.approx(0.001 * back - 0.0005)


def test_the_newest_of_equal_torques_counts_but_none_from_after_the_state() -> None:
    applied = commanded(10)
    applied.note(np.array([3.0, 0.0]), 0.02)
    assert applied.age(np.array([3.0, 0.0]), 0.021) == pytest.approx(0.001)
    assert applied.age(np.array([3.0, 0.0]), 0.0195) == pytest.approx(0.0165)


def test_efforts_that_were_never_commanded_tell_nothing() -> None:
    for efforts in ([3.0001, 0.0], [math.nan, 0.0], [5000.0, 0.0]):
        assert math.isnan(commanded(10).age(np.array(efforts), 1.0))
    assert math.isnan(AppliedTorque(2).age(np.zeros(2), 1.0))
