"""Vectors of three and matrices of nine numbers, as tuples for use in kernels.

Tuples are kept in registers: an expression such as `add(a, cross(w, p))` compiles to plain
arithmetic without an array. A matrix has its nine numbers row by row, a symmetric matrix its upper
triangle (xx, xy, xz, yy, yz, zz).
"""

from __future__ import annotations

from rnea_control.jit.inlining import inlined

Vector3 = tuple[float, float, float]
Symmetric3 = tuple[float, float, float, float, float, float]
Matrix3 = tuple[float, float, float, float, float, float, float, float, float]

ORIGIN: Vector3 = (0.0, 0.0, 0.0)
IDENTITY: Matrix3 = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@inlined
def add(a: Vector3, b: Vector3) -> Vector3:
    """a + b"""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inlined
def subtract(a: Vector3, b: Vector3) -> Vector3:
    """a - b"""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inlined
def dot(a: Vector3, b: Vector3) -> float:
    """a . b"""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def scale(s: float, a: Vector3) -> Vector3:
    """s a"""
    return (s * a[0], s * a[1], s * a[2])


@inlined
def cross(a: Vector3, b: Vector3) -> Vector3:
    """a x b"""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inlined
def rotate(R: Matrix3, a: Vector3) -> Vector3:
    """R a"""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inlined
def rotate_back(R: Matrix3, a: Vector3) -> Vector3:
    """R^T a, the inverse of `rotate`"""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inlined
def turned_about_z(R: Matrix3, sine: float, cosine: float) -> Matrix3:
    """R Rz, with Rz the rotation about z by the angle with this sine and cosine"""
    return (
        R[0] * cosine + R[1] * sine, R[1] * cosine - R[0] * sine, R[2],
        R[3] * cosine + R[4] * sine, R[4] * cosine - R[3] * sine, R[5],
        R[6] * cosine + R[7] * sine, R[7] * cosine - R[6] * sine, R[8],
    )  # fmt: skip


@inlined
def multiply(A: Matrix3, B: Matrix3) -> Matrix3:
    """A B, row by row: a row of A times B is B^T times the row"""
    return rotate_back(B, A[:3]) + rotate_back(B, A[3:6]) + rotate_back(B, A[6:])


@inlined
def z_axis(R: Matrix3) -> Vector3:
    """R (0, 0, 1)"""
    return (R[2], R[5], R[8])


@inlined
def times_symmetric(S: Symmetric3, a: Vector3) -> Vector3:
    """S a"""
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@inlined
def rotated_symmetric(R: Matrix3, S: Symmetric3) -> Symmetric3:
    """R S R^T

    S is split into zz times 1, an antisymmetric matrix of xz and yz, which rotates like a vector,
    and a remainder with two columns: R times these columns, times two rows of R^T; the trace gives
    one of its entries. 28 multiplications instead of 45.
    """
    a, b, d = S[0] - S[5], S[1], S[3] - S[5]
    c, e = S[2] + S[2], S[4] + S[4]
    y0 = R[3] * a + R[4] * b + R[5] * c
    y1 = R[3] * b + R[4] * d + R[5] * e
    z0 = R[6] * a + R[7] * b + R[8] * c
    z1 = R[6] * b + R[7] * d + R[8] * e
    x = R[1] * S[2] - R[0] * S[4]
    y = R[4] * S[2] - R[3] * S[4]
    z = R[7] * S[2] - R[6] * S[4]
    yy, zz = y0 * R[3] + y1 * R[4], z0 * R[6] + z1 * R[7]
    return (
        a + d - yy - zz + S[5], y0 * R[0] + y1 * R[1] + z, z0 * R[0] + z1 * R[1] - y,
        yy + S[5], z0 * R[3] + z1 * R[4] + x,
        zz + S[5],
    )  # fmt: skip


@inlined
def rotated(R: Matrix3, A: Matrix3) -> Matrix3:
    """R A R^T

    By the method of `rotated_symmetric`, in 40 multiplications instead of 54.
    """
    a, b, c, d = A[0] - A[8], A[1], A[3], A[4] - A[8]
    e, g = A[6] + A[2], A[7] + A[5]
    (x0, y0, z0), (x1, y1, z1) = rotate(R, (a, c, e)), rotate(R, (b, d, g))
    x = R[1] * A[2] - R[0] * A[5]
    y = R[4] * A[2] - R[3] * A[5]
    z = R[7] * A[2] - R[6] * A[5]
    yy, zz = y0 * R[3] + y1 * R[4], z0 * R[6] + z1 * R[7]
    return (
        a + d - yy - zz + A[8], x0 * R[3] + x1 * R[4] - z, x0 * R[6] + x1 * R[7] + y,
        y0 * R[0] + y1 * R[1] + z, yy + A[8], y0 * R[6] + y1 * R[7] - x,
        z0 * R[0] + z1 * R[1] - y, z0 * R[3] + z1 * R[4] + x, zz + A[8],
    )  # fmt: skip
