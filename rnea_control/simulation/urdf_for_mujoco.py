"""Converts a URDF that `RobotModel` can load to a URDF for MuJoCo, with optional model errors.

Shapes and friction tags are dropped. Joints that are not simulated become fixed. Mimic joints of
simulated joints become independent: `CoupledJoints` couples them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import pseudo_inertia_of, rpy_from_rotation, ten_parameters
from rnea_control.model.urdf_document import clean_urdf


@dataclass(frozen=True)
class ModelErrors:
    """Differences of the simulated arm from its URDF, to test a controller's robustness."""

    mass_scale: float = 1.0  # factor on every mass and inertia
    payload_mass: float = 0.0  # point mass fixed to `payload_link`, [kg]
    payload_link: str = ""  # link of the payload; by default the link that the last joint moves
    payload_position: Sequence[float] = (0.0, 0.0, 0.0)  # in the frame of `payload_link`, [m]
    joint_friction: float = 0.0  # Coulomb friction of every joint, [Nm] or [N]
    joint_damping: float = 0.0  # viscous friction of every joint, [Nm s/rad] or [N s/m]
    # Rotor inertia of the actuator of every joint except mimic joints, times the gear ratio
    # squared, [kg m^2] or [kg].
    joint_armature: float = 0.0


_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

# Smallest moment of inertia, [kg m^2]; smaller values are lost in the rounding of the URDF.
LEAST_INERTIA = 1e-12

# The bounds change only links that MuJoCo would refuse: moving links without mass or inertia.
_COMPILER = {"fusestatic": "true", "discardvisual": "true"}
_COMPILER |= {"boundmass": "1e-9", "boundinertia": "1e-12"}


def urdf_for_mujoco(xml: str | bytes, model: RobotModel, errors: ModelErrors) -> str:
    """URDF text for MuJoCo.

    Args:
        xml: URDF from which `model` was read.
        model: the robot, with the selection of moving joints and the positions of locked joints.
        errors: model errors to apply, except `joint_armature`, which a URDF cannot express.

    Raises:
        SimulationError: `payload_link` is not a link of the robot.
    """
    robot, _ = clean_urdf(xml)
    for joint in robot.findall("joint"):
        _without(joint, "dynamics", "mimic", "safety_controller")
        name = joint.get("name", "")
        if name in model.joint_rows:
            damping, friction = repr(errors.joint_damping), repr(errors.joint_friction)
            ET.SubElement(joint, "dynamics", damping=damping, friction=friction)
        elif joint.get("type") != "fixed":
            rotation, translation = model.merged_placements[name]
            joint.set("type", "fixed")
            _without(joint, "origin", "axis", "limit")
            rpy = _text(rpy_from_rotation(rotation))
            ET.SubElement(joint, "origin", xyz=_text(translation), rpy=rpy)
    mend_inertias(robot)
    for element in (*robot.iterfind(".//inertial/mass"), *robot.iterfind(".//inertial/inertia")):
        for attribute, value in element.attrib.items():
            element.set(attribute, repr(float(value) * errors.mass_scale))
    _add_payload(robot, model, errors)
    ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler", _COMPILER)
    return ET.tostring(robot, encoding="unicode")


def _without(joint: ET.Element, *tags: str) -> None:
    for element in list(joint):
        if element.tag in tags:
            joint.remove(element)


def mend_inertias(robot: ET.Element) -> None:
    """Replaces impossible inertias, which MuJoCo refuses, by the nearest possible inertias."""
    for element in robot.iter("inertia"):
        inertia = [float(element.get(name, "0")) for name in _MOMENTS]
        matrix = pseudo_inertia_of(np.array([0.0, 0.0, 0.0, 0.0, *inertia]))
        moments, axes = np.linalg.eigh(matrix[:3, :3])
        smallest_principal = moments[0] + moments[1]
        if not any(inertia) or (moments[0] >= 0.0 and smallest_principal > LEAST_INERTIA):
            continue
        least = 1e-9 * np.abs(moments).max() + LEAST_INERTIA
        matrix[:3, :3] = axes @ np.diag(np.maximum(moments, least)) @ axes.T
        for name, value in zip(_MOMENTS, ten_parameters(matrix)[4:].tolist(), strict=True):
            element.set(name, repr(value))


def _add_payload(robot: ET.Element, model: RobotModel, errors: ModelErrors) -> None:
    if errors.payload_mass == 0.0:
        return
    link_name = errors.payload_link or model.child_links[-1]
    names = [link.get("name", "") for link in robot.findall("link")]
    if link_name not in names:
        raise SimulationError(
            f"payload_link is {link_name!r}, which is not a link of {model.name!r}; it has "
            f"{', '.join(names)}"
        )
    link = ET.SubElement(robot, "link", name="simulated_payload")
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "mass", value=repr(errors.payload_mass))
    ET.SubElement(inertial, "inertia", dict.fromkeys(_MOMENTS, "0"))
    joint = ET.SubElement(robot, "joint", name="simulated_payload_joint", type="fixed")
    ET.SubElement(joint, "parent", link=link_name)
    ET.SubElement(joint, "child", link="simulated_payload")
    ET.SubElement(joint, "origin", xyz=_text(errors.payload_position))


def _text(numbers: np.ndarray | Sequence[float]) -> str:
    return " ".join(repr(float(number)) for number in numbers)
