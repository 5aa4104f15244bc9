"""`RobotDescription`: the links and joints of a robot, from a URDF or from Python, checked: a tree,
with parents before children."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, named
from rnea_control.model.joints import Joint, read_joint
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
    root, order = _ordered_tree([link.name for link in robot.links], robot.joints, source)
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
    root, order = _ordered_tree(links, joints, name)
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


class _Edge(Protocol):
    """What a joint is to the tree."""

    @property
    def name(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def child(self) -> str: ...


def _ordered_tree(
    links: Sequence[str], joints: Sequence[_Edge], source: str
) -> tuple[str, list[int]]:
    """The root link's name, and the indices into `joints`, depth first, siblings in their order.

    Raises:
        RobotModelError: no link, a name given twice, a joint to a link that is not there, a link
            with two parents, several roots, a closed loop.
    """
    if not links:
        raise RobotModelError(f"{source}: the robot has no links; it needs at least one")
    _refuse_duplicates("link", links, source)
    _refuse_duplicates("joint", [joint.name for joint in joints], source)
    link_names = set(links)
    for joint in joints:
        for role in ("parent", "child"):
            if getattr(joint, role) not in link_names:
                raise RobotModelError(
                    f"{source}: joint {joint.name!r}: its {role} link {getattr(joint, role)!r} is "
                    "not in the file; add the link or correct the name"
                )
    _refuse_two_parents(joints, source)
    roots = sorted(link_names - {joint.child for joint in joints})
    if len(roots) > 1:
        raise RobotModelError(
            f"{source}: a robot has exactly one root link (a link that is no joint's child); "
            f"found: {', '.join(roots)}. Connect them by joints"
        )
    order = _depth_first(joints, roots[0]) if roots else []
    if len(order) < len(joints):
        loop = ", ".join(_loop(joints, set(order)))
        apart = f" apart from the root {roots[0]!r}" if roots else ", so there is no root link"
        raise RobotModelError(
            f"{source}: the joints {loop} form a closed loop{apart}; a URDF must be a tree. Cut "
            "the loop at one of them"
        )
    return roots[0], order


def _refuse_duplicates(kind: str, names: Sequence[str], source: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise RobotModelError(
            f"{source}: more than one {kind} is named {', '.join(map(repr, twice))}; each needs a "
            "name of its own"
        )


def _refuse_two_parents(joints: Sequence[_Edge], source: str) -> None:
    parent_joint: dict[str, str] = {}
    for joint in joints:
        other = parent_joint.setdefault(joint.child, joint.name)
        if other != joint.name:
            raise RobotModelError(
                f"{source}: link {joint.child!r} is the child of two joints, {other!r} and "
                f"{joint.name!r}; a URDF must be a tree, remove one"
            )


def _depth_first(joints: Sequence[_Edge], root: str) -> list[int]:
    joints_from: dict[str, list[int]] = {}
    for index, joint in enumerate(joints):
        joints_from.setdefault(joint.parent, []).append(index)
    order = []
    stack = joints_from.get(root, [])[::-1]
    while stack:
        index = stack.pop()
        order.append(index)
        stack.extend(joints_from.get(joints[index].child, [])[::-1])
    return order


def _loop(joints: Sequence[_Edge], in_tree: Collection[int]) -> list[str]:
    """The joints of a closed loop, in their order along it from the first in the file. Every link
    outside the tree has a parent, and so leads to one."""
    above = {joint.child: joint for i, joint in enumerate(joints) if i not in in_tree}
    way: list[str] = []
    edge = next(iter(above.values()))
    while edge.name not in way:
        way.append(edge.name)
        edge = above[edge.parent]
    loop = way[way.index(edge.name) :][::-1]
    first = next(i for joint in joints for i, name in enumerate(loop) if name == joint.name)
    return loop[first:] + loop[:first]
