"""The laws of task space against closed forms, Pinocchio and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from scipy import linalg
from task_arm import TaskArm
from task_tip import ARMS, STIFFNESS, Tip

from rnea_control.control import ControlLaw
from rnea_control.dynamics import aba


@pytest.mark.parametrize("axis", range(6))
def test_deflection_is_force_over_stiffness(axis: int) -> None:
    arm = TaskArm(parameters={"stream.target_timeout": 10.0}).activate()
    start = arm.pose.copy()
    arm.force[axis] = 10.0 if axis < 3 else 1.0
    for _ in range(60):
        arm.send(start[:3, 3], start[:3, :3])
        arm.run(0.1)
    way = np.r_[arm.pose[:3, 3] - start[:3, 3], pin.log3(arm.pose[:3, :3] @ start[:3, :3].T)]
    np.testing.assert_allclose(way, arm.force / STIFFNESS, atol=1e-9)


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("ratio", [0.7, 1.0])
def test_each_mode_has_the_damping_ratio(name: str, ratio: float) -> None:
    parameters = {f"task.k_pos_{axis}": 200.0 + 300.0 * k for k, axis in enumerate("xyz")}
    parameters |= {f"task.k_rot_{axis}": 10.0 + 20.0 * k for k, axis in enumerate("xyz")}
    tip = Tip(name, ControlLaw.cartesian_impedance, **parameters, **{"task.damping_ratio": ratio})
    q, J, M = tip.q, tip.jacobian(tip.q), tip.mass(tip.q)
    minv = np.linalg.inv(M)
    inertia = np.linalg.inv(J @ minv @ J.T)
    consistent = minv @ J.T @ inertia
    K = np.diag(list(parameters.values()))
    damping = np.zeros((6, 6))
    for k in range(6):  # J^T D J v is the torque beside the model's, as seen by the tip
        v = 1e-3 * consistent[:, k]
        damping[:, k] = -1e3 * consistent.T @ (tip.torque(q, v) - tip.own(q, v))
    np.testing.assert_allclose(damping, damping.T, atol=1e-9 * np.abs(damping).max())
    root = linalg.sqrtm(linalg.solve(inertia, K)).real
    expected = 2.0 * ratio * inertia @ root
    np.testing.assert_allclose(damping, expected, atol=1e-7 * np.abs(expected).max())
    # Eigenvalues s of s^2 inertia + s D + K: those of each mode have the damping ratio.
    acceleration = -linalg.solve(inertia, np.hstack([K, damping]))
    poles = linalg.eigvals(np.vstack([np.eye(6, 12, 6), acceleration]))
    frequency = np.sqrt(linalg.eigvals(linalg.solve(inertia, K)).real)
    if ratio < 1.0:
        np.testing.assert_allclose(-poles.real / np.abs(poles), ratio, rtol=1e-5)
    np.testing.assert_allclose(np.sort(np.abs(poles)), np.sort(np.repeat(frequency, 2)), rtol=1e-3)


@pytest.mark.parametrize("name", ["panda", "xarm7", "talos_full_v2", "tiago", "baxter"])
def test_posture_leaves_the_tip_where_it_is(name: str) -> None:
    tip = Tip(name, ControlLaw.cartesian_impedance, **{"nullspace.stiffness": 10.0})
    tip.rows.posture = tip.q + 0.5
    torque = tip.torque(tip.q, np.zeros(tip.nv)) - tip.own(tip.q, np.zeros(tip.nv))
    acceleration = tip.jacobian(tip.q) @ np.linalg.solve(tip.mass(tip.q), torque)
    assert np.abs(torque).max() > 0.1
    assert np.abs(acceleration).max() < 1e-9


@pytest.mark.parametrize("name", ARMS)
def test_pose_pinocchio_and_task_inertia(name: str) -> None:
    tip = Tip(name, ControlLaw.cartesian_impedance)
    rows, X = tip.rows, tip.pose(tip.q)
    turned = X.copy()
    turned[:3, :3] = pin.exp3(np.array([0.1, -0.2, 0.3])) @ X[:3, :3]
    turned[:3, 3] += [0.01, 0.02, -0.03]
    tip.aim(turned)
    rng = np.random.default_rng(5)
    v = 0.3 * rng.standard_normal(tip.nv)
    tip.torque(tip.q, v)
    np.testing.assert_allclose(rows.pose[:3], X[:3, 3], atol=1e-13)
    np.testing.assert_allclose(rows.jacobian, tip.jacobian(tip.q), atol=1e-13)
    np.testing.assert_allclose(rows.twist, tip.jacobian(tip.q) @ v, atol=1e-12)
    np.testing.assert_allclose(rows.task_error, [0.01, 0.02, -0.03, 0.1, -0.2, 0.3], atol=1e-12)
    R, J = rows.factor.reshape(6, 6), tip.jacobian(tip.q)
    inverse = J @ np.linalg.solve(tip.mass(tip.q), J.T)
    np.testing.assert_allclose(R.T @ R, inverse, atol=1e-12 * np.abs(inverse).max())
    # The moment is the gradient of the energy.
    error, K = rows.task_error[3:], STIFFNESS[3:]
    expected = pin.Jlog3(pin.exp3(error)).T @ (K * error)
    np.testing.assert_allclose(rows.wrench[3:], expected, atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_error_decays_as_in_the_closed_form(name: str) -> None:
    """The same bandwidth on ten arms: e(t) = e(0) (1 + w t) e^(-w t)."""
    w, h = 12.0, 2.5e-4
    tip = Tip(name, ControlLaw.task_computed_torque, **{"task.bandwidth": w})
    X = tip.pose(tip.q).copy()
    X[:3, 3] += [0.02, -0.015, 0.025]
    tip.aim(X)
    q, v, a = tip.q.copy(), np.zeros(tip.nv), np.zeros(tip.nv)
    deviation, begin = 0.0, np.array([0.02, -0.015, 0.025])
    for i in range(round(0.8 / h)):
        t = i * h
        torque = tip.torque(q, v, t)
        expected = begin * (1.0 + w * t) * math.exp(-w * t)
        deviation = max(deviation, np.abs(tip.rows.task_error[:3] - expected).max())
        assert np.abs(tip.rows.task_error[3:]).max() < 2e-5
        aba(tip.model, tip.ws, q, v, torque, a)
        q, v = q + h * v + 0.5 * h * h * a, v + h * a
    assert deviation < 1e-3 * 0.025


# Postures in which the arm is stretched, or two axes coincide.
SINGULAR = {
    "panda": [0.3498, 0.0, -0.1275, -0.467, -0.0005, 1.8187, 0.5678],
    "ur5_robot": [0.3, -1.2, 0.0, -1.0, 1.2, 0.4],
    "ur10_robot": [0.3, -1.2, 1.4, -1.0, 0.0, 0.4],
    "ur3_robot": [0.3, -1.2, 0.0, -1.0, 1.2, 0.4],
    "z1": [0.3, 1.2, -1.4, 0.4, 0.0, 0.2],
    "kinova": [0.3, 3.6, 3.1415, 0.6, 1.2, 0.4],
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("law", [ControlLaw.cartesian_impedance, ControlLaw.task_computed_torque])
def test_torque_is_bounded_and_continuous_through_singular_postures(
    name: str, law: ControlLaw
) -> None:
    tip = Tip(name, law, **{"nullspace.stiffness": 10.0})
    singular, rng = np.array(SINGULAR[name]), np.random.default_rng(3)
    way, v = 0.15 * rng.standard_normal(tip.nv), 0.2 * rng.standard_normal(tip.nv)
    torques = []
    for share in np.linspace(-1.0, 1.0, 4001):
        q = singular + share * way
        X = tip.pose(q).copy()
        X[:3, 3] += 0.01
        tip.aim(X)
        torques.append(tip.torque(q, v) - tip.own(q, v))
    steps = np.abs(np.diff(torques, axis=0)).max(axis=0)
    scale = np.abs(tip.mass(singular)).max() + 1.0
    assert np.isfinite(torques).all()
    assert np.abs(torques).max() < 60.0 * scale, np.abs(torques).max()
    # From one of 4000 postures to the next no torque changes by more than 0.5 %.
    assert steps.max() < 0.005 * np.ptp(torques, axis=0).max(), steps
    condition = max(
        np.linalg.cond(tip.jacobian(singular + share * way)) for share in np.linspace(-1, 1, 401)
    )
    assert condition > 300.0


def energy(tip: Tip, q: np.ndarray, v: np.ndarray) -> float:
    """Energy of motion and of the stiffness, without the posture's."""
    error, K = tip.rows.task_error, tip.rows.stiffness.reshape(6, 6)
    return float(0.5 * v @ tip.mass(q) @ v + 0.5 * error @ K @ error)


@pytest.mark.parametrize("seconds", [5.0, pytest.param(60.0, marks=pytest.mark.explores)])
def test_arm_is_passive_while_it_is_pushed_and_the_stiffness_changes(seconds: float) -> None:
    """What a push does not add, and the stiffness adds by at most `task.max_power`, is lost."""
    power, h, rng = 2.0, 5e-4, np.random.default_rng(9)
    unbounded = {"task.error_clip": [9.0, 9.0], "task.max_force": [1e6, 1e6]}
    parameters = {"task.max_power": power, **unbounded}
    tip = Tip("panda", ControlLaw.cartesian_impedance, **parameters)
    q, v, a = tip.q.copy(), np.zeros(7), np.zeros(7)
    push, stored, most = np.zeros(6), 0.0, 0.0
    for i in range(round(seconds / h)):
        if i % 400 == 0:
            push = rng.standard_normal(6) * [15, 15, 15, 2, 2, 2] * (rng.random() < 0.5)
            root = np.sqrt(np.diag(rng.uniform(0.0, 2.0, 6) * STIFFNESS))
            turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
            tip.rows.target_stiffness = (
                root @ turn @ np.diag(rng.uniform(0, 1, 6)) @ turn.T @ root
            ).ravel()
        torque = tip.torque(q, v, i * h)
        before = energy(tip, q, v)
        if i:
            most = max(most, before - stored)
        work = h * float(v @ tip.jacobian(q).T @ push)
        aba(tip.model, tip.ws, q, v, torque + tip.jacobian(q).T @ push, a)
        v = v + h * a
        q = q + h * v
        after_push = 0.5 * h * h * float(a @ tip.mass(q) @ a) + 2e-5  # of the integration
        stored = before + max(work, 0.0) + power * h + after_push
    assert most <= 1e-3, most
    assert np.abs(q - tip.q).max() < 1.5
