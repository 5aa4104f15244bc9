"""Physics of the simulated arm, in MuJoCo. No ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping

import mujoco
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import OFFSET, RATIO, V
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

LONGEST_STEP = 1e-3  # longest Runge-Kutta step; smooth arm motions are right to 1e-9 rad [s]

# MuJoCo's defaults for elastic stops and Coulomb friction.
TIME_CONSTANT = 0.02  # [s]
IMPEDANCE = 0.95  # fraction of the required acceleration
SWEEPS = 100  # largest number of sweeps over all stops
AGREEMENT = 1e-10  # largest change of a force in the last sweep [Nm] or [N]

LARGEST = 1e10  # MuJoCo's bound of positions and velocities of an unstable simulation


class MujocoArm:
    """An arm in MuJoCo, without shapes and so without contacts; position limits are elastic stops.
    Joints with <mimic> follow their leaders exactly.

    Args:
        xml: URDF from which `model` was read.
        model: the robot; the arm has its joints in the same order.
        period: time of a `step`, [s].
        initial_positions: initial positions by joint, [rad] or [m]; default 0, or the limit nearest
            to 0.
        errors: differences of the simulated arm from the URDF.

    Raises:
        SimulationError: joints with several degrees of freedom; an initial position of an unknown
            joint or beyond a limit; a robot that MuJoCo refuses.
    """

    def __init__(
        self,
        xml: str | bytes,
        model: RobotModel,
        period: float,
        initial_positions: Mapping[str, float] | None = None,
        errors: ModelErrors | None = None,
    ) -> None:
        several = [name for name, part in model.v_slices.items() if part.stop - part.start != 1]
        if several:
            raise SimulationError(
                f"{model.source}: {', '.join(several)} has more than one degree of freedom, which "
                "the simulated arm does not move; leave it out of `joints`"
            )
        errors = errors or ModelErrors()
        text = urdf_for_mujoco(xml, model, errors)
        try:
            self._physics = mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise SimulationError(
                f"{model.source}: MuJoCo does not load this robot: {error}"
            ) from error
        joints = [self._physics.joint(name) for name in model.joint_names]
        self._position_index = np.array([joint.qposadr[0] for joint in joints])
        self._velocity_index = np.array([joint.dofadr[0] for joint in joints])
        if errors.joint_armature > 0.0:
            # A joint with <mimic> has no actuator.
            self._physics.dof_armature[self._velocity_index] = errors.joint_armature
            # MuJoCo scales friction and stops by the inertia of each joint.
            mujoco.mj_setConst(self._physics, mujoco.MjData(self._physics))
        self._steps = math.ceil(period / LONGEST_STEP - 1e-9)
        self._physics.opt.timestep = period / self._steps
        # Runge-Kutta is more accurate, but unstable for strong damping.
        kinds = mujoco.mjtIntegrator
        damped = errors.joint_damping > 0.0
        self._physics.opt.integrator = kinds.mjINT_IMPLICITFAST if damped else kinds.mjINT_RK4
        self._physics.opt.gravity[:] = model.gravity
        # An unstable simulation raises an error, instead of MuJoCo's reset.
        self._physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
        start = _start(model, initial_positions or {})
        self._coupled = CoupledJoints(self._physics, model, start) if model.mimic_joints else None
        self._data = self._coupled.data if self._coupled else mujoco.MjData(self._physics)
        self._data.qpos[self._position_index] = start
        mujoco.mj_forward(self._physics, self._data)

    @property
    def time(self) -> float:
        """Time simulated since the start, [s]."""
        return self._data.time

    @property
    def q(self) -> FloatArray:
        """Joint positions, shape (nq,); a copy."""
        return self._data.qpos[self._position_index]

    @property
    def v(self) -> FloatArray:
        """Joint velocities, shape (nv,); a copy."""
        return self._data.qvel[self._velocity_index]

    def step(self, torque: FloatArray) -> None:
        """Simulates one period with `torque`, shape (nv,), at the joints.

        Raises:
            SimulationError: the simulation has become unstable.
        """
        self._data.qfrc_applied[self._velocity_index] = torque
        for _ in range(self._steps):
            if self._coupled is not None:
                self._coupled.step(torque)
            else:
                mujoco.mj_step(self._physics, self._data)
        if not (np.abs([self.q, self.v]) < LARGEST).all():
            raise SimulationError(
                f"the simulation became unstable at {self.time:.3f} s with the torques {torque}; "
                "are the masses, the friction and the commands those of a real arm?"
            )


def _start(model: RobotModel, positions: Mapping[str, float]) -> FloatArray:
    q = np.clip(np.zeros(model.nq), model.lower, model.upper)
    for name, position in positions.items():
        if name not in model.joint_names:
            raise SimulationError(
                f"initial_positions names {name!r}, which is not a simulated joint; "
                f"those are {', '.join(model.joint_names)}"
            )
        j = model.joint_names.index(name)
        if not model.lower[j] <= position <= model.upper[j]:
            raise SimulationError(
                f"initial_positions.{name} is {position}; it must lie within the joint's limits, "
                f"{model.lower[j]:g} to {model.upper[j]:g}"
            )
        q[j] = position
    return q


class CoupledJoints:
    r"""Equations of motion with joints that follow others exactly, as by gears.

    The positions of all joints are q_all = G q + offset with a constant G, so that

        (G^T M_all G) a + G^T bias_all = torque

    where MuJoCo gives M_all and bias_all for independent joints. (MuJoCo's equality constraints are
    elastic: joints would follow only approximately.) A leader bears the friction of its followers,
    and only its position limits apply: the followers have no stops.

    Args:
        physics: MuJoCo's model, in which all joints are independent.
        model: the robot.
        q: initial positions, shape (nq,), [rad] or [m].

    Attributes:
        q, v: positions and velocities of the leaders, shape (nv,).
        data: MuJoCo's state of all joints.
    """

    def __init__(self, physics: mujoco.MjModel, model: RobotModel, q: FloatArray) -> None:
        self._physics = physics
        self.data = mujoco.MjData(physics)
        physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # computed below
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
        self._M_G = np.zeros((model.nv, physics.nv))  # the columns of M_all G
        self.q, self.v = q.copy(), np.zeros(model.nv)
        self._place(self.q, self.v)

    def equations(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mass matrix, shape (nv, nv), and Coriolis, centrifugal and gravity torques, shape (nv,),
        at positions q and velocities v."""
        self._place(q, v)
        mujoco.mj_fwdPosition(self._physics, self.data)
        mujoco.mj_fwdVelocity(self._physics, self.data)
        for column, product in zip(self._G.T.copy(), self._M_G, strict=True):
            mujoco.mj_mulM(self._physics, self.data, product, column)
        return self._M_G @ self._G, self._G.T @ self.data.qfrc_bias

    def step(self, torque: FloatArray) -> None:
        """Simulates one time step of `physics` with `torque` at the leaders, shape (nv,), by its
        integrator: Runge-Kutta of fourth order, or an integrator implicit in the damping."""
        h = self._physics.opt.timestep
        if self._physics.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            state = np.array([self.q, self.v])

            def rate(state: FloatArray) -> FloatArray:
                return np.array([state[1], self._acceleration(*state, torque)])

            k1 = rate(state)
            k2 = rate(state + 0.5 * h * k1)
            k3 = rate(state + 0.5 * h * k2)
            k4 = rate(state + h * k3)
            self.q, self.v = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        else:
            self.v = self.v + h * self._acceleration(self.q, self.v, torque, h)
            self.q = self.q + h * self.v
        self._place(self.q, self.v)
        self.data.time += h

    def _place(self, q: FloatArray, v: FloatArray) -> None:
        self.data.qpos[:] = self._G @ q + self._offset
        self.data.qvel[:] = self._G @ v

    def _acceleration(
        self, q: FloatArray, v: FloatArray, torque: FloatArray, implicit: float = 0.0
    ) -> FloatArray:
        """Acceleration under `torque`, damping, stops and friction; the damping is evaluated
        `implicit` seconds later."""
        if not math.isfinite(q @ q + v @ v):
            return np.full_like(v, np.nan)
        M, bias = self.equations(q, v)
        M[self._diagonal] += implicit * self._damping
        a = np.linalg.solve(M, torque - self._damping * v - bias)
        below, above = q < self._lower, q > self._upper
        held = below | above | self._rubs
        if not held.any():
            return a
        # Like MuJoCo: the force for the required acceleration, softened.
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
