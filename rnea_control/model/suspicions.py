"""What is legal in a robot and what is done with it, but probably not meant: a sentence each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import listed, named
from rnea_control.model import bodies as layout
from rnea_control.model.joint_selection import JointSelection
from rnea_control.model.joints import Joint
from rnea_control.model.plausibility import implausible
from rnea_control.model.robot_description import RobotDescription
from rnea_control.model.urdf_document import SINGLE_TYPES


def suspicions(
    description: RobotDescription,
    selection: JointSelection,
    merged: layout.Bodies,
    gravity: FloatArray,
) -> tuple[str, ...]:
    """What is legal but suspicious: in the URDF, and in what is done with it."""
    source, names = description.source, {joint.name for joint in selection.chosen}
    everything = {joint.name for joint in description.joints}
    controlled = [joint for joint in description.urdf_joints if joint.name in names]
    moving = (*selection.chosen, *selection.followers)
    notes = [*description.notes, *selection.notes]
    notes += _suspicious_joints(controlled, everything, source)
    notes += _joints_of_nothing(moving, merged.rows, merged.array, source)
    notes += _joints_without_effort(selection.chosen, source)
    if description.urdf_joints:  # what is written in Python does not come from another program
        rows = merged.links[:, layout.LINK_BODY].astype(int)
        body_of = dict(zip(merged.link_names, rows, strict=True))
        notes += implausible(description, selection.chosen, body_of, gravity)
    return tuple(notes)


def _suspicious_joints(
    joints: Iterable[urdf.Joint], known: Container[str], source: str
) -> list[str]:
    """A sentence for each kind of finding in these joints; `known` are the names of all."""
    joints, notes = list(joints), []
    several = [
        joint.name
        for joint in joints
        if joint.type not in SINGLE_TYPES and (joint.dynamics or joint.limit)
    ]
    if several:
        notes.append(
            f"{source}: <dynamics> and <limit> of {listed(several)} are not used, as URDF does "
            "not say for which degree of freedom they are. Set damping and friction of the "
            "RobotModel in Python"
        )
    joints = [joint for joint in joints if joint.type in SINGLE_TYPES]
    mimics = [joint.name for joint in joints if joint.mimic and joint.mimic.joint in known]
    if mimics:
        notes.append(
            f"{source}: {listed(mimics)} have a <mimic> and are named in `joints`, so each "
            "moves as a joint of its own. Leave them out of `joints` to let them follow"
        )
    soft = [joint.name for joint in joints if joint.safety_controller is not None]
    if soft:
        notes.append(
            f"{source}: {listed(soft)} have a <safety_controller>; near the soft limits "
            "ros2_control may then cancel a torque that leads back inside. Remove the tags if a "
            "joint sticks there"
        )
    unlimited = [joint.name for joint in joints if joint.limit is None]
    if unlimited:
        notes.append(
            f"{source}: {listed(unlimited)} have no <limit>, so their torque is never clamped. "
            "Give the actuator's effort limit"
        )
    limited = [joint for joint in joints if joint.limit is not None]
    slow = [joint.name for joint in limited if joint.limit.velocity == 0.0]
    if slow:
        notes.append(
            f"{source}: <limit velocity> of {listed(slow)} is 0; it is taken as no limit here, "
            "while ros2_control may let no torque through. Give the actuator's largest velocity"
        )
    stuck = [
        joint.name
        for joint in limited
        if joint.type != "continuous" and joint.limit.lower == joint.limit.upper
    ]
    if stuck:
        notes.append(
            f"{source}: <limit> lower and upper of {listed(stuck)} are the same, so these "
            "joints may not move. Give their range"
        )
    return notes


def _joints_of_nothing(
    joints: Sequence[Joint], rows: Mapping[str, int], bodies: FloatArray, source: str
) -> list[str]:
    """A sentence for the joints that move nothing.

    A link without inertia between others, as in a universal joint made of two revolute ones, is no
    fault: its joint moves what comes after.
    """
    carries = [row[layout.INERTIA : layout.INERTIA + 10].any() for row in bodies]
    for row in range(len(bodies) - 1, 0, -1):
        carries[int(bodies[row, layout.PARENT])] |= carries[row]
    idle = [joint for joint in joints if not carries[rows[joint.name]]]
    if not idle:
        return []
    links = named("link", [joint.child for joint in idle])
    if len(idle) == 1:
        moves = f"{links} moves with joint {idle[0].name!r} but has no inertia"
    else:
        moves = f"{links} move but have no inertia"
    return [
        f"{source}: {moves}; no torque is computed for moving what is there. Give it an <inertial>"
    ]


def _joints_without_effort(joints: Sequence[Joint], source: str) -> list[str]:
    """A sentence for the joints whose effort limit is 0."""
    names = [joint.name for joint in joints if joint.effort_limit == 0.0]
    if not names:
        return []
    return [
        f"{source}: {named('joint', names)}: <limit effort> is 0, so no torque at all is allowed. "
        "Give the actuator's effort limit"
    ]
