r"""`FourierSeries`: periodic motions of all joints that begin and end at rest.

With the period T and N harmonics of each joint [Swevers et al. 1997],

.. math::

    q(t) = c + \sum_{k=1}^{N} a_k \cos k \omega t + b_k \sin k \omega t, \qquad \omega = 2 \pi / T

velocity and acceleration are 0 at t = 0, and so at the end of each period, if

.. math:: \sum_k k\, b_k = 0, \qquad \sum_k k^2 a_k = 0

`rest_basis` spans the coefficients for which this holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """A motion.

    Attributes:
        period: T, [s].
        centre: c, shape (joints,), [rad] or [m].
        cosine, sine: a and b, shape (joints, harmonics).
    """

    period: float
    centre: FloatArray
    cosine: FloatArray
    sine: FloatArray

    @property
    def harmonics(self) -> int:
        """N."""
        return self.cosine.shape[1]

    def sample(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations at any times, shape (times, joints) each.

        Args:
            time: from the start of the first period, shape (times,), [s].
        """
        coefficients = np.hstack([self.cosine, self.sine])
        q, v, a = (D @ coefficients.T for D in derivatives(time, self.period, self.harmonics))
        return q + self.centre, v, a


def derivatives(
    time: FloatArray, period: float, harmonics: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What position less centre, velocity and acceleration are for 1 of each coefficient, the
    cosines first, shape (times, 2 harmonics) each."""
    k = 2.0 * math.pi / period * np.arange(1, harmonics + 1)
    angle = np.asarray(time)[:, None] * k
    c, s = np.cos(angle), np.sin(angle)
    return np.hstack([c, s]), np.hstack([-k * s, k * c]), np.hstack([-k * k * c, -k * k * s])


def rest_basis(harmonics: int) -> FloatArray:
    """Coefficients, cosines first, that are at rest at both ends: orthonormal columns, shape
    (2 harmonics, 2 harmonics - 2)."""
    k = np.arange(1.0, harmonics + 1.0)
    basis = np.zeros((2 * harmonics, 2 * harmonics - 2))
    basis[:harmonics, : harmonics - 1] = _normal_to(k * k)
    basis[harmonics:, harmonics - 1 :] = _normal_to(k)
    return basis


def _normal_to(vector: FloatArray) -> FloatArray:
    """Orthonormal columns that are normal to a vector, by a Householder reflection that takes it
    to the first axis."""
    u = vector / np.linalg.norm(vector)
    u[0] += 1.0
    reflection = np.eye(len(u)) - np.outer(u, u) / u[0]
    return reflection[:, 1:]
