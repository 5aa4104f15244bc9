"""Derivatives of sampled signals by central differences, without delay."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray

# Central differences of sixth order, for steps 1, 2 and 3.
FIRST = (3.0 / 4.0, -3.0 / 20.0, 1.0 / 60.0)
SECOND = (3.0 / 2.0, -3.0 / 20.0, 1.0 / 90.0)
REACH = len(FIRST)


def derivative(values: FloatArray, period: float) -> FloatArray:
    """The first derivative; the first and last samples repeat their neighbors'."""
    result = np.zeros_like(values)
    n = len(values)
    inner = slice(REACH, n - REACH)
    for k, weight in enumerate(FIRST, start=1):
        result[inner] += weight * (
            values[REACH + k : n - REACH + k] - values[REACH - k : n - REACH - k]
        )
    result[inner] /= period
    return _with_ends(result)


def second_derivative(values: FloatArray, period: float) -> FloatArray:
    result = np.zeros_like(values)
    n = len(values)
    inner = slice(REACH, n - REACH)
    result[inner] = -2.0 * sum(SECOND) * values[inner]
    for k, weight in enumerate(SECOND, start=1):
        result[inner] += weight * (
            values[REACH + k : n - REACH + k] + values[REACH - k : n - REACH - k]
        )
    result[inner] /= period**2
    return _with_ends(result)


def _with_ends(values: FloatArray) -> FloatArray:
    values[:REACH], values[-REACH:] = values[REACH], values[-REACH - 1]
    return values
