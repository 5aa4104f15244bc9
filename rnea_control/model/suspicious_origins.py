"""Origins whose angles are probably in degrees."""

from __future__ import annotations

import math

from urdf_parser_py import urdf

from rnea_control.model.wording import named

# One turn, which no rpy needs; those of the robots of example-robot-data go to 4.72.
_LARGEST_ANGLE = 2.0 * math.pi + 0.01


def turned_in_degrees(robot: urdf.Robot, source: str) -> list[str]:
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
