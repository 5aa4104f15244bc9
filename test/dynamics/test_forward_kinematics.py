"""Where the links are: against Pinocchio and MuJoCo, and by hand."""

from __future__ import annotations

import math

import numpy as np
import planar_arm
import pytest
from mujoco_peer import ROBOTS, close
from mujoco_peer import states as mujoco_states
from robots import PLANAR
from states import Case, assert_agree, every_robot

from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.model import RobotModel


def poses_of(model: RobotModel, q: np.ndarray) -> np.ndarray:
    poses = np.full((len(model.link_names), 4, 4), np.nan)
    return forward_kinematics(model, Workspace(model), q, poses)


@every_robot(40, joints=10)
def test_agrees_with_pinocchio(case: Case) -> None:
    q = case.state.q
    poses = poses_of(case.model, q)
    places = case.peer.place_links(q)
    for link, pose in zip(case.model.link_names, poses, strict=True):
        expected = places[link].homogeneous if link in places else np.eye(4)
        assert_agree(pose, expected, 1e-13)


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, _, peer, q, _, _ in mujoco_states(name):
        poses = poses_of(model, q)
        for link in model.child_links:
            pose, body = poses[model.link_names.index(link)], peer.data.body(link)
            close(pose[:3, 3], body.xpos, 1e-8)
            close(pose[:3, :3], body.xmat.reshape(3, 3), 1e-8)


@pytest.mark.parametrize("q", planar_arm.STATES[:, 0])
def test_planar_arm(q) -> None:
    model = planar_arm.planar_arm()
    poses = dict(zip(model.link_names, poses_of(model, q.copy()), strict=True))
    np.testing.assert_array_equal(poses["base"], np.eye(4))
    elbow = PLANAR["l1"] * np.array([math.cos(q[0]), 0.0, -math.sin(q[0])])
    for link, origin, angle in (("upper", np.zeros(3), q[0]), ("lower", elbow, q[0] + q[1])):
        c, s = math.cos(angle), math.sin(angle)
        expected = np.eye(4)
        expected[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        expected[:3, 3] = origin
        np.testing.assert_allclose(poses[link], expected, rtol=1e-14, atol=1e-15)
