"""Mass matrix: against Pinocchio and MuJoCo, by hand, and what holds for every robot."""

from __future__ import annotations

import numpy as np
import planar_arm
import pytest
from mujoco_peer import ROBOTS, close
from mujoco_peer import states as mujoco_states
from states import Case, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import Workspace, crba, kinetic_energy, nonlinear_effects, rnea


def mass_matrix(case: Case, q: np.ndarray) -> np.ndarray:
    return crba(case.model, case.ws, q, np.full((case.n, case.n), np.nan))


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    for s in case.states:
        assert_agree(mass_matrix(case, s.q), case.peer.mass_matrix(s.q))


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, ws, peer, q, _, _ in mujoco_states(name):
        close(crba(model, ws, q, np.zeros((model.nv, model.nv))), peer.mass_matrix(), 1e-9)


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_planar_arm(q) -> None:
    model = planar_arm.planar_arm()
    M = crba(model, Workspace(model), q.copy(), np.zeros((2, 2)))
    np.testing.assert_allclose(M, planar_arm.mass_matrix(q), rtol=1e-13)


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_columns_are_torques_of_unit_accelerations(q) -> None:
    model = planar_arm.planar_arm()
    model.gravity = np.zeros(3)
    for j, e in enumerate(np.eye(2)):
        tau = rnea(model, Workspace(model), q.copy(), np.zeros(2), e, np.zeros(2))
        np.testing.assert_allclose(tau, planar_arm.mass_matrix(q)[:, j], rtol=1e-13)


@mechanisms(60, joints=9)
def test_torque_is_mass_times_acceleration_plus_nonlinear_effects(case: Case) -> None:
    s = case.state
    nle = nonlinear_effects(case.model, case.ws, s.q, s.v, case.zeros())
    tau = rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros())
    scale = 1.0 + np.abs(tau).max()
    np.testing.assert_allclose(mass_matrix(case, s.q) @ s.a + nle, tau, atol=1e-11 * scale)


@mechanisms(60, joints=9)
def test_mass_matrix_is_symmetric_and_positive_definite(case: Case) -> None:
    M = mass_matrix(case, case.state.q)
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0


@mechanisms(40, joints=9)
def test_mass_matrix_gives_the_kinetic_energy(case: Case) -> None:
    s = case.state
    energy = kinetic_energy(case.model, case.ws, s.q, s.v)
    assert 0.5 * s.v @ mass_matrix(case, s.q) @ s.v == pytest.approx(energy, rel=1e-12)
