"""Arms in MuJoCo that have friction and rotors, that can be pushed, and that break in motion."""

from __future__ import annotations

import copy
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import mujoco
import numpy as np
from robots import example_robot

from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

PERIOD = 0.001  # of the states [s]
TOOL = np.array([0.0, 0.0, 0.1])  # in the frame of the last link [m]
BRAKE_TORQUE = 20.0  # of a closed brake, as a part of the effort limit
BRAKE_DAMPING = 200.0  # the same per velocity


@dataclass(frozen=True)
class Kind:
    """A kind of arm.

    Attributes:
        urdf: name of its file in example-robot-data.
        joints: those that are controlled; empty for all that move.
        start: where it begins, [rad] or [m].
        rotors: inertia of the actuators at the joints, [kg m^2] or [kg].
        coulomb, viscous: friction, [Nm] or [N], and per velocity.
        locked: where other joints stand.
        telling: a joint about the vertical or along it, two that carry gravity, one of the wrist.
    """

    urdf: str
    start: tuple[float, ...]
    rotors: tuple[float, ...]
    coulomb: tuple[float, ...]
    viscous: tuple[float, ...]
    telling: tuple[int, int, int, int]
    joints: tuple[str, ...] = ()
    locked: Mapping[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.urdf)


KINDS = {
    "panda": Kind(
        "panda",
        (0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8),
        (0.2, 0.2, 0.2, 0.2, 0.07, 0.07, 0.07),
        (0.25, 0.15, 0.2, 0.35, 0.25, 0.15, 0.2),
        (0.07, 0.2, 0.05, 0.2, 0.1, 0.02, 0.06),
        (0, 1, 3, 5),
        tuple(f"panda_joint{i}" for i in range(1, 8)),
        {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02},
    ),
    "ur5": Kind(
        "ur5_robot",
        (0.3, -1.1, 1.4, -1.9, -1.57, 0.2),
        (0.1,) * 6,
        (2.0, 2.0, 2.0, 0.5, 0.5, 0.5),
        (1.0, 1.0, 1.0, 0.3, 0.3, 0.3),
        (0, 1, 2, 3),
    ),
    "ur10": Kind(
        "ur10_robot",
        (0.3, -1.1, 1.4, -1.9, -1.57, 0.2),
        (0.2, 0.2, 0.15, 0.1, 0.1, 0.1),
        (3.0, 3.0, 2.0, 0.7, 0.7, 0.7),
        (1.5, 1.5, 1.0, 0.4, 0.4, 0.4),
        (0, 1, 2, 3),
    ),
    "tiago": Kind(
        "tiago_no_hand",
        (0.15, 1.3, -0.3, -1.2, 1.2, 0.2, 0.3, 0.1),
        (5.0, 0.1, 0.1, 0.1, 0.1, 0.03, 0.03, 0.03),
        (20.0, 0.5, 0.5, 0.3, 0.3, 0.05, 0.05, 0.05),
        (50.0, 0.3, 0.3, 0.2, 0.2, 0.05, 0.05, 0.05),
        (0, 2, 4, 6),
        ("torso_lift_joint", *(f"arm_{i}_joint" for i in range(1, 8))),
    ),
    "xarm7": Kind(
        "xarm7",
        (0.0, -0.5, 0.0, 0.9, 0.0, 1.2, 0.0),
        (0.1,) * 7,
        (0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3),
        (0.3,) * 7,
        (0, 1, 3, 5),
        tuple(f"joint{i}" for i in range(1, 8)),
    ),
    "z1": Kind(
        "z1",
        (0.0, 1.2, -1.0, 0.3, 0.0, 0.0),
        (0.05,) * 6,
        (0.4,) * 6,
        (0.2,) * 6,
        (0, 1, 2, 4),
        tuple(f"joint{i}" for i in range(1, 7)),
    ),
    "ur3": Kind(
        "ur3_robot",
        (0.3, -1.1, 1.4, -1.9, -1.57, 0.2),
        (0.05,) * 6,
        (0.8, 0.8, 0.5, 0.2, 0.2, 0.2),
        (0.4, 0.4, 0.3, 0.1, 0.1, 0.1),
        (0, 1, 2, 3),
    ),
    "kinova": Kind(
        "kinova",
        (0.0, 2.6, 1.5, 0.5, 1.0, 0.0),
        (0.2, 0.2, 0.2, 0.05, 0.05, 0.05),
        (0.5,) * 6,
        (0.3,) * 6,
        (0, 1, 2, 3),
        tuple(f"j2s6s200_joint_{i}" for i in range(1, 7)),
    ),
    "baxter": Kind(
        "baxter",
        (0.0, 0.8, 0.0, 0.5, 0.0, 0.4, 0.0),
        (0.1,) * 7,
        (0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2),
        (0.3,) * 7,
        (0, 1, 3, 5),
        tuple(f"left_{part}" for part in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")),
    ),
    "talos": Kind(
        "talos_left_arm",
        (0.1, 0.2, -0.6, 0.2, 0.1, 0.1),
        (0.1,) * 6,
        (0.5, 0.5, 0.5, 0.1, 0.1, 0.1),
        (0.3, 0.3, 0.3, 0.05, 0.05, 0.05),
        (1, 0, 2, 4),
        tuple(f"arm_left_{i}_joint" for i in range(2, 8)),
    ),
}


@cache
def _read(kind: Kind) -> tuple[RobotModel, str]:
    xml = example_robot(kind.urdf).read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        model = RobotModel.from_urdf_string(xml, kind.joints or None, dict(kind.locked))
    model.armature = np.array(kind.rotors)
    return model, xml


def described(kind: Kind) -> RobotModel:
    """The arm as it is; a model that is the caller's own to change."""
    return copy.deepcopy(_read(kind)[0])


def changed(kind: Kind, change: Callable[[ET.Element], None]) -> RobotModel:
    """A model of the arm whose URDF is another."""
    model, xml = _read(kind)
    root = ET.fromstring(xml)
    change(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        text = ET.tostring(root, encoding="unicode")
        other = RobotModel.from_urdf_string(text, kind.joints or None, dict(kind.locked))
    other.armature = model.armature.copy()
    return other


Contact = Callable[[np.ndarray, np.ndarray], np.ndarray]


class BrokenArm:
    """An arm, and what happens to it.

    Args:
        kind: of arm.
        gravity: at its base, [m/s^2].
        payload: point mass at the tool, [kg].
        friction: factor of that of its kind.
        steps: of the simulation in a period.

    Attributes:
        model: the arm as it is.
        force: at the tool, in the base's frame, [N].
        joint_force: at the joints, [Nm] or [N].
        contact: the force on a tool at a position with a velocity, [m], [m/s], [N]; None for none.
        touched: the largest force of the contact so far, [N].
        drives: the torques that the drives can give, [Nm] or [N].
    """

    def __init__(
        self,
        kind: Kind,
        gravity: tuple[float, float, float] | None = None,
        payload: float = 0.0,
        friction: float = 1.0,
        steps: int = 1,
    ) -> None:
        self.model = described(kind)
        text = urdf_for_mujoco(_read(kind)[1], self.model, ModelErrors())
        spec = mujoco.MjSpec.from_string(text)
        spec.compiler.fusestatic = False
        names = [body.name for body in spec.bodies]
        last = next(name for name in reversed(self.model.child_links) if name in names)
        load = spec.body(last).add_body(name="load", pos=TOOL)
        load.mass, load.inertia, load.explicitinertial = 1e-6, [1e-9] * 3, True
        load.ipos = [0.0, 0.0, 0.0]
        self._physics = physics = spec.compile()
        joints = [physics.joint(name) for name in self.model.joint_names]
        self._position = np.array([joint.qposadr[0] for joint in joints])
        self._velocity = np.array([joint.dofadr[0] for joint in joints])
        self._ids = np.array([joint.id for joint in joints])
        self._tool, self._load = physics.body(last).id, physics.body("load").id
        self._coulomb = friction * np.array(kind.coulomb)
        self._viscous = friction * np.array(kind.viscous)
        physics.dof_armature[self._velocity] = kind.rotors
        physics.opt.gravity[:] = self.model.gravity if gravity is None else gravity
        physics.opt.timestep, self._steps = PERIOD / steps, steps
        physics.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self._data = mujoco.MjData(physics)
        self._data.qpos[self._position] = kind.start
        self.carry(payload)
        self.brake([])
        mujoco.mj_forward(physics, self._data)
        self.force, self.joint_force = np.zeros(3), np.zeros(self.model.nv)
        self.contact: Contact | None = None
        self.touched = 0.0
        self.drives = self.model.effort_limit.copy()

    @property
    def q(self) -> np.ndarray:
        return self._data.qpos[self._position]

    @property
    def v(self) -> np.ndarray:
        return self._data.qvel[self._velocity]

    def tool_at(self, q: np.ndarray | None = None) -> np.ndarray:
        """The position of the tool, [m]; at positions `q` of the joints, or where the arm is."""
        data = self._data
        if q is not None:
            data = mujoco.MjData(self._physics)
            data.qpos[:] = self._data.qpos
            data.qpos[self._position] = q
            mujoco.mj_kinematics(self._physics, data)
        return data.xpos[self._tool] + data.xmat[self._tool].reshape(3, 3) @ TOOL

    def carry(self, mass: float) -> None:
        """Has a point mass at the tool from now on, [kg]."""
        self._physics.body_mass[self._load] = max(mass, 1e-6)
        self._physics.body_inertia[self._load] = max(1e-3 * mass, 1e-9)
        mujoco.mj_setConst(self._physics, mujoco.MjData(self._physics))

    def rub(self, torque: np.ndarray) -> None:
        """Has another Coulomb friction from now on, [Nm] or [N]."""
        self._coulomb = torque
        self.brake([])

    def brake(self, joints: list[int]) -> None:
        """Closes the brakes of some joints, and opens all others."""
        limit, coulomb, viscous = (
            self.model.effort_limit,
            self._coulomb.copy(),
            self._viscous.copy(),
        )
        coulomb[joints] = BRAKE_TORQUE * limit[joints]
        viscous[joints] = BRAKE_DAMPING * limit[joints]
        self._physics.dof_frictionloss[self._velocity] = np.maximum(coulomb, 1e-9)
        self._physics.dof_damping[self._velocity] = viscous

    def stop(self, j: int, ahead: float) -> None:
        """Puts a mechanical stop so far ahead of joint j, [rad] or [m]."""
        limits = self._physics.jnt_range[self._ids[j]]
        limits[1 if ahead > 0.0 else 0] = self.q[j] + ahead
        self._physics.jnt_limited[self._ids[j]] = 1

    def step(self, torque: np.ndarray, dt: float = PERIOD) -> None:
        """Lets a period pass with the torques that the drives are told to give."""
        data, limited = self._data, np.clip(torque, -self.drives, self.drives)
        for _ in range(self._steps):
            data.qfrc_applied[:] = 0.0
            if self.contact is not None or self.force.any():
                self._act_on_tool()
            data.qfrc_applied[self._velocity] += limited + self.joint_force
            mujoco.mj_step(self._physics, data)

    def _act_on_tool(self) -> None:
        point, jacobian = self.tool_at(), np.zeros((3, self._physics.nv))
        mujoco.mj_jac(self._physics, self._data, jacobian, None, point, self._tool)
        force = self.force
        if self.contact is not None:
            of_contact = self.contact(point, jacobian @ self._data.qvel)
            self.touched = max(self.touched, float(np.linalg.norm(of_contact)))
            force = force + of_contact
        self._data.qfrc_applied[:] += jacobian.T @ force
