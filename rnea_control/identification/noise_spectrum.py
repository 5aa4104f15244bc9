r"""Power spectrum of a residual, and covariance of normal equations for noise with this spectrum.

With the power spectrum S_j of each joint's residual [Welch 1967] and the weights 1 / s_j^2,

.. math:: \mathrm{cov}(b) = \sum_j \frac{1}{s_j^4 n} \sum_f S_j(f) \hat Y_j(f)^* \hat Y_j(f)^T

The fit removes the fraction h = Y_j(f) A^-1 Y_j(f)^* / (n s_j^2) of the noise at each frequency,
with the information A. Therefore S_j is divided by (1 - h)^2, as if each frequency had been left
out of the fit [MacKinnon 1985, HC3]. The residual is represented by its means over `STEP`, the slow
regressors by their values in the middle.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import welch

from rnea_control.array_types import FloatArray
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations

STEP = 0.01  # interval of the means of the noise [s]
MEANS = 20_000  # number of means that is enough
RANGE = 40.0  # length of the ranges of these means [s]
WINDOW = 4.0  # length of the windows; their inverse is the resolution of frequencies [s]
MOST_TAKEN = 0.7  # largest h that is corrected


def enough_of(motion: Motion) -> list[slice]:
    """Ranges of a motion that are enough to estimate its noise; the whole motion if it has at most
    `MEANS` means."""
    return motion.spread(MEANS * _step(motion), RANGE)


def _step(motion: Motion) -> int:
    return max(round(STEP / motion.period), 1)


class NoiseSpectrum:
    """Power spectrum of each joint's residual.

    Args:
        motion: measured motion.
        residual: measured minus fitted torques in the ranges of `enough_of`, one after the other, 0
            for a joint at rest, shape (samples, nv), [Nm] or [N].

    Attributes:
        means: means of the residual over `STEP`, 0 for a joint at rest, shape (means, nv); an array
            for each range of the motion.
        middles: index of the sample in the middle of each mean.
        frequency: frequencies, ascending, shape (frequencies,), [Hz].
        power: power, shape (frequencies, nv), scaled so that the power of white noise equals its
            variance at every frequency.
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
        self.power = power * rate * step / (2.0 * np.maximum(used, 1e-9))  # two-sided

    def vector_covariance(
        self, equations: TorqueEquations, variance: FloatArray, inverse: FloatArray
    ) -> FloatArray:
        """Covariance of the vector of normal equations, shape (columns, columns).

        Args:
            equations: equations of the motion.
            variance: s_j^2, shape (nv,).
            inverse: A^-1, shape (columns, columns).
        """
        motion, step, total = equations.motion, self._step, np.zeros_like(inverse)
        for middles, means in zip(self.middles, self.means, strict=True):
            n, Y = len(means), equations.rows(middles) * motion.counts[middles, :, None]
            width = max(round(1.5 * n / self._size), 1)  # resolution of Welch's windows
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
