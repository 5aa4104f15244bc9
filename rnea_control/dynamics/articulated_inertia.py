r"""Articulated inertias: what a body feels like with the joints beyond it free.

An articulated inertia maps a linear and an angular acceleration to force and moment,

.. math::

    f = M a + H \alpha, \qquad n = H^T a + J \alpha

with M and J symmetric: six, nine and six numbers. A rigid body has M = m 1, H = -[mc]x and J its
inertia about the origin. With R and p the place of the body in its parent P [Featherstone 2008,
sec. 7.2], and M', H', J' for R M R^T and so on,

.. math::

    M_P = M', \quad H_P = H' - M' [p]_\times, \quad
    J_P = J' + [p]_\times G + ([p]_\times G)^T \quad\text{with}\quad G = \frac{H' + H_P}{2}
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.vector3 import (
    Matrix3,
    Symmetric3,
    Vector3,
    add,
    rotate,
    rotate_back,
    rotated,
    rotated_symmetric,
    scale,
    subtract,
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
def yielding(
    A: Articulated, f: Vector3, n: Vector3, g: Vector3, h: Vector3, rest: float, turns: bool
) -> Articulated:
    """A - U U^T / D with U = (f; n) and U / D = (g; h): what is left once the joint yields.

    Along the joint's own axis only the armature's share of U is left, `rest`; where the axis is the
    z of turning, that is put in as it is, for the difference would be mere rounding.
    """
    M, H, J = A
    z_f, z_n = scale(rest, f), scale(rest, n)
    if not turns:
        z_f = subtract((H[2], H[5], H[8]), scale(h[2], f))
        z_n = subtract((J[2], J[4], J[5]), scale(h[2], n))
    return (
        (
            M[0] - g[0] * f[0],
            M[1] - g[0] * f[1],
            M[2] - g[0] * f[2],
            M[3] - g[1] * f[1],
            M[4] - g[1] * f[2],
            M[5] - g[2] * f[2],
        ),
        (
            H[0] - g[0] * n[0],
            H[1] - g[0] * n[1],
            z_f[0],
            H[3] - g[1] * n[0],
            H[4] - g[1] * n[1],
            z_f[1],
            H[6] - g[2] * n[0],
            H[7] - g[2] * n[1],
            z_f[2],
        ),
        (
            J[0] - h[0] * n[0],
            J[1] - h[0] * n[1],
            z_n[0],
            J[3] - h[1] * n[1],
            z_n[1],
            z_n[2],
        ),
    )


@inlined
def seen_from_parent(A: Articulated, R: Matrix3, p: Vector3) -> Articulated:
    """The same, about the parent's origin and in its axes."""
    M = rotated_symmetric(R, A[0])
    H = rotated(R, A[1])
    J = rotated_symmetric(R, A[2])
    # S = M' [p]x / 2: row i of it is row i of M' x p / 2, and its trace is 0.
    x, y, z = scale(0.5, p)
    S00, S01, S02 = M[1] * z - M[2] * y, M[2] * x - M[0] * z, M[0] * y - M[1] * x
    S10, S11, S12 = M[3] * z - M[4] * y, M[4] * x - M[1] * z, M[1] * y - M[3] * x
    S20, S21, S22 = M[4] * z - M[5] * y, M[5] * x - M[2] * z, -(S00 + S11)
    G00, G01, G02 = H[0] - S00, H[1] - S01, H[2] - S02
    G10, G11, G12 = H[3] - S10, H[4] - S11, H[5] - S12
    G20, G21, G22 = H[6] - S20, H[7] - S21, H[8] - S22
    xx, yy, zz = p[1] * G20 - p[2] * G10, p[2] * G01 - p[0] * G21, p[0] * G12 - p[1] * G02
    moved = (
        J[0] + xx + xx,
        J[1] + p[1] * G21 - p[0] * G20 + p[2] * (G00 - G11),
        J[2] + p[0] * G10 - p[2] * G12 + p[1] * (G22 - G00),
        J[3] + yy + yy,
        J[4] + p[2] * G02 - p[1] * G01 + p[0] * (G11 - G22),
        J[5] + zz + zz,
    )
    H_P = (
        *(G00 - S00, G01 - S01, G02 - S02),
        *(G10 - S10, G11 - S11, G12 - S12),
        *(G20 - S20, G21 - S21, G22 - S22),
    )
    return M, H_P, moved
