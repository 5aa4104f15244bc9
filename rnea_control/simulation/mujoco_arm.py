"""The physics of the simulated arm, in MuJoCo. No ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping

import mujoco
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.simulation.coupled_joints import CoupledJoints
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

# Runge-Kutta steps no longer than this follow smooth arm motions to about 1e-9 rad, [s].
LONGEST_STEP = 1e-3

_INSTABILITY = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


class MujocoArm:
    """An arm in MuJoCo, without shapes and so without contacts; position limits are elastic stops.
    Joints with <mimic> follow their leaders exactly.

    Args:
        xml: the URDF that `model` was read from.
        model: the robot; its joints, and their order, are the arm's.
        period: time that `step` covers, [s].
        initial_positions: by joint, [rad] or [m]; where not given 0, or the limit nearest to it.
        locked_positions: of joints that are not the model's, as for `RobotModel`.
        errors: how the simulated arm differs from the URDF.

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
        locked_positions: Mapping[str, float] | None = None,
        errors: ModelErrors | None = None,
    ) -> None:
        several = [name for name, part in model.v_slices.items() if part.stop - part.start != 1]
        if several:
            raise SimulationError(
                f"{model.source}: {', '.join(several)} has more than one degree of freedom, which "
                "the simulated arm does not move; leave it out of `joints`"
            )
        text = urdf_for_mujoco(xml, model, locked_positions or {}, errors or ModelErrors())
        try:
            self._physics = mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise SimulationError(
                f"{model.source}: MuJoCo does not load this robot: {error}"
            ) from error
        if errors is not None and errors.joint_armature > 0.0:
            _add_rotors(self._physics, model, errors.joint_armature)
        self._steps = math.ceil(period / LONGEST_STEP - 1e-9)
        self._physics.opt.timestep = period / self._steps
        # Runge-Kutta is the more accurate, but strong damping makes it unstable.
        damped = errors is not None and errors.joint_damping > 0.0
        self._physics.opt.integrator = (
            mujoco.mjtIntegrator.mjINT_IMPLICITFAST if damped else mujoco.mjtIntegrator.mjINT_RK4
        )
        self._physics.opt.gravity[:] = model.gravity
        start = _start(model, initial_positions or {})
        self._coupled = CoupledJoints(self._physics, model, start) if model.mimic_joints else None
        self._data = self._coupled.data if self._coupled else mujoco.MjData(self._physics)
        joints = [self._physics.joint(name) for name in model.joint_names]
        self._position_index = np.array([joint.qposadr[0] for joint in joints])
        self._velocity_index = np.array([joint.dofadr[0] for joint in joints])
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
        """Lets one period pass with `torque`, shape (nv,), at the joints.

        Raises:
            SimulationError: the simulation has become unstable.
        """
        if self._coupled is not None:
            for _ in range(self._steps):
                self._coupled.step(torque)
            stable = self._coupled.is_stable
        else:
            self._data.qfrc_applied[self._velocity_index] = torque
            for _ in range(self._steps):
                mujoco.mj_step(self._physics, self._data)
            stable = not any(self._data.warning[kind].number for kind in _INSTABILITY)
        if not stable:
            raise SimulationError(
                f"the simulation became unstable at {self.time:.3f} s with the torques {torque}; "
                "are the masses, the friction and the commands those of a real arm?"
            )


def _add_rotors(physics: mujoco.MjModel, model: RobotModel, armature: float) -> None:
    """A joint that follows another by <mimic> has no actuator of its own."""
    for name in model.joint_names:
        physics.dof_armature[physics.joint(name).dofadr[0]] = armature
    # MuJoCo scales friction and stops by the inertia of each joint.
    mujoco.mj_setConst(physics, mujoco.MjData(physics))


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
