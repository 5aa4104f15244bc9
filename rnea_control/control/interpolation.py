"""From waypoints to the polynomials between them, as joint_trajectory_controller makes them.

Between two waypoints the position is the lowest polynomial that meets the fields that both have:
a line for positions, a cubic with velocities, a quintic with accelerations too. Positions that are
not given are integrated from velocities, and these from accelerations, by the trapezoidal rule. The
effort is a line, and 0 at waypoints without one.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, POSITION_COEFFICIENTS
from rnea_control.control.waypoints import ACCELERATION, POSITION, VELOCITY, Waypoints


def integrated(points: Waypoints) -> Waypoints:
    """The same with all positions; the first waypoint must have all fields."""
    if points.has[POSITION].all():
        return points
    (p, v, a), has = points.fields[:3].copy(), points.has.copy()
    for i in np.flatnonzero(~has[POSITION]):
        half = 0.5 * (points.times[i] - points.times[i - 1])
        if not has[VELOCITY, i]:
            v[i] = v[i - 1] + half * (a[i - 1] + a[i])
        p[i] = p[i - 1] + half * (v[i - 1] + v[i])
        has[:ACCELERATION, i] = True
    return replace(points, fields=np.stack([p, v, a, points.fields[3]]), has=has)


def segments(points: Waypoints) -> FloatArray:
    """Coefficients between n waypoints with positions, shape (n - 1, nv, 8)."""
    c = np.zeros((len(points) - 1, points.nv, COEFFICIENTS))
    T = np.diff(points.times)[:, None]
    x0, v0, a0, f0 = points.fields[:, :-1]
    x1, v1, a1, f1 = points.fields[:, 1:]
    mean = (x1 - x0) / T
    both = points.has[:, :-1] & points.has[:, 1:]
    with_velocity = both[VELOCITY]
    with_acceleration = with_velocity & both[ACCELERATION]
    cubic = (with_velocity & ~with_acceleration)[:, None]
    quintic = with_acceleration[:, None]
    c[:, :, 0] = x0
    c[:, :, 1] = np.where(with_velocity[:, None], v0, mean)
    c[:, :, 2] = np.where(quintic, 0.5 * a0, np.where(cubic, (3.0 * mean - 2.0 * v0 - v1) / T, 0.0))
    c[:, :, 3] = np.where(
        quintic,
        (20.0 * mean - (8.0 * v1 + 12.0 * v0) - (3.0 * a0 - a1) * T) / (2.0 * T**2),
        np.where(cubic, (-2.0 * mean + v0 + v1) / T**2, 0.0),
    )
    c[:, :, 4] = np.where(
        quintic,
        (-30.0 * mean + (14.0 * v1 + 16.0 * v0) + (3.0 * a0 - 2.0 * a1) * T) / (2.0 * T**3),
        0.0,
    )
    c[:, :, 5] = np.where(
        quintic, (12.0 * mean - 6.0 * (v1 + v0) - (a0 - a1) * T) / (2.0 * T**4), 0.0
    )
    c[:, :, EFFORT] = f0
    c[:, :, EFFORT + 1] = (f1 - f0) / T
    return c


def shifted(coefficients: FloatArray, time: FloatArray) -> FloatArray:
    """The same polynomials counted from later starts.

    Args:
        coefficients: shape (m, nv, 8).
        time: by how much later, shape (m,), [s].
    """
    n = POSITION_COEFFICIENTS
    power = time[:, None] ** np.arange(n)
    move = np.zeros((len(time), n, n))
    for k in range(n):
        for i in range(k, n):
            move[:, i, k] = comb(i, k) * power[:, i - k]
    new = coefficients.copy()
    new[:, :, :n] = np.einsum("mji,mik->mjk", coefficients[:, :, :n], move)
    new[:, :, EFFORT] += time[:, None] * coefficients[:, :, EFFORT + 1]
    return new
