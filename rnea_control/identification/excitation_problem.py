r"""The search for an exciting motion as a function to be minimized, with its gradient.

The variables x of a joint are its center and the coefficients in the basis of `rest_basis`, both in
halves of its range: every x is a motion that begins and ends at rest. The cost is

.. math:: f(G) + w \operatorname{mean} \sum_{u \in \{q, v, a, \tau\}} \max(0, |u| - 1)^2

with f the `log_determinant`, and u as shares of the limits, on a grid of one period. The
derivatives of regressor and torque by q, v and a are differences, the rest is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from rnea_control.analysis import BaseParameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.compiled import Order, compile_robot
from rnea_control.identification.excitation_goal import ExcitationLimits, log_determinant
from rnea_control.model import RobotModel

# Of the series of each joint.
HARMONICS = 5
# Grid points in a period for each harmonic: for the cost, and for the check of the limits.
POINTS, CHECKED_POINTS = 40, 400
# The cost aims at this share of the limits, as extremes lie between the points of its grid.
AIM = 0.997
# The result keeps this share of them on the grid of the check.
KEPT = 0.9995
# For differences by q and v; by a everything is linear.
_STEP = 1e-7


class ExcitationProblem:
    """The motions of a robot with a period, [s], and what they cost. The robot must not change
    meanwhile.

    Args:
        model, base, limits: the robot, its base parameters, and what is kept.
        noise: standard deviation of the measured torques, shape (joints,), [Nm] or [N].
    """

    def __init__(
        self,
        model: RobotModel,
        base: BaseParameters,
        limits: ExcitationLimits,
        noise: FloatArray,
        period: float,
    ) -> None:
        self.model, self.base, self.limits, self.period = model, base, limits, period
        self._robot = compile_robot(model)
        self._phi = inertial_parameters(model)
        self._weights = noise**-2.0
        self._basis = rest_basis()
        self._columns = 1 + self._basis.shape[1]
        self._grid, self._fine_grid = (
            derivatives(np.linspace(0.0, period, points * HARMONICS, endpoint=False), period)
            for points in (POINTS, CHECKED_POINTS)
        )

    def largest(self, center: FloatArray, coefficients: FloatArray) -> FloatArray:
        """The variables of a motion, the coefficients of each joint as large as the limits of
        position, velocity and acceleration allow.

        Args:
            center: shape (joints,).
            coefficients: in the basis, shape (joints, 2 `HARMONICS` - 2).
        """
        q, v, a = (coefficients @ (D @ self._basis).T for D in self._grid)
        limits = self.limits
        use = [
            q.max(axis=1) / (limits.upper - center),
            q.min(axis=1) / (limits.lower - center),
            np.abs(v).max(axis=1) / limits.velocity,
            np.abs(a).max(axis=1) / limits.acceleration,
        ]
        allowed = AIM / np.max(use, axis=0)
        x = np.column_stack([center - limits.middle, allowed[:, None] * coefficients])
        return (x / limits.half[:, None]).ravel()

    def series(self, x: FloatArray) -> FourierSeries:
        """The motion of variables x."""
        X = x.reshape(-1, self._columns) * self.limits.half[:, None]
        return FourierSeries(self.period, self.limits.middle + X[:, 0], X[:, 1:] @ self._basis.T)

    def cost(self, x: FloatArray, weight: float) -> tuple[float, FloatArray]:
        """The cost and its gradient, shape as of x; `weight` is w of the module's docstring."""
        motion = self._motion(x, self._grid)
        Y = self._regressor(*motion)
        tau = np.stack([self._phi @ rows for rows in Y])
        G, Y_b = self._gram(Y)
        value, S = log_determinant(G)
        points, n = Y.shape[2], self.model.nv
        shares = self._shares(*motion, tau)
        excess = np.maximum(np.abs(shares) - AIM, 0.0)
        value += weight * float(np.sum(excess**2)) / points
        # Derivatives of the cost by q, v, a and tau, and by Y.
        by_kind = (2.0 * weight / points) * excess * np.sign(shares)
        *by_motion, by_tau = by_kind / self.limits.scales[:, :, None]
        by_Y = np.zeros_like(Y)
        for j in range(n):
            by_Y[j, self.base.independent] = (2.0 * self._weights[j] / points) * (S @ Y_b[j])
        by_Y += by_tau[:, None, :] * self._phi[None, :, None]
        moved = np.empty_like(Y)
        for kind, step in enumerate((_STEP, _STEP, 1.0)):
            for j in range(n):
                q, v, a = (each.copy() for each in motion)
                (q, v, a)[kind][j] += step
                self._regressor(q, v, a, out=moved)
                np.subtract(moved, Y, out=moved)
                by_motion[kind][j] += np.einsum("jcp,jcp->p", by_Y, moved) / step
        by_coefficients = sum(rows @ D for rows, D in zip(by_motion, self._grid, strict=True))
        gradient = np.column_stack([by_motion[0].sum(axis=1), by_coefficients @ self._basis])
        return value, (gradient * self.limits.half[:, None]).ravel()

    def information(self, x: FloatArray) -> FloatArray:
        """G of `excitation_goal`, shape (base.rank, base.rank)."""
        G, _ = self._gram(self._regressor(*self._motion(x, self._grid)))
        return G

    def peaks(self, x: FloatArray) -> FloatArray:
        """The largest |u| of position, velocity, acceleration and torque, as shares of the limits,
        on the grid of the check, shape (4, joints)."""
        q, v, a = self._motion(x, self._fine_grid)
        tau = inverse_dynamics_batch(self.model, q.T, v.T, a.T, workers=1).T
        return np.abs(self._shares(q, v, a, tau)).max(axis=2)

    def effects(self, x: FloatArray, scale: FloatArray) -> FloatArray:
        """The largest torque that 1 of each base parameter makes, shape (base.rank,), as a share of
        `scale`, shape (joints,)."""
        Y = self._regressor(*self._motion(x, self._grid))[:, self.base.independent]
        shares: FloatArray = np.abs(Y).max(axis=2) / scale[:, None]
        return shares.max(axis=0)

    def within_limits(self, x: FloatArray) -> FloatArray | None:
        """Variables of the same motion about the same center, made smaller as far as the limits
        need it; None if not even the center is within them."""
        center = np.zeros_like(x)
        center[:: self._columns] = x[:: self._columns]

        def fits(share: float) -> bool:
            return bool(self.peaks(center + share * (x - center)).max() <= KEPT)

        if fits(1.0):
            return x
        if not fits(0.0):
            return None
        low, high = 0.0, 1.0
        while high - low > 1e-4:
            share = 0.5 * (low + high)
            low, high = (share, high) if fits(share) else (low, share)
        return center + low * (x - center)

    def _motion(
        self, x: FloatArray, grid: tuple[FloatArray, FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations, shape (joints, points) each."""
        series = self.series(x)
        q, v, a = (series.coefficients @ D.T for D in grid)
        q += series.center[:, None]
        return q, v, a

    def _shares(self, q: FloatArray, v: FloatArray, a: FloatArray, tau: FloatArray) -> FloatArray:
        """u of the module's docstring, shape (4, joints, points)."""
        return self.limits.shares(q.T, v.T, a.T, tau.T).transpose(0, 2, 1)

    def _regressor(
        self, q: FloatArray, v: FloatArray, a: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """Shape (joints, parameters, points)."""
        Y: FloatArray = self._robot.batch(
            "regressor", q, v, a, out=out, order=Order.entry_major, workers=1
        )
        return Y

    def _gram(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        Y_b = Y[:, self.base.independent]
        G = np.zeros((self.base.rank, self.base.rank))
        for weight, rows in zip(self._weights, Y_b, strict=True):
            G += weight * (rows @ rows.T)
        return G / Y.shape[2], Y_b


@dataclass(frozen=True, eq=False)
class FourierSeries:
    r"""Periodic motions of all joints that begin and end at rest.

    With the period T and N = `HARMONICS` [Swevers et al. 1997],

    .. math::

        q(t) = c + \sum_{k=1}^{N} a_k \cos k \omega t + b_k \sin k \omega t,
        \qquad \omega = 2 \pi / T

    velocity and acceleration are 0 at t = 0, and so at the end of each period, if

    .. math:: \sum_k k\, b_k = 0, \qquad \sum_k k^2 a_k = 0

    `rest_basis` spans the coefficients for which this holds.
    """

    period: float  # T, [s]
    center: FloatArray  # c, shape (joints,), [rad] or [m]
    coefficients: FloatArray  # a, then b, shape (joints, 2 harmonics)

    def sample(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations at times from the start of the first period,
        shape (times,), [s]; shape (times, joints) each."""
        q, v, a = (D @ self.coefficients.T for D in derivatives(time, self.period))
        return q + self.center, v, a


def derivatives(time: FloatArray, period: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What position less center, velocity and acceleration are for 1 of each coefficient, the
    cosines first, shape (times, 2 harmonics) each."""
    k = 2.0 * math.pi / period * np.arange(1, HARMONICS + 1)
    angle = np.asarray(time)[:, None] * k
    c, s = np.cos(angle), np.sin(angle)
    return np.hstack([c, s]), np.hstack([-k * s, k * c]), np.hstack([-k * k * c, -k * k * s])


def rest_basis() -> FloatArray:
    """Coefficients, cosines first, that are at rest at both ends: orthonormal columns, shape
    (2 harmonics, 2 harmonics - 2)."""
    k = np.arange(1.0, HARMONICS + 1.0)
    # Beside the normal, the columns of Q are orthogonal to it.
    cosine, sine = (np.linalg.qr(normal[:, None], "complete")[0][:, 1:] for normal in (k * k, k))
    return block_diag(cosine, sine)
