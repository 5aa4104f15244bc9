"""Equations of motion of a planar arm written out by hand, and what no other code shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from planar_arm import (
    NUMBERS,
    coriolis_matrix,
    gravity_torque,
    mass_centers,
    mass_matrix,
    planar_arm,
)
from robots import joint, random_mechanism, robot

from rnea_control import dynamics
from rnea_control.dynamics import Workspace
from rnea_control.model import RobotModel

STATES = np.random.default_rng(3).uniform(-3.0, 3.0, (10, 3, 2))
close = np.testing.assert_allclose


@pytest.mark.parametrize(("q", "v", "a"), STATES)
def test_planar_arm(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> None:
    arm = planar_arm()
    q, v, a, ws = q.copy(), v.copy(), a.copy(), Workspace(arm)
    M, C, g = mass_matrix(q), coriolis_matrix(q, v), gravity_torque(q)
    tau = M @ a + C @ v + g
    close(dynamics.rnea(arm, ws, q, v, a, np.zeros(2)), tau, rtol=1e-12)
    close(dynamics.nonlinear_effects(arm, ws, q, v, np.zeros(2)), C @ v + g, rtol=1e-12)
    close(dynamics.gravity(arm, ws, q, np.zeros(2)), g, rtol=1e-13)
    close(dynamics.crba(arm, ws, q, np.zeros((2, 2))), M, rtol=1e-13)
    close(dynamics.coriolis_matrix(arm, ws, q, v, np.zeros((2, 2))), C, rtol=1e-12, atol=1e-15)
    v_r = np.array([0.3, -1.1])
    passive = dynamics.passivity_torque(arm, ws, q, v, v_r, a, np.zeros(2))
    close(passive, M @ a + C @ v_r + g, rtol=1e-12)
    p, rate = np.zeros(2), np.zeros(2)
    close(dynamics.generalized_momentum(arm, ws, q, v, p, rate), M @ v, rtol=1e-12)
    close(rate, C.T @ v - g, rtol=1e-12)
    assert dynamics.kinetic_energy(arm, ws, q, v) == pytest.approx(0.5 * v @ M @ v, rel=1e-13)
    masses, centers = np.array([NUMBERS["m1"], NUMBERS["m2"]]), mass_centers(q)
    potential = pytest.approx(NUMBERS["g0"] * masses @ centers[:, 2], rel=1e-13, abs=1e-14)
    assert dynamics.potential_energy(arm, ws, q) == potential
    com = dynamics.center_of_mass(arm, ws, q, np.zeros(3))
    # the base's, at the origin, counts too
    close(com, masses @ centers / (1.0 + masses.sum()), rtol=1e-13, atol=1e-15)
    forces = np.random.default_rng(1).standard_normal((3, 6))
    pushed = dynamics.rnea(arm, ws, q, v, a, np.zeros(2), forces)
    wrenches = dynamics.joint_wrenches(arm, ws, q, v, a, np.zeros((3, 6)), forces)
    close(wrenches[1:, 4], pushed, rtol=1e-12)  # the moments about the axes
    close(dynamics.aba(arm, ws, q, v, tau, np.zeros(2)), a, rtol=1e-11)
    arm.damping, arm.friction, arm.torque_offset = [0.5, 0.2], [1.0, 0.7], [0.1, -0.3]
    tau += dynamics.friction(arm, ws, v, np.zeros(2))
    close(dynamics.forward_dynamics(arm, ws, q, v, tau, np.zeros(2)), a, rtol=1e-11)


def test_robot_without_mass_has_no_center_of_mass() -> None:
    urdf = robot('<link name="base"/>', '<link name="arm"/>', joint("j", "base", "arm"))
    model = RobotModel.from_urdf_string(urdf)
    com = dynamics.center_of_mass(model, Workspace(model), np.zeros(1), np.zeros(3))
    assert np.isnan(com).all()


def of_one(kind: str) -> tuple[RobotModel, Workspace]:
    model = RobotModel.from_joints(kind, *random_mechanism(0, 1, [kind]))
    return model, Workspace(model)


def test_continuous_joints_go_the_shorter_way() -> None:
    ends = np.array([3.0]), np.array([-3.0])
    step = dynamics.difference(*of_one("continuous"), *ends, np.zeros(1))
    close(step, [2.0 * math.pi - 6.0])


def test_quaternions_keep_the_length_1() -> None:
    model, ws = of_one("spherical")
    q = model.neutral()
    for step in np.random.default_rng(0).standard_normal((1000, 3)):
        dynamics.integrate(model, ws, q, step, q)
        assert math.isclose(np.linalg.norm(q), 1.0, rel_tol=1e-15, abs_tol=4e-16)
