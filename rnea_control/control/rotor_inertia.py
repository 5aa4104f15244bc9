"""Joints whose model has so little inertia that the rotors of their actuators must be missing.

Behind a gear of ratio n a rotor of inertia J weighs n^2 J at its joint: a wrist of 0.002 kg m^2 may
have 0.1. Where the model lacks it, computed_torque turns accelerations into too little torque.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, crba
from rnea_control.model import RobotModel

# Links this light are driven by rotors that count, [kg m^2].
SMALL_INERTIA = 0.02


def light_joints(
    model: RobotModel, q: FloatArray, feedback_inertia: FloatArray | None = None
) -> list[str]:
    """Each joint that turns less than `SMALL_INERTIA` and has no armature, with its inertia.

    Args:
        model: the robot.
        q: where it is, shape (nq,).
        feedback_inertia: of `ControllerSettings`; joints that have one are not named.
    """
    inertia = np.diag(crba(model, Workspace(model), q, np.zeros((model.nv, model.nv))))
    given = model.armature + (0.0 if feedback_inertia is None else feedback_inertia)
    return [
        f"{name} ({inertia[part].min():.2g} kg m^2)"
        for name, kind, part in zip(
            model.joint_names, model.joint_types, model.v_slices.values(), strict=True
        )
        if kind != "prismatic" and inertia[part].min() < SMALL_INERTIA and not given[part].any()
    ]
