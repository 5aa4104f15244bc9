r"""Weighted least squares for the base parameters.

Every joint has noise of its own, so its equations are weighted by its residual [Gautier 1997]. The
noise of motors is not white: its variance is that of means over `BLOCK_SECONDS`, times their number
of samples, where that is more. The standard deviations follow from its power spectrum.

Where measured efforts are later than the motion by a delay d, tau = Y beta - d dtau/dt to first
order; d is one more unknown.
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

# Noise that is correlated for less than this is averaged out, [s].
BLOCK_SECONDS = 0.2
# Directions of the scaled information matrix with less than this part of the largest eigenvalue
# are not determined by the data.
RANK = 1e-10
WEIGHTINGS = 20
SETTLED = 1e-4
# A torque counts less where its residual is beyond this many standard deviations [Huber 1964]: 95 %
# as good as least squares where the noise is normal.
HUBER = 1.345
ROBUST_PASSES = 10
# So many samples are enough for the delay, in ranges of this length, [s].
DELAY_SAMPLES, DELAY_SECONDS = 30_000, 2.0
DELAY_PASSES = 5
LONGEST_DELAY = 0.15
# A delay of fewer standard deviations may be none.
SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution of the equations."""

    beta: FloatArray  # shape (columns,)
    determined: BoolArray  # whether the data determine each one, shape (columns,)
    condition: float  # of the weighted and scaled regressor, over the determined directions
    inverse: FloatArray  # of `information`, in these directions
    information: FloatArray  # matrix of the equations weighted by `variance`
    vector: FloatArray  # of the same
    vector_covariance: FloatArray  # what noise does to `vector`; `information` where it is white
    variance: FloatArray  # of each joint's noise, correlation included, shape (nv,)
    noise: FloatArray  # standard deviation of each joint's residual, shape (nv,)
    spectrum: NoiseSpectrum  # of the residual; cut to three times the noise if the fit is robust

    @property
    def covariance(self) -> FloatArray:
        """Of `beta`, infinite on the diagonal of what is not determined."""
        covariance = self.inverse @ self.vector_covariance @ self.inverse
        lost = np.flatnonzero(~self.determined)
        covariance[lost, lost] = np.inf
        return np.asarray(covariance)

    def in_slow_noise(self, equations: TorqueEquations) -> Solution:
        """The same solution of these equations, with the covariance by the power spectrum of its
        residual, which takes longer than the solution."""
        covariance = self.spectrum.vector_covariance(equations, self.variance, self.inverse)
        return replace(self, vector_covariance=covariance)

    def first(self, count: int) -> Solution:
        """The first columns alone; covariance and information account for the uncertainty of the
        others."""
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
    """The base parameters of a motion.

    Args:
        equations: of the robot along the motion.
        prior: of the first columns, by the robot's description; 0 for those after. Parameters that
            the data do not determine keep them.
        robust: whether outliers count less.
        parts: ranges of samples that count; all by default.

    Returns:
        With the covariance that white noise of the joints' `variance` has; see
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
    # Rounding is a millionth of the measured torque.
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
    """The first four attributes of a `Solution`."""
    scale = np.sqrt(np.diag(information))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    good = values > RANK * values[-1]
    kept = vectors[:, good]
    inverse = (kept / values[good]) @ kept.T / np.outer(scale, scale)
    # A parameter with a share in a direction that the data do not see is not determined.
    determined = (vectors[:, ~good] ** 2).sum(axis=1) < 1e-6
    condition = float(np.sqrt(values[-1] / values[good][0]))
    beta = prior + inverse @ (vector - information @ prior)
    return beta, determined, condition, inverse


def _reweighted(normal: NormalEquations, prior: FloatArray) -> FloatArray:
    """The solution with each joint weighted by its own residual."""
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
    """Standard deviation of each joint's residual but for outliers, shape (nv,)."""
    sizes = np.where(counts | ~counts.any(axis=0), np.abs(residual), np.nan)  # 0 if it stands
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
    """By how much the effort is later than the motion."""

    seconds: float
    deviation: float  # its standard deviation, [s]
    beta: FloatArray  # the base parameters that it was found with

    @property
    def is_significant(self) -> bool:
        """Whether it is more than its uncertainty."""
        return abs(self.seconds) > SIGNIFICANT * self.deviation


def delay_of(equations: TorqueEquations, prior: FloatArray, robust: bool = False) -> Delay:
    """The delay of a motion, from enough of its samples.

    Args:
        equations, prior, robust: as of `solve`, with the base parameters' columns alone.

    Raises:
        IdentificationError: as `solve`; or a delay of more than `LONGEST_DELAY`.
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
    """By how much efforts are late, in words."""
    return f"{1e3 * abs(delay):.{decimals}f} ms {'later' if delay >= 0.0 else 'earlier'}"


def beside_delay(equations: TorqueEquations, near: FloatArray) -> TorqueEquations:
    """The equations with one more unknown, minus the delay: its column is the slope of the torques
    by base parameters `near`."""
    tau, motion = equations.predicted(near), equations.motion
    slope = np.concatenate([np.gradient(tau[p], motion.period, axis=0) for p in motion.parts])
    return replace(equations, more=(*equations.more, lambda rows, Y: slope[rows, :, None]))
