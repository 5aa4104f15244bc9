"""Energies and the centre of mass: against Pinocchio, by hand, and as the work of torques."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from robots import PLANAR, joint, robot
from states import Case, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import (
    Workspace,
    center_of_mass,
    forward_dynamics,
    friction,
    gravity,
    integrate,
    kinetic_energy,
    potential_energy,
    rnea,
)
from rnea_control.model import RobotModel, RobotModelWarning


def energy(case: Case, q: np.ndarray, v: np.ndarray) -> float:
    return kinetic_energy(case.model, case.ws, q, v) + potential_energy(case.model, case.ws, q)


@every_robot(40, joints=10)
def test_agrees_with_pinocchio(case: Case) -> None:
    model, ws, s, theirs, data = case.model, case.ws, case.state, case.peer.model, case.peer.data
    q = case.peer.q(s.q)
    expected = 0.5 * s.v @ case.peer.mass_matrix(s.q) @ s.v
    assert_agree(kinetic_energy(model, ws, s.q, s.v), expected, 1e-13)
    mass, center, held = case.peer.root_link()
    expected = pin.computePotentialEnergy(theirs, data, q) + held @ center
    assert_agree(potential_energy(model, ws, s.q), expected, 1e-13)
    masses = [(mass, center)]
    masses.append((pin.computeTotalMass(theirs), pin.centerOfMass(theirs, data, q)))
    total = sum(mass for mass, _ in masses)
    assert total > 0.0
    com = center_of_mass(model, ws, s.q, np.zeros(3))
    assert_agree(com, sum(mass * center for mass, center in masses) / total, 1e-13)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm(state) -> None:
    model, (q, v) = planar_arm.planar_arm(), (row.copy() for row in state[:2])
    ws = Workspace(model)
    kinetic = 0.5 * v @ planar_arm.mass_matrix(q) @ v
    assert kinetic_energy(model, ws, q, v) == pytest.approx(kinetic, rel=1e-13)
    masses = np.array([PLANAR["m1"], PLANAR["m2"]])
    heights = planar_arm.mass_centers(q)[:, 2]
    potential = planar_arm.G * masses @ heights
    assert potential_energy(model, ws, q) == pytest.approx(potential, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_center_of_mass_of_the_planar_arm(q) -> None:
    """The base's, at the origin, counts too."""
    model = planar_arm.planar_arm()
    masses = np.array([PLANAR["m1"], PLANAR["m2"]])
    expected = masses @ planar_arm.mass_centers(q) / (1.0 + masses.sum())
    com = center_of_mass(model, Workspace(model), q.copy(), np.zeros(3))
    np.testing.assert_allclose(com, expected, rtol=1e-13, atol=1e-15)


def test_robot_without_mass_has_no_center_of_mass() -> None:
    urdf = robot('<link name="base"/>', '<link name="arm"/>', joint("j", "base", "arm"))
    with pytest.warns(RobotModelWarning, match="no inertia"):
        model = RobotModel.from_urdf_string(urdf)
    com = center_of_mass(model, Workspace(model), np.zeros(1), np.zeros(3))
    assert np.isnan(com).all()


@mechanisms(40, joints=9)
def test_power_is_the_change_of_energy(case: Case) -> None:
    s = case.state
    power = rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros()) @ s.v
    h = 1e-5
    after, before = (energy(case, case.moved(s, t), s.v + t * s.a) for t in (h, -h))
    scale = 1.0 + abs(power) + abs(energy(case, s.q, s.v))
    assert abs(power - (after - before) / (2.0 * h)) < 1e-5 * scale


@mechanisms(25, joints=9)
def test_work_is_the_change_of_energy_along_a_simulated_motion(case: Case) -> None:
    """Constant torques and viscous friction, by the midpoint rule."""
    model, ws, q, v = case.model, case.ws, case.state.q.copy(), 0.3 * case.state.v
    tau = gravity(model, ws, q, case.zeros()) + 0.1 * case.state.a
    model.friction = case.zeros()  # its kink at standstill is not for this rule
    h, steps, work = 2e-4, 100, 0.0
    a, middle = case.zeros(), np.zeros(model.nq)
    start = energy(case, q, v)
    for _ in range(steps):
        forward_dynamics(model, ws, q, v, tau, a)
        v_middle = v + 0.5 * h * a
        integrate(model, ws, q, 0.5 * h * v, middle)
        forward_dynamics(model, ws, middle, v_middle, tau, a)
        work += h * (tau - friction(model, ws, v_middle, case.zeros())) @ v_middle
        integrate(model, ws, q, h * v_middle, q)
        v = v + h * a
    scale = 1.0 + np.abs(v).max() ** 2 + np.abs(tau).max()
    assert abs(energy(case, q, v) - start - work) < 1e-5 * scale
