"""Torques in one line of `rnea`: nonlinear effects, static torque, and inverse dynamics with
friction."""

from __future__ import annotations

import numpy as np
import planar_arm
import pytest
from mujoco_peer import ROBOTS, close, free_and_ball, pushed_states
from mujoco_peer import states as mujoco_states
from states import Case, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import (
    Workspace,
    forward_kinematics,
    friction,
    gravity,
    inverse_dynamics,
    jacobian,
    nonlinear_effects,
    rnea,
    static_torque,
)


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    zero = case.zeros()
    for s in case.states:
        tau = nonlinear_effects(case.model, case.ws, s.q, s.v, case.zeros())
        assert_agree(tau, case.peer.rnea(s.q, s.v, zero))
        tau = static_torque(case.model, case.ws, s.q, s.forces, case.zeros())
        assert_agree(tau, case.peer.rnea(s.q, zero, zero, s.forces))


@pytest.mark.parametrize("name", ROBOTS)
def test_nonlinear_effects_agree_with_mujoco(name: str) -> None:
    for model, ws, peer, q, v, _ in mujoco_states(name):
        expected = peer.bias()
        tau = nonlinear_effects(model, ws, q, v, np.zeros(model.nv))
        np.testing.assert_allclose(tau, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_floating_and_spherical_joints_with_armature_damping_and_a_force_as_in_mujoco() -> None:
    model = free_and_ball()
    ws = Workspace(model)
    for s in pushed_states(model):
        close(
            inverse_dynamics(model, ws, s.q, s.v, s.a, np.zeros(model.nv), s.forces), s.tau, 1e-12
        )


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_nonlinear_effects_of_the_planar_arm(state) -> None:
    model, (q, v) = planar_arm.planar_arm(), (row.copy() for row in state[:2])
    tau = nonlinear_effects(model, Workspace(model), q, v, np.zeros(2))
    expected = planar_arm.coriolis_torque(q, v) + planar_arm.gravity_torque(q)
    np.testing.assert_allclose(tau, expected, rtol=1e-12)


@every_robot(40)
def test_static_torque_is_rnea_at_rest(case: Case) -> None:
    s, zero = case.state, case.zeros()
    expected = rnea(case.model, case.ws, s.q, zero, zero, case.zeros(), s.forces)
    tau = static_torque(case.model, case.ws, s.q, s.forces, case.zeros())
    np.testing.assert_array_equal(tau, expected)


@mechanisms(40, joints=9)
def test_static_torque_is_gravity_less_the_work_of_the_forces(case: Case) -> None:
    """g(q) - J^T F, with F turned into axes of the world."""
    model, ws, s = case.model, case.ws, case.state
    expected = gravity(model, ws, s.q, case.zeros())
    poses = forward_kinematics(model, ws, s.q, np.zeros((len(model.link_names), 4, 4)))
    for link, pose, force in zip(model.link_names, poses, s.forces, strict=True):
        J = jacobian(model, ws, s.q, link, case.zeros(6, case.n))
        expected -= J.T @ (force.reshape(2, 3) @ pose[:3, :3].T).ravel()
    tau = static_torque(model, ws, s.q, s.forces, case.zeros())
    np.testing.assert_allclose(tau, expected, rtol=0.0, atol=1e-12 * (1 + np.abs(tau).max()))


@mechanisms(40)
def test_inverse_dynamics_is_rnea_and_friction(case: Case) -> None:
    s, model = case.state, case.model
    model.torque_offset = case.rng.standard_normal(case.n)
    expected = rnea(model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    expected += friction(model, case.ws, s.v, case.zeros())
    tau = inverse_dynamics(model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    np.testing.assert_array_equal(tau, expected)
