"""The moving bodies of a robot as one array, the form in which the kernels read a model.

There is one row for each degree of freedom. The z axis of the row's frame B is the joint axis: the
body turns about z, slides along z, or both at once on a screw. A joint with several degrees of
freedom has several rows, all but the last without mass. Fixed and locked joints have no row: their
child links become part of the body that they move with. Row 0 is the root link, which does not
move; in the other rows parents come first.

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
POSITION    31     FOLLOWER if the joint mimics another, CIRCLE if it is continuous, else LINE
=================  ===========================================================================

A quaternion cannot be split into three turns about three axes, so a spherical joint places its
first row (SPHERICAL) by the whole quaternion, and a floating joint (FLOATING) by position and
quaternion; the rows after the first are HELD still. The z axes of three such rows are the x, y and
z axes of the child link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model.joint_selection import JointSelection
from rnea_control.model.joints import Joint
from rnea_control.model.rigid_body import homogeneous, rotation_to_z, ten_parameters
from rnea_control.model.robot_description import RobotDescription

ROTATION = 0
TRANSLATION = 9
BASE_ACCELERATION = TRANSLATION  # in row 0
INERTIA = 12
PARAMETERS = slice(INERTIA, INERTIA + 10)
PARENT = 22
MOTION = 23
S_ANGULAR = 24
S_LINEAR = 25
Q = 26
V = 27
RATIO = 28
OFFSET = 29
ARMATURE = 30
POSITION = 31
COLUMNS = 32

CHANGES = S_ANGULAR  # in row 0: number of changes of the array by the model's setters

# Values of MOTION.
AXIS = 0
HELD = 1
SPHERICAL = 2
FLOATING = 3

# Values of POSITION.
LINE = 0
CIRCLE = 1
FOLLOWER = 2

# Columns of a row of the links array.
LINK_BODY = 0  # row of the link's body B
LINK_ROTATION = 1  # placement of the link's frame L in B: R_BL row by row, then p_BL
LINK_COLUMNS = 13

# Rows of the array of friction parameters, which has a column for each velocity.
DAMPING = 0
COULOMB = 1
TORQUE_OFFSET = 2
FRICTION_ROWS = range(3)

# Rotation that renames the axes x, y, z to z, x, y.
_NEXT_AXIS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@dataclass(frozen=True)
class Bodies:
    """The packed arrays, and the names of their rows.

    Attributes:
        array: the bodies, columns as in the table of this module.
        links: placement of every link, rows as `link_names`.
        link_names: all links, the root first.
        rows: last row of each moving joint, by the joint's name.
    """

    array: FloatArray
    links: FloatArray
    link_names: tuple[str, ...]
    rows: dict[str, int]


def merge_bodies(description: RobotDescription, selection: JointSelection) -> Bodies:
    """Builds the bodies. Joints without coordinates are fixed, or locked at the position that the
    selection gives, else at 0."""
    inertias = description.inertias
    rows = [np.zeros(COLUMNS)]
    rows[0][ROTATION : ROTATION + 9] = np.eye(3).ravel()
    leaders = selection.joints(leads=True)
    rows[0][Q], rows[0][V] = sum(joint.nq for joint in leaders), sum(joint.nv for joint in leaders)
    pseudo_inertias = [inertias[description.root].copy()]
    # Row of each link's body B, and placement X_BL of the link's frame.
    placements = {description.root: (0, np.eye(4))}
    last_rows = {}
    for joint in description.joints:
        row, transform = placements[joint.parent]
        at = selection.coordinates.get(joint.name)
        if at is None:
            transform = transform @ homogeneous(*selection.placement(joint))
        else:
            transform = transform @ homogeneous(joint.rotation, joint.translation)
            for i, freedom in enumerate(_degrees_of_freedom(joint)):
                new, transform = _row(*freedom, transform)
                new[PARENT] = row
                new[Q] = at.q if new[MOTION] in (SPHERICAL, FLOATING) else at.q + i
                new[V] = at.v + i
                new[RATIO], new[OFFSET], new[ARMATURE] = at.ratio, at.offset, joint.armature
                if not at.leads:
                    new[POSITION] = FOLLOWER
                elif joint.type == "continuous":
                    new[POSITION] = CIRCLE
                row = len(rows)
                rows.append(new)
                pseudo_inertias.append(np.zeros((4, 4)))
            last_rows[joint.name] = row
        placements[joint.child] = (row, transform)
        pseudo_inertias[row] += transform @ inertias[joint.child] @ transform.T
    for each, inertia in zip(rows, pseudo_inertias, strict=True):
        each[PARAMETERS] = ten_parameters(inertia)
    links = np.array(
        [[row, *X[:3, :3].ravel(), *X[:3, 3]] for row, X in placements.values()], dtype=np.float64
    )
    return Bodies(np.ascontiguousarray(rows), links, tuple(placements), last_rows)


def placement(row: FloatArray, first: int = ROTATION) -> FloatArray:
    """X_PB of a body's row at zero position; with `LINK_ROTATION`, X_BL of a link's row."""
    return homogeneous(row[first : first + 9].reshape(3, 3), row[first + 9 : first + 12])


def _row(
    axis: FloatArray, motion: int, angular: float, linear: float, transform: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Row of a degree of freedom whose joint frame is placed by `transform` in the parent's frame;
    and the placement of the joint frame in the row's own frame."""
    row = np.zeros(COLUMNS)
    row[MOTION], row[S_ANGULAR], row[S_LINEAR] = motion, angular, linear
    row[TRANSLATION : TRANSLATION + 3] = transform[:3, 3]
    rotation, rest = transform[:3, :3], np.eye(4)
    if motion == AXIS:
        joint_from_row = rotation_to_z(axis)
        rotation, rest = rotation @ joint_from_row, homogeneous(joint_from_row.T, np.zeros(3))
    elif motion == HELD:  # three such rows rotate the axes back to the child link's
        rotation = _NEXT_AXIS
    row[ROTATION : ROTATION + 9] = rotation.ravel()
    return row, rest


def _degrees_of_freedom(joint: Joint) -> list[tuple[FloatArray, int, float, float]]:
    """Degrees of freedom of a joint in the order of its velocities: axis in the joint's frame,
    motion, angular and linear part of S."""
    axis, (x, y, normal) = joint.axis, rotation_to_z(joint.axis).T
    turn, slide = (axis, AXIS, 1.0, 0.0), (axis, AXIS, 0.0, 1.0)
    held_turn, held_slide = (axis, HELD, 1.0, 0.0), (axis, HELD, 0.0, 1.0)
    return {
        "revolute": [turn],
        "continuous": [turn],
        "prismatic": [slide],
        "helical": [(axis, AXIS, 1.0, joint.pitch)],
        "cylindrical": [slide, turn],
        "universal": [turn, (joint.second_axis, AXIS, 1.0, 0.0)],
        "planar": [(x, AXIS, 0.0, 1.0), (y, AXIS, 0.0, 1.0), (normal, AXIS, 1.0, 0.0)],
        "spherical": [(axis, SPHERICAL, 1.0, 0.0), held_turn, held_turn],
        "floating": [(axis, FLOATING, 0.0, 1.0), *(held_slide,) * 2, *(held_turn,) * 3],
    }[joint.type]
