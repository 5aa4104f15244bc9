r"""Smooth motions through waypoints that have only positions, such as the chunks of a policy.

The waypoints are joined by cubics whose acceleration is continuous, :math:`\ddot q(t_i^-) = \ddot
q(t_i^+)`, which is a tridiagonal system for the velocities. The first segment is a quartic, so that
it also starts with the acceleration that the arm has: chunks follow each other without a step of
it. At the last waypoint the acceleration is zero; the arm either rests there, and the last segment
is a quartic too, or moves on, as within a stream of chunks [de Boor 2001, ch. IV].
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.waypoints import ACCELERATION, VELOCITY, Waypoints
from rnea_control.kernels.kernel import kernel


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
