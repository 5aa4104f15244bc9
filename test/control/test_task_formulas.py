"""The laws of task space, term by term, against their formulas in NumPy at random states."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from scipy import linalg
from task_tip import Tip

from rnea_control.control import ControlLaw, Waypoint
from rnea_control.control.joint_stream import HARDEST_BRAKING
from rnea_control.control.task_space import (
    LEAST_ROTATIONAL_STIFFNESS,
    LEAST_STIFFNESS,
    LIMIT_STIFFNESS,
    LIMIT_ZONE,
    NULL_DAMPING,
    STIFFNESS_TIME,
)
from rnea_control.control.tip import (
    LARGEST_DAMPING,
    SINGULAR,
    SLOW_CONDITION,
)
from rnea_control.dynamics import Workspace, link_acceleration, rnea

ROBOTS = ["panda", "ur5_robot"]
DEAD_TIME = 0.004  # the laws are for the state when the torque acts [s]
# Postures near singular ones.
SINGULAR_POSTURES = {
    "panda": [0.3498, 0.01, -0.1275, -0.467, 0.01, 1.8187, 0.5678],
    "ur5_robot": [0.3, -1.2, 1.4, -1.0, 0.01, 0.4],
}
CLIP, MOST_FORCE, RATIO, BANDWIDTH = (0.08, 0.3), (25.0, 4.0), 0.8, 13.0
PARAMETERS = {
    "task.error_clip": list(CLIP),
    "task.max_force": list(MOST_FORCE),
    "task.damping_ratio": RATIO,
    "task.bandwidth": BANDWIDTH,
    "nullspace.stiffness": 7.0,
}


def clipped(a: np.ndarray, most: float) -> np.ndarray:
    return a * min(1.0, most / np.linalg.norm(a))


class RandomTip:
    """A tip in a random state near its posture.

    Args:
        far: True for an error and a wrench beyond their bounds.
        singular: True for a posture near a singular one.

    Attributes:
        tip: the controller.
        q, v: state of the arm when the torque acts; `measured`: position before.
        desired: pose.
        twist, twist_rate: desired.
        J, M, own: Jacobian, inertia, and the torque of the model without an acceleration.
    """

    def __init__(
        self, name: str, law: ControlLaw, seed: int, far: bool = False, singular: bool = False
    ) -> None:
        rng = self.rng = np.random.default_rng(seed)
        tip = self.tip = Tip(name, law, **PARAMETERS)
        nv, rows = tip.nv, tip.rows
        settings = tip.controller.arrays.settings[0]
        settings.dead_time = DEAD_TIME
        settings.nullspace_weight[:] = rng.uniform(0.5, 2.0, nv)
        self.q = tip.q + rng.uniform(-0.1, 0.1, nv)
        if singular:
            self.q = np.array(SINGULAR_POSTURES[name])
        self.v = rng.uniform(-0.8, 0.8, nv)
        self.measured = self.q - DEAD_TIME * self.v
        X = tip.pose(self.q).copy()
        size = 4.0 if far else 0.5
        X[:3, 3] += size * CLIP[0] * direction(rng)
        X[:3, :3] = pin.exp3(size * CLIP[1] * direction(rng)) @ X[:3, :3]
        self.desired = X
        tip.aim(X)
        self.twist, self.twist_rate = rng.normal(0.0, 0.3, 6), rng.normal(0.0, 1.0, 6)
        rows.desired_twist, rows.desired_twist_rate = self.twist, self.twist_rate
        rows.posture = tip.q + rng.uniform(-0.3, 0.3, nv)
        self.J, self.M = tip.jacobian(self.q), tip.mass(self.q)
        self.own = tip.own(self.q, self.v)

    def near_limits(self) -> None:
        """Two joints are in the zones before their soft limits."""
        settings = self.tip.controller.arrays.settings[0]
        for j, way in ((0, 1.0), (self.tip.nv - 2, -1.0)):
            settings.soft_upper[j] = self.q[j] + (0.05 if way > 0.0 else 3.0)
            settings.soft_lower[j] = self.q[j] - (3.0 if way > 0.0 else 0.05)

    @property
    def inertia(self) -> np.ndarray:
        """That the tip feels, regularized."""
        inverse = self.J @ np.linalg.solve(self.M, self.J.T)
        least = np.linalg.svd(self.J, compute_uv=False)[-1]
        damping = LARGEST_DAMPING * max(1.0 - (least / SINGULAR) ** 2, 0.0)
        inverse += damping**2 * np.trace(inverse) / np.trace(self.J @ self.J.T) * np.eye(6)
        return np.linalg.inv(inverse)

    @property
    def inverse(self) -> np.ndarray:
        """Dynamically consistent inverse of J."""
        return np.linalg.solve(self.M, self.J.T) @ self.inertia

    @property
    def error(self) -> np.ndarray:
        X = self.tip.pose(self.q)
        way = self.desired[:3, 3] - X[:3, 3]
        turn = pin.log3(self.desired[:3, :3] @ X[:3, :3].T)
        return np.r_[clipped(way, CLIP[0]), clipped(turn, CLIP[1])]

    def null_torque(self, desired_velocity: np.ndarray) -> np.ndarray:
        """Before its projection."""
        rows, settings = self.tip.rows, self.tip.controller.arrays.settings[0]
        torque = np.zeros(self.tip.nv)
        for j in range(self.tip.nv):
            inertia, stiffness = self.M[j, j], 7.0 * settings.nullspace_weight[j]
            torque[j] = stiffness * (rows.posture[j] - self.q[j])
            lower, upper = settings.soft_lower[j], settings.soft_upper[j]
            zone, outside = LIMIT_ZONE * (upper - lower), 0.0
            if math.isfinite(zone):
                outside = max(self.q[j] - upper + zone, 0.0) - max(lower + zone - self.q[j], 0.0)
            torque[j] -= LIMIT_STIFFNESS * inertia * outside
            if outside:
                stiffness += LIMIT_STIFFNESS * inertia
            damping = max(2.0 * math.sqrt(stiffness * inertia), NULL_DAMPING * inertia)
            torque[j] -= damping * (self.v[j] - desired_velocity[j])
        return torque


def direction(rng: np.random.Generator) -> np.ndarray:
    a = rng.standard_normal(3)
    return a / np.linalg.norm(a)


def full_stiffness(rng: np.random.Generator) -> np.ndarray:
    root = np.sqrt([500.0, 400.0, 600.0, 30.0, 20.0, 25.0])
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    mixed = turn @ np.diag(rng.uniform(0.3, 1.0, 6)) @ turn.T
    return root[:, None] * mixed * root


@pytest.mark.parametrize("stiffness", ["full", "free along z"])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", ROBOTS)
def test_impedance_is_its_formula(name: str, far: bool, stiffness: str) -> None:
    """RNEA(q, v, 0) + J^T (W + D (x'_d - J v)) + (1 - J^T Jbar^T) tau_n"""
    x = RandomTip(name, ControlLaw.cartesian_impedance, 3, far)
    rows, J = x.tip.rows, x.J
    K = full_stiffness(x.rng)
    if stiffness != "full":
        K = np.diag([300.0, 400.0, 0.0, 30.0, 20.0, 0.0])
    rows.stiffness = rows.target_stiffness = K.ravel()
    rows.stiffness_setting = x.tip.controller.arrays.settings[0].task_stiffness
    target = np.r_[10.0 * direction(x.rng), 0.8 * direction(x.rng)]
    rows.target_wrench = rows.asked_wrench = target
    rows.wrench_at = 0.0
    x.near_limits()
    e = x.error
    force = K @ e
    force[3:] = pin.Jlog3(pin.exp3(e[3:])).T @ force[3:]
    force += target
    wrench = np.r_[clipped(force[:3], MOST_FORCE[0]), clipped(force[3:], MOST_FORCE[1])]
    assert np.linalg.norm(wrench - force) > 1.0 or not far
    damped = K.copy()
    least = np.repeat([LEAST_STIFFNESS, LEAST_ROTATIONAL_STIFFNESS], 3)
    np.fill_diagonal(damped, np.maximum(np.diag(K), least))
    D = 2.0 * RATIO * x.inertia @ linalg.sqrtm(np.linalg.solve(x.inertia, damped)).real
    null = np.eye(x.tip.nv) - J.T @ x.inverse.T
    expected = x.own + J.T @ (wrench + D @ (x.twist - J @ x.v))
    expected += null @ x.null_torque(np.zeros(x.tip.nv))
    torque = x.tip.torque(x.measured, x.v)
    np.testing.assert_allclose(torque, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(rows.desired_velocity, x.inverse @ x.twist, atol=1e-9)


@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", ROBOTS)
def test_task_computed_torque_is_its_formula(name: str, far: bool, singular: bool) -> None:
    """RNEA(q, v, Jbar (x''_d + p e + d e' - J' v) + (1 - Jbar J) a_n)"""
    x = RandomTip(name, ControlLaw.task_computed_torque, 4, far, singular)
    assert (np.linalg.svd(x.J, compute_uv=False)[-1] < 0.5 * SINGULAR) == singular
    x.near_limits()
    model, nv = x.tip.model, x.tip.nv
    own = link_acceleration(model, Workspace(model), x.q, x.v, np.zeros(nv), x.tip.tip, np.zeros(6))
    wanted = x.twist_rate + BANDWIDTH**2 * x.error + 2.0 * BANDWIDTH * (x.twist - x.J @ x.v) - own
    of_posture = x.null_torque(np.zeros(nv)) / np.diag(x.M)
    a = x.inverse @ wanted + (np.eye(nv) - x.inverse @ x.J) @ of_posture
    torque = x.tip.torque(x.measured, x.v)
    np.testing.assert_allclose(torque, x.own + x.M @ a, rtol=1e-7, atol=1e-7)


def stretched(condition: float) -> Tip:
    """A Panda whose Jacobian has this condition number, on the way to a singular posture."""
    tip = Tip("panda", ControlLaw.task_computed_torque)
    start, near, far = tip.q.copy(), 0.0, 1.0
    way = np.array([0.2, 0.7, 0.1, 2.3, -0.2, 0.3, 0.1])
    for _ in range(60):
        middle = 0.5 * (near + far)
        if np.linalg.cond(tip.jacobian(start + middle * way)) < condition:
            near = middle
        else:
            far = middle
    tip.q = start + near * way
    tip.controller.hold(0.0, tip.q)
    tip.begin()
    return tip


def test_gradient_of_the_smallest_singular_value() -> None:
    tip = stretched(20.0)
    tip.torque(tip.q, np.zeros(7))
    values = np.linalg.svd(tip.jacobian(tip.q), compute_uv=False)
    assert values[0] / values[-1] > SLOW_CONDITION and values[-1] > SINGULAR
    assert abs(tip.rows.condition - values[0] / values[-1]) < 1e-6
    steps = 1e-6 * np.eye(7)
    least = [
        np.linalg.svd(tip.jacobian(tip.q + step), compute_uv=False)[-1]
        - np.linalg.svd(tip.jacobian(tip.q - step), compute_uv=False)[-1]
        for step in steps
    ]
    J, M = tip.jacobian(tip.q), tip.mass(tip.q)
    inertia = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    of_joints = values[-1] * np.array(least) / 2e-6
    expected = inertia @ J @ np.linalg.solve(M, of_joints)
    np.testing.assert_allclose(tip.rows.singular_gradient, expected, rtol=1e-4, atol=1e-6)


def test_direction_that_no_joint_moves_is_no_singular_posture() -> None:
    tip = Tip("panda of five joints", ControlLaw.task_computed_torque)
    tip.torque(tip.q, np.zeros(5))
    assert tip.rows.condition < 10.0


@pytest.mark.parametrize("away", [False, True])
def test_pace_toward_a_singular_posture(away: bool) -> None:
    tip = stretched(29.0)
    tip.torque(tip.q, np.zeros(7))
    way = tip.rows.singular_gradient[:3] * (1.0 if away else -1.0)
    X = tip.pose(tip.q).copy()
    start = X[:3, 3].copy()
    X[:3, 3] += 0.2 * way / np.linalg.norm(way)
    tip.rows.target_pose[:3] = X[:3, 3]
    speed = 0.0
    for i in range(300):
        tip.torque(tip.q, np.zeros(7), 1e-3 * i)
        speed = max(speed, float(np.linalg.norm(tip.rows.desired_twist[:3])))
    fastest = tip.controller.arrays.settings[0].task_max_velocity[0]
    most = (30.0 - tip.rows.condition) / 13.0 * fastest
    if away:
        assert np.linalg.norm(tip.rows.desired_pose[:3] - start) > 0.03
    else:
        assert 0.5 * most < speed <= most * (1.0 + 1e-6) and most < 0.1 * fastest


class Follower:
    """A tip whose desired pose follows a target; the arm stays where it is."""

    def __init__(self, **parameters: object) -> None:
        self.tip, self.t = Tip("panda", ControlLaw.task_computed_torque, **parameters), 0.0
        self.rows, self.settings = self.tip.rows, self.tip.controller.arrays.settings[0]

    def aim(self, way: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Target, by way and rotation vector from the pose of the tip."""
        X = self.tip.pose(self.tip.q).copy()
        X[:3, 3] += way
        X[:3, :3] = pin.exp3(turn) @ X[:3, :3]
        self.rows.target_pose = [*X[:3, 3], *pin.Quaternion(X[:3, :3].copy()).coeffs()]
        return X

    def step(self) -> None:
        self.t += 1e-3
        self.tip.torque(self.tip.q, np.zeros(7), self.t)


def turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation vector from one pose of seven numbers to another."""
    turn = pin.Quaternion(np.array(b[3:])).matrix() @ pin.Quaternion(np.array(a[3:])).matrix().T
    return pin.log3(turn)


def test_desired_pose_keeps_its_bounds_and_goes_straight() -> None:
    follower = Follower()
    rows, settings = follower.rows, follower.settings
    settings.task_max_velocity[:], settings.task_max_acceleration[:] = [0.2, 0.5], [1.5, 5.0]
    turn = np.array([0.2, -0.3, 0.15])
    follower.aim(np.array([0.05, -0.1, 0.08]), turn)
    start, last = rows.desired_pose.copy(), np.zeros(6)
    box = np.r_[start[:3] - [1.0, 0.04, 1.0], start[:3] + np.array([0.02, 1.0, 0.03])]
    settings.task_box[:] = box
    fastest = np.zeros(2)
    for _ in range(1200):
        follower.step()
        twist, p = rows.desired_twist.copy(), rows.desired_pose[:3]
        assert (p >= box[:3] - 1e-4).all() and (p <= box[3:] + 1e-4).all()
        for k in range(2):
            part = slice(3 * k, 3 * k + 3)
            fastest[k] = max(fastest[k], np.linalg.norm(twist[part]))
            change = np.linalg.norm(twist[part] - last[part]) / 1e-3
            assert change <= settings.task_max_acceleration[k] * (1.0 + 1e-6)
        turned = turn_between(start, rows.desired_pose)
        assert np.linalg.norm(np.cross(turned, turn)) < 1e-3 * np.linalg.norm(turn)
        last = twist
    assert (fastest <= settings.task_max_velocity * (1.0 + 1e-9)).all()
    assert fastest[1] > 0.4
    np.testing.assert_allclose(rows.desired_pose[:3] - start[:3], [0.02, -0.04, 0.03], atol=1e-4)
    np.testing.assert_allclose(turned, turn, atol=1e-4)


def test_slower_limit_brakes_within_a_bound() -> None:
    follower = Follower()
    rows, settings = follower.rows, follower.settings
    follower.aim(np.array([0.0, 0.3, 0.0]), np.zeros(3))
    for _ in range(200):
        follower.step()
    before = rows.desired_twist[1]
    settings.task_max_velocity[0] = 0.02
    follower.step()
    follower.step()
    change = before - rows.desired_twist[1]
    most = HARDEST_BRAKING * settings.task_max_acceleration[0] * 1e-3
    assert before > 0.1 and 0.5 * most < change <= most * (1.0 + 1e-6)


def test_target_is_carried_on_by_its_twist_for_its_span() -> None:
    """And by what fades out after it."""
    follower = Follower(**{"stream.bandwidth": 25.0})
    rows, start = follower.rows, follower.rows.desired_pose.copy()
    rate = np.array([0.02, -0.03, 0.01, 0.05, 0.02, -0.04])
    rows.target_twist, rows.pose_at, rows.pose_span = rate, 0.0, 0.2
    for _ in range(800):
        follower.step()
    moved = np.r_[rows.desired_pose[:3] - start[:3], turn_between(start, rows.desired_pose)]
    np.testing.assert_allclose(moved, (0.2 + 1.0 / 25.0) * rate, rtol=2e-3, atol=1e-6)


def test_target_is_that_of_the_dead_time() -> None:
    """In steady motion the desired pose is where the target is when the torque acts."""
    follower = Follower(**{"stream.bandwidth": 30.0})
    follower.settings.dead_time = 0.01
    rows, start = follower.rows, follower.rows.desired_pose.copy()
    rows.target_twist[0], rows.pose_at, rows.pose_span = 0.05, 0.0, 10.0
    for _ in range(800):
        follower.step()
    led = rows.desired_pose[0] - start[0] - 0.05 * follower.t
    assert abs(led - 0.05 * 0.01) < 1e-5


def test_tip_comes_to_rest_when_targets_are_missing() -> None:
    follower = Follower()
    rows, settings = follower.rows, follower.settings
    rows.target_twist[0], rows.pose_at, rows.pose_span = 0.1, 0.0, 10.0
    for _ in range(300):
        follower.step()
    assert abs(rows.desired_twist[0] - 0.1) < 0.01
    rows.stream_at = follower.t
    for _ in range(int(1e3 * settings.stream_timeout) - 2):
        follower.step()
    assert abs(rows.desired_twist[0] - 0.1) < 0.01
    for _ in range(300):
        follower.step()
    assert abs(rows.desired_twist[0]) < 1e-3


class Stiff:
    """A tip with an error, whose stiffness changes."""

    def __init__(self, power: float, error: float) -> None:
        parameters = {"task.max_power": power, "task.error_clip": [1.0, 1.0]}
        self.tip, self.t = Tip("panda", ControlLaw.cartesian_impedance, **parameters), 0.0
        self.rows, self.settings = self.tip.rows, self.tip.controller.arrays.settings[0]
        X = self.tip.pose(self.tip.q).copy()
        X[:3, 3] += error * np.array([0.6, -0.8, 0.0])
        self.tip.aim(X)
        self.rows.stiffness_setting = self.settings.task_stiffness
        self.rows.target_stiffness = self.rows.stiffness
        self.step()

    def step(self, dt: float = 1e-3) -> None:
        self.t += dt
        self.tip.torque(self.tip.q, np.zeros(7), self.t)

    @property
    def K(self) -> np.ndarray:
        return self.rows.stiffness.reshape(6, 6).copy()


def test_stiffness_approaches_that_of_the_message_and_reaches_it() -> None:
    x = Stiff(1e9, 0.05)
    before, target = x.K, full_stiffness(np.random.default_rng(1))
    x.rows.target_stiffness = target.ravel()
    x.step(0.02)
    share = 1.0 - math.exp(-0.02 / STIFFNESS_TIME)
    np.testing.assert_allclose(x.K, before + share * (target - before), rtol=1e-9, atol=1e-9)
    for _ in range(30):
        x.step(0.02)
    np.testing.assert_array_equal(x.K, target)


@pytest.mark.parametrize("stiffer", [True, False])
def test_power_of_a_change_is_bounded(stiffer: bool) -> None:
    x, power = Stiff(0.3, 0.1), 0.3
    target = x.K * (3.0 if stiffer else 0.3)
    # Of these two, one would be no power without the other entries of the matrix.
    target[0, 1] = target[1, 0] = -200.0 if stiffer else 100.0
    x.rows.target_stiffness = target.ravel()
    before, e = x.K, x.rows.task_error.copy()
    x.step()
    added = 0.5 * e @ (x.K - before) @ e / 1e-3
    if stiffer:
        assert abs(added - power) < 1e-9
    else:  # taking energy has no bound
        share = 1.0 - math.exp(-1e-3 / STIFFNESS_TIME)
        np.testing.assert_allclose(x.K, before + share * (target - before), rtol=1e-9)


def test_a_changed_parameter_replaces_the_stiffness_of_a_message() -> None:
    x = Stiff(1e9, 0.0)
    x.rows.target_stiffness = (0.5 * x.K).ravel()
    x.step()
    x.settings.task_stiffness[2] += 10.0
    for _ in range(600):
        x.step()
    np.testing.assert_array_equal(x.K, np.diag(x.settings.task_stiffness))


def test_wrench_is_approached_and_fades_when_its_messages_are_missing() -> None:
    x = Stiff(1e9, 0.0)
    asked = np.array([5.0, -3.0, 2.0, 0.1, 0.2, -0.3])
    x.rows.asked_wrench, x.rows.wrench_at = asked, x.t
    x.step(0.02)
    share = 1.0 - math.exp(-0.02 / STIFFNESS_TIME)
    np.testing.assert_allclose(x.rows.target_wrench, share * asked)
    for _ in range(30):
        x.rows.wrench_at = x.t
        x.step(0.02)
    np.testing.assert_allclose(x.rows.target_wrench, asked, rtol=1e-6)
    for _ in range(30):
        x.step(0.02)
    np.testing.assert_allclose(x.rows.target_wrench, 0.0, atol=1e-3)


def test_joints_that_are_followed_compliantly_give_pose_twist_and_posture() -> None:
    """Under `control_law: cartesian_impedance` the joints have a desired motion."""
    tip = Tip("panda", ControlLaw.cartesian_impedance)
    law = {"control_law": ControlLaw.cartesian_impedance}
    tip.controller.settings = replace(tip.controller.settings, **law)
    tip.controller.hold(0.0, tip.q)
    goal = Waypoint(1.0, tip.q + 0.2, np.zeros(7), np.zeros(7))
    tip.controller.follow(0.0, [goal], 0.0)
    rows = tip.rows
    off = np.array([0.02, -0.03, 0.01, 0.04, 0.02, -0.01, 0.03])
    for t in (0.1, 0.4):
        tip.controller.believe()
        tip.controller.step(t, rows.desired_position + off, np.zeros(7), np.zeros(7))
    q, v = rows.desired_position.copy(), rows.desired_velocity.copy()
    assert np.abs(v).max() > 0.1
    np.testing.assert_allclose(rows.desired_pose[:3], tip.pose(q)[:3, 3], atol=1e-12)
    np.testing.assert_allclose(rows.desired_twist, tip.jacobian(q) @ v, atol=1e-12)
    np.testing.assert_array_equal(rows.posture, q)
    at = rows.model_position.copy()
    J, M = tip.jacobian(at), tip.mass(at)
    inertia = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    inverse = np.linalg.solve(M, J.T) @ inertia
    settings = tip.controller.arrays.settings[0]
    stiffness = settings.nullspace_stiffness * settings.nullspace_weight
    damping = np.maximum(2.0 * np.sqrt(stiffness * np.diag(M)), NULL_DAMPING * np.diag(M))
    null = stiffness * (q - at) + damping * v
    K = rows.stiffness.reshape(6, 6)
    D = 2.0 * settings.task_damping_ratio * inertia @ linalg.sqrtm(np.linalg.solve(inertia, K)).real
    ws, a_d = Workspace(tip.model), rows.desired_acceleration.copy()
    expected = rnea(tip.model, ws, at, np.zeros(7), a_d, np.zeros(7))
    expected = expected + J.T @ (rows.wrench + D @ rows.desired_twist)
    expected = expected + (np.eye(7) - J.T @ inverse.T) @ null
    np.testing.assert_allclose(rows.torque, expected, rtol=1e-7, atol=1e-7)
