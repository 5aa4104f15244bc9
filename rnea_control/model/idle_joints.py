"""Joints that move nothing with an inertia, or may exert no torque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rnea_control.array_types import FloatArray
from rnea_control.model import bodies as layout
from rnea_control.model.joints import Joint
from rnea_control.model.wording import named


def joints_of_nothing(
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


def joints_without_effort(joints: Sequence[Joint], source: str) -> list[str]:
    """A sentence for the joints whose effort limit is 0."""
    names = [joint.name for joint in joints if joint.effort_limit == 0.0]
    if not names:
        return []
    return [
        f"{source}: {named('joint', names)}: <limit effort> is 0, so no torque at all is allowed. "
        "Give the actuator's effort limit"
    ]
