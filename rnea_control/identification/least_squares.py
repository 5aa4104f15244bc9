r"""Weighted least squares for the base parameters.

Each joint has different noise, so its equations are weighted by its residual [Gautier 1997]. The
noise of motors is not white: its variance is the variance of means over `BLOCK_SECONDS` times their
number of samples, if this is larger. The standard deviations follow from its power spectrum.

If measured efforts are delayed by d against the motion, tau = Y beta - d dtau/dt to first order; d
is an additional unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.motion import Motion
from rnea_control.identification.noise_spectrum import NoiseSpectrum, enough_of
from rnea_control.identification.recording import MEDIAN_DEVIATION
from rnea_control.identification.torque_equations import NormalEquations, TorqueEquations

BLOCK_SECONDS = 0.2  # length of blocks; noise with a shorter correlation averages out [s]
# Smallest eigenvalue of the scaled information matrix in a direction that the data determine, as a
# fraction of the largest.
RANK = 1e-10
WEIGHTINGS = 20
SETTLED = 1e-4
# Residual, in standard deviations, beyond which a torque has less weight [Huber 1964]; 95 % as
# efficient as least squares for normal noise.
HUBER = 1.345
ROBUST_PASSES = 10  # number of iterations of a robust fit
DELAY_SAMPLES = 30_000  # number of samples that is enough for the delay
DELAY_SECONDS = 2.0  # length of the ranges of these samples [s]
DELAY_PASSES = 5  # number of iterations for the delay
LONGEST_DELAY = 0.15
SIGNIFICANT = 3.0  # smallest significant delay, in standard deviations


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of the equations."""

    beta: FloatArray  # values of the unknowns, shape (columns,)
    determined: BoolArray  # True if the data determine the unknown, shape (columns,)
    # Condition number of the weighted and scaled regressor, over the determined directions.
    condition: float
    inverse: FloatArray  # inverse of `information` in these directions
    information: FloatArray  # matrix of the normal equations weighted by `variance`
    vector: FloatArray  # vector of the normal equations weighted by `variance`
    vector_covariance: FloatArray  # covariance of `vector`; equals `information` for white noise
    variance: FloatArray  # variance of each joint's noise, correlation included, shape (nv,)
    noise: FloatArray  # standard deviation of each joint's residual, shape (nv,)
    spectrum: NoiseSpectrum  # residual's spectrum, clipped to three times the noise in a robust fit

    @property
    def covariance(self) -> FloatArray:
        """Covariance of `beta`; infinite on the diagonal of unknowns that are not determined."""
        covariance = self.inverse @ self.vector_covariance @ self.inverse
        lost = np.flatnonzero(~self.determined)
        covariance[lost, lost] = np.inf
        return np.asarray(covariance)

    def in_slow_noise(self, equations: TorqueEquations) -> Solution:
        """The solution with the covariance by the power spectrum of its residual, which takes
        longer than the solution."""
        covariance = self.spectrum.vector_covariance(equations, self.variance, self.inverse)
        return replace(self, vector_covariance=covariance)

    def first(self, count: int) -> Solution:
        """The solution for the first columns only; covariance and information account for the
        uncertainty of the other columns."""
        A, own = self.information, np.eye(count)
        share = A[:count, count:] @ np.linalg.pinv(A[count:, count:], hermitian=True)
        kept = np.concatenate([own, -share], axis=1)
        return replace(
            self,
            beta=self.beta[:count],
            determined=self.determined[:count],
            information=kept @ A @ kept.T,
            inverse=self.inverse[:count, :count],
            vector=kept @ self.vector,
            vector_covariance=kept @ self.vector_covariance @ kept.T,
        )


def solve(
    equations: TorqueEquations,
    prior: FloatArray,
    robust: bool = False,
    parts: list[slice] | None = None,
) -> Solution:
    """Solves the equations of a motion.

    Args:
        equations: equations of the robot along the motion.
        prior: values of the first columns by the robot's description; later columns have 0.
            Parameters that the data do not determine keep these values.
        robust: True to give outliers less weight.
        parts: ranges of samples to use; all by default.

    Returns:
        The solution, with the covariance of white noise with the joints' `variance`; see
        `Solution.in_slow_noise`.

    Raises:
        IdentificationError: too few torques.
    """
    motion = equations.motion
    parts = parts or motion.parts
    if not motion.counts.any():
        raise IdentificationError(
            f"{motion.source}: no joint moves faster than it would at rest with noise, below "
            f"{motion.cutoff:.3g} Hz, so nothing can be identified. Record an exciting motion: "
            "rnea_identify plan makes one"
        )
    normal = equations.normal(parts)
    prior = np.append(prior, np.zeros(normal.b.shape[1] - len(prior)))
    beta = _reweighted(normal, prior)
    enough = enough_of(motion)
    known = motion.take(enough)

    def residual_of(beta: FloatArray) -> FloatArray:
        return (known.effort - equations.predicted(beta, enough)) * known.counts

    noise, residual = np.sqrt(normal.mean_square(beta)), residual_of(beta)
    for _ in range(ROBUST_PASSES if robust else 0):
        normal = equations.normal(parts, (beta, HUBER * _robust_scale(residual, known.counts)))
        before, beta = beta, _reweighted(normal, prior)
        residual = residual_of(beta)
        noise = _robust_scale(residual, known.counts)
        if np.abs(beta - before).max() <= SETTLED * np.abs(beta).max():
            break
    if robust:
        residual = np.clip(residual, -3.0 * noise, 3.0 * noise)
    # The noise is at least a millionth of the measured torque, as rounding.
    torque = np.sqrt(normal.power / np.maximum(normal.samples, 1.0))
    noise = np.maximum(noise, 1e-6 * np.maximum(torque, 1e-6))
    variance = np.maximum(noise**2, _slow_variance(residual, known))
    A, b = normal.weighted(variance)
    beta, determined, condition, inverse = _solved(A, b, prior)
    spectrum = NoiseSpectrum(motion, residual)
    return Solution(beta, determined, condition, inverse, A, b, A, variance, noise, spectrum)


def _solved(
    information: FloatArray, vector: FloatArray, prior: FloatArray
) -> tuple[FloatArray, BoolArray, float, FloatArray]:
    """First four attributes of a `Solution`."""
    scale = np.sqrt(np.diag(information))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    good = values > RANK * values[-1]
    kept = vectors[:, good]
    inverse = (kept / values[good]) @ kept.T / np.outer(scale, scale)
    # A parameter with a component in a direction that the data do not determine is not determined.
    determined = (vectors[:, ~good] ** 2).sum(axis=1) < 1e-6
    condition = float(np.sqrt(values[-1] / values[good][0]))
    beta = prior + inverse @ (vector - information @ prior)
    return beta, determined, condition, inverse


def _reweighted(normal: NormalEquations, prior: FloatArray) -> FloatArray:
    """Solution with each joint weighted by its own residual."""
    scale = np.maximum(normal.power / np.maximum(normal.samples, 1.0), 1e-12)
    variance, beta = scale, prior
    for _ in range(WEIGHTINGS):
        before = variance
        beta = _solved(*normal.weighted(variance), prior)[0]
        variance = np.maximum(normal.mean_square(beta), 1e-12 * scale)
        if np.abs(variance - before).max() <= SETTLED * variance.max():
            break
    return beta


def _robust_scale(residual: FloatArray, counts: BoolArray) -> FloatArray:
    """Standard deviation of each joint's residual without outliers, shape (nv,)."""
    sizes = np.where(counts | ~counts.any(axis=0), np.abs(residual), np.nan)  # 0 at rest
    return np.asarray(np.nanmedian(sizes, axis=0) / MEDIAN_DEVIATION)


def _slow_variance(residual: FloatArray, motion: Motion) -> FloatArray:
    """Variance of means over blocks of time, times the number of samples in each."""
    size = max(round(BLOCK_SECONDS / motion.period), 1)
    whole = [slice(p.start, p.stop - (p.stop - p.start) % size) for p in motion.parts]
    sums, numbers = (
        np.concatenate([each[part].reshape(-1, size, each.shape[1]).sum(axis=1) for part in whole])
        for each in (residual, motion.counts)
    )
    return np.asarray((sums**2).sum(axis=0) / np.maximum(numbers.sum(axis=0), 1))


@dataclass(frozen=True, eq=False)
class Delay:
    """Delay of the efforts against the motion."""

    seconds: float
    deviation: float  # standard deviation of the delay, [s]
    beta: FloatArray  # base parameters that were estimated with it

    @property
    def is_significant(self) -> bool:
        """True if the delay is larger than its uncertainty."""
        return abs(self.seconds) > SIGNIFICANT * self.deviation


def delay_of(equations: TorqueEquations, prior: FloatArray, robust: bool = False) -> Delay:
    """Delay of a motion's efforts, from enough of its samples.

    Args:
        equations: equations of the robot along the motion, with the base parameters' columns only.
        prior: base parameters by the robot's description.
        robust: True to give outliers less weight.

    Raises:
        IdentificationError: too few torques; or a delay of more than `LONGEST_DELAY`.
    """
    motion, seconds = equations.motion, 0.0
    motion = motion.take(motion.spread(DELAY_SAMPLES, DELAY_SECONDS))
    beta = solve(replace(equations, motion=motion), prior, robust).beta
    for _ in range(DELAY_PASSES):
        shifted = beside_delay(replace(equations, motion=motion.delayed(seconds)), beta)
        solution = solve(shifted, prior, robust)
        step, beta = -float(solution.beta[-1]), solution.beta[:-1]
        seconds += step
        if abs(seconds) > LONGEST_DELAY:
            raise IdentificationError(
                f"{motion.source}: the efforts seem to be {late(seconds)} than the "
                "motion; do efforts and positions have the same clock, and are the efforts "
                "those of this robot? Give the delay by the option --delay"
            )
        if abs(step) <= max(0.1 * math.sqrt(solution.covariance[-1, -1]), 1e-6):
            break
    covariance = solution.in_slow_noise(shifted).covariance
    return Delay(seconds, math.sqrt(covariance[-1, -1]), beta)


def late(delay: float, decimals: int = 1) -> str:
    """Delay of efforts in words."""
    return f"{1e3 * abs(delay):.{decimals}f} ms {'later' if delay >= 0.0 else 'earlier'}"


def beside_delay(equations: TorqueEquations, near: FloatArray) -> TorqueEquations:
    """Equations with an additional unknown, minus the delay; its column is the time derivative of
    the torques by the base parameters `near`."""
    tau, motion = equations.predicted(near), equations.motion
    slope = np.concatenate([np.gradient(tau[p], motion.period, axis=0) for p in motion.parts])
    return replace(equations, more=(*equations.more, lambda rows, Y: slope[rows, :, None]))
