"""The moving bodies of a robot as one array, the form in which the kernels read a model.

There is one row for each degree of freedom. Its frame B has its axis as z: the body turns about z,
slides along z, or both at once on a screw. A joint with several degrees of freedom has several
rows, all but the last without mass. Fixed and locked joints have none: their child links become
part of the body that they move with. Row 0 is the root link, which does not move; in the other rows
parents come first.

Columns of a row:

=================  ===========================================================================
ROTATION     0:9   R_PB at zero position, row by row: turns from the row's B to its parent's P
TRANSLATION  9:12  p_PB at zero position, in P; in row 0 the root's acceleration, -gravity
INERTIA     12:22  [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] about B's origin, in B
PARENT      22     row of the parent body
MOTION      23     what the position does to the frame: AXIS, HELD, SPHERICAL or FLOATING, see below
S_ANGULAR   24     angular part of the motion subspace S: rad about z for a position of 1
S_LINEAR    25     linear part of S: m along z for a position of 1
Q           26     index of the position in q; in row 0 the length of q
V           27     index of the velocity in v, a and tau; in row 0 their length
RATIO       28     position of this row for 1 of q: not 1 for a joint that mimics another
OFFSET      29     position of this row for 0 of q
ARMATURE    30     inertia of the actuator's rotor as felt at the joint, [kg m^2] or [kg]
POSITION    31     FOLLOWER if the joint mimics another one, CIRCLE if it is continuous, else LINE
=================  ===========================================================================

A quaternion cannot be split into three turns about three axes, so a spherical joint places its
first row (SPHERICAL) by the whole quaternion, and a floating joint (FLOATING) by position and
quaternion; the rows after the first are HELD still. The z axes of three such rows are the x, y and
z axes of the child link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model.inertia import homogeneous, ten_parameters
from rnea_control.model.joints import Joint
from rnea_control.model.rotations import rotation_to_z

ROTATION = 0
TRANSLATION = 9
BASE_ACCELERATION = TRANSLATION  # of row 0
INERTIA = 12
PARENT, MOTION, S_ANGULAR, S_LINEAR, Q, V, RATIO, OFFSET, ARMATURE, POSITION = range(22, 32)
COLUMNS = 32

# Of row 0: how often a setter of the model has changed these.
GRAVITY_CHANGES, INERTIA_CHANGES, ARMATURE_CHANGES = S_ANGULAR, S_LINEAR, RATIO

AXIS, HELD, SPHERICAL, FLOATING = range(4)
LINE, CIRCLE, FOLLOWER = range(3)

# Columns of a row of the links array: the row of the link's body, and where the link's frame L is
# in it, R_BL row by row and p_BL.
LINK_BODY, LINK_ROTATION, LINK_TRANSLATION = 0, 1, 10

# Rows of the array of friction parameters, which has a column for each velocity.
DAMPING, COULOMB, TORQUE_OFFSET = FRICTION_ROWS = range(3)

# Turns from axes named x, y, z to the same three named y, z, x: what was x is z.
_NEXT_AXIS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class Coordinates:
    """Where a joint's positions and velocities stand in q and v.

    A joint that mimics another has those of the other: its position is ratio * q + offset.
    """

    q: int
    v: int
    ratio: float = 1.0
    offset: float = 0.0
    leads: bool = True


@dataclass(frozen=True)
class Bodies:
    """The packed arrays, and what their rows are.

    Attributes:
        array: of the bodies.
        links: placement of every link, rows as `link_names`.
        link_names: all links, the root first.
        rows: the last row of each joint that moves, by its name.
    """

    array: FloatArray
    links: FloatArray
    link_names: tuple[str, ...]
    rows: dict[str, int]


@dataclass(frozen=True)
class _DegreeOfFreedom:
    """One row of a joint: its axis in the joint's frame, and its share of the columns."""

    axis: FloatArray
    motion: int
    angular: float
    linear: float


def merge_bodies(
    root: str,
    joints: tuple[Joint, ...],
    inertias: Mapping[str, FloatArray],
    coordinates: Mapping[str, Coordinates],
    locked_positions: Mapping[str, float],
    nq: int,
    nv: int,
) -> Bodies:
    """Builds the bodies from joints in tree order.

    Args:
        root: name of the root link.
        joints: all joints, parents before children.
        inertias: pseudo-inertia of each link in its own frame.
        coordinates: of each joint that moves; all others are locked.
        locked_positions: where a joint that could move is locked, [rad] or [m]; 0 where not given.
        nq, nv: lengths of q and v.
    """
    rows = [np.zeros(COLUMNS)]
    rows[0][ROTATION : ROTATION + 9] = np.eye(3).ravel()
    rows[0][Q], rows[0][V] = nq, nv
    pseudo_inertias = [inertias[root].copy()]
    # Where each link sits: the row of its body, and its frame's placement X_BL there.
    placements = {root: (0, np.eye(4))}
    last_rows = {}
    for joint in joints:
        parent_row, parent_transform = placements[joint.parent]
        if joint.name not in coordinates:
            placement = homogeneous(*joint.placement_at(locked_positions.get(joint.name, 0.0)))
            transform = parent_transform @ placement
            placements[joint.child] = (parent_row, transform)
            pseudo_inertias[parent_row] += transform @ inertias[joint.child] @ transform.T
            continue
        transform = parent_transform @ homogeneous(joint.rotation, joint.translation)
        for i, dof in enumerate(_degrees_of_freedom(joint)):
            row, transform = _row(dof, transform)
            row[PARENT] = parent_row
            at = coordinates[joint.name]
            row[Q], row[V] = at.q + i, at.v + i
            if dof.motion in (SPHERICAL, FLOATING):
                row[Q] = at.q
            row[RATIO], row[OFFSET] = at.ratio, at.offset
            row[ARMATURE] = joint.armature
            if not at.leads:
                row[POSITION] = FOLLOWER
            elif joint.type == "continuous":
                row[POSITION] = CIRCLE
            parent_row = len(rows)
            rows.append(row)
            pseudo_inertias.append(np.zeros((4, 4)))
        placements[joint.child] = (parent_row, transform)
        pseudo_inertias[parent_row] += transform @ inertias[joint.child] @ transform.T
        last_rows[joint.name] = parent_row
    for row, inertia in zip(rows, pseudo_inertias, strict=True):
        row[INERTIA : INERTIA + 10] = ten_parameters(inertia)
    links = np.array(
        [[row, *X[:3, :3].ravel(), *X[:3, 3]] for row, X in placements.values()], dtype=np.float64
    )
    return Bodies(np.ascontiguousarray(rows), links, tuple(placements), last_rows)


def _row(dof: _DegreeOfFreedom, transform: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The row of a degree of freedom whose joint frame is at `transform` in its parent's, and where
    that joint frame then is in the row's own frame."""
    row = np.zeros(COLUMNS)
    row[MOTION], row[S_ANGULAR], row[S_LINEAR] = dof.motion, dof.angular, dof.linear
    row[TRANSLATION : TRANSLATION + 3] = transform[:3, 3]
    if dof.motion == AXIS:
        joint_from_row = rotation_to_z(dof.axis)
        row[ROTATION : ROTATION + 9] = (transform[:3, :3] @ joint_from_row).ravel()
        return row, homogeneous(joint_from_row.T, np.zeros(3))
    # Three rows make the axes go round once, back to the child link's.
    rotation = transform[:3, :3] if dof.motion in (SPHERICAL, FLOATING) else _NEXT_AXIS
    row[ROTATION : ROTATION + 9] = rotation.ravel()
    return row, np.eye(4)


def _degrees_of_freedom(joint: Joint) -> list[_DegreeOfFreedom]:
    """The degrees of freedom of a joint, in the order of its velocities."""
    axis = joint.axis
    if joint.type in ("revolute", "continuous"):
        return [_DegreeOfFreedom(axis, AXIS, 1.0, 0.0)]
    if joint.type == "prismatic":
        return [_DegreeOfFreedom(axis, AXIS, 0.0, 1.0)]
    if joint.type == "helical":
        return [_DegreeOfFreedom(axis, AXIS, 1.0, joint.pitch)]
    if joint.type == "cylindrical":
        return [_DegreeOfFreedom(axis, AXIS, 0.0, 1.0), _DegreeOfFreedom(axis, AXIS, 1.0, 0.0)]
    if joint.type == "universal":
        return [
            _DegreeOfFreedom(axis, AXIS, 1.0, 0.0),
            _DegreeOfFreedom(joint.second_axis, AXIS, 1.0, 0.0),
        ]
    if joint.type == "planar":
        x, y, normal = rotation_to_z(axis).T
        slides = [_DegreeOfFreedom(direction, AXIS, 0.0, 1.0) for direction in (x, y)]
        return [*slides, _DegreeOfFreedom(normal, AXIS, 1.0, 0.0)]
    turns = [_DegreeOfFreedom(axis, motion, 1.0, 0.0) for motion in (SPHERICAL, HELD, HELD)]
    if joint.type == "spherical":
        return turns
    slides = [_DegreeOfFreedom(axis, motion, 0.0, 1.0) for motion in (FLOATING, HELD, HELD)]
    return [*slides, *(_DegreeOfFreedom(axis, HELD, 1.0, 0.0) for _ in range(3))]
