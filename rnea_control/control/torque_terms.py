"""The controller's torque, split into its terms."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.controller_state import ControllerState
from rnea_control.control.laws import Friction, Model
from rnea_control.control.settings import ControllerSettings
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.model import RobotModel

# `external` is the effort of the trajectory's points: for forces that its sender knows of.
TERMS = ("gravity", "coriolis", "inertia", "friction", "feedback", "external")


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
