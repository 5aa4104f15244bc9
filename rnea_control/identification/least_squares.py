r"""Weighted least squares for the base parameters.

Every joint has noise of its own, so its equations are weighted by its residual [Gautier 1997]. The
noise of motors is not white: its variance is that of means over `BLOCK_SECONDS`, times their number
of samples, where that is more. The standard deviations follow from its power spectrum.

Where the measured effort is later than the motion by a delay d, tau = Y beta - d dtau/dt to first
order; d is one more unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import welch

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.motion import Motion
from rnea_control.identification.recording import MEDIAN_DEVIATION
from rnea_control.identification.torque_equations import (
    MoreColumns,
    NormalEquations,
    TorqueEquations,
)

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
# For the delay that many samples are enough.
DELAY_SAMPLES = 30_000
DELAY_PASSES = 5
LONGEST_DELAY = 0.15
# For the spectrum of the noise so many are; its frequencies are told apart by one over this, [s].
SPECTRUM_SAMPLES, SPECTRUM_SECONDS = 20_000, 4.0
# The fit takes no more than this part of the noise at a frequency, as far as is made up for.
MOST_TAKEN = 0.7


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution of the equations.

    Attributes:
        beta: shape (columns,).
        covariance: shape (columns, columns), infinite on the diagonal of what is not determined.
        determined: whether the data determine each one, shape (columns,).
        condition: of the weighted and scaled regressor, over the determined directions.
        variance: of each joint's noise, correlation included, shape (nv,).
        noise: standard deviation of each joint's residual, shape (nv,).
        information: matrix of the equations weighted by `variance`.
        vector: of the same.
    """

    beta: FloatArray
    covariance: FloatArray
    determined: BoolArray
    condition: float
    variance: FloatArray
    noise: FloatArray
    information: FloatArray
    vector: FloatArray


def solve(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    robust: bool = False,
    more: MoreColumns | None = None,
) -> Solution:
    """The base parameters of a motion.

    Args:
        equations: of the robot.
        motion: what was measured.
        prior: base parameters by the robot's description; parameters that the data do not determine
            keep them.
        robust: whether outliers count less.
        more: gives columns after those of the base parameters.

    Raises:
        IdentificationError: too few torques.
    """
    if not motion.counts.any():
        raise IdentificationError(
            f"{motion.source}: no joint moves faster than it would at rest with noise, below "
            f"{motion.cutoff:.3g} Hz, so nothing can be identified. Record an exciting motion: "
            "rnea_identify plan makes one"
        )
    normal = equations.normal(motion, more=more)
    beta = _reweighted(normal, prior)
    residual = motion.effort - equations.predicted(motion, beta, more)
    for _ in range(ROBUST_PASSES if robust else 0):
        scale = _robust_scale(residual, motion.counts)
        outlying = HUBER * scale / np.maximum(np.abs(residual), 1e-300)
        normal = equations.normal(motion, np.minimum(outlying, 1.0), more)
        before, beta = beta, _reweighted(normal, prior)
        residual = motion.effort - equations.predicted(motion, beta, more)
        if np.abs(beta - before).max() <= SETTLED * np.abs(beta).max():
            break
    if robust:
        noise = _robust_scale(residual, motion.counts)
        residual = np.clip(residual, -3.0 * noise, 3.0 * noise)
    else:
        counts = np.maximum(motion.counts.sum(axis=0), 1)
        noise = np.sqrt((np.where(motion.counts, residual, 0.0) ** 2).sum(axis=0) / counts)
    # Rounding is a millionth of the measured torque.
    rounding = 1e-6 * np.maximum(np.sqrt(np.mean(motion.effort**2, axis=0)), 1e-6)
    noise = np.maximum(noise, rounding)
    variance = np.maximum(noise**2, slow_variance(residual, motion))
    solution = _solved(normal, prior, noise, variance)
    covariance = _covariance(solution, equations, motion, residual, more)
    return replace(solution, covariance=covariance)


@dataclass(frozen=True, eq=False)
class Delay:
    """By how much the effort is later than the motion.

    Attributes:
        seconds, deviation: the delay and its standard deviation, [s].
        beta: the base parameters that it was found with.
    """

    seconds: float
    deviation: float
    beta: FloatArray


def delay_of(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    near: float = 0.0,
    robust: bool = False,
) -> Delay:
    """The delay of a motion, from enough of its samples; arguments as of `solve`.

    Args:
        near: where the search starts, [s].

    Raises:
        IdentificationError: as `solve`; or a delay of more than `LONGEST_DELAY`.
    """
    motion = _thinned(motion)
    found = Delay(near, math.inf, solve(equations, motion.delayed(near), prior, robust).beta)
    for _ in range(DELAY_PASSES):
        shifted = motion.delayed(found.seconds)
        solution = _with_delay(equations, shifted, prior, found.beta, robust)
        step, deviation = -float(solution.beta[-1]), math.sqrt(solution.covariance[-1, -1])
        found = Delay(found.seconds + step, deviation, solution.beta[:-1])
        if abs(found.seconds) > LONGEST_DELAY:
            raise IdentificationError(
                f"{motion.source}: the efforts seem to be {late(found.seconds)} than the "
                "motion; do efforts and positions have the same clock, and are the efforts "
                "those of this robot? Give the delay by the option --delay"
            )
        if abs(step) <= max(0.1 * deviation, 1e-6):
            break
    return found


def late(delay: float) -> str:
    """By how much efforts are late, in words."""
    return f"{1e3 * abs(delay):.1f} ms {'later' if delay >= 0.0 else 'earlier'}"


def solve_for_any_delay(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    near: FloatArray,
    robust: bool = False,
) -> Solution:
    """As `solve`, of a motion whose delay was made up for; covariance and information account for
    the uncertainty of the delay.

    Args:
        near: base parameters that were found before.
    """
    solution = _with_delay(equations, motion, prior, near, robust)
    A, b = solution.information, solution.vector
    share = A[:-1, -1] / A[-1, -1] if A[-1, -1] > 0.0 else np.zeros(len(b) - 1)
    return replace(
        solution,
        beta=solution.beta[:-1],
        covariance=solution.covariance[:-1, :-1],
        determined=solution.determined[:-1],
        information=A[:-1, :-1] - np.outer(share, A[-1, :-1]),
        vector=b[:-1] - share * b[-1],
    )


def _with_delay(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    near: FloatArray,
    robust: bool = False,
) -> Solution:
    """The solution with one more unknown, minus the delay, about base parameters `near`."""
    slope = slope_of(equations.predicted(motion, near), motion)

    def column(rows: slice, Y: FloatArray) -> FloatArray:
        return slope[rows, :, None]

    return solve(equations, motion, np.append(prior, 0.0), robust, column)


def _covariance(
    solution: Solution,
    equations: TorqueEquations,
    motion: Motion,
    residual: FloatArray,
    more: MoreColumns | None,
) -> FloatArray:
    r"""The covariance of a solution in noise of any spectrum.

    With the information A, of the weights 1 / s_j^2, and the power spectrum S_j of each joint's
    residual [Welch 1967],

    .. math:: \mathrm{cov}(\beta) = A^{-1} \Big( \sum_j \frac{1}{s_j^4 n} \sum_f S_j(f)
              \hat Y_j(f)^* \hat Y_j(f)^T \Big) A^{-1}

    The residual lacks the share that the fit took of each frequency, h = Y_j(f) A^-1 Y_j(f)^* /
    (n s_j^2); S_j is divided by (1 - h)^2, as if each had been left out [MacKinnon 1985, HC3].
    """
    share = min(SPECTRUM_SAMPLES / len(motion.time), 1.0)
    parts = [slice(p.start, p.start + math.ceil(share * (p.stop - p.start))) for p in motion.parts]
    used, residual = (
        np.concatenate([values[part] for part in parts]) for values in (motion.counts, residual)
    )
    noise = np.where(used, residual, 0.0)
    size = min(max(round(SPECTRUM_SECONDS / motion.period), 2), len(noise))
    frequency, power = welch(noise, nperseg=size, detrend=False, axis=0)
    power /= 2.0 * np.maximum(used.mean(axis=0), 1e-9)  # both sides, of a sample that counts
    inverse = np.where(np.isfinite(solution.covariance), solution.covariance, 0.0)
    spread = np.zeros_like(solution.information)
    for part in parts:
        n = part.stop - part.start
        Y = equations.rows(motion, part, more) * motion.counts[part, :, None]
        width = max(round(1.5 * n / size), 1)  # what Welch's windows do not tell apart
        twice = np.full(n // 2 + 1, 2.0)
        twice[0], twice[-1] = 1.0, 1.0 + n % 2
        for j in np.flatnonzero(used.any(axis=0)).tolist():
            F = np.fft.rfft(Y[:, j], axis=0) / math.sqrt(n * solution.variance[j])
            S = np.interp(np.fft.rfftfreq(n), frequency, power[:, j]) / solution.variance[j]
            taken = uniform_filter1d(((F @ inverse) * F.conj()).sum(axis=1).real, width)
            S /= (1.0 - np.minimum(taken, MOST_TAKEN)) ** 2
            spread += ((F.conj().T * (twice * S)) @ F).real
    covariance = inverse @ spread @ inverse * (len(motion.time) / len(noise))
    lost = np.flatnonzero(~solution.determined)
    covariance[lost, lost] = np.inf
    return np.asarray(covariance)


def _solved(
    normal: NormalEquations, prior: FloatArray, noise: FloatArray, variance: FloatArray
) -> Solution:
    information, vector = normal.weighted(variance)
    scale = np.sqrt(np.diag(information))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    good = values > RANK * values[-1]
    kept = vectors[:, good]
    change = kept @ (kept.T @ ((vector - information @ prior) / scale) / values[good])
    # A parameter with a share in a direction that the data do not see is not determined.
    determined = (vectors[:, ~good] ** 2).sum(axis=1) < 1e-6
    covariance = (kept / values[good]) @ kept.T / np.outer(scale, scale)
    lost = np.flatnonzero(~determined)
    covariance[lost, lost] = np.inf
    condition = float(np.sqrt(values[-1] / values[good][0]))
    beta = prior + change / scale
    return Solution(beta, covariance, determined, condition, variance, noise, information, vector)


def _reweighted(normal: NormalEquations, prior: FloatArray) -> FloatArray:
    """The solution with each joint weighted by its own residual."""
    scale = np.maximum(normal.power / np.maximum(normal.samples, 1.0), 1e-12)
    variance = scale
    beta = prior
    for _ in range(WEIGHTINGS):
        before = variance
        beta = _solved(normal, prior, np.sqrt(variance), variance).beta
        variance = np.maximum(normal.mean_square(beta), 1e-12 * scale)
        if np.abs(variance - before).max() <= SETTLED * variance.max():
            break
    return beta


def _robust_scale(residual: FloatArray, counts: BoolArray) -> FloatArray:
    scale = np.zeros(residual.shape[1])
    for j, used in enumerate(counts.T):
        if used.any():
            scale[j] = np.median(np.abs(residual[used, j])) / MEDIAN_DEVIATION
    return scale


def slow_variance(residual: FloatArray, motion: Motion) -> FloatArray:
    """Variance of means over blocks of time, times the number of samples in each."""
    size = max(round(BLOCK_SECONDS / motion.period), 1)
    sums, numbers = [], []
    kept = np.where(motion.counts, residual, 0.0)
    for part in motion.parts:
        blocks = (part.stop - part.start) // size
        rows = slice(part.start, part.start + blocks * size)
        sums.append(kept[rows].reshape(blocks, size, kept.shape[1]).sum(axis=1))
        numbers.append(motion.counts[rows].reshape(blocks, size, kept.shape[1]).sum(axis=1))
    total, number = np.concatenate(sums), np.concatenate(numbers)
    used = np.maximum(number.sum(axis=0), 1)
    return np.asarray((total**2).sum(axis=0) / used)


def slope_of(tau: FloatArray, motion: Motion) -> FloatArray:
    """Time derivative of torques; 0 where the joint or the part ends to move."""
    slope = np.zeros_like(tau)
    for part in motion.parts:
        slope[part] = np.gradient(tau[part], motion.period, axis=0)
    return slope


def _thinned(motion: Motion) -> Motion:
    """Enough of a long motion, spread over all of it."""
    share = DELAY_SAMPLES / len(motion.time)
    if share >= 1.0:
        return motion
    length = max(round(2.0 / motion.period), 100)
    kept = []
    for part in motion.parts:
        for begin in range(part.start, part.stop, round(length / share)):
            kept.append(slice(begin, min(begin + length, part.stop)))
    return motion.take([part for part in kept if part.stop - part.start > 20])
