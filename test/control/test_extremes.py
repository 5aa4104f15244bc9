"""Extremes of polynomials against NumPy's roots, and bounds that hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from rnea_control.control.trajectory_limits import SCRATCH, bernstein_bounds, extremes
from rnea_control.jit.kernel import kernel

# NumPy's roots break down where the highest coefficient is tiny.
numbers = st.floats(1e-3, 10.0) | st.floats(-10.0, -1e-3) | st.sampled_from([0.0, 1.0, -1.0])
coefficients = st.lists(numbers, min_size=6, max_size=6)


def _fill(c, scratch, found):
    found[0], found[1], found[2], found[3] = extremes(c, scratch)
    found[4], found[5] = bernstein_bounds(c)


FILL = kernel("void(f8[::1], f8[:,::1], f8[::1])")(_fill)


def found_of(values) -> np.ndarray:
    found = np.zeros(6)
    FILL(np.array(values, dtype=np.float64), np.full(SCRATCH, np.nan), found)
    return found


def expected(values) -> tuple[float, float]:
    """At the ends, and at all roots of the derivative that could be real ones between them."""
    polynomial = Polynomial(values)
    derivative = np.trim_zeros(polynomial.deriv().coef, "b")
    roots = Polynomial(derivative).roots() if derivative.size else []
    inside = [float(np.clip(root.real, 0.0, 1.0)) for root in np.atleast_1d(roots)]
    at = polynomial(np.array([0.0, 1.0, *inside, *np.linspace(0.0, 1.0, 101)]))
    return float(at.min()), float(at.max())


@settings(max_examples=400, deadline=None)
@given(coefficients)
def test_agree_with_the_roots_of_the_derivative(values: list[float]) -> None:
    low, low_at, high, high_at, lower_bound, upper_bound = found_of(values)
    least, most = expected(values)
    scale = 1e-12 * (1.0 + np.abs(values).sum())
    assert abs(low - least) <= 10.0 * scale and abs(high - most) <= 10.0 * scale
    polynomial = Polynomial(values)
    assert 0.0 <= low_at <= 1.0 and 0.0 <= high_at <= 1.0
    assert abs(polynomial(low_at) - low) <= scale and abs(polynomial(high_at) - high) <= scale
    assert lower_bound <= low + scale and high <= upper_bound + scale
