"""Torques that act late: from when on that is told, and the gains that it does not allow."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from supervised_arm import START, SupervisedArm

from rnea_control.control import Controller, ControllerSettings, Gains, Mode
from rnea_control.control.feasibility import (
    MOST_NOISE,
    StatePeriod,
    excessive_gain,
    lateness,
    momentum_noise,
)
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import ControllerError

PERIOD = 0.001


def objection(p: float, d: float, dead_time: float = 0.0, seen: float = math.nan) -> str:
    settings = ControllerSettings(Gains.uniform(2, p, d), dead_time=dead_time)
    return excessive_gain(ARM, Workspace(ARM), settings, START, PERIOD, seen)


@pytest.mark.parametrize(
    ("delay", "dead_time", "period", "late"),
    [
        (0.0029, 0.0, 0.001, False),
        (0.0031, 0.0, 0.001, True),
        (0.0049, 0.002, 0.001, False),
        (0.0051, 0.002, 0.001, True),
        (0.0079, 0.0, 0.004, False),  # states that are slow themselves
        (0.0081, 0.0, 0.004, True),
        (-0.001, 0.0, 0.001, False),
        (math.nan, 0.0, 0.001, False),
        (0.1, 0.0, math.nan, True),
    ],
)
def test_torques_are_late_beyond_3_ms_and_two_periods(delay, dead_time, period, late) -> None:
    words = lateness(delay, dead_time, period)
    assert bool(words) == late
    if late:
        assert words.startswith(f"torques act {1e3 * delay:.0f} ms after the states that they")
        assert f"and dead_time is {1e3 * dead_time:.3g} ms: mend what is late, or set" in words


def test_gains_are_judged_by_the_delay_that_was_seen() -> None:
    """With the time for which a torque is held: d T = 1, and sqrt(p) T = 0.42."""
    assert objection(100.0, 45.0) == "" == objection(100.0, 45.0, seen=0.02)
    words = objection(100.0, 55.0, seen=0.02)
    assert words == (
        "gains.shoulder.d is 55; states at 1000 Hz and torques that act after 0.02 s allow 48.8 at "
        "most: with more the joint shakes"
    )
    assert "gains.shoulder.p is 500;" in objection(500.0, 10.0, seen=0.02)
    assert objection(500.0, 10.0) == ""


def test_delay_that_is_shorter_than_the_dead_time_allows_no_more() -> None:
    """What the user has set may come at other times."""
    told = objection(100.0, 55.0, dead_time=0.02, seen=0.001)
    assert "and a dead_time of 0.02 s allow 48.8" in told
    assert objection(100.0, 55.0, dead_time=0.02, seen=0.05).count("after 0.05 s") == 1


def test_arm_whose_gains_the_seen_delay_does_not_bear_is_a_fault_after_fifty_states() -> None:
    arm = SupervisedArm()  # 400 and 40
    arm.supervisor.activate()
    arm.supervisor.seen_delay = 0.05
    arm.run(0.049)
    assert arm.mode is Mode.HOLDING
    arm.run(0.01)
    assert arm.mode is Mode.FAULT
    assert "gains.shoulder.d is 40" in arm.supervisor.reason
    assert "torques that act after 0.05 s" in arm.supervisor.reason
    with pytest.raises(ControllerError, match=r"after 0\.05 s"):
        arm.supervisor.reset_fault()
    arm.supervisor.seen_delay = math.nan
    arm.supervisor.reset_fault()
    assert arm.run(0.5).mode is Mode.HOLDING


def test_higher_gains_are_refused_while_the_arm_is_held() -> None:
    arm = SupervisedArm().activate()
    higher = replace(arm.controller.settings, gains=Gains.uniform(2, 400.0, 60.0))
    assert arm.supervisor.objection(ARM, higher) == ""
    arm.supervisor.seen_delay = 0.02
    assert "torques that act after 0.02 s" in arm.supervisor.objection(ARM, higher)


def test_noise_is_measured_from_state_to_state_as_the_arm_may_move() -> None:
    rng, period = np.random.default_rng(0), StatePeriod(5.0)
    noise = np.array([0.02, 0.04])
    for k in range(1, 51):
        v = np.array([1.0, -2.0]) * 0.01 * k + noise * rng.standard_normal(2)
        assert period.measure(5.0 + 0.002 * k, v) == (k == 50)
    assert period.is_known and period.shortest == pytest.approx(0.002)
    np.testing.assert_allclose(period.velocity_noise, noise, rtol=0.3)
    assert not period.measure(9.0, v)


@pytest.mark.parametrize("spike", [50.0, 1e200])
def test_wrong_velocity_after_the_start_is_no_noise(spike: float) -> None:
    """It would widen all bounds until the next start: no more is believed than 0.06 rad/s."""
    arm, rng = SupervisedArm(), np.random.default_rng(0)
    arm.supervisor.activate()
    for k in range(60):
        v = arm.plant.v + 0.02 * rng.standard_normal(2) + spike * (k == 20)
        with suppress(ControllerError):
            arm.supervisor.answer(arm.t, arm.plant.q.copy(), v, arm.tau)
        arm._pass()
    assert (arm.controller.rows.velocity_noise <= MOST_NOISE).all() and MOST_NOISE < 0.1


def test_noise_is_measured_without_any_bounds_as_well() -> None:
    controller = Controller(ARM, ControllerSettings(Gains.uniform(2, 1.0, 1.0)))
    controller.expect_noise(np.full(2, 0.1), np.full(2, 0.2))
    np.testing.assert_allclose(controller.rows.residual_noise, 25.0 * 0.2)


def test_noise_of_the_momentum_is_that_of_all_velocities_by_the_inertia() -> None:
    noise, draws = np.array([0.02, 0.1]), np.random.default_rng(0).standard_normal((20000, 2))
    matrix = crba(ARM, Workspace(ARM), START, np.zeros((2, 2)))
    expected = (matrix @ (noise * draws).T).std(axis=1)
    found = momentum_noise(ARM, Workspace(ARM), START, noise)
    np.testing.assert_allclose(found, expected, rtol=0.03)


def test_bounds_are_told_of_the_noise_after_fifty_states() -> None:
    arm, rng = SupervisedArm(), np.random.default_rng(0)
    arm.supervisor.activate()
    rows = arm.controller.rows
    assert np.isnan([rows.velocity_noise, rows.residual_noise]).all()
    for _ in range(60):
        v = arm.plant.v + 0.02 * rng.standard_normal(2)
        arm.supervisor.answer(arm.t, arm.plant.q.copy(), v, arm.tau)
        arm._pass()
    noise = arm.controller.rows.velocity_noise
    np.testing.assert_allclose(noise, 0.02, rtol=0.4)
    momentum = momentum_noise(ARM, Workspace(ARM), START, noise)
    np.testing.assert_allclose(arm.controller.rows.residual_noise, 25.0 * momentum, rtol=0.1)
