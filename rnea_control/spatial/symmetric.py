"""Symmetric matrices of 6 x 6 numbers, row by row in vectors of 36, for kernels.

Eigenvalues are found by cyclic Jacobi rotations [Golub, Van Loan 2013, sec. 8.5]. They begin with
the eigenvectors of a similar matrix: one sweep is enough where the matrix has hardly changed since.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.jit.inlining import inlined, shared

SIZE = 6
_MOST_SWEEPS = 12  # Jacobi converges within six sweeps from any matrix
_CONVERGED = 1e-15  # off-diagonal entries, as a part of the largest diagonal entry
_DEPENDENT = 1e-8  # length of the rest of a unit vector that says nothing


@inlined
def set_identity(A: Vector) -> None:
    """A = 1"""
    for i in range(SIZE):
        for k in range(SIZE):
            A[SIZE * i + k] = 1.0 if i == k else 0.0


@shared
def cholesky(A: Vector, L: Vector, least: float) -> bool:
    """Fills the lower triangle of L, with L L^T = A; returns False if A has an eigenvalue below
    about `least`. L may be A."""
    for i in range(SIZE):
        for k in range(i + 1):
            left = A[SIZE * i + k]
            for m in range(k):
                left -= L[SIZE * i + m] * L[SIZE * k + m]
            if i > k:
                L[SIZE * i + k] = left / L[SIZE * k + k]
            elif left > least:
                L[SIZE * i + i] = math.sqrt(left)
            else:
                return False
    return True


@shared
def solve_by_cholesky(L: Vector, x: Vector) -> None:
    """Solves L L^T x = b in place; `x`, shape (6,), is b."""
    for i in range(SIZE):
        for k in range(i):
            x[i] -= L[SIZE * i + k] * x[k]
        x[i] /= L[SIZE * i + i]
    for back in range(SIZE):
        i = SIZE - 1 - back
        for k in range(i + 1, SIZE):
            x[i] -= L[SIZE * k + i] * x[k]
        x[i] /= L[SIZE * i + i]


@inlined
def _orthonormalize(V: Vector) -> None:
    """Makes the columns of V orthonormal, which rounding has changed; V = 1 if they are
    dependent."""
    for k in range(SIZE):
        for before in range(k):
            share = 0.0
            for i in range(SIZE):
                share += V[SIZE * i + k] * V[SIZE * i + before]
            for i in range(SIZE):
                V[SIZE * i + k] -= share * V[SIZE * i + before]
        length = 0.0
        for i in range(SIZE):
            length += V[SIZE * i + k] * V[SIZE * i + k]
        if not length > _DEPENDENT * _DEPENDENT:
            set_identity(V)
            return
        length = 1.0 / math.sqrt(length)
        for i in range(SIZE):
            V[SIZE * i + k] *= length


@inlined
def _turn(A: Vector, V: Vector, i: int, k: int) -> None:
    """Makes A[i, k] zero by a rotation in the plane of i and k."""
    off = A[SIZE * i + k]
    half = 0.5 * (A[SIZE * k + k] - A[SIZE * i + i]) / off
    t = math.copysign(1.0, half) / (abs(half) + math.sqrt(half * half + 1.0))
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    for m in range(SIZE):
        a, b = A[SIZE * m + i], A[SIZE * m + k]
        A[SIZE * m + i], A[SIZE * m + k] = c * a - s * b, s * a + c * b
        a, b = V[SIZE * m + i], V[SIZE * m + k]
        V[SIZE * m + i], V[SIZE * m + k] = c * a - s * b, s * a + c * b
    for m in range(SIZE):
        a, b = A[SIZE * i + m], A[SIZE * k + m]
        A[SIZE * i + m], A[SIZE * k + m] = c * a - s * b, s * a + c * b


@shared
def diagonalize(A: Vector, V: Vector, work: Vector) -> None:
    """Replaces A by its eigenvalues on the diagonal, and V by the eigenvectors as columns: A V.

    `V` is a guess, whose columns are nearly orthonormal; `work`, shape (36,), is overwritten.
    """
    _orthonormalize(V)
    for i in range(SIZE):
        for k in range(SIZE):
            total = 0.0
            for m in range(SIZE):
                total += A[SIZE * i + m] * V[SIZE * m + k]
            work[SIZE * i + k] = total
    for i in range(SIZE):
        for k in range(i + 1):
            total = 0.0
            for m in range(SIZE):
                total += V[SIZE * m + i] * work[SIZE * m + k]
            A[SIZE * i + k] = A[SIZE * k + i] = total
    for _ in range(_MOST_SWEEPS):
        largest = 0.0
        for i in range(SIZE):
            largest = max(largest, abs(A[SIZE * i + i]))
        turned = False
        for i in range(SIZE):
            for k in range(i + 1, SIZE):
                if abs(A[SIZE * i + k]) > _CONVERGED * largest:
                    _turn(A, V, i, k)
                    turned = True
        if not turned:
            return
