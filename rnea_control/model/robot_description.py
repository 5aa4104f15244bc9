"""`RobotDescription`: the validated links and joints of a robot, from a URDF or from Python. They
form a tree; parents come before children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import KinematicTreeError, RobotModelError, errors_of
from rnea_control.model.joints import Joint, is_name
from rnea_control.model.rigid_body import impossible_inertias, link_inertia_of
from rnea_control.model.urdf_document import parse_urdf, read_joint, read_link_inertia

FLOATING_BASE = "root_joint"  # name of the floating joint
WORLD = "world"  # name of its parent link


@dataclass(frozen=True)
class RobotDescription:
    """A tree of links and joints.

    Attributes:
        name: name of the robot.
        source: file or parameter that the robot comes from, for error messages.
        root: the link that is no joint's child.
        joints: all joints, parents before children.
        inertias: pseudo-inertia of each link in its own frame, shape (4, 4).
        notes: a sentence for each kind of content that was not read, is read in another way by
            other programs, or belongs to no real body.
        urdf: links and joints as in the URDF; None for a robot made in Python.
    """

    name: str
    source: str
    root: str
    joints: tuple[Joint, ...]
    inertias: dict[str, FloatArray]
    notes: tuple[str, ...] = ()
    urdf: urdf.Robot | None = None

    def with_floating_base(self) -> RobotDescription:
        """Copy of the robot whose root link floats in a new link "world"."""
        name = _new_name(FLOATING_BASE, {joint.name for joint in self.joints})
        world = _new_name(WORLD, self.inertias)
        base = Joint(name, "floating", world, self.root)
        inertias = {world: np.zeros((4, 4)), **self.inertias}
        return replace(self, root=world, joints=(base, *self.joints), inertias=inertias)


def description_from_urdf(xml: str | bytes, source: str) -> RobotDescription:
    """Reads a URDF.

    Raises:
        RobotModelError: not a URDF, not a tree, or an invalid number. The message names element,
            value and remedy.
    """
    with errors_of(source):
        robot, notes = parse_urdf(xml)
        joints = [read_joint(joint) for joint in robot.joints]
        links = [read_link_inertia(link) for link in robot.links]
        root, order = _ordered_tree([link.link for link in links], joints)
    inertias = {link.link: link.pseudo_inertia() for link in links}
    notes += impossible_inertias(links)
    return RobotDescription(robot.name, source, root, order, inertias, tuple(notes), robot)


def description_from_joints(
    name: str, joints: Iterable[Joint], inertias: Mapping[str, FloatArray]
) -> RobotDescription:
    """A robot from its joints; its links are the parent and child links of the joints.

    Raises:
        KinematicTreeError: joints that are not a tree, or an inertia of an unknown link.
        RobotModelError: an inertia that is not a pseudo-inertia.
    """
    joints = tuple(joints)
    links = list(dict.fromkeys(link for joint in joints for link in (joint.parent, joint.child)))
    if not is_name(name):
        raise RobotModelError(
            f"the robot's name is {name!r}; it must be a name without line breaks and control "
            "characters"
        )
    with errors_of(name):
        for link, inertia in inertias.items():
            if link not in links:
                raise KinematicTreeError(
                    f"there is an inertia for link {link!r}, which no joint names; the links are "
                    f"{', '.join(links)}"
                )
            is_finite = np.shape(inertia) == (4, 4) and np.isfinite(inertia).all()
            if not is_finite or not np.allclose(inertia, np.transpose(inertia)):
                wanted = "symmetric" if is_finite else "a finite pseudo-inertia of shape (4, 4)"
                raise RobotModelError(
                    f"the inertia of link {link!r} must be {wanted}; make it with "
                    "pseudo_inertia(mass, center_of_mass, inertia)"
                )
        root, joints = _ordered_tree(links, joints)
    matrices = {link: np.array(inertias.get(link, np.zeros((4, 4)))) for link in links}
    notes = impossible_inertias([link_inertia_of(*item) for item in matrices.items()])
    return RobotDescription(name, name, root, joints, matrices, tuple(notes))


def _new_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _ordered_tree(links: Sequence[str], joints: Sequence[Joint]) -> tuple[str, tuple[Joint, ...]]:
    """Name of the root link, and the joints depth first, siblings in the given order."""
    if not links:
        raise KinematicTreeError("the robot has no links; it needs at least one")
    for kind, names in (("link", links), ("joint", [joint.name for joint in joints])):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise KinematicTreeError(
                f"more than one {kind} is named {', '.join(map(repr, twice))}; each needs a name "
                "of its own"
            )
    above: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {link: [] for link in links}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in below:
                raise KinematicTreeError(
                    f"joint {joint.name!r}: its {role} link {link!r} is not in the file; add the "
                    "link or correct the name"
                )
        other = above.setdefault(joint.child, joint)
        if other is not joint:
            raise KinematicTreeError(
                f"link {joint.child!r} is the child of two joints, {other.name!r} and "
                f"{joint.name!r}; a URDF must be a tree, remove one"
            )
        below[joint.parent].append(joint)
    roots = sorted(set(links) - set(above))
    if len(roots) > 1:
        raise KinematicTreeError(
            "a robot has exactly one root link (a link that is no joint's child); found: "
            f"{', '.join(roots)}. Connect them by joints"
        )
    try:
        TopologicalSorter({joint.child: [joint.parent] for joint in joints}).prepare()
    except CycleError as error:
        loop = ", ".join(above[link].name for link in error.args[1][:-1])
        apart = f" apart from the root {roots[0]!r}" if roots else ", so there is no root link"
        raise KinematicTreeError(
            f"the joints {loop} form a closed loop{apart}; a URDF must be a tree. Cut the loop at "
            "one of them"
        ) from error
    order: list[Joint] = []
    stack = below[roots[0]][::-1]
    while stack:
        order.append(stack.pop())
        stack += below[order[-1].child][::-1]
    return roots[0], tuple(order)
