"""The generalised momentum and its rate: on every robot, and by hand."""

from __future__ import annotations

import numpy as np
import planar_arm
import pytest
from states import Case, assert_agree, every_robot, without_huge_angles

from rnea_control.dynamics import (
    Workspace,
    coriolis_matrix,
    crba,
    generalized_momentum,
    gravity,
    integrate,
    kinetic_energy,
)


def momentum(case: Case, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, rate = case.zeros(), case.zeros()
    assert generalized_momentum(case.model, case.ws, q, v, p, rate) is p
    return p, rate


@every_robot(40, joints=10)
def test_agrees_with_mass_and_coriolis_matrix(case: Case) -> None:
    model, ws, n, s = case.model, case.ws, case.n, case.state
    p, rate = momentum(case, s.q, s.v)
    assert_agree(p, crba(model, ws, s.q, case.zeros(n, n)) @ s.v, 1e-12)
    C = coriolis_matrix(model, ws, s.q, s.v, case.zeros(n, n))
    assert_agree(rate, C.T @ s.v - gravity(model, ws, s.q, case.zeros()), 1e-12)


@every_robot(20, joints=8)
def test_agrees_with_the_gradient_of_the_kinetic_energy(case: Case) -> None:
    """C^T v = dT/dq where positions are coordinates, as they are of joints of one degree of
    freedom: an independent way to C^T v."""
    model, ws, v = case.model, case.ws, case.state.v
    q = without_huge_angles(case.state.q)
    _, rate = momentum(case, q, v)
    change = rate + gravity(model, ws, q, case.zeros())
    h, scale = 1e-5, 1.0 + kinetic_energy(model, ws, q, v)
    for name in model.joint_names:
        at = model.v_slices[name]
        if at.stop - at.start > 1:
            continue
        step = case.zeros()
        step[at] = h
        after, before = (
            kinetic_energy(model, ws, integrate(model, ws, q, sign * step, np.zeros(model.nq)), v)
            for sign in (1.0, -1.0)
        )
        slope = (after - before) / (2.0 * h)
        assert change[at][0] == pytest.approx(slope, rel=1e-6, abs=1e-6 * scale)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm(state) -> None:
    model, (q, v) = planar_arm.planar_arm(), (row.copy() for row in state[:2])
    p, rate = np.zeros(2), np.zeros(2)
    generalized_momentum(model, Workspace(model), q, v, p, rate)
    np.testing.assert_allclose(p, planar_arm.mass_matrix(q) @ v, rtol=1e-12)
    expected = planar_arm.coriolis_matrix(q, v).T @ v - planar_arm.gravity_torque(q)
    np.testing.assert_allclose(rate, expected, rtol=1e-12)
