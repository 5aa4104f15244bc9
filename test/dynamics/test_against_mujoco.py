"""The algorithms against MuJoCo's: independent code, its own URDF reader."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from robots import example_robots, load_all_joints

from rnea_control.dynamics import (
    Workspace,
    aba,
    crba,
    forward_dynamics,
    forward_kinematics,
    inverse_dynamics,
    rnea,
    world_to_link_force,
)
from rnea_control.model import Joint, RobotModel, pseudo_inertia
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


FREE_AND_BALL = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="1 2 -9.81"/>
  <worldbody>
    <body name="A">
      <freejoint/>
      <inertial pos="0.1 0.02 0.03" mass="2" diaginertia="0.02 0.03 0.04"/>
      <body name="B" pos="0.3 0.1 0">
        <joint type="ball" armature="0.05" damping="0.3"/>
        <inertial pos="0.1 0.02 -0.03" mass="1" diaginertia="0.02 0.03 0.04"/>
        <body name="C" pos="0.2 0 0.1">
          <joint type="hinge" axis="0 1 1" armature="0.1" damping="0.2"/>
          <inertial pos="0.1 0.02 -0.03" mass="1.5" diaginertia="0.02 0.03 0.04"/>
          <body name="D" pos="0.2 0 0.1">
            <joint type="slide" axis="1 1 0"/>
            <inertial pos="0.1 0.02 -0.03" mass="0.5" diaginertia="0.02 0.03 0.04"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def free_and_ball() -> RobotModel:
    """The same in Python."""
    moments = np.diag([0.02, 0.03, 0.04])
    center, tip = np.array([0.1, 0.02, -0.03]), np.array([0.2, 0.0, 0.1])
    joints = [
        Joint("free", "floating", "world", "A"),
        Joint("ball", "spherical", "A", "B", translation=(0.3, 0.1, 0), armature=0.05, damping=0.3),
        Joint(
            "hinge",
            "continuous",
            "B",
            "C",
            translation=tip,
            axis=(0, 1, 1),
            armature=0.1,
            damping=0.2,
        ),
        Joint("slide", "prismatic", "C", "D", translation=tip, axis=(1, 1, 0)),
    ]
    masses = {"B": 1.0, "C": 1.5, "D": 0.5}
    inertias = {link: pseudo_inertia(mass, center, moments) for link, mass in masses.items()}
    inertias["A"] = pseudo_inertia(2.0, np.array([0.1, 0.02, 0.03]), moments)
    return RobotModel.from_joints("free", joints, inertias, gravity=(1.0, 2.0, -9.81))


def test_floating_and_spherical_joints_with_armature_damping_and_a_force() -> None:
    model = free_and_ball()
    physics = mujoco.MjModel.from_xml_string(FREE_AND_BALL)
    state, ws, rng = mujoco.MjData(physics), Workspace(model), np.random.default_rng(0)
    for _ in range(20):
        q = model.random(rng)
        v, a = rng.standard_normal((2, model.nv))
        force = rng.standard_normal(6)
        # MuJoCo: quaternions w first, linear velocity in axes of the world.
        state.qpos[:] = q[[0, 1, 2, 6, 3, 4, 5, 10, 7, 8, 9, 11, 12]]
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, state.qpos[3:7])
        R = turn.reshape(3, 3)
        state.qvel[:], state.qacc[:] = v, a
        state.qvel[:3] = R @ v[:3]
        mujoco.mj_forward(physics, state)
        state.qacc[:] = a
        state.qacc[:3] = R @ (a[:3] + np.cross(v[3:6], v[:3]))
        mujoco.mj_inverse(physics, state)
        # The force acts on D, about its centre of mass, in axes of the world.
        J_p, J_r = np.zeros((2, 3, model.nv))
        mujoco.mj_jacBodyCom(physics, state, J_p, J_r, state.body("D").id)
        expected = state.qfrc_inverse - J_p.T @ force[:3] - J_r.T @ force[3:]
        expected[:3] = R.T @ expected[:3]

        about_world = force.copy()
        about_world[3:] += np.cross(state.body("D").xipos, force[:3])
        forces = np.zeros((len(model.link_names), 6))
        world_to_link_force(model, ws, q, "D", about_world, forces[model.link_names.index("D")])
        tau = inverse_dynamics(model, ws, q, v, a, np.zeros(model.nv), forces)
        close(tau, expected, 1e-12)
        back = forward_dynamics(model, ws, q, v, tau, np.zeros(model.nv), forces)
        close(back, a, 1e-11)
