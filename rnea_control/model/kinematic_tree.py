"""The tree that the joints of a URDF form, checked, with parents before children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

from rnea_control.exceptions import RobotModelError


class Edge(Protocol):
    """What a joint is to the tree."""

    @property
    def name(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def child(self) -> str: ...


def ordered_tree(
    links: Sequence[str], joints: Sequence[Edge], source: str
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


def _refuse_two_parents(joints: Sequence[Edge], source: str) -> None:
    parent_joint: dict[str, str] = {}
    for joint in joints:
        other = parent_joint.setdefault(joint.child, joint.name)
        if other != joint.name:
            raise RobotModelError(
                f"{source}: link {joint.child!r} is the child of two joints, {other!r} and "
                f"{joint.name!r}; a URDF must be a tree, remove one"
            )


def _depth_first(joints: Sequence[Edge], root: str) -> list[int]:
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


def _loop(joints: Sequence[Edge], in_tree: Collection[int]) -> list[str]:
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
