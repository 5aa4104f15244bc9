"""What is legal in the joints of a URDF but probably not meant."""

from __future__ import annotations

from collections.abc import Container, Iterable

from urdf_parser_py import urdf

from rnea_control.exceptions import listed
from rnea_control.model.urdf_document import SINGLE_TYPES


def suspicious_joints(
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
