"""Velocity and acceleration of links: against Pinocchio and MuJoCo, and by differences."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from mujoco_peer import ROBOTS, close
from mujoco_peer import states as mujoco_states
from pinocchio_peer import WORLD_ALIGNED
from robots import PLANAR
from states import Case, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import Workspace, forward_kinematics, jacobian, link_acceleration
from rnea_control.exceptions import ArgumentError


@every_robot(40, joints=10)
def test_agrees_with_pinocchio(case: Case) -> None:
    """For about eight links."""
    model, ws, s = case.model, case.ws, case.state
    theirs, data, frames = case.peer.model, case.peer.data, case.peer.frames
    q = case.peer.q(s.q)
    pin.forwardKinematics(theirs, data, q, case.peer.v(s.v), case.peer.v(s.a))
    pin.updateFramePlacements(theirs, data)
    pin.computeJointJacobians(theirs, data, q)
    for link in list(frames)[:: max(1, len(frames) // 8)]:
        J = jacobian(model, ws, s.q, link, np.full((6, case.n), np.nan))
        expected = pin.getFrameJacobian(theirs, data, frames[link], WORLD_ALIGNED)
        assert_agree(J, expected.reshape(6, -1) @ case.peer.G, 1e-13)
        acceleration = link_acceleration(model, ws, s.q, s.v, s.a, link, np.full(6, np.nan))
        expected = pin.getFrameClassicalAcceleration(theirs, data, frames[link], WORLD_ALIGNED)
        assert_agree(acceleration, expected.vector, 1e-13)


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, ws, peer, q, _, _ in mujoco_states(name):
        for link in model.child_links:
            J = jacobian(model, ws, q, link, np.zeros((6, model.nv)))
            close(J, peer.jacobian(link), 1e-8)


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_planar_arm(q) -> None:
    """Only the shoulder moves the elbow, where the lower link's origin is."""
    model = planar_arm.planar_arm()
    J = jacobian(model, Workspace(model), q.copy(), "lower", np.zeros((6, 2)))
    expected = np.zeros((6, 2))
    expected[0, 0], expected[2, 0] = np.array([-math.sin(q[0]), -math.cos(q[0])]) * PLANAR["l1"]
    expected[4] = 1.0
    np.testing.assert_allclose(J, expected, rtol=1e-13, atol=1e-15)


@mechanisms(40, joints=9)
def test_velocity_and_acceleration_are_rates_of_the_pose(case: Case) -> None:
    """By differences along a motion of constant acceleration."""
    model, ws, s, h = case.model, case.ws, case.state, 1e-4
    k = len(model.link_names) - 1
    link = model.link_names[k]

    def pose(time: float) -> np.ndarray:
        poses = np.zeros((k + 1, 4, 4))
        return forward_kinematics(model, ws, case.moved(s, time), poses)[k]

    before, now, after = pose(-h), pose(0.0), pose(h)
    rate, second = (after - before) / (2.0 * h), (after - 2.0 * now + before) / h**2
    spin = rate[:3, :3] @ now[:3, :3].T
    angular = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    velocity = jacobian(model, ws, s.q, link, case.zeros(6, case.n)) @ s.v
    scale = (1.0 + np.abs(velocity).max()) ** 3
    np.testing.assert_allclose(velocity, [*rate[:3, 3], *angular], rtol=0.0, atol=1e-6 * scale)
    acceleration = link_acceleration(model, ws, s.q, s.v, s.a, link, np.zeros(6))
    scale += np.abs(acceleration).max()
    np.testing.assert_allclose(acceleration[:3], second[:3, 3], rtol=0.0, atol=1e-5 * scale)


@pytest.mark.parametrize("link", ["hand", "", None, 3])
def test_unknown_link_is_named(link) -> None:
    model = planar_arm.planar_arm()
    with pytest.raises(ArgumentError, match=f"no link {link!r}"):
        jacobian(model, Workspace(model), np.zeros(2), link, np.zeros((6, 2)))
