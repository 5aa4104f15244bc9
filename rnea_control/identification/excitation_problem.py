r"""Cost of an exciting motion, with its gradient, to be minimized by the search for the motion.

With the base regressor Y_b at each sample and noise of standard deviation sigma_j in the torque of
joint j, independent from sample to sample, least squares finds the base parameters with the
covariance [Swevers et al. 1997]

.. math:: C = G^{-1} / \text{samples}, \qquad
    G = \operatorname{mean} Y_b^T \operatorname{diag}(\sigma)^{-2} Y_b

The variables x of a joint are its coefficients of the `rest_functions`, in halves of its range:
every x is a motion that begins and ends at rest. The cost is

.. math:: f(G) + w \operatorname{mean} \sum_{u \in \{q, v, a, \tau\}} \max(0, |u| - 1)^2

with f the `log_determinant`, by the volume of the confidence ellipsoid, and u as fractions of the
limits, on a grid of one period. The derivatives of the regressor by q, v and a are finite
differences; the other derivatives are exact.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import block_diag

from rnea_control.analysis import BaseParameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.compiled import Order, compile_robot
from rnea_control.identification.excitation_limits import ExcitationLimits
from rnea_control.model import RobotModel

HARMONICS = 5  # number of harmonics in the Fourier series of each joint
FUNCTIONS = 2 * HARMONICS - 1  # number of `rest_functions`
POINTS = 40  # grid points of the cost in a period for each harmonic
CHECKED_POINTS = 400  # grid points of the check of the limits in a period for each harmonic
AIM = 0.997  # fraction of the limits in the cost, as extremes lie between the points of its grid
KEPT = 0.9995  # fraction of the limits that the result keeps on the grid of the check
# Steps of the differences by q, v and a; the regressor is linear in a.
_STEPS = 1e-7, 1e-7, 1.0
# Relative increase of the diagonal, so that a motion that does not excite a parameter has a finite
# cost.
_REGULARIZATION = 1e-12


def rest_functions(time: FloatArray, period: float) -> FloatArray:
    r"""Basis of all Fourier series that are at rest at t = 0 and after each period T; the functions
    and their first and second derivatives, shape (3, FUNCTIONS, times).

    With N = `HARMONICS` [Swevers et al. 1997],

    .. math::

        q(t) = c + \sum_{k=1}^{N} a_k \cos k \omega t + b_k \sin k \omega t,
        \qquad \omega = 2 \pi / T

    has no velocity and acceleration at t = 0 if

    .. math:: \sum_k k\, b_k = 0, \qquad \sum_k k^2 a_k = 0

    The first function is 1; the coefficients (a, b) of the other functions are orthonormal.
    """
    k = np.arange(1.0, HARMONICS + 1.0)
    # The first column of Q is parallel to the normal, the other columns are orthogonal to it.
    ab = block_diag(*(np.linalg.qr(n[:, None], "complete")[0][:, 1:] for n in (k * k, k)))
    w = (2.0 * math.pi / period * k)[:, None]
    angles = [w * np.asarray(time) + 0.5 * math.pi * order for order in range(3)]
    waves = [w**n * np.stack([np.cos(angle), np.sin(angle)]) for n, angle in enumerate(angles)]
    constant = np.zeros((3, 1, len(time)))
    constant[0] = 1.0
    return np.concatenate([constant, ab.T @ np.reshape(waves, (3, 2 * HARMONICS, -1))], axis=1)


class ExcitationProblem:
    """Motions of a robot with a period, [s], and their costs. The robot must not change during the
    life of the object.

    Args:
        model: the robot.
        base: base parameters of the robot.
        limits: limits of the motion.
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
        self.model, self.base, self.limits = model, base, limits
        self._robot = compile_robot(model)
        self._phi = inertial_parameters(model)
        self._weights = (noise**-2.0)[:, None, None]
        self._grid, self._fine_grid = (
            rest_functions(np.linspace(0.0, period, points * HARMONICS, endpoint=False), period)
            for points in (POINTS, CHECKED_POINTS)
        )

    def coefficients(self, x: FloatArray) -> FloatArray:
        """Coefficients of the `rest_functions`, shape (joints, FUNCTIONS), [rad] or [m]."""
        coefficients = self.limits.half[:, None] * x.reshape(-1, FUNCTIONS)
        coefficients[:, 0] += self.limits.middle
        return coefficients

    def random_motion(self, center: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Variables of a random motion about the posture `center`, shape (joints,). Each joint's
        motion is as large as its position, velocity and acceleration limits allow; then all are
        scaled down to the torque limits."""
        limits, swing = self.limits, rng.standard_normal((self.model.nv, FUNCTIONS - 1))
        q, v, a = swing @ self._grid[:, 1:]
        use = [
            q.max(axis=1) / (limits.upper - center),
            q.min(axis=1) / (limits.lower - center),
            np.abs(v).max(axis=1) / limits.velocity,
            np.abs(a).max(axis=1) / limits.acceleration,
        ]
        x = np.column_stack([center - limits.middle, swing * (AIM / np.max(use, axis=0)[:, None])])
        return self.within_limits((x / limits.half[:, None]).ravel())

    def within_limits(self, x: FloatArray) -> FloatArray:
        """Variables of the motion, scaled down about its center to the limits; at rest if the
        center is not within the limits."""
        X, moves = x.reshape(-1, FUNCTIONS), np.arange(FUNCTIONS) > 0

        def fits(share: float) -> bool:
            return bool(self.peaks(np.where(moves, share * X, X)).max() <= KEPT)

        low, high = float(fits(1.0)), 1.0
        while high - low > 1e-4:
            share = 0.5 * (low + high)
            low, high = (share, high) if fits(share) else (low, share)
        return np.where(moves, low * X, X).ravel()

    def peaks(self, x: FloatArray) -> FloatArray:
        """Largest |u| of position, velocity, acceleration and torque, as fractions of the limits,
        on the grid of the check, shape (4, joints)."""
        q, v, a = self.coefficients(x) @ self._fine_grid
        tau = inverse_dynamics_batch(self.model, q.T, v.T, a.T, workers=1).T
        return np.abs(self.limits.shares(q, v, a, tau)).max(axis=2)

    def base_regressor(self, x: FloatArray) -> FloatArray:
        """Y_b on the grid of the cost, shape (joints, base.rank, points)."""
        motion = self.coefficients(x) @ self._grid
        return self._regressor(motion)[:, self.base.independent]

    def information(self, Y_b: FloatArray) -> FloatArray:
        """G of a `base_regressor`, shape (base.rank, base.rank)."""
        rows = np.hstack(list(np.sqrt(self._weights) * Y_b))
        return rows @ rows.T / Y_b.shape[2]

    def value(self, x: FloatArray) -> float:
        """Cost without the term of the limits."""
        return log_determinant(self.information(self.base_regressor(x)))[0]

    def cost(self, x: FloatArray, weight: float) -> tuple[float, FloatArray]:
        """Cost and its gradient in the shape of x; `weight` is w of the module's docstring."""
        motion = self.coefficients(x) @ self._grid
        Y = self._regressor(motion)
        Y_b, points = Y[:, self.base.independent], Y.shape[2]
        value, S = log_determinant(self.information(Y_b))
        q, v, a = motion
        shares = self.limits.shares(q, v, a, self._phi @ Y)
        excess = np.maximum(np.abs(shares) - AIM, 0.0)
        value += weight * float(np.sum(excess**2)) / points
        # Derivatives of the cost by q, v, a and tau, and by Y.
        by_shares = (2.0 * weight / points) * excess * np.sign(shares)
        *by_motion, by_tau = by_shares / self.limits.scales[:, :, None]
        by_Y = by_tau[:, None, :] * self._phi[:, None]
        by_Y[:, self.base.independent] += (2.0 / points) * self._weights * (S @ Y_b)
        moved = np.empty_like(Y)
        for kind, step in enumerate(_STEPS):
            for j in range(self.model.nv):
                beside = motion.copy()
                beside[kind, j] += step
                self._regressor(beside, moved)
                moved -= Y
                by_motion[kind][j] += np.einsum("jcp,jcp->p", by_Y, moved) / step
        gradient = np.einsum("kjp,kcp->jc", by_motion, self._grid)
        return value, (gradient * self.limits.half[:, None]).ravel()

    def _regressor(self, motion: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Regressor at positions, velocities and accelerations of shape (3, joints, points); its
        shape is (joints, parameters, points)."""
        Y: FloatArray = self._robot.batch(
            "regressor", *motion, out=out, order=Order.entry_major, workers=1
        )
        return Y


def accuracy(G: FloatArray, samples: float) -> tuple[float, FloatArray]:
    """Condition number of the weighted base regressor with columns of length 1, and standard
    deviations of the base parameters from this number of samples; infinite if G is singular."""
    H, d = _scaled(G)
    values, vectors = np.linalg.eigh(H)
    if values[0] <= len(G) * np.finfo(float).eps * values[-1]:
        return np.inf, np.full(len(G), np.inf)
    variances = (vectors**2 / values).sum(axis=1) / samples
    return float(np.sqrt(values[-1] / values[0])), d * np.sqrt(variances)


def log_determinant(G: FloatArray) -> tuple[float, FloatArray]:
    """f = - log det G / size of G, the mean logarithm of the variances along the principal axes;
    and the matrix S with df = tr(S dG)."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += _REGULARIZATION
    S = -np.linalg.inv(H) * np.outer(d, d) / len(G)
    return float(2.0 * np.log(d).sum() - np.linalg.slogdet(H)[1]) / len(G), S


def _scaled(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """G scaled to a diagonal of 1, and the factors of its rows and columns."""
    d = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G * np.outer(d, d), d
