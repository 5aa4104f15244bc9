"""The inertia that a joint feels, with all other joints held and with all other joints free.

    held:  M_jj            free:  1 / (M^-1)_jj  <=  M_jj

Where axes are in line, as those of joints 1 and 3 of a stretched arm, they differ by a factor of
ten and more. With M = L L^T and L y = e_j, (M^-1)_jj is y . y.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.kernels.inlining import inlined

# What rounding leaves of a pivot that is 0, relative to the largest that it could be.
_SMALLEST_PIVOT = 1e-13


@inlined
def felt_inertias(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    M: FloatArray,
    held: FloatArray,
    free: FloatArray,
) -> None:
    """Fills `held` and `free`, shape (nv,), [kg m^2] or [kg]; `free` is NaN where a joint moves
    nothing that has inertia. `M`, shape (nv, nv), is overwritten."""
    mass_matrix(bodies, memory, None, q, M)
    n = M.shape[0]
    for k in range(n):
        held[k] = M[k, k]
        pivot = M[k, k]
        for i in range(k):
            pivot -= M[k, i] * M[k, i]
        M[k, k] = math.sqrt(max(pivot, _SMALLEST_PIVOT * held[k]))
        for i in range(k + 1, n):
            for j in range(k):
                M[i, k] -= M[i, j] * M[k, j]
            M[i, k] /= M[k, k]
    for j in range(n):
        # y beyond y_j is kept in row j, right of the diagonal.
        first = 1.0 / M[j, j]
        square = first * first
        for i in range(j + 1, n):
            y = -M[i, j] * first
            for k in range(j + 1, i):
                y -= M[i, k] * M[j, k]
            M[j, i] = y / M[i, i]
            square += M[j, i] * M[j, i]
        free[j] = 1.0 / square
