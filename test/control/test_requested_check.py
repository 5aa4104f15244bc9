"""The check on request against an arm of which all is known: what it finds, and what torque it
leaves behind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from default_safety import default_safety, default_supervision
from plant import Plant
from robots import two_link_arm

from rnea_control.control import Controller, ControllerSettings, Gains
from rnea_control.control.feasibility import RESTING
from rnea_control.control.requested_check import SETTLING, RequestedCheck
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel

MODEL = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="40"'))
START = np.array([0.3, -0.4])
PERIOD = 0.001
REVERSED = np.array([-1.0, 1.0])


class Bench:
    """A check, and an arm whose torques arrive late, by a factor of each joint."""

    def __init__(
        self,
        factor: np.ndarray | float = 1.0,
        delay: float = 0.0,
        keeps_gravity: bool = True,
        speed: float = 0.0,
    ) -> None:
        settings = ControllerSettings(Gains.uniform(2, 100.0, 20.0), safety=default_safety(MODEL))
        supervision = replace(default_supervision(), activation_check="refuse")
        self.controller = Controller(MODEL, settings)
        self.check = RequestedCheck(self.controller, supervision, keeps_gravity)
        self.plant = Plant(MODEL, START)
        self.plant.v[:] = speed
        self._factor, self._delay = factor, round(delay / PERIOD)
        self.t, self.sent = 5.0, []

    def tick(self) -> bool:
        """Answers a state, and lets a period pass; whether the check goes on."""
        tau = np.zeros(2)
        goes_on = self.check.answer(self.t, self.plant.q.copy(), self.plant.v.copy(), tau)
        if goes_on:
            self.sent.append(tau)
            acting = self.sent[max(len(self.sent) - 1 - self._delay, 0)]
            self.plant.step(self._factor * acting, PERIOD)
        self.t += PERIOD
        return goes_on

    def run(self, ticks: int = 20_000) -> RequestedCheck:
        for _ in range(ticks):
            if not self.tick():
                break
        return self.check


def gravity_torque(q: np.ndarray) -> np.ndarray:
    return gravity(MODEL, Workspace(MODEL), q, np.zeros(2))


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.002])
def test_right_arm_is_back_at_rest_under_the_gravity_torque(delay: float) -> None:
    bench = Bench(delay=delay)
    check = bench.run()
    assert check.is_over and check.failure == "" and not check.moved_off
    assert check.verdict is not None and check.verdict.words == ""
    assert check.verdict.verified.all()
    assert check.seen_delay() == pytest.approx(delay, abs=1e-6)
    np.testing.assert_allclose(bench.plant.q, START, atol=2e-3)
    assert np.abs(bench.plant.v).max() < RESTING
    np.testing.assert_allclose(check.last_command(), gravity_torque(bench.plant.q), atol=1e-2)
    np.testing.assert_allclose(bench.sent[-1], check.last_command(), atol=0.1)
    assert len(bench.sent) * PERIOD < 1.0


def test_reversed_joint_is_let_go_at_once() -> None:
    bench = Bench(REVERSED)
    check = bench.run()
    assert check.verdict is not None and check.verdict.wrong
    assert check.verdict.likely(MODEL) == "the torque of shoulder has the wrong sign"
    assert not check.ends_with_gravity and (check.last_command() == 0.0).all()
    began = round(SETTLING / PERIOD) - 25  # so many ticks before the end it is let go
    assert (np.array(bench.sent[-began:]) == 0.0).all()


def test_zero_is_the_last_command_where_it_is_asked_for() -> None:
    bench = Bench(keeps_gravity=False)
    check = bench.run()
    assert check.verdict is not None and not check.verdict.wrong
    assert (check.last_command() == 0.0).all()
    assert np.abs(bench.plant.v).max() < 1.5  # it sinks against damping: 10 rad/s^2 for 0.5 s else


def test_stop_ends_with_gravity_if_the_arm_stays_under_it() -> None:
    bench = Bench()
    bench.run(40)
    bench.check.stop("interrupted")
    check = bench.run()
    assert check.failure == "interrupted" and check.verdict is None and check.is_over
    assert check.ends_with_gravity and not check.moved_off


def test_stop_ends_with_zero_if_the_arm_moves_off() -> None:
    bench = Bench(REVERSED)
    bench.run(15)
    bench.check.stop("interrupted")
    check = bench.run()
    assert check.verdict is None and check.moved_off
    assert (check.last_command() == 0.0).all() and (bench.sent[-1] == 0.0).all()


@pytest.mark.parametrize("jump", [0.0, 1.0])
def test_arm_that_is_out_of_sight_gets_no_torque_before_its_wires_are_right(jump: float) -> None:
    bench = Bench()
    bench.run(40)
    if jump:
        bench.plant.q[1] += jump
        assert not bench.tick()
        assert "elbow has jumped" in bench.check.failure
    else:
        bench.check.abandon("no joint_states")
    assert bench.check.is_over and (bench.check.last_command() == 0.0).all()
    assert not bench.tick()


def test_arm_that_is_out_of_sight_keeps_gravity_once_its_wires_are_right() -> None:
    bench = Bench()
    while bench.check.verdict is None:
        assert bench.tick()
    bench.run(10)
    bench.check.abandon("no joint_states")
    expected = gravity_torque(bench.plant.q)
    np.testing.assert_allclose(bench.check.last_command(), expected, atol=1e-2)


def test_moving_arm_and_stop_before_the_first_state_get_no_command() -> None:
    moving = Bench(speed=1.0)
    assert not moving.tick()
    assert "moves at 1 rad/s" in moving.check.failure
    stopped = Bench()
    stopped.check.stop("interrupted")
    assert not stopped.tick()
    assert not (moving.check.has_commanded or stopped.check.has_commanded)
