"""Gravity torques: against Pinocchio and MuJoCo, by hand, and as the slope of potential energy."""

from __future__ import annotations

import numpy as np
import planar_arm
import pytest
from mujoco_peer import ROBOTS
from mujoco_peer import states as mujoco_states
from states import Case, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import Workspace, gravity, integrate, potential_energy, rnea


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    for s in case.states:
        g = gravity(case.model, case.ws, s.q, case.zeros())
        assert_agree(g, case.peer.rnea(s.q, case.zeros(), case.zeros()))


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, ws, peer, q, _, _ in mujoco_states(name):
        peer.move_to(q, np.zeros(model.nv))
        expected = peer.bias()
        g = gravity(model, ws, q, np.zeros(model.nv))
        np.testing.assert_allclose(g, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_planar_arm(q) -> None:
    model = planar_arm.planar_arm()
    g = gravity(model, Workspace(model), q.copy(), np.zeros(2))
    np.testing.assert_allclose(g, planar_arm.gravity_torque(q), rtol=1e-13)


@mechanisms(40)
def test_gravity_is_rnea_at_rest(case: Case) -> None:
    q, zero = case.state.q, case.zeros()
    g = gravity(case.model, case.ws, q, case.zeros())
    expected = rnea(case.model, case.ws, q, zero, zero, case.zeros())
    np.testing.assert_allclose(g, expected, rtol=0.0, atol=1e-12 * (1 + np.abs(g).max()))


@mechanisms(40, joints=9)
def test_gravity_is_the_slope_of_potential_energy(case: Case) -> None:
    model, ws, q, h = case.model, case.ws, case.state.q, 1e-6

    def energy(step: np.ndarray) -> float:
        return potential_energy(model, ws, integrate(model, ws, q, step, np.zeros(model.nq)))

    slope = [(energy(h * e) - energy(-h * e)) / (2.0 * h) for e in np.eye(case.n)]
    g = gravity(model, ws, q, case.zeros())
    scale = 1.0 + np.abs(g).max() + abs(energy(case.zeros()))
    np.testing.assert_allclose(g, slope, rtol=0.0, atol=1e-8 * scale)
