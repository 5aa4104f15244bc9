"""`Workspace`: all the memory that the algorithms need beside their arguments."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import IntArray
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Columns of a body's row. Vectors are expressed in the body's frame B and are about its origin
# unless said otherwise; spatial ones are six numbers, (linear, angular) or (force, moment).
ROTATION = 0  # R_PB, turns from B to the parent body's frame P
TRANSLATION = 9  # p_PB, in P
VELOCITY = 12  # six; `rnea` needs the angular part only
ACCELERATION = 18  # six, minus gravity
FORCE = 24  # six; what the joint exerts on B and on all bodies beyond it
# `rnea` and `gravity` need no more.
POSE_ROTATION = 30  # R_WB
POSE_TRANSLATION = 39  # p_WB
LEVER = 42  # p_PB in axes of W
COMPOSITE_INERTIA = 45  # ten parameters of B and all bodies beyond it, in axes of W
REFERENCE_VELOCITY = 55  # six
REFERENCE_ACCELERATION = 61  # six
VELOCITY_PRODUCT = 67  # six; c = v x S dq
ARTICULATED_INERTIA = 73  # 21; I^A, see dynamics/articulated_inertia.py
BIAS_FORCE = 94  # six; p^A
MOMENTUM = BIAS_FORCE  # six; of B and all bodies beyond it; no recursion needs both
U_OVER_D = 100  # six
u_OVER_D = 106
COLUMNS = 107

# Columns of a row of joint angles, `LANES` of each: the sines of whole vector registers are
# computed fastest.
LANES = 8
ANGLE = 0
SINE = LANES
COSINE = 2 * LANES


class Workspace:
    """Scratch memory for one model. Make one for each thread; the algorithms allocate no more.

    The attributes are for the algorithms; the next call overwrites them.

    Args:
        model: the model that it will be used with.

    Attributes:
        model: the same.
        memory: a row for each body, then rows of joint angles.
        zeros: velocities of zero.
        unit, torque: one number for each velocity.
        matrix: shape (nv, nv).
        no_forces: external forces of no link.
        permutation, ancestor: the order in which the mass matrix is factored, see
            `_elimination_order`.

    Raises:
        ArgumentError: not a RobotModel.
    """

    def __init__(self, model: RobotModel) -> None:
        if not isinstance(model, RobotModel):
            raise ArgumentError(f"a workspace is made for a RobotModel, not {model!r}")
        self.model = model
        self.memory = np.zeros((row_count(len(model.bodies) - 1), COLUMNS))
        self.zeros = np.zeros(model.nv)
        self.no_forces = np.zeros((0, 6))
        self.unit = np.zeros(model.nv)
        self.torque = np.zeros(model.nv)
        self.matrix = np.zeros((model.nv, model.nv))
        self.permutation, self.ancestor = _elimination_order(model)


def _elimination_order(model: RobotModel) -> tuple[IntArray, IntArray]:
    """The permutation that puts parents first (velocity k becomes `permutation[k]`), and for each
    velocity, in that order, the next one on the way to the root, or -1.

    The mass matrix is zero but for pairs on one such way. A joint that mimics one of another branch
    couples the two branches, so with mimic joints all velocities count as one way.
    """
    permutation = np.full(model.nv, -1)
    ancestor: list[int] = []
    for row in model.bodies[1:]:
        v = int(row[layout.V])
        if permutation[v] < 0:
            parent = int(row[layout.PARENT])
            above = permutation[int(model.bodies[parent, layout.V])] if parent else -1
            permutation[v] = len(ancestor)
            ancestor.append(above)
    if model.mimic_joints:
        ancestor = list(range(-1, model.nv - 1))
    return permutation, np.array(ancestor, dtype=np.int64)


@inlined
def row_count(n: int) -> int:
    """Rows of a workspace's memory for n moving bodies."""
    return n + 1 + (n + LANES - 1) // LANES
