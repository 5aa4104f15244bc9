"""A controller whose tip has a law of task space, without limits, one step at a time."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from robots import example_robot, load_quietly
from task_arm import READY, TCP

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains
from rnea_control.control.layout import State
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace, crba, forward_kinematics, jacobian, rnea
from rnea_control.model import RobotModel

STIFFNESS = np.array([600.0, 600.0, 600.0, 30.0, 30.0, 30.0])
# Robots, their tips, and a posture that is not singular.
ARMS: dict[str, tuple[tuple[str, ...] | None, str, list[float]]] = {
    "panda": (tuple(f"panda_joint{i}" for i in range(1, 8)), TCP, list(READY)),
    "ur3_robot": (None, "tool0", [0.3, -1.2, 1.4, -1.0, 1.2, 0.4]),
    "ur5_robot": (None, "tool0", [0.3, -1.2, 1.4, -1.0, 1.2, 0.4]),
    "ur10_robot": (None, "tool0", [0.3, -1.2, 1.4, -1.0, 1.2, 0.4]),
    "xarm7": (tuple(f"joint{i}" for i in range(1, 8)), "link7", [0.2, 0.4, 0.3, 1.2, 0.2, 1.0, 0]),
    "talos_full_v2": (
        tuple(f"arm_left_{i}_joint" for i in range(1, 8)),
        "arm_left_7_link",
        [0.3, 0.6, 0.4, -1.4, 0.3, 0.4, 0.2],
    ),
    "tiago": (
        tuple(f"arm_{i}_joint" for i in range(1, 8)),
        "arm_7_link",
        [0.8, 0.3, -1.2, 1.4, 0.4, 0.6, 0.3],
    ),
    "z1": (
        tuple(f"joint{i}" for i in range(1, 7)),
        "link06",
        [0.3, 1.2, -1.4, 0.4, 0.5, 0.2],
    ),
    "kinova": (
        tuple(f"j2s6s200_joint_{i}" for i in range(1, 7)),
        "j2s6s200_end_effector",
        [0.3, 3.6, 2.2, 0.6, 1.2, 0.4],
    ),
    "baxter": (
        tuple(f"left_{name}" for name in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")),
        "left_wrist",
        [0.2, -0.4, 0.3, 1.2, 0.2, 0.8, 0.1],
    ),
}

# An arm that cannot move its tip in some directions.
FEWER = {
    "panda of five joints": (
        tuple(f"panda_joint{i}" for i in (1, 2, 4, 5, 6)),
        TCP,
        list(READY[[0, 1, 3, 4, 5]]),
    )
}


def arm_of(name: str) -> tuple[RobotModel, str, np.ndarray]:
    joints, tip, q = (ARMS | FEWER)[name]
    model = load_quietly(example_robot(name.partition(" ")[0]), joints)
    return model, tip, np.array(q)


class Tip:
    """A controller whose tip is at rest at its desired pose, without limits."""

    def __init__(self, name: str, law: ControlLaw, **parameters: object) -> None:
        self.model, self.tip, self.q = arm_of(name)
        self.nv = self.model.nv
        gains = Gains.uniform(self.nv, 400.0, 40.0)
        more = {"nullspace.stiffness": 0.0, **parameters}
        settings = ControllerSettings(gains, task_law=law, tip=self.tip, more=more)
        self.controller = Controller(self.model, settings)
        self.ws, self.tau = Workspace(self.model), np.zeros(self.nv)
        self.controller.hold(0.0, self.q)
        self.begin()

    def begin(self) -> None:
        """Follows the pose of the tip from now on."""
        rows = self.rows
        rows.reference = Reference.pose_stream
        rows.path_end, rows.stream_at = math.inf, 1e9  # its target never gets old
        rows.stiffness = np.diag(self.controller.arrays.settings[0].task_stiffness).ravel()
        rows.posture = self.q
        self.aim(self.pose(self.q))

    @property
    def rows(self) -> State:
        return self.controller.rows

    def pose(self, q: np.ndarray) -> np.ndarray:
        poses = np.zeros((len(self.model.link_names), 4, 4))
        forward_kinematics(self.model, self.ws, q, poses)
        return poses[self.model.link_names.index(self.tip)]

    def aim(self, X: np.ndarray) -> None:
        """Desired and target pose."""
        numbers = [*X[:3, 3], *pin.Quaternion(X[:3, :3].copy()).coeffs()]
        self.rows.desired_pose = self.rows.target_pose = numbers

    def torque(self, q: np.ndarray, v: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Torque before the limits."""
        self.rows.desired_velocity = 0.0
        self.controller.believe()
        self.controller.step(t, q, v, self.tau)
        return self.rows.torque.copy()

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        return jacobian(self.model, self.ws, q, self.tip, np.zeros((6, self.nv))).copy()

    def mass(self, q: np.ndarray) -> np.ndarray:
        return crba(self.model, self.ws, q, np.zeros((self.nv, self.nv))).copy()

    def own(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return rnea(self.model, self.ws, q, v, np.zeros(self.nv), np.zeros(self.nv)).copy()
