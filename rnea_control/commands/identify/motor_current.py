"""Whether measured efforts look like motor currents: a guess, made of the robot at rest."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# Gravity must need that much somewhere, and at a joint, to tell anything, [Nm] or [N].
TELLING, LEAST = 10.0, 5.0
# Efforts that are this many times smaller than gravity, or whose ratios to it differ that much.
FACTOR = 5.0
# Smaller efforts are noise: brakes, or firmware that compensates gravity.
NOTHING = 0.01


def motor_current_guess(model: RobotModel, q: FloatArray, effort: FloatArray) -> str:
    """Why the efforts at rest may be currents, with the numbers; empty if nothing says so.

    Args:
        model: of the robot as it was recorded.
        q: its positions, shape (nv,), [rad] or [m].
        effort: measured there, shape (nv,).
    """
    needed = gravity(model, Workspace(model), np.ascontiguousarray(q), np.zeros(model.nv))
    heavy = np.flatnonzero(np.abs(needed) >= LEAST)
    if not len(heavy) or np.abs(needed).max() < TELLING or not np.isfinite(effort[heavy]).all():
        return ""
    ratio = effort[heavy] / needed[heavy]
    if ratio.min() < NOTHING:
        return ""
    if ratio.max() < 1.0 / FACTOR:
        found = f"{1.0 / ratio.max():.0f} times smaller or more"
    elif ratio.max() > FACTOR * ratio.min():
        found = f"{ratio.min():.2g} to {ratio.max():.2g} of that, by the joint"
    else:
        return ""
    numbers = ", ".join(
        f"{model.joint_names[i]}: {needed[i]:.1f} {units(model, i).effort}, effort {effort[i]:.2f}"
        for i in heavy.tolist()
    )
    return (
        f"the efforts may be motor currents in ampere: at rest they are {found} than what gravity "
        f"needs by robot_description ({numbers}). This is a guess: a robot that is not mounted as "
        "robot_description has it, springs or counterweights can look like this. If they are "
        "currents, multiply them by torque constant and gear ratio"
    )
