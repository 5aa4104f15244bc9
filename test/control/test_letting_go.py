"""A controller that has let go of the arm: what it commands from then on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM, to
from default_safety import default_safety
from plant import Plant

from rnea_control.control import Controller, ControllerSettings, Gains, motion_watch
from rnea_control.control.controller import LET_GO_DAMPING_RATE
from rnea_control.dynamics import Workspace, crba, gravity

START = np.array([0.3, -0.5])
LIMIT = 100.0  # effort limits [Nm]
SHOULDER, ELBOW = range(2)
NONE = np.zeros(2)


class Stepped:
    """A controller with the default bounds that holds `START`, and steps that it answers."""

    def __init__(self, limit: float = LIMIT) -> None:
        safety = replace(default_safety(ARM), effort_limit=np.full(2, limit))
        settings = ControllerSettings(Gains.uniform(2, 100.0, 20.0), safety=safety)
        self.controller, self.t, self.tau = Controller(ARM, settings), 3.0, np.zeros(2)
        self.controller.start(self.t, START)
        self.controller.watch = motion_watch.FREE
        self.endings: list = []
        self._noise = 1e-9

    def step(self, q=START, v=NONE, dt: float = 0.001) -> np.ndarray:
        """The torques for a state."""
        self.t += dt
        self._noise = -self._noise  # positions that never change are no positions
        state = np.array(q, dtype=float) + self._noise, np.array(v, dtype=float)
        self.endings += self.controller.step(self.t, *state, self.tau)
        return self.tau.copy()

    def gap(self, dt: float = 0.001) -> np.ndarray:
        """The torques while no state comes."""
        self.t += dt
        self.controller.predict(self.t, self.tau)
        return self.tau.copy()


def let_go(torque: np.ndarray, damped=(False, False)) -> Stepped:
    """A controller that lets go while `torque` is in force."""
    arm = Stepped()
    arm.step()
    arm.controller.damp_when_let_go(np.array(damped))
    arm.controller.in_force = torque
    arm.controller.let_go()
    return arm


def inertia() -> np.ndarray:
    return np.diag(crba(ARM, Workspace(ARM), START, np.zeros((2, 2))))


def reversed_elbow(arm: Stepped, seconds: float = 2.0) -> Plant:
    """The arm moves with a wire of the wrong sign until nothing is found any more."""
    plant = Plant(ARM, START)
    arm.controller.expect_noise(NONE, NONE)
    for _ in range(round(seconds / 0.001)):
        plant.step(arm.step(plant.q, plant.v) * np.array([1.0, -1.0]))
        if arm.controller.powerless:
            break
    return plant


@pytest.mark.parametrize("states", [True, False], ids=["states", "no states"])
def test_torque_fades_to_zero_within_20_ms_and_stays_there(states: bool) -> None:
    """From the effort limit, without a jump, wherever the arm goes meanwhile."""
    arm, rng = let_go(np.array([LIMIT, -LIMIT])), np.random.default_rng(0)
    q, last, rows = START.copy(), np.array([LIMIT, -LIMIT]), []
    for _ in range(200):
        v = rng.uniform(-5.0, 5.0, 2)
        q += 0.001 * v
        rows.append(arm.step(q, v) if states else arm.gap())
    changes = np.diff([last, *rows], axis=0)
    assert np.abs(changes).max() <= LIMIT * 0.001 / 0.02 * (1.0 + 1e-9)
    assert np.abs(rows[17]).min() > 0.0  # as slowly as that
    assert (np.array(rows[20:]) == 0.0).all() and np.abs(rows[19]).max() < 1e-9
    assert (arm.controller.in_force == 0.0).all()


def test_slow_states_let_go_in_one_step_and_unknown_torque_is_none() -> None:
    assert (let_go(np.array([LIMIT, -LIMIT])).step(dt=0.02) == 0.0).all()
    for unknown in (math.nan, math.inf):
        assert let_go(np.array([unknown, 10.0])).step() == pytest.approx([0.0, 5.0])


def test_small_torque_is_gone_at_once_and_does_not_change_its_sign() -> None:
    rows = [let_go(np.array([3.0, -7.0])).step() for _ in range(2)]
    np.testing.assert_allclose(rows[0], [0.0, -2.0])


def test_verified_joints_are_damped_and_no_other() -> None:
    arm = let_go(NONE, (True, False))
    v = np.array([0.3, -0.4])
    expected = -LET_GO_DAMPING_RATE * inertia()[SHOULDER] * v[SHOULDER]
    for _ in range(3):
        tau = arm.step(START + 0.001, v)
    assert tau == pytest.approx([expected, 0.0]) and expected < -1.0
    assert (np.abs([arm.step(START, [100.0, 100.0]) for _ in range(30)][-1]) == [LIMIT, 0.0]).all()


def test_velocities_that_are_predicted_damp_nothing() -> None:
    """The model does not know where an arm goes that it does not hold."""
    arm = let_go(NONE, (True, True))
    for _ in range(10):
        damped = arm.step(START, [0.3, 0.3])
    assert (damped < -0.1).all()
    rows = [arm.gap() for _ in range(20)]
    assert (rows[-1] == 0.0).all()


def test_damping_brakes_an_arm_and_adds_no_energy() -> None:
    """It sinks slowly by its weight; without damping it falls."""
    speeds = {}
    for damped in (True, False):
        arm, plant = let_go(NONE, (damped, damped)), Plant(ARM, START)
        plant.v[:] = 0.8, -0.8
        for _ in range(400):
            tau = arm.step(plant.q, plant.v)
            assert tau @ plant.v <= 1e-12
            plant.step(tau)
        speeds[damped] = np.abs(plant.v).max()
    assert speeds[True] < 0.5 * speeds[False]


def test_arm_with_a_reversed_torque_is_let_go_and_not_damped_there() -> None:
    arm = Stepped(limit=30.0)
    arm.controller.damp_when_let_go(np.array([True, True]))
    plant = reversed_elbow(arm)
    assert arm.controller.powerless
    assert arm.endings[-1].let_go and not arm.endings[-1].faulty
    assert "braking does not help: elbow moves" in arm.endings[-1].text
    assert any(each.faulty for each in arm.endings[:-1])
    damping = arm.controller.rows.let_go_damping
    assert damping[ELBOW] == 0.0 and damping[SHOULDER] > 1.0
    assert np.abs(plant.v).max() < 1.5 * ARM.velocity_limit[0]
    fastest = np.abs(plant.v).max()
    for _ in range(300):
        plant.step(arm.step(plant.q, plant.v) * np.array([1.0, -1.0]))
    assert arm.tau[ELBOW] == 0.0 and arm.tau[SHOULDER] * plant.v[SHOULDER] < 0.0
    assert np.abs(plant.v).max() < 2.0 * fastest


def test_right_arm_with_the_same_push_is_not_let_go() -> None:
    """It is caught where it is, and told once."""
    arm, plant = Stepped(), Plant(ARM, START)
    for k in range(1000):
        plant.push[:] = 40.0 * (k < 60), 0.0
        plant.step(arm.step(plant.q, plant.v))
    assert [each.faulty for each in arm.endings] == [True]
    assert np.abs(plant.q - START).max() > 0.01
    assert not arm.controller.powerless and not arm.controller.arresting
    assert np.abs(plant.v).max() < 0.05


def test_nothing_but_a_new_start_commands_torque_again() -> None:
    arm = let_go(NONE)
    controller, away = arm.controller, START + 0.05
    assert (arm.step(away) == 0.0).all()
    controller.hold(arm.t, START)
    assert (arm.step(away) == 0.0).all()
    controller.start(arm.t, START)
    assert (arm.step(away) == 0.0).all()
    controller.follow(arm.t, [to(1.0, *START + 0.3)], arm.t)
    assert (arm.step(away) == 0.0).all()
    controller.braced = True
    assert (arm.step(away) == 0.0).all()
    controller.damp_when_let_go(np.array([True, True]))
    controller.forget()
    assert not controller.powerless and (controller.rows.let_go_damping == 0.0).all()
    controller.hold(arm.t, START)
    for _ in range(600):  # past the blend
        held = arm.step()
    np.testing.assert_allclose(held, gravity(ARM, Workspace(ARM), START, np.zeros(2)), rtol=1e-5)


# An arm that shakes under the law that holds any arm.


def shakes(arm: Stepped, states: int) -> None:
    """The elbow swings to and fro, from state to state."""
    for k in range(states):
        arm.step(START, [0.0, 3.0 * (-1.0) ** k])


def test_braced_arm_that_shakes_gets_half_of_the_feedback_and_in_the_end_is_let_go() -> None:
    arm, shares = Stepped(), []
    weight = gravity(ARM, Workspace(ARM), START + 0.05, np.zeros(2))
    for share in (1.0, 0.5, 0.25, 0.125):
        arm.controller.braced = True
        arm.controller.expect_noise(NONE, NONE)
        for _ in range(30):
            pulls = arm.step(START + 0.05) - weight
        shares.append(pulls[SHOULDER])
        assert arm.controller.rows.feedback_share == share
        assert not arm.controller.powerless
        for _ in range(50):
            if arm.controller.rows.feedback_share == share:
                shakes(arm, 2)
    np.testing.assert_allclose(np.array(shares) / shares[0], [1.0, 0.5, 0.25, 0.125], rtol=0.02)
    assert arm.controller.powerless and arm.endings[-1].let_go
    assert arm.endings[-1].text.startswith("elbow shakes with little feedback as well")
    arm.controller.forget()
    arm.controller.hold(arm.t, START)
    assert arm.controller.rows.feedback_share == 1.0


def test_arm_that_shakes_under_its_own_law_gives_way_and_keeps_its_feedback() -> None:
    arm = Stepped()
    arm.controller.expect_noise(NONE, NONE)
    shakes(arm, 30)
    assert arm.endings[0].shaken and arm.endings[0].gave_way
    assert arm.controller.rows.feedback_share == 1.0 and not arm.controller.powerless
