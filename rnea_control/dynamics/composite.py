r"""Composite bodies: each body with all that hangs on it, frozen, as ten inertial parameters.

Seen from the parent's frame P, the body's ten parameters are

.. math::

    m, \quad m c_P = R\, m c + m p, \quad
    I_P = R I R^T + 2 (p \cdot h) 1 - p h^T - h p^T + m (p \cdot p\, 1 - p p^T),
    \quad h = R\, m c

[Featherstone 2008, sec. 2.13], and bodies that move as one add.
"""

from __future__ import annotations

from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.kernel import inlined
from rnea_control.dynamics.vector3 import (
    FloatArray,
    add,
    add_to_vector,
    dot,
    matrix_at,
    rotate,
    rotated_symmetric,
    scale,
    symmetric_at,
    vector_at,
)
from rnea_control.model import bodies as layout

_MASS = ws_layout.COMPOSITE
_MC = ws_layout.COMPOSITE + 1
_INERTIA = ws_layout.COMPOSITE + 4


@inlined
def composites_start(bodies: FloatArray, spatial: FloatArray) -> None:
    """Every body by itself."""
    for i in range(bodies.shape[0]):
        for k in range(10):
            spatial[i, ws_layout.COMPOSITE + k] = bodies[i, layout.INERTIA + k]


@inlined
def add_composite_to_parent(
    bodies: FloatArray, memory: FloatArray, spatial: FloatArray, i: int
) -> None:
    """Freezes the joint of body i."""
    parent = int(bodies[i, layout.PARENT])
    R = matrix_at(memory, i, ws_layout.ROTATION)
    p = vector_at(memory, i, ws_layout.TRANSLATION)
    m = spatial[i, _MASS]
    h = rotate(R, vector_at(spatial, i, _MC))
    inertia = rotated_symmetric(R, symmetric_at(spatial, i, _INERTIA))
    # p h^T + h p^T + m p p^T, and its trace
    s = add(h, scale(0.5 * m, p))
    trace = 2.0 * dot(p, s)
    spatial[parent, _MASS] += m
    add_to_vector(spatial, parent, _MC, add(h, scale(m, p)))
    spatial[parent, _INERTIA] += inertia[0] + trace - 2.0 * p[0] * s[0]
    spatial[parent, _INERTIA + 1] += inertia[1] - p[0] * s[1] - s[0] * p[1]
    spatial[parent, _INERTIA + 2] += inertia[2] - p[0] * s[2] - s[0] * p[2]
    spatial[parent, _INERTIA + 3] += inertia[3] + trace - 2.0 * p[1] * s[1]
    spatial[parent, _INERTIA + 4] += inertia[4] - p[1] * s[2] - s[1] * p[2]
    spatial[parent, _INERTIA + 5] += inertia[5] + trace - 2.0 * p[2] * s[2]
