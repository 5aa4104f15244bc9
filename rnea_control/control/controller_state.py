"""`ControllerState`: what a controller did in its last step, and the terms of its torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.laws import Friction, Model
from rnea_control.control.motion import Motion
from rnea_control.control.settings import ControllerSettings
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.model import RobotModel

# `external` is the effort of the trajectory's points: for forces that its sender knows of.
TERMS = ("gravity", "coriolis", "inertia", "friction", "feedback", "external")


@dataclass(frozen=True)
class ControllerState:
    """What a controller did in its last step.

    Attributes:
        rows: see layout.py.
        motion: what was followed; None if nothing was.
    """

    rows: FloatArray
    motion: Motion | None

    @property
    def desired(self) -> FloatArray:
        """Desired position, velocity, acceleration and effort, shape (4, nv)."""
        return self.rows[layout.DESIRED_POSITION : layout.DESIRED_EFFORT + 1]

    @property
    def errors(self) -> FloatArray:
        """Desired minus measured position and velocity when the torque acts, shape (2, nv)."""
        return self.rows[layout.POSITION_ERROR : layout.VELOCITY_ERROR + 1]

    @property
    def measured(self) -> FloatArray:
        """Measured position and velocity, carried on to when the torque acts, shape (2, nv);
        continuous joints in the turn of the desired position."""
        return self.desired[:2] - self.errors

    @property
    def torque(self) -> FloatArray:
        """The torque before the effort limits, shape (nv,)."""
        return self.rows[layout.TORQUE]

    @property
    def speed_scaling(self) -> float:
        return float(self.rows[layout.SCALING, 0])

    @property
    def trajectory_time(self) -> float:
        """[s]."""
        return float(self.rows[layout.LAST_TRAJECTORY_TIME, 0])

    @property
    def time_from_start(self) -> float:
        """How far the motion is, [s]; 0 without one."""
        if self.motion is None:
            return 0.0
        return self.trajectory_time - self.motion.start


def torque_terms(
    model: RobotModel, workspace: Workspace, settings: ControllerSettings, state: ControllerState
) -> FloatArray:
    """One row for each of `TERMS`, shape (6, nv), [Nm] or [N]; they add up to `state.torque`.

    Gravity, Coriolis and inertia are those of the configuration where the control law takes the
    model: the measured one, or for feedforward_pd the desired one. Inertia is that of the desired
    acceleration; the part that the errors add is feedback. Gravity that the hardware compensates is
    left out.
    """
    law, rows, nv = settings.control_law, state.rows, model.nv
    terms = np.zeros((len(TERMS), nv))
    desired_acceleration = state.desired[2]
    if law.model is not Model.none:
        q, v = rows[layout.MODEL_POSITION], rows[layout.MODEL_VELOCITY]
        nle = rnea(model, workspace, q, v, np.zeros(nv), np.zeros(nv))
        gravity(model, workspace, q, terms[0])
        terms[1] = nle - terms[0]
        if law.model is not Model.gravity:
            rnea(model, workspace, q, v, desired_acceleration, terms[2])
            terms[2] -= nle
        if settings.hardware_compensates_gravity:
            terms[0] -= gravity(model, workspace, state.measured[0], np.zeros(nv))
    if settings.friction_compensation and law.friction is not Friction.none:
        moving = state.measured if law.friction is Friction.measured else state.desired
        friction(model, workspace, moving[1].copy(), terms[3])
    if law.holds_position:
        terms[5] = state.desired[3]
    terms[4] = state.torque - terms.sum(axis=0)
    return terms
