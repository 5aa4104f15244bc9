"""The extremes of a polynomial on an interval, exact to rounding.

Between two neighboring roots of its derivative a polynomial is monotonic, so that it has at most
one root there, which bisection finds. So the roots of each derivative, from the highest down, part
the interval for the next one. The roots of the first derivative, and the ends, are where the
polynomial can be extreme.

In Bernstein form a polynomial lies between its smallest and its largest coefficient [Farouki 2012]:
that tells at once of most polynomials that they stay within some bounds.
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.kernels.inlining import inlined

# The highest degree.
DEGREE = 5
# Rows of the scratch array: the polynomial, its derivatives, and the roots of two of these.
SCRATCH = (DEGREE + 3, DEGREE + 3)

# Bisections that part an interval into pieces of the size of rounding.
_BISECTIONS = 53
# Row j has the weights of the coefficients of powers in Bernstein coefficient j, degree 5.
_BERNSTEIN = np.array(
    [[math.comb(j, k) / math.comb(DEGREE, k) for k in range(DEGREE + 1)] for j in range(DEGREE + 1)]
)


@inlined
def bernstein_bounds(c: FloatArray) -> tuple[float, float]:
    """Bounds of the polynomial on [0, 1]; `c`: its coefficients, lowest power first, shape (6,)."""
    low, high = c[0], c[0]
    for j in range(1, DEGREE + 1):
        b = 0.0
        for k in range(j + 1):
            b += _BERNSTEIN[j, k] * c[k]
        low, high = min(low, b), max(high, b)
    return low, high


@inlined
def evaluate(c: FloatArray, degree: int, u: float) -> float:
    """The polynomial at `u`."""
    value = c[degree]
    for k in range(degree - 1, -1, -1):
        value = value * u + c[k]
    return value


@inlined
def extremes(c: FloatArray, scratch: FloatArray) -> tuple[float, float, float, float]:
    """Smallest and largest value on [0, 1], and where they are.

    Args:
        c: coefficients, lowest power first, shape (6,).
        scratch: overwritten, shape `SCRATCH`.
    """
    for k in range(DEGREE + 1):
        scratch[0, k] = c[k]
    for order in range(1, DEGREE):
        for k in range(DEGREE - order + 1):
            scratch[order, k] = (k + 1) * scratch[order - 1, k + 1]
    old, new = DEGREE + 1, DEGREE + 2  # rows of the roots of the derivative above and of this one
    count = 0
    for order in range(DEGREE - 1, 0, -1):
        degree = DEGREE - order
        found = 0
        left = 0.0
        for i in range(count + 1):
            right = scratch[old, i] if i < count else 1.0
            root = _root_between(scratch[order], degree, left, right)
            if root >= 0.0:
                scratch[new, found] = root
                found += 1
            left = right
        count = found
        old, new = new, old
    low_at = high_at = 0.0
    low = high = evaluate(c, DEGREE, 0.0)
    for i in range(count + 1):
        u = scratch[old, i] if i < count else 1.0
        value = evaluate(c, DEGREE, u)
        if value < low:
            low, low_at = value, u
        if value > high:
            high, high_at = value, u
    return low, low_at, high, high_at


@inlined
def _root_between(c: FloatArray, degree: int, left: float, right: float) -> float:
    """The root of a polynomial that is monotonic between two places; -1 if it has none there."""
    at_left, at_right = evaluate(c, degree, left), evaluate(c, degree, right)
    if at_left == 0.0:
        return left
    if (at_left < 0.0) == (at_right < 0.0):
        return -1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (left + right)
        if (evaluate(c, degree, middle) < 0.0) == (at_left < 0.0):
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)
