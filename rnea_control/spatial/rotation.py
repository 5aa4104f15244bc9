r"""Sines and cosines of all joint angles at once; quaternions (x, y, z, w), rotation vectors, and
motions of constant velocity.

The exponential map of rotations and of rigid motions, and their inverses
[Murray, Li, Sastry 1994, sec. 2.3]. For a rotation vector w of length theta:

.. math::

    e^{(v, \omega)} \text{ moves by } \left( 1 + \frac{1 - \cos\theta}{\theta^2} [\omega]_\times
        + \frac{\theta - \sin\theta}{\theta^3} [\omega]_\times^2 \right) v
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import Matrix
from rnea_control.jit.inlining import inlined
from rnea_control.spatial.vectors import Matrix3, Vector3, add, cross, dot, scale

Quaternion = tuple[float, float, float, float]

_SMALL = 1e-4  # angle below which series of two terms are exact to rounding [rad]

# pi/2 in three parts, the first two with 33 bits each, so that their products with an integer below
# 2^20 are exact.
_PI_2_HIGH = 1.57079632673412561417e00
_PI_2_MIDDLE = 6.07710050630396597660e-11
_PI_2_LOW = 2.02226624879595063154e-21
PI_2 = (_PI_2_HIGH, _PI_2_MIDDLE, _PI_2_LOW)
LARGEST_ANGLE = 2.0**19

# Coefficients of the polynomial in z for (s - r) / (r z) in `sincos`.
_S1 = -1.66666666666666324348e-01
_S2 = 8.33333333332248946124e-03
_S3 = -1.98412698298579493134e-04
_S4 = 2.75573137070700676789e-06
_S5 = -2.50507602534068634195e-08
_S6 = 1.58969099521155010221e-10
SINE = (_S1, _S2, _S3, _S4, _S5, _S6)

# Coefficients of the polynomial in z for (c - 1 + z / 2) / z^2 in `sincos`.
_C1 = 4.16666666666666019037e-02
_C2 = -1.38888888888741095749e-03
_C3 = 2.48015872894767294178e-05
_C4 = -2.75573143513906633035e-07
_C5 = 2.08757232129817482790e-09
_C6 = -1.13596475577881948265e-11
COSINE = (_C1, _C2, _C3, _C4, _C5, _C6)


@inlined
def sincos(rows: Matrix, row: int, angle: int, sine: int, cosine: int, count: int) -> None:
    """Sines and cosines of `count` angles [rad] in a row; `angle`, `sine` and `cosine` are first
    columns.

    The recursions need sine and cosine of every joint; single calls of the mathematics library take
    a third of the time of a whole RNEA. This loop has no branch and no call, so that the compiler
    vectorizes it for four angles at a time. It uses the usual method [Cody, Waite 1980]: subtract a
    multiple of pi/2, in three parts so that no digits are lost, then evaluate the minimax
    polynomials of C libraries on [-pi/4, pi/4]. The error is at most one unit in the last place
    of 1.
    """
    for i in range(count):
        x = rows[row, angle + i]
        quarters = np.rint(x * (2.0 / math.pi))
        r = ((x - quarters * _PI_2_HIGH) - quarters * _PI_2_MIDDLE) - quarters * _PI_2_LOW
        z = r * r
        s = r + r * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        c = 1.0 - 0.5 * z + z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
        quadrant = quarters - 4.0 * np.floor(0.25 * quarters)
        swap = (quadrant == 1.0) | (quadrant == 3.0)
        first = c if swap else s
        second = s if swap else c
        rows[row, sine + i] = -first if quadrant >= 2.0 else first
        rows[row, cosine + i] = -second if (quadrant == 1.0) | (quadrant == 2.0) else second


@inlined
def rotation_of_quaternion(e: Quaternion) -> Matrix3:
    """Rotation matrix of a quaternion of any nonzero length."""
    s = 2.0 / (e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    x, y, z = s * e[0], s * e[1], s * e[2]
    wx, wy, wz = e[3] * x, e[3] * y, e[3] * z
    xx, xy, xz = e[0] * x, e[0] * y, e[0] * z
    yy, yz, zz = e[1] * y, e[1] * z, e[2] * z
    return (
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


@inlined
def quaternion_of_rotation(R: Matrix3) -> Quaternion:
    """Quaternion of a rotation matrix, from the largest of its numbers [Shepperd 1978]."""
    trace = R[0] + R[4] + R[8]
    if trace > max(R[0], R[4], R[8]):
        s = 0.5 / math.sqrt(1.0 + trace)
        return (s * (R[7] - R[5]), s * (R[2] - R[6]), s * (R[3] - R[1]), 0.25 / s)
    if R[0] >= R[4] and R[0] >= R[8]:
        s = 0.5 / math.sqrt(1.0 + R[0] - R[4] - R[8])
        return (0.25 / s, s * (R[1] + R[3]), s * (R[2] + R[6]), s * (R[7] - R[5]))
    if R[4] >= R[8]:
        s = 0.5 / math.sqrt(1.0 + R[4] - R[0] - R[8])
        return (s * (R[1] + R[3]), 0.25 / s, s * (R[5] + R[7]), s * (R[2] - R[6]))
    s = 0.5 / math.sqrt(1.0 + R[8] - R[0] - R[4])
    return (s * (R[2] + R[6]), s * (R[5] + R[7]), 0.25 / s, s * (R[3] - R[1]))


@inlined
def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Quaternion of the rotation by b, then by a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inlined
def conjugate(e: Quaternion) -> Quaternion:
    """Quaternion of the inverse rotation, for a quaternion of length 1."""
    return (-e[0], -e[1], -e[2], e[3])


@inlined
def normalized(e: Quaternion) -> Quaternion:
    """Quaternion of length 1 for the same rotation."""
    s = 1.0 / math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    return (s * e[0], s * e[1], s * e[2], s * e[3])


@inlined
def quaternion_of_vector(w: Vector3) -> Quaternion:
    """Quaternion of a rotation vector."""
    angle = math.sqrt(dot(w, w))
    s = 0.5 - angle * angle / 48.0 if angle < _SMALL else math.sin(0.5 * angle) / angle
    return (s * w[0], s * w[1], s * w[2], math.cos(0.5 * angle))


@inlined
def vector_of_quaternion(e: Quaternion) -> Vector3:
    """Rotation vector, at most pi long, of a quaternion of length 1."""
    sign = 1.0 if e[3] >= 0.0 else -1.0
    x, y, z, w = sign * e[0], sign * e[1], sign * e[2], sign * e[3]
    s = math.sqrt(x * x + y * y + z * z)
    factor = (2.0 - s * s / w / w / 1.5) / w if s < _SMALL else 2.0 * math.atan2(s, w) / s
    return (factor * x, factor * y, factor * z)


@inlined
def screw_translation(w: Vector3, v: Vector3) -> Vector3:
    """Displacement in 1 s at constant body velocities v and w, in the initial body frame."""
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
    """Velocity v whose `screw_translation` with w is p."""
    angle = math.sqrt(dot(w, w))
    if angle < _SMALL:
        b = 1.0 / 12.0 + angle * angle / 720.0
    else:
        b = (1.0 - 0.5 * angle / math.tan(0.5 * angle)) / (angle * angle)
    w_p = cross(w, p)
    return add(p, add(scale(-0.5, w_p), scale(b, cross(w, w_p))))
