"""`Workspace`: all the memory that the algorithms need beside their arguments."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.sincos import LARGEST_ANGLE, sincos
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Columns of a body's row, all vectors expressed in the body's frame B unless said otherwise.
ROTATION = 0  # R_PB, turns from B to the parent body's frame P
TRANSLATION = 9  # p_PB, in P
ANGULAR_VELOCITY = 12  # w_WB_B
ANGULAR_ACCELERATION = 15  # of B in W
ACCELERATION = 18  # of the origin of B in W, minus gravity
FORCE = 21  # that the joint exerts on B and all that hangs on it
MOMENT = 24  # the same, about the origin of B
# The rest is for all but `rnea` and `gravity`. Spatial vectors are six numbers: motion as linear,
# then angular; force as force, then moment; about the origin of B.
VELOCITY = 27  # linear part of v_WB_B, of B's origin
POSE_ROTATION = 30  # R_WB
POSE_TRANSLATION = 39  # p_WB
COMPOSITE = 42  # ten inertial parameters of B and all that hangs on it
REFERENCE_VELOCITY = 52  # six
REFERENCE_ACCELERATION = 58  # six
BIAS = 64  # six; acceleration that velocities alone give
ARTICULATED = 70  # 21: inertia that B's joint feels, tips free: see dynamics/articulated.py
BIAS_FORCE = 91  # six
GAIN_FORCE = 97  # six; articulated inertia times the joint's axis
TORQUE = 103  # what is left for the joint's acceleration
COLUMNS = 104

# Columns of a row of joint angles, `LANES` of each: the sines of whole vector registers are
# computed fastest.
LANES = 8
ANGLE = 0
SINE = LANES
COSINE = 2 * LANES


class Workspace:
    """Scratch memory for one model. Make one for each thread; no algorithm allocates any other.

    Args:
        model: the model that it will be used with.

    Raises:
        ArgumentError: no RobotModel.
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
        self.order, self.ancestor = _elimination_order(model)


def _elimination_order(model: RobotModel) -> tuple[IntArray, IntArray]:
    """An order of the velocities in which those of parents come first, and in that order the next
    one on the way to the root, or -1.

    Entries of the mass matrix other than of pairs on one such way are zero. A joint that mimics one
    of another branch joins the two, so then all count as one way.
    """
    place = np.full(model.nv, -1)
    ancestor: list[int] = []
    for row in model.bodies[1:]:
        v = int(row[layout.V])
        if place[v] < 0:
            parent = int(row[layout.PARENT])
            above = place[int(model.bodies[parent, layout.V])] if parent else -1
            place[v] = len(ancestor)
            ancestor.append(above)
    if model.mimic_joints:
        ancestor = list(range(-1, model.nv - 1))
    return place, np.array(ancestor, dtype=np.int64)


@inlined
def row_count(n: int) -> int:
    """Rows of a workspace's memory for n + 1 bodies: one for each, then the joint angles'."""
    return n + 1 + (n + LANES - 1) // LANES


@inlined
def sines_and_cosines(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """Fills the rows of joint angles: entry i for the body of row i + 1, 0 if it does not turn."""
    n = bodies.shape[0] - 1
    in_range = True
    for i in range(n):
        row = n + 1 + i // LANES
        angle = 0.0
        if bodies[i + 1, layout.MOTION] == layout.AXIS and bodies[i + 1, layout.ANGULAR] != 0.0:
            position = q[int(bodies[i + 1, layout.Q])]
            angle = bodies[i + 1, layout.RATIO] * position + bodies[i + 1, layout.OFFSET]
        in_range = in_range and abs(angle) <= LARGEST_ANGLE
        memory[row, ANGLE + i % LANES] = angle
    for row in range(n + 1, memory.shape[0]):
        if in_range:
            sincos(memory, row, ANGLE, SINE, COSINE, LANES)
        else:
            for i in range(LANES):
                memory[row, SINE + i] = math.sin(memory[row, ANGLE + i])
                memory[row, COSINE + i] = math.cos(memory[row, ANGLE + i])


@inlined
def sine_and_cosine(memory: FloatArray, n: int, body: int) -> tuple[float, float]:
    """Sine and cosine of the joint angle of the body of a row."""
    i = body - 1
    row = n + 1 + i // LANES
    return memory[row, SINE + i % LANES], memory[row, COSINE + i % LANES]
