"""`Workspace`: all the memory that the algorithms need beside their arguments."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.dynamics.kernel import inlined
from rnea_control.dynamics.sincos import LARGEST_ANGLE, sincos
from rnea_control.dynamics.vector3 import FloatArray
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
COLUMNS = 27

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
    """

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self._memory = np.zeros((row_count(model.nv), COLUMNS))
        self._zeros = np.zeros(model.nv)


@inlined
def row_count(nv: int) -> int:
    """Rows of a workspace's memory: one a body, row 0 the root's, then the joint angles'."""
    return nv + 1 + (nv + LANES - 1) // LANES


@inlined
def sines_and_cosines(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """Fills the rows of joint angles: entry i for the body of row i + 1, 0 if prismatic."""
    nv = q.shape[0]
    in_range = True
    for i in range(nv):
        turns = bodies[i + 1, layout.PRISMATIC] == 0.0
        row = nv + 1 + i // LANES
        angle = q[int(bodies[i + 1, layout.JOINT])] if turns else 0.0
        in_range = in_range and abs(angle) <= LARGEST_ANGLE
        memory[row, ANGLE + i % LANES] = angle
    for row in range(nv + 1, memory.shape[0]):
        if in_range:
            sincos(memory, row, ANGLE, SINE, COSINE, LANES)
        else:
            for i in range(LANES):
                memory[row, SINE + i] = math.sin(memory[row, ANGLE + i])
                memory[row, COSINE + i] = math.cos(memory[row, ANGLE + i])


@inlined
def sine_and_cosine(memory: FloatArray, nv: int, body: int) -> tuple[float, float]:
    """Sine and cosine of the joint angle of the body of a row."""
    i = body - 1
    row = nv + 1 + i // LANES
    return memory[row, SINE + i % LANES], memory[row, COSINE + i % LANES]
