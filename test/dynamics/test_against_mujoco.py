"""rnea against MuJoCo's inverse dynamics: independent code, its own URDF reader."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from robots import example_robots, load_all_joints

from rnea_control.dynamics import Workspace, rnea
from rnea_control.model import RobotModel
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

PATHS = {path.stem: path for path in example_robots()}


def mujoco_inverse(xml: str, model: RobotModel, q, v, a) -> np.ndarray:
    text = urdf_for_mujoco(xml, model, {}, ModelErrors())
    physics = mujoco.MjModel.from_xml_string(text)
    physics.opt.gravity[:] = model.gravity
    physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # no joint stops
    data = mujoco.MjData(physics)
    joints = [physics.joint(name) for name in model.joint_names]
    data.qpos[[joint.qposadr[0] for joint in joints]] = q
    dofs = [joint.dofadr[0] for joint in joints]
    data.qvel[dofs], data.qacc[dofs] = v, a
    mujoco.mj_inverse(physics, data)
    return data.qfrc_inverse[dofs]


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
    ws, tau = Workspace(model), np.zeros(model.nv)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v, a = rng.uniform(-2.0, 2.0, (3, model.nv))
        expected = mujoco_inverse(PATHS[name].read_text(), model, q, v, a)
        rnea(model, ws, q, v, a, tau)
        np.testing.assert_allclose(tau, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
