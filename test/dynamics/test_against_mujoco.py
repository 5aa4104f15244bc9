"""The algorithms against MuJoCo's: independent code, its own URDF reader."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from robots import example_robots, load_all_joints

from rnea_control.dynamics import Workspace, aba, crba, forward_kinematics, rnea
from rnea_control.model import RobotModel
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

PATHS = {path.stem: path for path in example_robots()}


class MuJoCo:
    """The same robot in MuJoCo, in a state; no joint stops."""

    def __init__(self, xml: str, model: RobotModel, q, v) -> None:
        text = urdf_for_mujoco(xml, model, {}, ModelErrors())
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.gravity[:] = model.gravity
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in model.joint_names]
        self.dofs = [joint.dofadr[0] for joint in joints]
        self.data.qpos[[joint.qposadr[0] for joint in joints]] = q
        self.data.qvel[self.dofs] = v
        mujoco.mj_forward(self.model, self.data)

    def inverse(self, a) -> np.ndarray:
        self.data.qacc[self.dofs] = a
        mujoco.mj_inverse(self.model, self.data)
        return self.data.qfrc_inverse[self.dofs]

    def forward(self, tau) -> np.ndarray:
        self.data.qfrc_applied[self.dofs] = tau
        mujoco.mj_forward(self.model, self.data)
        return self.data.qacc[self.dofs]

    def mass_matrix(self) -> np.ndarray:
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.dofs, self.dofs)]


ROBOTS = (
    "panda",
    "ur5_robot",
    "ur10_robot",
    "xarm7",
    "z1",
    "kinova",
    "talos_left_arm",
    "baxter",
    "g1_29dof_rev_1_0",
    "solo12",
    "double_pendulum",
    "anymal",
)


@pytest.mark.parametrize("name", ROBOTS)
def test_robot(name: str) -> None:
    model = load_all_joints(PATHS[name])
    ws, n = Workspace(model), model.nv
    tau, back, M = np.zeros(n), np.zeros(n), np.zeros((n, n))
    poses = np.zeros((len(model.link_names), 4, 4))
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v, a = rng.uniform(-2.0, 2.0, (3, n))
        peer = MuJoCo(PATHS[name].read_text(), model, q, v)
        expected = peer.inverse(a)
        rnea(model, ws, q, v, a, tau)
        np.testing.assert_allclose(tau, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
        crba(model, ws, q, M)
        close(M, peer.mass_matrix(), 1e-9)
        # MuJoCo keeps inertias in their principal axes, which costs it digits.
        tolerance = 1e-10 * np.linalg.cond(M) + 1e-8
        close(aba(model, ws, q, v, tau, back), peer.forward(tau), tolerance)
        forward_kinematics(model, ws, q, poses)
        for link in model.child_links:
            place = peer.data.body(link).xpos
            close(poses[model.link_names.index(link), :3, 3], place, 1e-8)


def close(ours, theirs, tolerance: float) -> None:
    np.testing.assert_allclose(ours, theirs, atol=tolerance * (1.0 + np.abs(theirs).max()))
