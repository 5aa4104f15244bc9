"""Why parameters may be wrong although they fit: efforts that cannot be the torques of this robot.

Least squares fits efforts of any unit and sign, as long as they follow the motion. Only the robot's
description tells the size that torques must have, and only nature the sign of friction.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from rnea_control.analysis import BaseParameters, inverse_dynamics_batch
from rnea_control.array_types import FloatArray
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


def _wrong_sizes(model: RobotModel, motion: Motion) -> list[str]:
    """The joints whose efforts are much less than the description's torques, or the same times a
    factor that is far from 1."""
    bare = copy.deepcopy(model)
    bare.damping = bare.friction = bare.torque_offset = np.zeros(model.nv)
    described = inverse_dynamics_batch(bare, motion.q, motion.v, motion.a)
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
