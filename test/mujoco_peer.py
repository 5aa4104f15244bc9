"""The same robot in MuJoCo: independent code, its own URDF reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
from robots import example_robot, load_all_joints

from rnea_control.dynamics import Workspace, world_to_link_force
from rnea_control.model import Joint, RobotModel, pseudo_inertia
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

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
    "anymal_c_simple_description/urdf/anymal",
)


class MuJoCo:
    """A robot in a state; no joint stops."""

    def __init__(self, xml: str, model: RobotModel) -> None:
        text = urdf_for_mujoco(xml, model, {}, ModelErrors())
        self.model = mujoco.MjModel.from_xml_string(text)
        self.model.opt.gravity[:] = model.gravity
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in model.joint_names]
        self.positions = [joint.qposadr[0] for joint in joints]
        self.dofs = [joint.dofadr[0] for joint in joints]

    def move_to(self, q: np.ndarray, v: np.ndarray) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self.positions] = q
        self.data.qvel[self.dofs] = v
        mujoco.mj_forward(self.model, self.data)

    def bias(self) -> np.ndarray:
        """Coriolis, centrifugal and gravity torques."""
        return self.data.qfrc_bias[self.dofs]

    def inverse(self, a: np.ndarray) -> np.ndarray:
        self.data.qacc[self.dofs] = a
        mujoco.mj_inverse(self.model, self.data)
        return self.data.qfrc_inverse[self.dofs]

    def forward(self, tau: np.ndarray) -> np.ndarray:
        self.data.qfrc_applied[self.dofs] = tau
        mujoco.mj_forward(self.model, self.data)
        return self.data.qacc[self.dofs]

    def mass_matrix(self) -> np.ndarray:
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M[np.ix_(self.dofs, self.dofs)]

    def jacobian(self, link: str) -> np.ndarray:
        """Of the link frame's origin."""
        J = np.zeros((6, self.model.nv))
        mujoco.mj_jacBody(self.model, self.data, J[:3], J[3:], self.data.body(link).id)
        return J[:, self.dofs]


@cache
def _robot(name: str) -> tuple[RobotModel, Workspace, MuJoCo]:
    path = example_robot(name)
    model = load_all_joints(path)
    return model, Workspace(model), MuJoCo(path.read_text(), model)


def states(
    name: str,
) -> Iterator[tuple[RobotModel, Workspace, MuJoCo, np.ndarray, np.ndarray, np.ndarray]]:
    """An example robot, and the same in MuJoCo, in five random states q, v, a."""
    model, ws, peer = _robot(name)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v, a = rng.uniform(-2.0, 2.0, (3, model.nv))
        peer.move_to(q, v)
        yield model, ws, peer, q, v, a


def close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
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
    ball = {"armature": 0.05, "damping": 0.3}
    hinge = {"translation": tip, "axis": (0, 1, 1), "armature": 0.1, "damping": 0.2}
    joints = [
        Joint("free", "floating", "world", "A"),
        Joint("ball", "spherical", "A", "B", translation=(0.3, 0.1, 0), **ball),
        Joint("hinge", "continuous", "B", "C", **hinge),
        Joint("slide", "prismatic", "C", "D", translation=tip, axis=(1, 1, 0)),
    ]
    masses = {"B": 1.0, "C": 1.5, "D": 0.5}
    inertias = {link: pseudo_inertia(mass, center, moments) for link, mass in masses.items()}
    inertias["A"] = pseudo_inertia(2.0, np.array([0.1, 0.02, 0.03]), moments)
    return RobotModel.from_joints("free", joints, inertias, gravity=(1.0, 2.0, -9.81))


@dataclass(frozen=True)
class PushedState:
    """A state of `free_and_ball`, forces on its links, and the torques of the drives that MuJoCo
    finds."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    forces: np.ndarray
    tau: np.ndarray


def pushed_states(model: RobotModel) -> Iterator[PushedState]:
    """Floating and spherical joints with armature, damping and a force on D."""
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
        tau = state.qfrc_inverse - J_p.T @ force[:3] - J_r.T @ force[3:]
        tau[:3] = R.T @ tau[:3]
        force[3:] += np.cross(state.body("D").xipos, force[:3])
        forces = np.zeros((len(model.link_names), 6))
        world_to_link_force(model, ws, q, "D", force, forces[model.link_names.index("D")])
        yield PushedState(q, v, a, forces, tau)
