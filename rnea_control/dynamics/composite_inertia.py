"""Composite inertias: a body and all bodies beyond it with their joints frozen, as ten parameters.

They are about the body's own origin, but in axes of the root, so that X* only shifts. With p from
the parent's origin to the body's, and h = m c, X* I X is

    m,    h + m p,    I + 2 (p . h) 1 - p h^T - h p^T + m (p . p 1 - p p^T)

[Featherstone 2008, sec. 2.13], and inertias of bodies that move as one add up.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.workspace import COMPOSITE_INERTIA, LEVER, POSE_ROTATION
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.vector3 import (
    Symmetric3,
    Vector3,
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
    z_axis,
)

_MASS = COMPOSITE_INERTIA
_FIRST_MOMENT = COMPOSITE_INERTIA + 1
_INERTIA = COMPOSITE_INERTIA + 4


@inlined
def mass(memory: FloatArray, i: int) -> float:
    """m"""
    return memory[i, _MASS]


@inlined
def first_moment(memory: FloatArray, i: int) -> Vector3:
    """m c, in axes of the root"""
    return vector_at(memory, i, _FIRST_MOMENT)


@inlined
def inertia(memory: FloatArray, i: int) -> Symmetric3:
    """I about the body's origin, in axes of the root"""
    return symmetric_at(memory, i, _INERTIA)


@inlined
def lever(memory: FloatArray, i: int) -> Vector3:
    """From the origin of the parent to that of body i, in axes of the root"""
    return vector_at(memory, i, LEVER)


@inlined
def joint_axis(memory: FloatArray, i: int) -> Vector3:
    """z of body i, in axes of the root"""
    return z_axis(matrix_at(memory, i, POSE_ROTATION))


@inlined
def single_bodies(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """Every body by itself: its rotation, lever and inertia, in axes of the root."""
    joint.sines_and_cosines(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        P = body.parent(bodies, i)
        R, p = joint.placement(bodies, memory, q, i)
        if P != 0:
            R_WP = matrix_at(memory, P, POSE_ROTATION)
            R, p = multiply(R_WP, R), rotate(R_WP, p)
        store_matrix(memory, i, POSE_ROTATION, R)
        store_vector(memory, i, LEVER, p)
        memory[i, _MASS] = body.mass(bodies, i)
        store_vector(memory, i, _FIRST_MOMENT, rotate(R, body.first_moment(bodies, i)))
        rotated = rotated_symmetric(R, body.inertia(bodies, i))
        for k in range(6):
            memory[i, _INERTIA + k] = rotated[k]


@inlined
def add_to_parent(bodies: FloatArray, memory: FloatArray, i: int) -> None:
    """I_P += X* I X"""
    P = body.parent(bodies, i)
    p = lever(memory, i)
    m, h = mass(memory, i), first_moment(memory, i)
    own = inertia(memory, i)
    mp = scale(m, p)
    # p h^T + h p^T + m p p^T = p s^T + s p^T
    s = add(h, scale(0.5, mp))
    x, y, z = 2.0 * p[0] * s[0], 2.0 * p[1] * s[1], 2.0 * p[2] * s[2]
    memory[P, _MASS] += m
    add_to_vector(memory, P, _FIRST_MOMENT, add(h, mp))
    memory[P, _INERTIA] += own[0] + (y + z)
    memory[P, _INERTIA + 1] += own[1] - (p[0] * s[1] + s[0] * p[1])
    memory[P, _INERTIA + 2] += own[2] - (p[0] * s[2] + s[0] * p[2])
    memory[P, _INERTIA + 3] += own[3] + (x + z)
    memory[P, _INERTIA + 4] += own[4] - (p[1] * s[2] + s[1] * p[2])
    memory[P, _INERTIA + 5] += own[5] + (x + y)
