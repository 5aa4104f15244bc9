"""Spatial vectors and articulated inertias as tuples, and functions to read and write them, vectors
and matrices in rows of arrays.

A spatial vector is a pair of vectors: motion is (linear, angular), force is (force, moment), both
about the origin of the frame in which they are expressed. With R and p the rotation and position of
a body's frame in its parent's frame, X maps motion from parent to body and X* force from body to
parent [Featherstone 2008, sec. 2.8].

An articulated inertia, the inertia of a body with the joints beyond it free to move, maps a linear
acceleration a and an angular acceleration alpha to force and moment,

    f = M a + H alpha,    n = H^T a + J alpha

with M and J symmetric: six, nine and six numbers. A rigid body has M = m 1, H = -[mc]x and J its
inertia about the origin. With M* = R M R^T, H* and J* alike, X* I X is
[Featherstone 2008, sec. 7.2]

    M_P = M*,    H_P = H* - M* [p]x,    J_P = J* + [p]x G + ([p]x G)^T    with G = (H* + H_P) / 2
"""

from __future__ import annotations

from rnea_control.array_types import Matrix
from rnea_control.jit.inlining import inlined
from rnea_control.spatial import vectors
from rnea_control.spatial.vectors import Matrix3, Symmetric3, Vector3, cross, rotate, rotate_back

Spatial = tuple[Vector3, Vector3]
Articulated = tuple[Symmetric3, Matrix3, Symmetric3]

ZERO: Spatial = (vectors.ORIGIN, vectors.ORIGIN)


@inlined
def vector_at(rows: Matrix, row: int, column: int) -> Vector3:
    """Vector that starts at `column` of a row."""
    return (rows[row, column], rows[row, column + 1], rows[row, column + 2])


@inlined
def symmetric_at(rows: Matrix, row: int, column: int) -> Symmetric3:
    """Symmetric matrix that starts at `column` of a row."""
    return vector_at(rows, row, column) + vector_at(rows, row, column + 3)


@inlined
def matrix_at(rows: Matrix, row: int, column: int) -> Matrix3:
    """Matrix that starts at `column` of a row."""
    return symmetric_at(rows, row, column) + vector_at(rows, row, column + 6)


@inlined
def pose_at(rows: Matrix, row: int, column: int) -> tuple[Matrix3, Vector3]:
    """Rotation that starts at `column` of a row, and position that follows it."""
    return matrix_at(rows, row, column), vector_at(rows, row, column + 9)


@inlined
def store_vector(rows: Matrix, row: int, column: int, a: Vector3) -> None:
    """Writes a vector to the columns from `column` of a row."""
    rows[row, column] = a[0]
    rows[row, column + 1] = a[1]
    rows[row, column + 2] = a[2]


@inlined
def store_matrix(rows: Matrix, row: int, column: int, R: Matrix3) -> None:
    """Writes a matrix to the columns from `column` of a row."""
    for i in range(9):
        rows[row, column + i] = R[i]


@inlined
def store_pose(rows: Matrix, row: int, column: int, R: Matrix3, p: Vector3) -> None:
    """Writes a rotation and a position to the columns from `column` of a row."""
    store_matrix(rows, row, column, R)
    store_vector(rows, row, column + 9, p)


@inlined
def add_to_vector(rows: Matrix, row: int, column: int, a: Vector3) -> None:
    """Adds a vector to the columns from `column` of a row."""
    rows[row, column] += a[0]
    rows[row, column + 1] += a[1]
    rows[row, column + 2] += a[2]


@inlined
def add(a: Spatial, b: Spatial) -> Spatial:
    """a + b"""
    return vectors.add(a[0], b[0]), vectors.add(a[1], b[1])


@inlined
def scale(s: float, a: Spatial) -> Spatial:
    """s a"""
    return vectors.scale(s, a[0]), vectors.scale(s, a[1])


@inlined
def dot(force: Spatial, motion: Spatial) -> float:
    """Power of a force along a motion."""
    return vectors.dot(force[0], motion[0]) + vectors.dot(force[1], motion[1])


@inlined
def to_child(R: Matrix3, p: Vector3, motion: Spatial) -> Spatial:
    """X m: transforms a motion from the parent's frame to the child's."""
    linear, angular = motion
    at_child = vectors.add(linear, cross(angular, p))
    return rotate_back(R, at_child), rotate_back(R, angular)


@inlined
def to_parent(R: Matrix3, p: Vector3, force: Spatial) -> Spatial:
    """X* f: transforms a force from the child's frame to the parent's."""
    f = rotate(R, force[0])
    return f, vectors.add(rotate(R, force[1]), cross(p, f))


@inlined
def cross_motion(v: Spatial, m: Spatial) -> Spatial:
    """v x m: derivative of a motion m that moves with v."""
    return vectors.add(cross(v[1], m[0]), cross(v[0], m[1])), cross(v[1], m[1])


@inlined
def cross_force(v: Spatial, f: Spatial) -> Spatial:
    """v x* f: derivative of a force f that moves with v."""
    return cross(v[1], f[0]), vectors.add(cross(v[1], f[1]), cross(v[0], f[0]))


@inlined
def at(rows: Matrix, row: int, column: int) -> Spatial:
    """Spatial vector that starts at `column` of a row."""
    return vector_at(rows, row, column), vector_at(rows, row, column + 3)


@inlined
def store(rows: Matrix, row: int, column: int, a: Spatial) -> None:
    """Writes six numbers to the columns from `column` of a row."""
    store_vector(rows, row, column, a[0])
    store_vector(rows, row, column + 3, a[1])


@inlined
def add_to(rows: Matrix, row: int, column: int, a: Spatial) -> None:
    """Adds six numbers to the columns from `column` of a row."""
    add_to_vector(rows, row, column, a[0])
    add_to_vector(rows, row, column + 3, a[1])


@inlined
def rigid_body(inertia: tuple[float, Vector3, Symmetric3]) -> Articulated:
    """Articulated inertia of a rigid body with mass m, first moment mc, and inertia about the
    origin."""
    m, (x, y, z), about_origin = inertia
    M = (m, 0.0, 0.0, m, 0.0, m)
    return M, (0.0, z, -y, -z, 0.0, x, y, -x, 0.0), about_origin


@inlined
def articulated_at(rows: Matrix, row: int, column: int) -> Articulated:
    """Articulated inertia whose 21 numbers start at `column` of a row."""
    M, H = symmetric_at(rows, row, column), matrix_at(rows, row, column + 6)
    return M, H, symmetric_at(rows, row, column + 15)


@inlined
def store_articulated(rows: Matrix, row: int, column: int, A: Articulated) -> None:
    """Writes an articulated inertia to the columns from `column` of a row."""
    M, H, J = A
    for k in range(6):
        rows[row, column + k] = M[k]
        rows[row, column + 15 + k] = J[k]
    for k in range(9):
        rows[row, column + 6 + k] = H[k]


@inlined
def add_articulated(rows: Matrix, row: int, column: int, A: Articulated) -> None:
    """Adds an articulated inertia to the columns from `column` of a row."""
    M, H, J = A
    for k in range(6):
        rows[row, column + k] += M[k]
        rows[row, column + 15 + k] += J[k]
    for k in range(9):
        rows[row, column + 6 + k] += H[k]


@inlined
def times_motion(A: Articulated, motion: Spatial) -> Spatial:
    """Force for an acceleration."""
    M, H, J = A
    linear, angular = motion
    f = vectors.add(vectors.times_symmetric(M, linear), rotate(H, angular))
    return f, vectors.add(rotate_back(H, linear), vectors.times_symmetric(J, angular))


@inlined
def times_axis(A: Articulated, S_linear: float, S_angular: float) -> Spatial:
    """Force for an acceleration S = (s_linear z; s_angular z)."""
    M, H, J = A
    along = (M[2], M[4], M[5]), H[6:]
    about = (H[2], H[5], H[8]), (J[2], J[4], J[5])
    return add(scale(S_linear, along), scale(S_angular, about))


@inlined
def less_outer_product(
    A: Articulated, U: Spatial, U_over_D: Spatial, rotor_share: float, revolute: bool
) -> Articulated:
    """I^a = I^A - U U^T / D: articulated inertia across the free joint.

    Stabilized against rounding: along its own axis a free joint transmits only its rotor's inertia,
    so I^a S = U armature / D. For a revolute joint these entries are computed by this equation
    (`rotor_share` is armature / D): as differences they would be rounding errors of I^A.
    """
    M, H, J = A
    (f, n), (g, h) = U, U_over_D
    z_f, z_n = vectors.scale(rotor_share, f), vectors.scale(rotor_share, n)
    if not revolute:
        z_f = vectors.subtract((H[2], H[5], H[8]), vectors.scale(h[2], f))
        z_n = vectors.subtract((J[2], J[4], J[5]), vectors.scale(h[2], n))
    M_a = (
        M[0] - g[0] * f[0], M[1] - g[0] * f[1], M[2] - g[0] * f[2],
        M[3] - g[1] * f[1], M[4] - g[1] * f[2],
        M[5] - g[2] * f[2],
    )  # fmt: skip
    H_a = (
        H[0] - g[0] * n[0], H[1] - g[0] * n[1], z_f[0],
        H[3] - g[1] * n[0], H[4] - g[1] * n[1], z_f[1],
        H[6] - g[2] * n[0], H[7] - g[2] * n[1], z_f[2],
    )  # fmt: skip
    J_a = (
        J[0] - h[0] * n[0], J[1] - h[0] * n[1], z_n[0],
        J[3] - h[1] * n[1], z_n[1],
        z_n[2],
    )  # fmt: skip
    return M_a, H_a, J_a


@inlined
def inertia_to_parent(A: Articulated, R: Matrix3, p: Vector3) -> Articulated:
    """X* I X: articulated inertia about the parent's origin and in the parent's axes."""
    M = vectors.rotated_symmetric(R, A[0])
    H = vectors.rotated(R, A[1])
    J = vectors.rotated_symmetric(R, A[2])
    # S = M* [p]x / 2: its row i is (row i of M*) x p / 2, and its trace is 0. G = H* - S.
    half = vectors.scale(0.5, p)
    S0, S1 = cross(M[:3], half), cross((M[1], M[3], M[4]), half)
    S2 = (M[4] * half[2] - M[5] * half[1], M[5] * half[0] - M[2] * half[2], -(S0[0] + S1[1]))
    G0, G1 = vectors.subtract(H[:3], S0), vectors.subtract(H[3:6], S1)
    G2 = vectors.subtract(H[6:], S2)
    xx = p[1] * G2[0] - p[2] * G1[0]
    yy = p[2] * G0[1] - p[0] * G2[1]
    zz = p[0] * G1[2] - p[1] * G0[2]
    moved = (
        J[0] + xx + xx,
        J[1] + p[1] * G2[1] - p[0] * G2[0] + p[2] * (G0[0] - G1[1]),
        J[2] + p[0] * G1[0] - p[2] * G1[2] + p[1] * (G2[2] - G0[0]),
        J[3] + yy + yy,
        J[4] + p[2] * G0[2] - p[1] * G0[1] + p[0] * (G1[1] - G2[2]),
        J[5] + zz + zz,
    )
    H_P = vectors.subtract(G0, S0) + vectors.subtract(G1, S1) + vectors.subtract(G2, S2)
    return M, H_P, moved
