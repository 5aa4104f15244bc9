"""What a recursion computes of a body, by name, in the body's row of `Workspace.memory`."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as layout
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.spatial import Spatial, add_to_spatial, spatial_at, store_spatial
from rnea_control.kernels.vector3 import Matrix3, Vector3, matrix_at, store_matrix, store_vector
from rnea_control.kernels.vector3 import vector_at as vector


@inlined
def relative_pose(memory: FloatArray, i: int) -> tuple[Matrix3, Vector3]:
    """R_PB and p_PB"""
    return matrix_at(memory, i, layout.ROTATION), vector(memory, i, layout.TRANSLATION)


@inlined
def store_relative_pose(memory: FloatArray, i: int, R: Matrix3, p: Vector3) -> None:
    store_matrix(memory, i, layout.ROTATION, R)
    store_vector(memory, i, layout.TRANSLATION, p)


@inlined
def pose(memory: FloatArray, i: int) -> tuple[Matrix3, Vector3]:
    """R_WB and p_WB"""
    return matrix_at(memory, i, layout.POSE_ROTATION), vector(memory, i, layout.POSE_TRANSLATION)


@inlined
def store_pose(memory: FloatArray, i: int, R: Matrix3, p: Vector3) -> None:
    store_matrix(memory, i, layout.POSE_ROTATION, R)
    store_vector(memory, i, layout.POSE_TRANSLATION, p)


@inlined
def motion(memory: FloatArray, i: int) -> tuple[Vector3, Vector3, Vector3]:
    """Angular velocity, angular acceleration, and acceleration of the origin less gravity."""
    w = vector(memory, i, layout.VELOCITY + 3)
    acc, dw = spatial_at(memory, i, layout.ACCELERATION)
    return w, dw, acc


@inlined
def store_motion(memory: FloatArray, i: int, w: Vector3, dw: Vector3, acc: Vector3) -> None:
    store_vector(memory, i, layout.VELOCITY + 3, w)
    store_spatial(memory, i, layout.ACCELERATION, (acc, dw))


@inlined
def force(memory: FloatArray, i: int) -> Spatial:
    """What the joint of body i exerts on it, once all bodies beyond are added."""
    return spatial_at(memory, i, layout.FORCE)


@inlined
def store_force(memory: FloatArray, i: int, f: Spatial) -> None:
    store_spatial(memory, i, layout.FORCE, f)


@inlined
def add_force(memory: FloatArray, i: int, f: Spatial) -> None:
    add_to_spatial(memory, i, layout.FORCE, f)
