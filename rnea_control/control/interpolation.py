r"""From waypoints to the polynomials between them, as joint_trajectory_controller makes them, and
smooth motions through waypoints that have only positions, such as the chunks of a policy.

Between two waypoints the position is the lowest polynomial that meets the fields that both have:
a line for positions, a cubic with velocities, a quintic with accelerations too. Positions that are
not given are integrated from velocities, and these from accelerations, by the trapezoidal rule. The
effort is a line, and 0 at waypoints without one.

A smooth motion joins its waypoints by cubics whose acceleration is continuous, :math:`\ddot
q(t_i^-) = \ddot q(t_i^+)`, which is a tridiagonal system for the velocities. The first segment is a
quartic, so that it also starts with the acceleration that the arm has: chunks follow each other
without a step of it. At the last waypoint the acceleration is zero; the arm either rests there, and
the last segment is a quartic too, or moves on, as within a stream of chunks [de Boor 2001, ch. IV].
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, POSITION_COEFFICIENTS
from rnea_control.control.waypoints import ACCELERATION, POSITION, VELOCITY, Waypoints
from rnea_control.kernels.kernel import kernel


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


def upsampled(points: Waypoints, at_rest: bool) -> Waypoints:
    """The same with the velocities and accelerations of the smooth motion.

    Args:
        points: with positions; the first has all fields.
        at_rest: whether the motion ends at rest; else it ends with the velocity that it has there.
    """
    fields, has = points.fields.copy(), points.has.copy()
    _solve(points.times, fields, at_rest, np.zeros(len(points)))
    has[VELOCITY] = has[ACCELERATION] = True
    return replace(points, fields=fields, has=has)


@kernel("void(f8[::1], f8[:,:,::1], b1, f8[::1])", nogil=True)
def _solve(times: FloatArray, fields: FloatArray, at_rest: bool, ratio: FloatArray) -> None:
    """Fills velocities and accelerations from row 1 on, by the Thomas algorithm.

    In row i the unknown velocities are those of waypoints i - 1, i and i + 1.
    """
    n = times.shape[0]
    for j in range(fields.shape[2]):
        p, v, a = fields[0, :, j], fields[1, :, j], fields[2, :, j]
        last = n - 2 if at_rest else n - 1  # the last unknown velocity
        if at_rest:
            v[n - 1] = 0.0
        for i in range(1, last + 1):
            # Acceleration at the end of the segment before, minus that at the start of the one
            # after, is zero.
            T = times[i] - times[i - 1]
            d = (p[i] - p[i - 1]) / T
            if i == 1:
                lower, diagonal = 0.0, 6.0 / T
                right = (12.0 * d - 6.0 * v[0]) / T - a[0]
            else:
                lower, diagonal = 2.0 / T, 4.0 / T
                right = 6.0 * d / T
            upper = 0.0
            if i < n - 1:
                T = times[i + 1] - times[i]
                d = (p[i + 1] - p[i]) / T
                if at_rest and i == n - 2:
                    diagonal += 6.0 / T
                    right += 12.0 * d / T
                else:
                    diagonal += 4.0 / T
                    upper = 2.0 / T
                    right += 6.0 * d / T
            if i > 1:
                diagonal -= lower * ratio[i - 1]
                right -= lower * v[i - 1]
            ratio[i] = upper / diagonal
            v[i] = right / diagonal
        for i in range(last - 1, 0, -1):
            v[i] -= ratio[i] * v[i + 1]
        for i in range(1, n - 1):
            T = times[i + 1] - times[i]
            d = (p[i + 1] - p[i]) / T
            if at_rest and i == n - 2:
                a[i] = (12.0 * d - 6.0 * v[i]) / T
            else:
                a[i] = (6.0 * d - 4.0 * v[i] - 2.0 * v[i + 1]) / T
        a[n - 1] = 0.0
