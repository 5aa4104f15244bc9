"""`RobotDescription`: the links and joints of a robot, from a URDF or from Python, checked."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, named
from rnea_control.model.joints import Joint, read_joint
from rnea_control.model.kinematic_tree import ordered_tree
from rnea_control.model.links import impossible_inertias, link_inertia_of, read_link_inertia
from rnea_control.model.urdf_document import parse_urdf

# What a floating base is called, and the link that it floats in.
FLOATING_BASE = "root_joint"
WORLD = "world"

# One turn, which no rpy needs; those of the robots of example-robot-data go to 4.72.
_LARGEST_ANGLE = 2.0 * math.pi + 0.01


@dataclass(frozen=True)
class RobotDescription:
    """A tree of links and joints.

    Attributes:
        name: of the robot.
        source: where it comes from, for error messages.
        root: the link that is no joint's child.
        joints: parents before children.
        inertias: pseudo-inertia of each link in its own frame, shape (4, 4).
        notes: what is legal but probably not meant, a sentence each.
        urdf_joints: as the URDF has them, if there is one.
    """

    name: str
    source: str
    root: str
    joints: tuple[Joint, ...]
    inertias: dict[str, FloatArray]
    notes: tuple[str, ...] = ()
    urdf_joints: tuple[urdf.Joint, ...] = ()

    def with_floating_base(self) -> RobotDescription:
        """The same robot with its root link on a floating joint in a new root."""
        world = _new_name(WORLD, self.inertias)
        name = _new_name(FLOATING_BASE, [joint.name for joint in self.joints])
        base = Joint(name, "floating", world, self.root)
        inertias = {world: np.zeros((4, 4)), **self.inertias}
        return replace(self, root=world, joints=(base, *self.joints), inertias=inertias)


def description_from_urdf(xml: str | bytes, source: str) -> RobotDescription:
    """Reads a URDF.

    Raises:
        RobotModelError: not a URDF, or not of a tree with valid numbers; the message says where,
            what, and the remedy.
    """
    notes: list[str] = []
    document = parse_urdf(xml, source)
    if document.unknown:
        notes.append(f"{source}: unknown and ignored: {'; '.join(document.unknown)}")
    robot = document.robot
    root, order = ordered_tree([link.name for link in robot.links], robot.joints, source)
    joints = tuple(read_joint(robot.joints[i], source) for i in order)
    links = [read_link_inertia(link, source) for link in robot.links]
    notes.extend(impossible_inertias(links, source))
    notes.extend(_turned_in_degrees(robot, source))
    inertias = {link.link: link.pseudo_inertia() for link in links}
    urdf_joints = tuple(robot.joints)
    return RobotDescription(robot.name, source, root, joints, inertias, tuple(notes), urdf_joints)


def description_from_joints(
    name: str, joints: Iterable[Joint], inertias: Mapping[str, FloatArray]
) -> RobotDescription:
    """A robot from its joints; the links are those that they name.

    Raises:
        RobotModelError: joints that are not a tree, an inertia of an unknown link, or one that is
            not a pseudo-inertia.
    """
    joints = tuple(joints)
    links = list(dict.fromkeys(link for joint in joints for link in (joint.parent, joint.child)))
    for link, inertia in inertias.items():
        if link not in links:
            raise RobotModelError(
                f"{name}: there is an inertia for link {link!r}, which no joint names; the links "
                f"are {', '.join(links)}"
            )
        if np.shape(inertia) != (4, 4) or not np.isfinite(inertia).all():
            raise RobotModelError(
                f"{name}: the inertia of link {link!r} must be a finite pseudo-inertia of shape "
                "(4, 4); make it with pseudo_inertia(mass, center_of_mass, inertia)"
            )
        if not np.allclose(inertia, np.transpose(inertia)):
            raise RobotModelError(
                f"{name}: the inertia of link {link!r} must be symmetric; make it with "
                "pseudo_inertia(mass, center_of_mass, inertia)"
            )
    root, order = ordered_tree(links, joints, name)
    matrices = {link: np.array(inertias.get(link, np.zeros((4, 4)))) for link in links}
    notes = impossible_inertias([link_inertia_of(*item) for item in matrices.items()], name)
    return RobotDescription(
        name, name, root, tuple(joints[i] for i in order), matrices, tuple(notes)
    )


def _new_name(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _turned_in_degrees(robot: urdf.Robot, source: str) -> list[str]:
    """A sentence if angles of <origin rpy> are beyond a turn."""
    of_joints = {joint.name: _largest_angle(joint.origin) for joint in robot.joints}
    of_links = {
        link.name: _largest_angle(link.inertial.origin) for link in robot.links if link.inertial
    }
    where, largest = [], 0.0
    for kind, angles in (("joint", of_joints), ("link", of_links)):
        names = [name for name, angle in angles.items() if angle > _LARGEST_ANGLE]
        if names:
            where.append(named(kind, names))
            largest = max(largest, *angles.values())
    if not where:
        return []
    return [
        f"{source}: <origin rpy> of {' and '.join(where)} has angles up to {largest:g} rad, more "
        "than a turn, as if given in degrees. Give rad"
    ]


def _largest_angle(origin: urdf.Pose | None) -> float:
    return max(map(abs, origin.rpy)) if origin and origin.rpy else 0.0
