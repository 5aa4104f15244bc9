"""Where joints are locked: given positions, checked, and whether the joints can be there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rnea_control.exceptions import RobotModelError, listed
from rnea_control.model.joints import Joint

# A finger pressed shut, a hard stop a little beyond the limit or a rounded number is no mistake:
# outside the limits by less than this part of the range, or by this, [rad] or [m].
_SLACK_OF_RANGE, _SLACK = 0.05, {"revolute": 0.05, "prismatic": 0.005}

# No limits are so wrong; it is in another unit, [rad] or [m].
_FAR = {"revolute": 2.0 * math.pi, "prismatic": 1.0}
_UNITS = {"revolute": ("rad", "degrees"), "prismatic": ("m", "mm")}


def checked_locked_positions(
    by_name: Mapping[str, Joint], wanted: Sequence[str], locked: Mapping[str, float], source: str
) -> dict[str, float]:
    """The positions that were given.

    Raises:
        RobotModelError: one that is no number, far outside the limits, or of no such joint.
    """
    if not isinstance(locked, Mapping):
        raise RobotModelError(
            f"{source}: `locked_positions` is {locked!r}; it must map names to positions"
        )
    for name, position in locked.items():
        if not isinstance(position, (int, float, np.number)):
            raise RobotModelError(
                f"{source}: `locked_positions` of {name!r} is {position!r}; it must be a number"
            )
        if name not in by_name or by_name[name].nq != 1:
            raise RobotModelError(
                f"{source}: `locked_positions` names {name!r}, which is no joint of the robot "
                "with one degree of freedom"
            )
        if name in wanted:
            raise RobotModelError(
                f"{source}: joint {name!r} is in `locked_positions` and in `joints`; keep it in "
                "one of them"
            )
        if not math.isfinite(position):
            raise RobotModelError(
                f"{source}: `locked_positions` of {name!r} is {position}; it must be a finite "
                "number"
            )
        joint = by_name[name]
        if _outside(joint, position) > _FAR.get(joint.type, math.inf):
            unit, other = _UNITS[joint.type]
            raise RobotModelError(
                f"{source}: `locked_positions` of {name!r} is {position:g} {unit}, far outside its "
                f"limits {joint.lower:g} to {joint.upper:g}, as if given in {other}; give it in "
                f"{unit}"
            )
    return {name: float(position) for name, position in locked.items()}


def locked_outside_limits(
    joints: Iterable[Joint], positions: Mapping[str, float], source: str
) -> list[str]:
    """A sentence for the joints that cannot be where they are locked; 0 where nothing is given."""
    found = [
        f"{joint.name} at {position:g} ({joint.lower:g} to {joint.upper:g})"
        for joint in joints
        if _outside(joint, position := positions.get(joint.name, 0.0)) > _slack(joint)
    ]
    if not found:
        return []
    return [
        f"{source}: locked outside the limits: {listed(found)}; the mass is then where it cannot "
        "be. Give the real position in `locked_positions`"
    ]


def _outside(joint: Joint, position: float) -> float:
    """How far `position` is outside the limits; 0 for joints that have no range."""
    if joint.type not in _FAR or joint.lower == joint.upper:
        return 0.0
    return max(joint.lower - position, position - joint.upper, 0.0)


def _slack(joint: Joint) -> float:
    return max(_SLACK.get(joint.type, 0.0), _SLACK_OF_RANGE * (joint.upper - joint.lower))
