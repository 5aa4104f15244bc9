r"""Quaternions (x, y, z, w), rotation vectors, and motions of constant velocity.

The exponential map of rotations and of rigid motions, and their inverses
[Murray, Li, Sastry 1994, sec. 2.3]. For a rotation vector w of length theta:

.. math::

    e^{(v, \omega)} \text{ moves by } \left( 1 + \frac{1 - \cos\theta}{\theta^2} [\omega]_\times
        + \frac{\theta - \sin\theta}{\theta^3} [\omega]_\times^2 \right) v
"""

from __future__ import annotations

import math

from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.vector3 import Matrix3, Vector3, add, cross, dot, scale

Quaternion = tuple[float, float, float, float]

# Below this angle [rad] series of two terms are exact to rounding.
_SMALL = 1e-4


@inlined
def rotation_of_quaternion(e: Quaternion) -> Matrix3:
    """The rotation matrix of a quaternion of any length but zero."""
    s = 2.0 / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    x, y, z = s * e[0], s * e[1], s * e[2]
    wx, wy, wz = e[3] * x, e[3] * y, e[3] * z
    xx, xy, xz = e[0] * x, e[0] * y, e[0] * z
    yy, yz, zz = e[1] * y, e[1] * z, e[2] * z
    return (
        1.0 - (yy + zz),
        xy - wz,
        xz + wy,
        xy + wz,
        1.0 - (xx + zz),
        yz - wx,
        xz - wy,
        yz + wx,
        1.0 - (xx + yy),
    )


@inlined
def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """The quaternion of the rotation by b, then by a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inlined
def conjugate(e: Quaternion) -> Quaternion:
    """The quaternion of the inverse rotation, for one of length 1."""
    return (-e[0], -e[1], -e[2], e[3])


@inlined
def normalized(e: Quaternion) -> Quaternion:
    """The same rotation by a quaternion of length 1."""
    s = 1.0 / math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    return (s * e[0], s * e[1], s * e[2], s * e[3])


@inlined
def quaternion_of_vector(w: Vector3) -> Quaternion:
    """The quaternion of a rotation vector."""
    angle = math.sqrt(dot(w, w))
    s = 0.5 - angle * angle / 48.0 if angle < _SMALL else math.sin(0.5 * angle) / angle
    return (s * w[0], s * w[1], s * w[2], math.cos(0.5 * angle))


@inlined
def vector_of_quaternion(e: Quaternion) -> Vector3:
    """The rotation vector, at most pi long, of a quaternion of length 1."""
    sign = 1.0 if e[3] >= 0.0 else -1.0
    x, y, z, w = sign * e[0], sign * e[1], sign * e[2], sign * e[3]
    s = math.sqrt(x * x + y * y + z * z)
    factor = (2.0 - s * s / w / w / 1.5) / w if s < _SMALL else 2.0 * math.atan2(s, w) / s
    return (factor * x, factor * y, factor * z)


@inlined
def screw_translation(w: Vector3, v: Vector3) -> Vector3:
    """The displacement in 1 s at constant body velocities v and w, in the initial body frame."""
    angle = math.sqrt(dot(w, w))
    if angle < _SMALL:
        a, b = 0.5 - angle * angle / 24.0, 1.0 / 6.0 - angle * angle / 120.0
    else:
        half = math.sin(0.5 * angle) / angle
        a, b = 2.0 * half * half, (angle - math.sin(angle)) / angle**3
    w_v = cross(w, v)
    return add(v, add(scale(a, w_v), scale(b, cross(w, w_v))))


@inlined
def screw_velocity(w: Vector3, p: Vector3) -> Vector3:
    """The velocity v whose `screw_translation` with w is p."""
    angle = math.sqrt(dot(w, w))
    if angle < _SMALL:
        b = 1.0 / 12.0 + angle * angle / 720.0
    else:
        b = (1.0 - 0.5 * angle / math.tan(0.5 * angle)) / (angle * angle)
    w_p = cross(w, p)
    return add(p, add(scale(-0.5, w_p), scale(b, cross(w, w_p))))
