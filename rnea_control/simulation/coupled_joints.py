r"""Equations of motion where some joints follow others exactly, as by gears.

The positions of all joints are q_all = G q + offset with a constant G, so that

    (G^T M_all G) a + G^T bias_all = torque

where MuJoCo gives M_all and bias_all of the joints as if each moved by itself. (An equality
constraint of MuJoCo's is elastic; its joints would follow only nearly.) A leader bears the friction
of its followers, and its position limits are those of all: the followers have no stops.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model import RobotModel
from rnea_control.model.bodies import OFFSET, RATIO, V

# Of an elastic stop and of Coulomb friction, MuJoCo's defaults: time constant [s], and how much of
# the acceleration wanted it takes.
TIME_CONSTANT = 0.02
IMPEDANCE = 0.95
# Sweeps over all stops, and when they agree, [Nm] or [N].
SWEEPS = 100
AGREEMENT = 1e-10

# MuJoCo's own bound for what is unstable.
LARGEST = 1e10


class CoupledJoints:
    """The joints of `model` and their followers, in MuJoCo.

    Args:
        physics: MuJoCo's model, in which all of them move by themselves.
        model: the robot.
        q: positions at first, shape (nq,), [rad] or [m].

    Attributes:
        q, v: positions and velocities of the leaders, shape (nv,).
        data: MuJoCo's state of all joints.
    """

    def __init__(self, physics: mujoco.MjModel, model: RobotModel, q: FloatArray) -> None:
        self._physics = physics
        self.data = mujoco.MjData(physics)
        physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # they are below
        self._G = np.zeros((physics.nv, model.nv))
        self._offset = np.zeros(physics.nq)
        for name in (*model.joint_names, *model.mimic_joints):
            joint, row = physics.joint(name), model.bodies[model.joint_rows[name]]
            self._G[joint.dofadr[0], int(row[V])] = row[RATIO]
            self._offset[joint.qposadr[0]] = row[OFFSET]
        self._damping = physics.dof_damping @ self._G**2
        self._friction = physics.dof_frictionloss @ np.abs(self._G)
        self._rubs = self._friction > 0.0
        self._lower, self._upper = model.lower, model.upper
        self._diagonal = np.diag_indices(model.nv)
        self._M_all = np.zeros((physics.nv, physics.nv))
        self.q, self.v = q.copy(), np.zeros(model.nv)
        self._place(self.q, self.v)

    def equations(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mass matrix, shape (nv, nv), and Coriolis, centrifugal and gravity torques, shape (nv,),
        at positions q and velocities v."""
        self._place(q, v)
        mujoco.mj_fwdPosition(self._physics, self.data)
        mujoco.mj_fwdVelocity(self._physics, self.data)
        _full_mass_matrix(self._physics, self.data, self._M_all)
        return self._G.T @ self._M_all @ self._G, self._G.T @ self.data.qfrc_bias

    def step(self, torque: FloatArray) -> None:
        """Lets one time step of `physics` pass, by the integrator that it names: Runge-Kutta of
        fourth order, or one that is implicit in the damping.

        Args:
            torque: at the leaders, shape (nv,).
        """
        q, v, h = self.q, self.v, self._physics.opt.timestep
        if self._physics.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            a1 = self._acceleration(q, v, torque)
            v2 = v + 0.5 * h * a1
            a2 = self._acceleration(q + 0.5 * h * v, v2, torque)
            v3 = v + 0.5 * h * a2
            a3 = self._acceleration(q + 0.5 * h * v2, v3, torque)
            v4 = v + h * a3
            a4 = self._acceleration(q + h * v3, v4, torque)
            self.q = q + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
            self.v = v + h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        else:
            self.v = v + h * self._acceleration(q, v, torque, h)
            self.q = q + h * self.v
        self._place(self.q, self.v)
        self.data.time += h

    @property
    def is_stable(self) -> bool:
        """Whether positions and velocities are finite, and not absurd."""
        return bool((np.abs(self.q) < LARGEST).all() and (np.abs(self.v) < LARGEST).all())

    def _place(self, q: FloatArray, v: FloatArray) -> None:
        self.data.qpos[:] = self._G @ q + self._offset
        self.data.qvel[:] = self._G @ v

    def _acceleration(
        self, q: FloatArray, v: FloatArray, torque: FloatArray, implicit: float = 0.0
    ) -> FloatArray:
        """Under `torque`, damping, stops and friction; with the damping as it is after `implicit`
        seconds."""
        if not math.isfinite(q @ q + v @ v):
            return np.full_like(v, np.nan)
        M, bias = self.equations(q, v)
        M[self._diagonal] += implicit * self._damping
        a = np.linalg.solve(M, torque - self._damping * v - bias)
        below, above = q < self._lower, q > self._upper
        held = below | above | self._rubs
        if not held.any():
            return a
        # As MuJoCo: the force that brings the joint to the acceleration wanted, softened.
        beyond = np.where(below, q - self._lower, np.where(above, q - self._upper, 0.0))
        rate = 1.0 / (IMPEDANCE * TIME_CONSTANT)
        wanted = -2.0 * rate * v - rate**2 * beyond
        low = np.where(above, -np.inf, -self._friction)
        high = np.where(below, np.inf, self._friction)
        inverse = np.linalg.inv(M)
        return a + inverse @ _forces(inverse, wanted - a, low, high, np.flatnonzero(held))


def _forces(
    inverse: FloatArray, missing: FloatArray, low: FloatArray, high: FloatArray, held: FloatArray
) -> FloatArray:
    """Forces between `low` and `high` at the joints `held` that add the acceleration `missing`
    there, by projected Gauss-Seidel."""
    forces = np.zeros(len(missing))
    for _ in range(SWEEPS):
        change = 0.0
        for j in held:
            own = inverse[j, j]
            rest = missing[j] - inverse[j] @ forces + own * forces[j]
            force = min(max(rest * IMPEDANCE / own, low[j]), high[j])
            change = max(change, abs(force - forces[j]))
            forces[j] = force
        if change < AGREEMENT:
            break
    return forces


def _full_mass_matrix(physics: mujoco.MjModel, data: mujoco.MjData, M: FloatArray) -> None:
    if OLD_MASS_MATRIX:
        mujoco.mj_fullM(physics, M, data.qM)
    else:
        mujoco.mj_fullM(physics, data, M)


# MuJoCo 3.10 changed the arguments of mj_fullM.
OLD_MASS_MATRIX = tuple(int(part) for part in mujoco.__version__.split(".")[:2]) < (3, 10)
