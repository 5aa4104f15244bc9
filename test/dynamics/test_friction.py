"""Friction: damping, Coulomb friction smooth at standstill, and offset, by hand."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import planar_arm
import pytest
from mujoco_peer import FREE_AND_BALL, free_and_ball
from states import Case, mechanisms

from rnea_control.dynamics import Workspace, friction

STICKING_VELOCITY = 0.01  # as documented


def torque(v, damping=(0.0, 0.0), coulomb=(0.0, 0.0), offset=(0.0, 0.0)) -> np.ndarray:
    model = planar_arm.planar_arm()
    model.damping, model.friction, model.torque_offset = damping, coulomb, offset
    return friction(model, Workspace(model), np.array(v, dtype=float), np.full(2, np.nan))


def test_none_without_parameters() -> None:
    np.testing.assert_array_equal(torque([3.0, -2.0]), 0.0)


def test_damping_grows_with_velocity() -> None:
    np.testing.assert_array_equal(torque([3.0, -2.0], damping=[0.5, 2.0]), [1.5, -4.0])


@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.3, 1.0, 3.0])
def test_coulomb_friction_is_smooth_at_standstill(ratio: float) -> None:
    v = ratio * STICKING_VELOCITY
    expected = np.array([1.2, -0.7]) * math.tanh(ratio)
    np.testing.assert_allclose(torque([v, -v], coulomb=[1.2, 0.7]), expected, rtol=1e-14)


def test_coulomb_friction_is_full_beyond_the_sticking_velocity() -> None:
    tau = torque([3.0 * STICKING_VELOCITY, -1.0], coulomb=[1.2, 0.7])
    np.testing.assert_allclose(tau, [1.2, -0.7], rtol=0.006)
    assert tau[1] == -0.7


def test_offset_does_not_depend_on_velocity() -> None:
    np.testing.assert_array_equal(torque([3.0, -2.0], offset=[0.4, -0.1]), [0.4, -0.1])
    np.testing.assert_array_equal(torque([0.0, 0.0], offset=[0.4, -0.1]), [0.4, -0.1])


def test_all_three_add_up() -> None:
    v = [0.004, -2.0]
    terms = torque(v, damping=[0.5, 2.0]) + torque(v, coulomb=[1.2, 0.7])
    terms += torque(v, offset=[0.4, -0.1])
    tau = torque(v, damping=[0.5, 2.0], coulomb=[1.2, 0.7], offset=[0.4, -0.1])
    np.testing.assert_allclose(tau, terms, rtol=1e-15)


@mechanisms(40)
def test_friction_of_every_joint_takes_power(case: Case) -> None:
    v = case.state.v
    tau = friction(case.model, case.ws, v, case.zeros())
    expected = case.model.damping * v + case.model.friction * np.tanh(v / STICKING_VELOCITY)
    np.testing.assert_allclose(tau, expected, rtol=1e-14, atol=0.0)
    assert (tau * v >= 0.0).all()


def test_damping_is_that_of_mujoco() -> None:
    physics = mujoco.MjModel.from_xml_string(FREE_AND_BALL)
    state, model = mujoco.MjData(physics), free_and_ball()
    state.qvel[:] = v = np.random.default_rng(0).standard_normal(model.nv)
    mujoco.mj_forward(physics, state)
    tau = friction(model, Workspace(model), v, np.zeros(model.nv))
    np.testing.assert_allclose(tau, -state.qfrc_passive, rtol=1e-14, atol=1e-16)
