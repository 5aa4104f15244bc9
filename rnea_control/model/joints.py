"""Joints as the URDF gives them, checked, and with the defaults that urdf_parser_py omits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from urdf_parser_py import urdf

from rnea_control.exceptions import RobotModelError
from rnea_control.model.rotations import FloatArray, rotation_about_axis, rotation_from_rpy
from rnea_control.model.urdf_document import MOVING_TYPES


@dataclass(frozen=True)
class Joint:
    """A joint: `rotation` R_PJ and `translation` p_PJ place its frame J at zero position in the
    parent link's frame P.

    The child link's frame is J turned about, or moved along, the unit vector `axis` (expressed in
    J). Limits in rad, rad/s and Nm, or m, m/s and N; infinite where the URDF gives none.
    """

    name: str
    type: str
    parent: str
    child: str
    rotation: FloatArray
    translation: FloatArray
    axis: FloatArray
    lower: float = -math.inf
    upper: float = math.inf
    velocity_limit: float = math.inf
    effort_limit: float = math.inf
    damping: float = 0.0
    friction: float = 0.0

    @property
    def moves(self) -> bool:
        return self.type in MOVING_TYPES

    def placement_at(self, position: float) -> tuple[FloatArray, FloatArray]:
        """R_PC and p_PC of the child link's frame with the joint at `position` [rad] or [m]."""
        if self.type == "prismatic":
            return self.rotation, self.translation + self.rotation @ self.axis * position
        return self.rotation @ rotation_about_axis(self.axis, position), self.translation


def read_joint(joint: urdf.Joint, source: str) -> Joint:
    """Checks one joint of a parsed URDF.

    Raises:
        RobotModelError: a zero axis, limits that are missing, reversed or
            negative.
    """
    where = f"{source}: joint {joint.name!r}"
    rotation, translation = read_origin(joint.origin)
    placed = Joint(
        joint.name,
        joint.type,
        joint.parent,
        joint.child,
        rotation,
        translation,
        np.array([1.0, 0, 0]),
    )
    if not placed.moves:
        return placed
    return Joint(
        **{
            **vars(placed),
            "axis": _unit_axis(joint, where),
            **_limits(joint, where),
            **_dissipation(joint, where),
        }
    )


def suspicious_joints(joints: Iterable[urdf.Joint], source: str) -> list[str]:
    """What is legal about these joints but probably not meant, a sentence for each kind."""
    joints = [joint for joint in joints if joint.type in MOVING_TYPES]
    notes = []
    mimics = [joint.name for joint in joints if joint.mimic is not None]
    if mimics:
        notes.append(
            f"{source}: <mimic> of {', '.join(mimics)} is not followed, each moves as a joint "
            "of its own. Leave them out of `joints` to lock them"
        )
    soft = [joint.name for joint in joints if joint.safety_controller is not None]
    if soft:
        notes.append(
            f"{source}: {', '.join(soft)} have a <safety_controller>; near the soft limits "
            "ros2_control may then cancel a torque that leads back inside. Remove the tags if a "
            "joint sticks there"
        )
    unlimited = [joint.name for joint in joints if joint.limit is None]
    if unlimited:
        notes.append(
            f"{source}: {', '.join(unlimited)} have no <limit>, so their torque is never clamped. "
            "Give "
            "the effort limit of the drive"
        )
    limited = [joint for joint in joints if joint.limit is not None]
    slow = [joint.name for joint in limited if joint.limit.velocity == 0.0]
    if slow:
        notes.append(
            f"{source}: <limit velocity> of {', '.join(slow)} is 0; it is taken as no limit here, "
            "while ros2_control may let no torque through. Give the drive's velocity"
        )
    stuck = [
        joint.name
        for joint in limited
        if joint.type != "continuous" and joint.limit.lower == joint.limit.upper
    ]
    if stuck:
        notes.append(
            f"{source}: <limit> lower and upper of {', '.join(stuck)} are the same, so the joints "
            "may "
            "not move. Give their range"
        )
    return notes


def read_origin(origin: urdf.Pose | None) -> tuple[FloatArray, FloatArray]:
    """Rotation and translation of an <origin>, each zero where it is not given."""
    xyz = origin.xyz if origin is not None and origin.xyz is not None else (0.0, 0.0, 0.0)
    rpy = origin.rpy if origin is not None and origin.rpy is not None else (0.0, 0.0, 0.0)
    return rotation_from_rpy(np.array(rpy)), np.array(xyz, dtype=np.float64)


def _unit_axis(joint: urdf.Joint, where: str) -> FloatArray:
    axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))
    length = float(np.linalg.norm(axis))
    if length < 1e-6:
        raise RobotModelError(
            f"{where}: <axis xyz> is {joint.axis}; it must not be zero. Give the direction of "
            "motion, e.g. 0 0 1"
        )
    return axis / length


def _limits(joint: urdf.Joint, where: str) -> dict[str, float]:
    limit = joint.limit
    if limit is None:
        if joint.type == "continuous":
            return {}
        raise RobotModelError(
            f"{where}: a {joint.type} joint needs a <limit> with effort, velocity, lower and upper"
        )
    for name in ("effort", "velocity"):
        value = getattr(limit, name)
        if value < 0.0:
            raise RobotModelError(f"{where}: <limit {name}> is {value:g}; it must not be negative")
    limits = {"effort_limit": limit.effort, "velocity_limit": limit.velocity}
    if joint.type != "continuous":
        if limit.lower > limit.upper:
            raise RobotModelError(
                f"{where}: <limit> lower {limit.lower:g} is above upper {limit.upper:g}; swap or "
                "correct them"
            )
        limits.update(lower=limit.lower, upper=limit.upper)
    return limits


def _dissipation(joint: urdf.Joint, where: str) -> dict[str, float]:
    values = {}
    for name in ("damping", "friction"):
        value = getattr(joint.dynamics, name, None) or 0.0
        if value < 0.0:
            raise RobotModelError(
                f"{where}: <dynamics {name}> is {value:g}; it must not be negative, it would "
                "drive the joint"
            )
        values[name] = value
    return values
