"""The moving bodies of a robot as one array, the form in which the kernels read a model.

Fixed and locked joints vanish: their child links become part of the body that they move with. A
body's frame is its link's frame turned so that the joint's axis is z; every joint is then a turn
about z or a slide along z, which is what keeps the recursions short. Row 0 is the root link, which
does not move; rows 1.. are in an order in which parents come first.

Columns of a row:

=================  ===========================================================================
ROTATION     0:9   R_PB at zero position, row by row: turns from the body's B to its parent's P
TRANSLATION  9:12  p_PB at zero position, in P; in row 0 the root's acceleration, -gravity
INERTIA     12:22  [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about B's origin, in B
PARENT      22     row of the parent body
PRISMATIC   23     1 for a prismatic joint, 0 for a revolute or continuous one
JOINT       24     index of the joint in q, v, a and tau
LINK        25:34  R_BL, row by row: turns vectors from the link's URDF frame L to B
=================  ===========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.model.inertia import homogeneous, ten_parameters
from rnea_control.model.joints import Joint
from rnea_control.model.rotations import FloatArray, rotation_to_z

ROTATION = 0
TRANSLATION = 9
BASE_ACCELERATION = TRANSLATION  # of row 0
INERTIA = 12
PARENT = 22
PRISMATIC = 23
JOINT = 24
LINK = 25
COLUMNS = 34


@dataclass(frozen=True)
class Bodies:
    """The packed array, and the joint of each row from 1 on."""

    array: FloatArray
    joints: tuple[Joint, ...]


def merge_bodies(
    root: str,
    joints: list[Joint],
    inertias: dict[str, FloatArray],
    order: dict[str, int],
    locked_positions: dict[str, float],
) -> Bodies:
    """Builds the bodies from joints in tree order.

    Args:
        root: name of the root link.
        joints: all joints, parents before children.
        inertias: pseudo-inertia of each link in its own frame.
        order: index in q of each joint that moves; all others are locked.
        locked_positions: where a joint that could move is locked, [rad] or [m]; 0 where not given.
    """
    rows = [np.zeros(COLUMNS)]
    rows[0][ROTATION : ROTATION + 9] = rows[0][LINK : LINK + 9] = np.eye(3).ravel()
    rows[0][JOINT] = -1.0
    pseudo_inertias = [inertias[root].copy()]
    # Where each link sits: the row of its body, and its frame's placement X_BL there.
    placements = {root: (0, np.eye(4))}
    moving = []
    for joint in joints:
        parent_row, parent_transform = placements[joint.parent]
        if joint.name not in order:
            placement = homogeneous(*joint.placement_at(locked_positions.get(joint.name, 0.0)))
            transform = parent_transform @ placement
            placements[joint.child] = (parent_row, transform)
            pseudo_inertias[parent_row] += transform @ inertias[joint.child] @ transform.T
            continue
        # The body's frame B has the link's origin and the joint's axis as its z.
        link_from_body = rotation_to_z(joint.axis)
        joint_placement = parent_transform @ homogeneous(joint.rotation, joint.translation)
        transform = homogeneous(link_from_body.T, np.zeros(3))
        row = np.zeros(COLUMNS)
        row[ROTATION : ROTATION + 9] = (joint_placement[:3, :3] @ link_from_body).ravel()
        row[TRANSLATION : TRANSLATION + 3] = joint_placement[:3, 3]
        row[PARENT] = parent_row
        row[PRISMATIC] = joint.type == "prismatic"
        row[JOINT] = order[joint.name]
        row[LINK : LINK + 9] = link_from_body.T.ravel()
        placements[joint.child] = (len(rows), transform)
        pseudo_inertias.append(transform @ inertias[joint.child] @ transform.T)
        rows.append(row)
        moving.append(joint)
    for row, inertia in zip(rows, pseudo_inertias, strict=True):
        row[INERTIA : INERTIA + 10] = ten_parameters(inertia)
    return Bodies(np.ascontiguousarray(rows), tuple(moving))
