r"""The power spectrum of a residual, and what noise of that spectrum does to normal equations.

With the power spectrum S_j of each joint's residual [Welch 1967] and the weights 1 / s_j^2,

.. math:: \mathrm{cov}(b) = \sum_j \frac{1}{s_j^4 n} \sum_f S_j(f) \hat Y_j(f)^* \hat Y_j(f)^T

The residual lacks the share that the fit took of each frequency, h = Y_j(f) A^-1 Y_j(f)^* /
(n s_j^2), with the information A; S_j is divided by (1 - h)^2, as if each had been left out
[MacKinnon 1985, HC3]. The residual counts by its means over `STEP`, the slow regressors by their
values in the middle.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import welch

from rnea_control.array_types import FloatArray
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations

# Noise counts by its means over this, [s].
STEP = 0.01
# So many means are enough, in ranges of this length, [s].
MEANS, RANGE = 20_000, 40.0
# Frequencies are told apart by one over this, [s].
WINDOW = 4.0
# The fit takes no more than this part of the noise at a frequency, as far as is made up for.
MOST_TAKEN = 0.7


def enough_of(motion: Motion) -> list[slice]:
    """Ranges of a motion that tell its noise; all of it if it has no more than `MEANS`."""
    return motion.spread(MEANS * _step(motion), RANGE)


def _step(motion: Motion) -> int:
    return max(round(STEP / motion.period), 1)


class NoiseSpectrum:
    """The power spectrum of each joint's residual.

    Args:
        motion: that was measured.
        residual: measured minus fitted torques in the ranges that are `enough_of` it, one after the
            other, 0 where a joint stands, shape (samples, nv), [Nm] or [N].

    Attributes:
        means: of the residual over `STEP`, 0 where a joint stands, shape (means, nv); an array for
            each range of the motion.
        middles: the samples in the middle of them.
        frequency: ascending, shape (frequencies,), [Hz].
        power: shape (frequencies, nv), such that white noise has its variance at every frequency.
    """

    def __init__(self, motion: Motion, residual: FloatArray) -> None:
        self._step = step = _step(motion)
        self.middles, self.means, parts = [], [], enough_of(motion)
        ends = np.cumsum([part.stop - part.start for part in parts])
        for part, own in zip(parts, np.split(residual, ends[:-1]), strict=True):
            whole = len(own) - len(own) % step
            self.means.append(own[:whole].reshape(-1, step, own.shape[1]).mean(axis=1))
            self.middles.append(slice(part.start + step // 2, part.start + whole, step))
        noise = np.concatenate(self.means)
        rate = 1.0 / (step * motion.period)
        self._size = min(max(round(WINDOW * rate), 2), len(noise))
        self.frequency, power = welch(noise, rate, nperseg=self._size, detrend=False, axis=0)
        used = np.concatenate([motion.counts[each] for each in self.middles]).mean(axis=0)
        self.power = power * rate * step / (2.0 * np.maximum(used, 1e-9))  # of both sides

    def vector_covariance(
        self, equations: TorqueEquations, variance: FloatArray, inverse: FloatArray
    ) -> FloatArray:
        """The covariance of the vector of normal equations, shape (columns, columns).

        Args:
            equations: of the motion.
            variance: s_j^2, shape (nv,).
            inverse: A^-1, shape (columns, columns).
        """
        motion, step, total = equations.motion, self._step, np.zeros_like(inverse)
        for middles, means in zip(self.middles, self.means, strict=True):
            n, Y = len(means), equations.rows(middles) * motion.counts[middles, :, None]
            width = max(round(1.5 * n / self._size), 1)  # what Welch's windows do not tell apart
            frequency = np.fft.rfftfreq(n, step * motion.period)
            twice = np.full(len(frequency), 2.0)
            twice[0], twice[-1] = 1.0, 1.0 + n % 2
            for j, own_variance in enumerate(variance):
                felt = np.flatnonzero(Y[:, j].any(axis=0))
                own = np.ix_(felt, felt)
                F = np.fft.rfft(Y[:, j, felt], axis=0) * math.sqrt(step / (n * own_variance))
                F = np.stack([F.real, F.imag])
                taken = uniform_filter1d(((F @ inverse[own]) * F).sum(axis=(0, 2)), width)
                S = np.interp(frequency, self.frequency, self.power[:, j]) / own_variance
                S *= twice / (1.0 - np.minimum(taken, MOST_TAKEN)) ** 2
                for each in F:
                    total[own] += (each.T * S) @ each
        return total * len(motion.time) / (step * sum(map(len, self.means)))
