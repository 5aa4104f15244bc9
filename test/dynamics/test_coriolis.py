"""The Coriolis matrix and the passivity form: on every robot, against Pinocchio's matrix, and by
hand."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from states import Case, assert_agree, every_robot, without_huge_angles

from rnea_control.dynamics import (
    Workspace,
    coriolis_matrix,
    crba,
    integrate,
    nonlinear_effects,
    passivity_torque,
    rnea,
)
from rnea_control.model.joints import POSITIONS


def matrix(case: Case, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return coriolis_matrix(case.model, case.ws, q, v, np.full((case.n, case.n), np.nan))


def mass_matrix(case: Case, q: np.ndarray) -> np.ndarray:
    return crba(case.model, case.ws, q, case.zeros(case.n, case.n))


@every_robot(40, joints=10)
def test_coriolis_matrix_gives_the_torques_and_is_passive(case: Case) -> None:
    model, ws, s = case.model, case.ws, case.state
    q, v = without_huge_angles(s.q), s.v
    C, M = matrix(case, q, v), mass_matrix(case, q)
    g = rnea(model, ws, q, case.zeros(), case.zeros(), case.zeros())
    assert_agree(C @ v + g, nonlinear_effects(model, ws, q, v, case.zeros()), 1e-13)
    v_r, a_r = np.random.default_rng(5).standard_normal((2, case.n))
    tau = passivity_torque(model, ws, q, v, v_r, a_r, case.zeros())
    assert_agree(tau, M @ a_r + C @ v_r + g, 1e-13)
    # dM/dt = C + C^T is that dM/dt - 2C is skew
    h = 1e-6
    after, before = (
        mass_matrix(case, integrate(model, ws, q, step * v, np.zeros(model.nq))) for step in (h, -h)
    )
    rate = (after - before) / (2.0 * h)
    scale = 1.0 + np.abs(rate).max() + np.abs(M).max()
    np.testing.assert_allclose(C + C.T, rate, rtol=0.0, atol=1e-6 * scale)


# Pinocchio leaves out that the axes of a composite joint move: C v is wrong there.
COMPOSITES = ("universal", "planar")


@every_robot(40, joints=10, types=[kind for kind in POSITIONS if kind not in COMPOSITES])
def test_agrees_with_pinocchio(case: Case) -> None:
    s, peer = case.state, case.peer
    theirs = pin.computeCoriolisMatrix(peer.model, peer.data, peer.q(s.q), peer.v(s.v))
    assert_agree(matrix(case, s.q, s.v), peer.matrix(theirs), 1e-13)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm(state) -> None:
    model, (q, v) = planar_arm.planar_arm(), (row.copy() for row in state[:2])
    C = coriolis_matrix(model, Workspace(model), q, v, np.zeros((2, 2)))
    np.testing.assert_allclose(C, planar_arm.coriolis_matrix(q, v), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_passivity_torque_of_the_planar_arm(state) -> None:
    model, (q, v, a_r) = planar_arm.planar_arm(), (row.copy() for row in state)
    v_r = np.array([0.3, -1.1])
    tau = passivity_torque(model, Workspace(model), q, v, v_r, a_r, np.zeros(2))
    expected = planar_arm.mass_matrix(q) @ a_r + planar_arm.coriolis_matrix(q, v) @ v_r
    np.testing.assert_allclose(tau, expected + planar_arm.gravity_torque(q), rtol=1e-12)
