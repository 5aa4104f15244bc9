"""How large and heavy the parts of a robot are: the measure for its other numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model.robot_description import RobotDescription

# Sine of the angle to gravity from which a joint bears weight.
_ACROSS = 0.1


@dataclass(frozen=True)
class RobotSize:
    """Of each link with all that it carries.

    Attributes:
        mass: [kg].
        reach: from the link's origin over those of the links beyond it to the last center of mass,
            [m].
        moment: of mass about the link's origin, at most, whatever the positions, [kg m].
    """

    mass: dict[str, float]
    reach: dict[str, float]
    moment: dict[str, float]


def joint_offsets(description: RobotDescription) -> dict[str, float]:
    """How far each joint is from the origin of its parent link, [m]."""
    return {joint.name: float(np.linalg.norm(joint.translation)) for joint in description.joints}


def centers_of_mass(description: RobotDescription) -> dict[str, float]:
    """How far the center of mass of each link is from the link's origin, [m]; 0 without mass."""
    return {
        link: float(np.linalg.norm(J[:3, 3]) / J[3, 3]) if J[3, 3] > 0.0 else 0.0
        for link, J in description.inertias.items()
    }


def joints_under_load(description: RobotDescription, gravity: FloatArray) -> set[str]:
    """The joints that turn about an axis across gravity at zero position, such as a shoulder's lift
    but not its pan."""
    strength = float(np.linalg.norm(gravity))
    down = gravity / strength if strength else np.zeros(3)
    rotations, names = {description.root: np.eye(3)}, set()
    for joint in description.joints:
        rotation = rotations[joint.parent] @ joint.rotation
        rotations[joint.child] = rotation
        across = math.sqrt(max(0.0, 1.0 - float(down @ rotation @ joint.axis) ** 2))
        if strength and across > _ACROSS and joint.type in ("revolute", "continuous"):
            names.add(joint.name)
    return names


def size_of(
    description: RobotDescription,
    masses: Mapping[str, float],
    offsets: Mapping[str, float],
    centers: Mapping[str, float],
) -> RobotSize:
    """The size of a robot with these masses of links [kg], offsets of joints and distances of
    centers of mass [m], which may be other than those of the description."""
    mass, reach = dict(masses), dict(centers)
    moment = {link: mass[link] * centers[link] for link in mass}
    for joint in reversed(description.joints):
        parent, child, offset = joint.parent, joint.child, offsets[joint.name]
        reach[parent] = max(reach[parent], offset + reach[child])
        moment[parent] += moment[child] + mass[child] * offset
        mass[parent] += mass[child]
    return RobotSize(mass, reach, moment)
