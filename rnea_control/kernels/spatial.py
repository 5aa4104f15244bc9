"""Spatial vectors as pairs of vectors: motion as (linear, angular), force as (force, moment).

Both are about the origin of the frame that they are expressed in. With R and p the rotation and
position of a body's frame in its parent's, X takes motion from parent to body and X* force from
body to parent [Featherstone 2008, sec. 2.8].
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.vector3 import (
    Matrix3,
    Vector3,
    add,
    add_to_vector,
    cross,
    dot,
    rotate,
    rotate_back,
    scale,
    store_vector,
    vector_at,
)

Spatial = tuple[Vector3, Vector3]

ZERO: Spatial = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@inlined
def spatial_add(a: Spatial, b: Spatial) -> Spatial:
    """a + b"""
    return add(a[0], b[0]), add(a[1], b[1])


@inlined
def spatial_scale(s: float, a: Spatial) -> Spatial:
    """s a"""
    return scale(s, a[0]), scale(s, a[1])


@inlined
def spatial_dot(force: Spatial, motion: Spatial) -> float:
    """The power of a force along a motion."""
    return dot(force[0], motion[0]) + dot(force[1], motion[1])


@inlined
def motion_to_child(R: Matrix3, p: Vector3, motion: Spatial) -> Spatial:
    """X m: a motion of the parent's frame, seen in the child's."""
    linear, angular = motion
    return rotate_back(R, add(linear, cross(angular, p))), rotate_back(R, angular)


@inlined
def force_to_parent(R: Matrix3, p: Vector3, force: Spatial) -> Spatial:
    """X* f: a force of the child's frame, seen in the parent's."""
    f = rotate(R, force[0])
    return f, add(rotate(R, force[1]), cross(p, f))


@inlined
def cross_motion(v: Spatial, m: Spatial) -> Spatial:
    """v x m: the rate at which a motion m that moves with v changes."""
    return add(cross(v[1], m[0]), cross(v[0], m[1])), cross(v[1], m[1])


@inlined
def cross_force(v: Spatial, f: Spatial) -> Spatial:
    """v x* f: the rate at which a force f that moves with v changes."""
    return cross(v[1], f[0]), add(cross(v[1], f[1]), cross(v[0], f[0]))


@inlined
def spatial_at(rows: FloatArray, row: int, column: int) -> Spatial:
    """The six numbers that start at `column` of a row."""
    return vector_at(rows, row, column), vector_at(rows, row, column + 3)


@inlined
def store_spatial(rows: FloatArray, row: int, column: int, a: Spatial) -> None:
    """Writes six numbers to the columns from `column` of a row."""
    store_vector(rows, row, column, a[0])
    store_vector(rows, row, column + 3, a[1])


@inlined
def add_to_spatial(rows: FloatArray, row: int, column: int, a: Spatial) -> None:
    """Adds six numbers to the columns from `column` of a row."""
    add_to_vector(rows, row, column, a[0])
    add_to_vector(rows, row, column + 3, a[1])
