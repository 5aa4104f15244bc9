"""The model and the workspace of the arm as kernels read them, made of the addresses in `Arm`."""

from __future__ import annotations

from typing import NamedTuple

from rnea_control.array_types import FloatArray
from rnea_control.control.layout import Arm
from rnea_control.jit.inlining import inlined
from rnea_control.jit.linking import array_at
from rnea_control.model.bodies import LINK_COLUMNS


class Robot(NamedTuple):
    """Arrays of the model and its workspace."""

    bodies: FloatArray  # bodies of the model
    links: FloatArray  # placement of each link in its body
    memory: FloatArray  # memory of the workspace, which each algorithm overwrites
    matrix: FloatArray  # matrix of the workspace, shape (nv, nv), which is overwritten too
    gains: FloatArray  # a planner's gains, shape (nv, 2 nv): of positions, then of velocities


@inlined
def robot_of(arm: Arm, nv: int) -> Robot:
    """The arrays; `arm`: see layout.py."""
    bodies = array_at(arm.bodies_at, (arm.body_count, arm.body_size))
    links = array_at(arm.links_at, (arm.link_count, LINK_COLUMNS))
    memory = array_at(arm.memory_at, (arm.memory_rows, arm.memory_columns))
    matrix, gains = array_at(arm.matrix_at, (nv, nv)), array_at(arm.gains_at, (nv, 2 * nv))
    return Robot(bodies, links, memory, matrix, gains)
