"""Selection of the joints that move, those that mimic a leader, and the positions of the locked
joints."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import JointError, JointSelectionError, distinct, listed
from rnea_control.model.joints import Joint, Mimic

# Distance outside the limits that is no mistake: a finger pressed shut, a hard stop a little beyond
# the limit, a rounded number. The larger of the two holds.
_SLACK_OF_RANGE = 0.05  # fraction of the joint's range
_SLACK = {"revolute": 0.05, "prismatic": 0.005}  # [rad] or [m]

# Distance outside the limits from which the position is in another unit, [rad] or [m].
_FAR = {"revolute": math.tau, "prismatic": 1.0}
_UNITS = {"revolute": ("rad", "degrees"), "prismatic": ("m", "mm")}


@dataclass(frozen=True)
class Coordinates:
    """First index of a joint's positions in q and of its velocities in v.

    A mimic joint has the indices of its leader; its position is ratio * q + offset.
    """

    joint: Joint
    q: int
    v: int
    ratio: float = 1.0
    offset: float = 0.0
    leads: bool = True


@dataclass(frozen=True)
class JointSelection:
    """Role of each joint.

    Attributes:
        coordinates: the moving joints by name, in the order of q and v, then the mimic joints.
        locked: positions of joints that could move and are locked, by name, [rad] or [m].
        notes: warnings, a sentence each.
    """

    coordinates: dict[str, Coordinates]
    locked: dict[str, float]
    notes: tuple[str, ...]

    def joints(self, leads: bool) -> tuple[Joint, ...]:
        """Joints with coordinates of their own (`leads`), or joints that mimic one of these."""
        return tuple(at.joint for at in self.coordinates.values() if at.leads == leads)

    def placement(self, joint: Joint) -> tuple[FloatArray, FloatArray]:
        """R_PC and p_PC of the child link's frame of a joint without coordinates."""
        return joint.placement_at(self.locked.get(joint.name, 0.0))


def select_joints(
    joints: Sequence[Joint],
    wanted: Sequence[str] | None,
    locked_positions: Mapping[str, float],
    base: Sequence[str] = (),
) -> JointSelection:
    """Selects the joints named in `base` and `wanted`; without `wanted` all joints that move and
    mimic none.

    Raises:
        JointSelectionError: `wanted` is not a list, or has a name that is unknown, repeated or of a
            joint that cannot move; a locked position is not a number, is far outside the limits or
            belongs to no joint with one degree of freedom.
        JointError: a joint mimics itself, or a joint with several positions.
    """
    if isinstance(wanted, (str, bytes)) or not isinstance(wanted, (Iterable, type(None))):
        raise JointSelectionError(f"`joints` is {wanted!r}; it must be a list of joint names")
    if not isinstance(locked_positions, Mapping):
        what = f"`locked_positions` is {locked_positions!r}"
        raise JointSelectionError(f"{what}; it must map names to positions")
    if wanted is not None:
        wanted = [*base, *wanted]
    by_name = {joint.name: joint for joint in joints}
    strangers, mimics = [], {}
    own = {*(wanted or ()), *locked_positions}  # their <mimic> is not used
    for joint in joints:
        if joint.name in own:
            continue
        if joint.mimic is not None and joint.mimic.joint not in by_name:
            strangers.append(f"{joint.name} ({joint.mimic.joint!r})")
        elif joint.mimic is not None:
            mimics[joint.name] = _leader(joint, by_name, own)
    notes = []
    if strangers:
        notes.append(
            f"<mimic> names an unknown joint: {listed(strangers)}; so these joints move "
            "independently. Correct the names"
        )
    if wanted is None:
        wanted = [joint.name for joint in joints if joint.nv and joint.name not in mimics]
    _check(by_name, wanted, locked_positions)
    locked = {name: float(position) for name, position in locked_positions.items()}
    coordinates, q, v = {}, 0, 0
    for name in wanted:
        joint = by_name[name]
        coordinates[name] = Coordinates(joint, q, v)
        q, v = q + joint.nq, v + joint.nv
    for name, mimic in mimics.items():
        ratio, offset = mimic.multiplier, mimic.offset
        if at := coordinates.get(mimic.joint):
            coordinates[name] = Coordinates(by_name[name], at.q, at.v, ratio, offset, leads=False)
        else:
            locked[name] = ratio * locked.get(mimic.joint, 0.0) + offset
    outside = [
        "{} at {} ({} to {})".format(joint.name, *distinct(position, joint.lower, joint.upper))
        for joint in joints
        if joint.nq == 1
        and joint.name not in coordinates
        and _outside(joint, position := locked.get(joint.name, 0.0))
        > max(_SLACK.get(joint.type, 0.0), _SLACK_OF_RANGE * (joint.upper - joint.lower))
    ]
    if outside:
        notes.append(
            f"locked outside the limits: {listed(outside)}; the mass is then where it cannot be. "
            "Give the real position in `locked_positions`"
        )
    return JointSelection(coordinates, locked, tuple(notes))


def _leader(joint: Joint, by_name: Mapping[str, Joint], own: Container[str]) -> Mimic:
    """Mimic of a joint with respect to the leader at the end of its chain: a joint that mimics
    none, or is one of `own`."""
    where = f"joint {joint.name!r}: mimics"
    mimic, seen = joint.mimic, [joint.name]
    assert mimic is not None
    while True:
        leader = by_name[mimic.joint]
        if leader.nq > 1:
            raise JointError(
                f"{where} {mimic.joint!r}, which is {leader.type}; it must name a joint with one "
                "degree of freedom"
            )
        further = leader.mimic
        if leader.name in own or further is None or further.joint not in by_name:
            return mimic
        if leader.name in seen:
            raise JointError(
                f"{where} itself by way of {', '.join(seen)}; one of them must move by itself"
            )
        seen.append(leader.name)
        offset = mimic.multiplier * further.offset + mimic.offset
        mimic = Mimic(further.joint, mimic.multiplier * further.multiplier, offset)


def _check(
    by_name: Mapping[str, Joint], wanted: Sequence[str], locked: Mapping[str, float]
) -> None:
    movable = ", ".join(joint.name for joint in by_name.values() if joint.nv) or "none"
    for name in wanted:
        if name not in by_name:
            raise JointSelectionError(
                f"has no joint {name!r}, which `joints` names; it has {movable}"
            )
        if not by_name[name].nv:
            raise JointSelectionError(
                f"joint {name!r} of `joints` is of type {by_name[name].type!r} and cannot move; "
                f"those that can are {movable}"
            )
    if len(set(wanted)) != len(wanted):
        raise JointSelectionError(f"`joints` names a joint twice: {', '.join(wanted)}")
    for name, position in locked.items():
        where = f"`locked_positions` of {name!r} is"
        if not isinstance(position, (int, float, np.number)) or not math.isfinite(position):
            raise JointSelectionError(f"{where} {position!r}; it must be a finite number")
        if name not in by_name or by_name[name].nq != 1:
            raise JointSelectionError(
                f"`locked_positions` names {name!r}, which is no joint of the robot with one "
                "degree of freedom"
            )
        if name in wanted:
            raise JointSelectionError(
                f"joint {name!r} is in `locked_positions` and in `joints`; keep it in one of them"
            )
        joint = by_name[name]
        if _outside(joint, position) > _FAR.get(joint.type, math.inf):
            unit, other = _UNITS[joint.type]
            raise JointSelectionError(
                f"{where} {position:g} {unit}, far outside its limits {joint.lower:g} to "
                f"{joint.upper:g}, as if given in {other}; give it in {unit}"
            )


def _outside(joint: Joint, position: float) -> float:
    """Distance of `position` outside the limits; 0 for joints without a range."""
    if joint.type not in _FAR or joint.lower == joint.upper:
        return 0.0
    return max(joint.lower - position, position - joint.upper, 0.0)
