r"""Articulated inertias: what a body feels like with the joints beyond it free.

An articulated inertia maps a linear and an angular acceleration to force and moment,

.. math::

    f = M a + H \alpha, \qquad n = H^T a + J \alpha

with M and J symmetric: six, nine and six numbers. A rigid body has M = m 1, H = -[mc]x and J its
inertia about the origin. With R and p the place of the body in its parent P [Featherstone 2008,
sec. 7.2], and M', H', J' for R M R^T and so on,

.. math::

    M_P = M', \quad H_P = H' - M' [p]_\times, \quad
    J_P = J' + [p]_\times H_P - H'^T [p]_\times
"""

from __future__ import annotations

from rnea_control.dynamics.kernel import inlined
from rnea_control.dynamics.vector3 import (
    FloatArray,
    Matrix3,
    Symmetric3,
    Vector3,
    add,
    cross,
    dot,
    multiply,
    rotate,
    rotate_back,
    rotated_symmetric,
    times_symmetric,
)
from rnea_control.model import bodies as layout

Articulated = tuple[Symmetric3, Matrix3, Symmetric3]


@inlined
def rigid_body(bodies: FloatArray, i: int) -> Articulated:
    """That of body i by itself."""
    m, x, y, z = (
        bodies[i, layout.INERTIA],
        bodies[i, layout.INERTIA + 1],
        bodies[i, layout.INERTIA + 2],
        bodies[i, layout.INERTIA + 3],
    )
    k = layout.INERTIA + 4
    return (
        (m, 0.0, 0.0, m, 0.0, m),
        (0.0, z, -y, -z, 0.0, x, y, -x, 0.0),
        (
            bodies[i, k],
            bodies[i, k + 1],
            bodies[i, k + 2],
            bodies[i, k + 3],
            bodies[i, k + 4],
            bodies[i, k + 5],
        ),
    )


@inlined
def articulated_at(rows: FloatArray, row: int, column: int) -> Articulated:
    """The one whose 21 numbers start at `column` of a row."""
    r = rows[row]
    c = column
    return (
        (r[c], r[c + 1], r[c + 2], r[c + 3], r[c + 4], r[c + 5]),
        (
            r[c + 6],
            r[c + 7],
            r[c + 8],
            r[c + 9],
            r[c + 10],
            r[c + 11],
            r[c + 12],
            r[c + 13],
            r[c + 14],
        ),
        (r[c + 15], r[c + 16], r[c + 17], r[c + 18], r[c + 19], r[c + 20]),
    )


@inlined
def store_articulated(rows: FloatArray, row: int, column: int, A: Articulated) -> None:
    """Writes it to the columns from `column` of a row."""
    M, H, J = A
    for k in range(6):
        rows[row, column + k] = M[k]
        rows[row, column + 15 + k] = J[k]
    for k in range(9):
        rows[row, column + 6 + k] = H[k]


@inlined
def add_articulated(rows: FloatArray, row: int, column: int, A: Articulated) -> None:
    """Adds it to the columns from `column` of a row."""
    M, H, J = A
    for k in range(6):
        rows[row, column + k] += M[k]
        rows[row, column + 15 + k] += J[k]
    for k in range(9):
        rows[row, column + 6 + k] += H[k]


@inlined
def times_motion(A: Articulated, linear: Vector3, angular: Vector3) -> tuple[Vector3, Vector3]:
    """Force and moment for an acceleration."""
    M, H, J = A
    f = add(times_symmetric(M, linear), rotate(H, angular))
    return f, add(rotate_back(H, linear), times_symmetric(J, angular))


@inlined
def times_axis(A: Articulated, angular: float, linear: float) -> tuple[Vector3, Vector3]:
    """Force and moment for an acceleration of z times `linear` and `angular`."""
    M, H, J = A
    f = (
        linear * M[2] + angular * H[2],
        linear * M[4] + angular * H[5],
        linear * M[5] + angular * H[8],
    )
    n = (
        linear * H[6] + angular * J[2],
        linear * H[7] + angular * J[4],
        linear * H[8] + angular * J[5],
    )
    return f, n


@inlined
def less_pivot(A: Articulated, f: Vector3, n: Vector3, pivot: float) -> Articulated:
    """A - U U^T / pivot with U = (f; n): what is left once the joint yields."""
    M, H, J = A
    s = 1.0 / pivot
    a, b, c = s * f[0], s * f[1], s * f[2]
    d, e, g = s * n[0], s * n[1], s * n[2]
    return (
        (
            M[0] - a * f[0],
            M[1] - a * f[1],
            M[2] - a * f[2],
            M[3] - b * f[1],
            M[4] - b * f[2],
            M[5] - c * f[2],
        ),
        (
            H[0] - a * n[0],
            H[1] - a * n[1],
            H[2] - a * n[2],
            H[3] - b * n[0],
            H[4] - b * n[1],
            H[5] - b * n[2],
            H[6] - c * n[0],
            H[7] - c * n[1],
            H[8] - c * n[2],
        ),
        (
            J[0] - d * n[0],
            J[1] - d * n[1],
            J[2] - d * n[2],
            J[3] - e * n[1],
            J[4] - e * n[2],
            J[5] - g * n[2],
        ),
    )


@inlined
def seen_from_parent(A: Articulated, R: Matrix3, p: Vector3) -> Articulated:
    """The same, about the parent's origin and in its axes."""
    M = rotated_symmetric(R, A[0])
    H = multiply(R, multiply_transposed(A[1], R))
    J = rotated_symmetric(R, A[2])
    # Row i of S [p]x is S_i x p, with S_i row i of S.
    H0 = cross_row((M[0], M[1], M[2]), p, (H[0], H[1], H[2]))
    H1 = cross_row((M[1], M[3], M[4]), p, (H[3], H[4], H[5]))
    H2 = cross_row((M[2], M[4], M[5]), p, (H[6], H[7], H[8]))
    # Column k of [p]x H_P is p x column k; row i of H'^T [p]x is column i of H' x p.
    X = cross(p, (H0[0], H1[0], H2[0]))
    Y = cross(p, (H0[1], H1[1], H2[1]))
    Z = cross(p, (H0[2], H1[2], H2[2]))
    x = cross((H[0], H[3], H[6]), p)
    y = cross((H[1], H[4], H[7]), p)
    z = cross((H[2], H[5], H[8]), p)
    moved = (
        J[0] + X[0] - x[0],
        J[1] + Y[0] - x[1],
        J[2] + Z[0] - x[2],
        J[3] + Y[1] - y[1],
        J[4] + Z[1] - y[2],
        J[5] + Z[2] - z[2],
    )
    return M, (*H0, *H1, *H2), moved


@inlined
def cross_row(s: Vector3, p: Vector3, h: Vector3) -> Vector3:
    """h - s x p"""
    moved = cross(s, p)
    return (h[0] - moved[0], h[1] - moved[1], h[2] - moved[2])


@inlined
def multiply_transposed(A: Matrix3, B: Matrix3) -> Matrix3:
    """A B^T"""
    return (
        dot((A[0], A[1], A[2]), (B[0], B[1], B[2])),
        dot((A[0], A[1], A[2]), (B[3], B[4], B[5])),
        dot((A[0], A[1], A[2]), (B[6], B[7], B[8])),
        dot((A[3], A[4], A[5]), (B[0], B[1], B[2])),
        dot((A[3], A[4], A[5]), (B[3], B[4], B[5])),
        dot((A[3], A[4], A[5]), (B[6], B[7], B[8])),
        dot((A[6], A[7], A[8]), (B[0], B[1], B[2])),
        dot((A[6], A[7], A[8]), (B[3], B[4], B[5])),
        dot((A[6], A[7], A[8]), (B[6], B[7], B[8])),
    )
