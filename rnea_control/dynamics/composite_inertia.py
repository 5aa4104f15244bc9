r"""Composite bodies: each body with all that hangs on it, frozen, as ten inertial parameters.

They stand about each body's own origin, but in axes of the root, so that a body is only shifted to
join its parent: with p from the parent's origin to the body's and h = m c,

.. math::

    m, \quad h_P = h + m p, \quad
    I_P = I + 2 (p \cdot h) 1 - p h^T - h p^T + m (p \cdot p\, 1 - p p^T)

[Featherstone 2008, sec. 2.13], and bodies that move as one add.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.joint import placement
from rnea_control.dynamics.workspace import sines_and_cosines
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.vector3 import (
    add,
    add_to_vector,
    matrix_at,
    multiply,
    rotate,
    rotated_symmetric,
    scale,
    store_matrix,
    store_vector,
    symmetric_at,
    vector_at,
)
from rnea_control.model import bodies as layout

LEVER = ws_layout.POSE_TRANSLATION  # here from the parent's origin to the body's
_MASS = ws_layout.COMPOSITE
_MC = ws_layout.COMPOSITE + 1
_INERTIA = ws_layout.COMPOSITE + 4


@inlined
def single_bodies(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """Rotation, lever and parameters of every body by itself, in axes of the root."""
    sines_and_cosines(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R, p = placement(bodies, memory, q, i)
        if parent != 0:
            R_WP = matrix_at(memory, parent, ws_layout.POSE_ROTATION)
            R, p = multiply(R_WP, R), rotate(R_WP, p)
        store_matrix(memory, i, ws_layout.POSE_ROTATION, R)
        store_vector(memory, i, LEVER, p)
        memory[i, _MASS] = bodies[i, layout.INERTIA]
        store_vector(memory, i, _MC, rotate(R, vector_at(bodies, i, layout.INERTIA + 1)))
        inertia = rotated_symmetric(R, symmetric_at(bodies, i, layout.INERTIA + 4))
        for k in range(6):
            memory[i, _INERTIA + k] = inertia[k]


@inlined
def add_to_parent_composite(bodies: FloatArray, memory: FloatArray, i: int) -> None:
    """Freezes the joint of body i."""
    parent = int(bodies[i, layout.PARENT])
    p = vector_at(memory, i, LEVER)
    m, h = memory[i, _MASS], vector_at(memory, i, _MC)
    mp = scale(m, p)
    # p h^T + h p^T + m p p^T = p s^T + s p^T
    s = add(h, scale(0.5, mp))
    x, y, z = 2.0 * p[0] * s[0], 2.0 * p[1] * s[1], 2.0 * p[2] * s[2]
    memory[parent, _MASS] += m
    add_to_vector(memory, parent, _MC, add(h, mp))
    memory[parent, _INERTIA] += memory[i, _INERTIA] + (y + z)
    memory[parent, _INERTIA + 1] += memory[i, _INERTIA + 1] - (p[0] * s[1] + s[0] * p[1])
    memory[parent, _INERTIA + 2] += memory[i, _INERTIA + 2] - (p[0] * s[2] + s[0] * p[2])
    memory[parent, _INERTIA + 3] += memory[i, _INERTIA + 3] + (x + z)
    memory[parent, _INERTIA + 4] += memory[i, _INERTIA + 4] - (p[1] * s[2] + s[1] * p[2])
    memory[parent, _INERTIA + 5] += memory[i, _INERTIA + 5] + (x + y)
