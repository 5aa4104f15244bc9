"""Cartesian impedance of a simulated Panda: damping by double diagonalization and a posture in the
consistent null space, against the damping 2 sqrt(K) and the kinematic projector that other
controllers use. Prints the table of docs/task_space.md.

A step of 5 cm of the desired pose without a follower, and a step of 0.5 rad of the posture of joint
3. All variants have the same stiffness, model and states; integrated at 0.5 ms, without friction.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
from table import Table

from rnea_control.array_types import FloatArray
from rnea_control.control import Controller, ControllerSettings, Gains
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace, aba, jacobian, rnea
from rnea_control.model import RobotModel

PERIOD = 0.0005  # period of the control loop and the integration [s]
DURATION = 3.0  # duration of a run [s]
STEP = 0.05  # step of the desired position [m]
POSTURE_STEP = 0.5  # step of the posture [rad]
NULL_STIFFNESS = 10.0  # stiffness of the posture [Nm/rad]
TIP = "panda_hand_tcp"
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
STIFFNESS = np.array([600.0, 600.0, 600.0, 30.0, 30.0, 30.0])  # [N/m], [Nm/rad]

Law = Callable[["Arm", FloatArray, FloatArray, float], FloatArray]


class Arm:
    """A Panda whose controller follows a pose that is set from outside."""

    def __init__(self) -> None:
        files = metadata.files("example-robot-data") or []
        (urdf,) = (Path(str(f.locate())) for f in files if f.name == "panda.urdf")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            joints = [f"panda_joint{i}" for i in range(1, 8)]
            self.model = RobotModel.from_urdf_file(urdf, joints=joints)
        more = {"nullspace.stiffness": NULL_STIFFNESS, "task.error_clip": [9.0, 9.0]}
        settings = ControllerSettings(Gains.uniform(7, 400.0, 40.0), tip=TIP, more=more)
        self.controller = Controller(self.model, settings)
        self.workspace, self.tau = Workspace(self.model), np.zeros(7)
        self.controller.hold(0.0, READY)
        rows = self.controller.rows
        rows.reference, rows.path_end, rows.stream_at = Reference.pose_stream, math.inf, 1e9
        rows.stiffness, rows.posture = np.diag(STIFFNESS).ravel(), READY
        rows.desired_pose = rows.target_pose = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        self.controller.step(0.0, READY, np.zeros(7), self.tau)
        rows.desired_pose = rows.target_pose = rows.pose

    def run(self, law: Law) -> FloatArray:
        """Errors of the pose after each step, shape (n, 6), [m], [rad]."""
        q, v, a, errors = READY.copy(), np.zeros(7), np.zeros(7), []
        for k in range(1, round(DURATION / PERIOD)):
            torque = law(self, q, v, k * PERIOD)
            errors.append(self.controller.rows.task_error.copy())
            aba(self.model, self.workspace, q, v, torque, a)
            v = v + PERIOD * a
            q = q + PERIOD * v
        return np.array(errors)


def ours(arm: Arm, q: FloatArray, v: FloatArray, t: float) -> FloatArray:
    """The controller's torque, before its limits."""
    arm.controller.believe()
    arm.controller.step(t, q, v, arm.tau)
    return arm.controller.rows.torque.copy()


def usual(arm: Arm, q: FloatArray, v: FloatArray, t: float) -> FloatArray:
    """J^T (K e - 2 sqrt(K) J v) + (1 - J^+ J) tau_n + RNEA(q, v, 0), with the same errors."""
    rows, own = arm.controller.rows, np.zeros(7)
    ours(arm, q, v, t)
    J = jacobian(arm.model, arm.workspace, q, TIP, np.zeros((6, 7)))
    rnea(arm.model, arm.workspace, q, v, np.zeros(7), own)
    wrench = STIFFNESS * rows.task_error - 2.0 * np.sqrt(STIFFNESS) * (J @ v)
    posture = NULL_STIFFNESS * (rows.posture - q) - 2.0 * math.sqrt(NULL_STIFFNESS) * v
    return own + J.T @ wrench + posture - np.linalg.pinv(J) @ (J @ posture)


def compared() -> Table:
    """Overshoot of a step in each direction, and how far a posture moves the tip."""
    columns = "law", "overshoot x [%]", "y [%]", "z [%]", "posture moves the tip [mm]", "[mrad]"
    table = Table("A step of 5 cm, and of the posture by 0.5 rad", columns)
    variants = ("ours", ours), ("D = 2 sqrt(K), kinematic projector", usual)
    for name, law in variants:
        cells = []
        for axis in range(3):
            arm = Arm()
            arm.controller.rows.desired_pose[axis] += STEP
            arm.controller.rows.target_pose = arm.controller.rows.desired_pose
            error = arm.run(law)[:, axis]
            cells.append(f"{100.0 * max(-error.min(), 0.0) / STEP:.1f}")
        arm = Arm()
        arm.controller.rows.posture[2] += POSTURE_STEP
        errors = arm.run(law)
        for part in (slice(0, 3), slice(3, 6)):
            cells.append(f"{1e3 * np.linalg.norm(errors[:, part], axis=1).max():.2f}")
        table.rows.append((name, *cells))
    return table


if __name__ == "__main__":
    compared().show()
