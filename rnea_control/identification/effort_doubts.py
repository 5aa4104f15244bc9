"""Whether efforts can be the torques of this robot: of a motion that was fitted, and at rest.

Least squares fits efforts of any unit and sign, as long as they follow the motion. Only the robot's
description tells the size that torques must have, and only nature the sign of friction.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from rnea_control.analysis import BaseParameters, inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import listed
from rnea_control.identification.least_squares import Solution
from rnea_control.identification.motion import Motion
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# No description is wrong by this factor.
FACTOR = 3.0
# Cosines between measured and described torques, friction and offset aside: alike, and opposite.
ALIKE, OPPOSITE = 0.7, -0.5
# A friction below zero counts beyond so many standard deviations, and this part of the torque.
SIGNIFICANT, NOTABLE = 3.0, 0.05
# Gravity must need that much somewhere, and at a joint, to tell anything, [Nm] or [N].
TELLING, LEAST = 10.0, 5.0
# Efforts that are this many times smaller than gravity, or whose ratios to it differ that much.
CURRENT_FACTOR = 5.0
# Smaller efforts are noise: brakes, or firmware that compensates gravity.
NOTHING = 0.01


def doubts_of(
    model: RobotModel, motion: Motion, base: BaseParameters, solution: Solution
) -> list[str]:
    """A sentence for each kind of doubt.

    Args:
        model: the robot as described.
        motion: that the parameters were fitted to.
        base: the base parameters.
        solution: of these, without regard to physical consistency.
    """
    doubts = []
    sizes = _wrong_sizes(model, motion)
    if sizes:
        doubts.append(
            f"the measured efforts cannot be the torques of the URDF's robot: {listed(sizes)}. Are "
            "they in Nm and N (motor currents need torque constant and gear ratio), with the sign "
            "of the positions, and is gravity in them? Are the parameter gravity and the URDF's "
            "masses right?"
        )
    driving = _negative_friction(model, motion, base, solution)
    if driving:
        doubts.append(
            f"friction comes out as driving the joint, not braking it: {listed(driving)}. Is the "
            "sign of these efforts reversed?"
        )
    return doubts


def frictionless(model: RobotModel) -> RobotModel:
    """The robot without friction and constant offsets."""
    bare = copy.deepcopy(model)
    bare.damping = bare.friction = bare.torque_offset = np.zeros(model.nv)
    return bare


def _wrong_sizes(model: RobotModel, motion: Motion) -> list[str]:
    """The joints whose efforts are much less than the description's torques, or the same times a
    factor that is far from 1."""
    described = inverse_dynamics_batch(frictionless(model), motion.q, motion.v, motion.a)
    found = []
    for j, name in enumerate(model.joint_names):
        used = motion.counts[:, j]
        torque, effort = described[used, j], motion.effort[used, j]
        sizes = float(np.linalg.norm(torque)), float(np.linalg.norm(effort))
        if not min(sizes) > 0.0:
            continue
        scale = sizes[1] / sizes[0]
        v = motion.v[used, j]
        torque, effort = _without(np.stack([np.ones_like(v), v, np.sign(v)]), torque, effort)
        lengths = float(np.linalg.norm(torque)), float(np.linalg.norm(effort))
        cosine = float(torque @ effort) / max(lengths[0] * lengths[1], 1e-300)
        if cosine < OPPOSITE:
            found.append(f"{name} has the opposite sign")
        elif scale < 1.0 / FACTOR or (cosine > ALIKE and lengths[1] > FACTOR * lengths[0]):
            found.append(f"{name} has {scale:.2g} times their size")
    return found


def _without(columns: FloatArray, *values: FloatArray) -> list[FloatArray]:
    """What least squares leaves of each of some values."""
    return [each - np.linalg.lstsq(columns.T, each)[0] @ columns for each in values]


def _negative_friction(
    model: RobotModel, motion: Motion, base: BaseParameters, solution: Solution
) -> list[str]:
    """The joints whose friction, at their usual velocity, is below zero beyond doubt."""
    found = []
    for j, name in enumerate(model.joint_names):
        kinds = (f"{name}.friction", f"{name}.damping")
        used = motion.counts[:, j]
        if not used.any() or not all(kind in base.names for kind in kinds):
            continue
        columns = [base.names.index(kind) for kind in kinds]
        at = np.array([1.0, _rms(motion.v[used, j])])
        friction = float(at @ solution.beta[columns])
        deviation = math.sqrt(at @ solution.covariance[np.ix_(columns, columns)] @ at)
        if friction < -max(SIGNIFICANT * deviation, NOTABLE * _rms(motion.effort[used, j])):
            found.append(f"{name} {friction:.3g} {units(model, j).effort}")
    return found


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


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
    if ratio.max() < 1.0 / CURRENT_FACTOR:
        found = f"{1.0 / ratio.max():.0f} times smaller or more"
    elif ratio.max() > CURRENT_FACTOR * ratio.min():
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
