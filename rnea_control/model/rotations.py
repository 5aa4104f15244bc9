"""Rotation matrices from what a URDF gives. All functions return 3x3 float64 arrays."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray


def rotation_from_rpy(rpy: FloatArray) -> FloatArray:
    """R = Rz(yaw) Ry(pitch) Rx(roll): turns about the fixed axes x, y, z in that order."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def skew(p: FloatArray) -> FloatArray:
    """The matrix [p]x with [p]x r = p x r."""
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def rotation_about_axis(axis: FloatArray, angle: float) -> FloatArray:
    """Rodrigues' formula, R = 1 + sin(angle) [axis]x + (1 - cos(angle)) [axis]x^2."""
    k = skew(axis)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def rotation_to_z(axis: FloatArray) -> FloatArray:
    """A rotation whose third column is the unit vector `axis`: it turns z into `axis`.

    For the coordinate axes its entries are exactly 0 and +-1.
    """
    if axis[2] == 1.0:
        return np.eye(3)
    # Any unit vector that is far from the axis will do as a start for x.
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(axis)))] = 1.0
    x = np.cross(helper, axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def rpy_from_rotation(rotation: FloatArray) -> FloatArray:
    """Roll, pitch and yaw, shape (3,), [rad]: the inverse of `rotation_from_rpy`."""
    pitch = math.atan2(-rotation[2, 0], math.hypot(rotation[0, 0], rotation[1, 0]))
    if math.hypot(rotation[0, 0], rotation[1, 0]) < 1e-9:  # roll and yaw turn about the same axis
        return np.array([math.atan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0])
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])])
