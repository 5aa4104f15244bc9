"""Positions, velocities, accelerations and torques of a recording on a uniform grid of time.

Positions are filtered with zero phase (Butterworth, forward and backward) and differentiated by
central differences. Efforts are not filtered, so that their noise stays white and least squares
averages it. Torques of a joint at rest are not used: friction at rest is undetermined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline, make_interp_spline
from scipy.ndimage import correlate1d
from scipy.signal import butter, sosfiltfilt

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.dynamics.friction import STICKING_VELOCITY
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording import SHORTEST, Recording, cleaned, continuous

# Velocity below which a joint is at rest, [rad/s] or [m/s]; there Coulomb friction has 99.5 % of
# its value.
STANDING = 3.0 * STICKING_VELOCITY
JITTER = 0.01  # largest relative difference of periods from their median without resampling
ORDER = 4  # order of the filter
CUTOFF_FACTOR = 10.0  # cut-off over the frequency below which 99 % of the velocity's power lies
LOWEST_CUTOFF = 5.0  # smallest cut-off [Hz]
SETTLING = 4.0  # settling time of the filter at both ends, in periods of the cut-off
ABOVE_NOISE = 30.0  # smallest power of the motion at a frequency, over the noise
HIGHEST_CUTOFF = 0.2  # largest cut-off as a fraction of the sample rate
LOWEST_RATE = 5.0  # smallest rate of joint states [Hz]
HIGHEST_RATE = 1e5  # largest rate of joint states [Hz]
OUTLYING = 20.0  # standard deviations at which outliers are clipped
USUAL = 0.95  # fraction of normal noise within USUAL_DEVIATIONS
USUAL_DEVIATIONS = 1.96  # standard deviations
PADDING = 15  # number of samples by which the filter extends a part, if it has as many
# A largest or smallest effort is clipped if it is frequent, and more frequent than the next values.
LEAST_CLIPPED = 10  # smallest number of states with this effort
CLIPPED_PART = 0.005  # smallest fraction of states with this effort
CLIPPED_FACTOR = 4.0  # smallest ratio to the number of states with the next values
FEW = 0.25  # largest number of different values of rounded efforts, as a fraction of all
SAME = 1e-9  # largest difference of equal efforts, as a fraction of the largest effort
# Coarsest step of usable efforts, over their standard deviation: the rounding alone is then 5 % of
# it.
COARSE_ROUNDING = 0.05 * math.sqrt(12.0)
_ARRAYS = ("time", "q", "v", "a", "effort", "clipped", "counts")
# Central differences of sixth order, for steps of 1.
FIRST = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
SECOND = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0
REACH = len(FIRST) // 2


@dataclass(frozen=True, eq=False)
class Motion:
    """Continuous parts of one or more recordings, one after the other, in n samples."""

    source: str  # names of the recordings
    time: FloatArray  # time of the samples, shape (n,), [s]
    q: FloatArray  # positions, then velocities and accelerations, shape (n, nv) each, SI units
    v: FloatArray
    a: FloatArray
    effort: FloatArray  # measured efforts, shape (n, nv), [Nm] or [N]
    clipped: BoolArray  # True if an effort is clipped, shape (n, nv)
    # True if a torque is used: its joint moves, it is not clipped, and the filter has settled.
    counts: BoolArray
    ends: tuple[int, ...]  # end of each continuous part, ascending; the last end is n
    period: float  # period of the grid of the first recording, [s]
    cutoff: float  # cut-off of the filter of the first recording, [Hz]
    rounding: FloatArray  # step of the rounded efforts of a joint, shape (nv,); 0 if not rounded
    notes: tuple[str, ...]  # sentences about left-out data

    @property
    def seconds(self) -> float:
        """Total duration of the parts, [s]."""
        return len(self.time) * self.period

    @property
    def parts(self) -> list[slice]:
        """Ranges of the continuous parts."""
        return [slice(*pair) for pair in pairwise((0, *self.ends))]

    def take(self, parts: list[slice]) -> Motion:
        """The motion in some ranges of samples, each within a continuous part."""
        ends = tuple(np.cumsum([part.stop - part.start for part in parts]).tolist())
        arrays = {name: _rows(getattr(self, name), parts) for name in _ARRAYS}
        return replace(self, ends=ends, **arrays)

    def spread(self, samples: int, seconds: float) -> list[slice]:
        """Ranges of length `seconds`, spread over the motion, with `samples` samples in total; the
        whole motion if it has no more samples."""
        share = samples / len(self.time)
        if share >= 1.0:
            return self.parts
        length = max(round(seconds / self.period), 100)
        kept = [
            slice(begin, min(begin + length, part.stop))
            for part in self.parts
            for begin in range(part.start, part.stop, round(length / share))
        ]
        return [each for each in kept if each.stop - each.start > 20]

    def split(self, share: float) -> tuple[Motion, Motion]:
        """Splits each continuous part: the beginning, and the fraction `share` at its end."""
        cuts = [part.stop - round(share * (part.stop - part.start)) for part in self.parts]
        pairs = [*zip(self.parts, cuts, strict=True)]
        first = [slice(part.start, cut) for part, cut in pairs]
        return self.take(first), self.take([slice(cut, part.stop) for part, cut in pairs])

    def delayed(self, delay: float) -> Motion:
        """Shifts the motion by `delay` seconds to match delayed efforts: by whole samples, and by
        Taylor's series for the remainder.

        Raises:
            RecordingError: no part is longer than the delay.
        """
        if not delay:
            return self
        steps = round(delay / self.period)
        rest = delay - steps * self.period
        kept = [slice(p.start + max(steps, 0), p.stop + min(steps, 0)) for p in self.parts]
        kept = [part for part in kept if part.start < part.stop]
        if not kept:
            raise RecordingError(
                f"{self.source}: no part of it is longer than the delay of {delay:g} s; give a "
                "shorter one by the option --delay, or record longer without gaps"
            )
        now = self.take(kept)
        before = [slice(part.start - steps, part.stop - steps) for part in kept]
        jerk = np.concatenate([derivative(self.a[part], self.period) for part in self.parts])
        q, v, a, jerk = (_rows(each, before) for each in (self.q, self.v, self.a, jerk))
        v_before = v - rest * a + rest**2 / 2 * jerk
        return replace(
            now,
            q=q - rest * v + rest**2 / 2 * a - rest**3 / 6 * jerk,
            v=v_before,
            a=a - rest * jerk,
            counts=now.counts & (np.abs(v_before) > STANDING),
        )


def _rows(array: Any, parts: list[slice]) -> Any:
    """Rows of an array in some ranges; a view for a single range, as recordings may be large."""
    return array[parts[0]] if len(parts) == 1 else np.concatenate([array[each] for each in parts])


def join(motions: list[Motion]) -> Motion:
    """Joins motions of the same joints, one after the other."""
    if len(motions) == 1:
        return motions[0]
    lengths = [part.stop - part.start for motion in motions for part in motion.parts]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in motions]) for name in _ARRAYS
    }
    return replace(
        motions[0],
        source=", ".join(dict.fromkeys(motion.source for motion in motions)),
        ends=tuple(np.cumsum(lengths).tolist()),
        rounding=np.max([motion.rounding for motion in motions], axis=0),
        notes=tuple(dict.fromkeys(note for motion in motions for note in motion.notes)),
        **arrays,
    )


def motion_of(recording: Recording, cutoff: float | None = None) -> Motion:
    """Cleans, filters and differentiates a recording.

    Args:
        recording: recording of the joints of a model, in the model's order, with efforts.
        cutoff: cut-off of the low-pass filter of the positions, [Hz]; by default from the motion's
            own frequencies.

    Raises:
        RecordingError: no continuous second, no efforts, or a cut-off that the sample rate does not
            allow.
    """
    notes: list[str] = []
    time, q, effort, starts = cleaned(recording, notes)
    period = float(np.median(np.diff(time))) if len(time) > 1 else np.inf
    is_usual = 1.0 / HIGHEST_RATE <= period <= 1.0 / LOWEST_RATE
    parts = continuous(time, starts, period, notes) if is_usual else []
    if not parts:
        raise RecordingError(
            f"{recording.source}: no {SHORTEST:g} s of it are without gaps, at {LOWEST_RATE:g} or "
            f"more states a second; {len(time)} states of {len(recording.time)} have a stamp of "
            f"their own, positions and efforts of {', '.join(recording.joints)}. Do the stamps "
            "rise, in seconds? Record again, at 100 states a second or more"
        )
    rounding = np.array([_rounding(column) for column in effort.T])
    clipped = np.stack([_clipped(*each) for each in zip(effort.T, rounding, strict=True)], axis=1)
    grids = [_on_grid(time[part], q[part], effort[part], clipped[part], period) for part in parts]
    rate, source = 1.0 / period, recording.source
    if cutoff is None:
        own = CUTOFF_FACTOR * _highest_frequency([grid[1] for grid in grids], period)
        cutoff = min(max(own, LOWEST_CUTOFF), HIGHEST_CUTOFF * rate)
        if cutoff >= HIGHEST_CUTOFF * rate:
            notes.append(
                "the motion seems to have frequencies up to the filter's highest cut-off, "
                f"{cutoff:.4g} Hz; if that is noise, give a lower one by the option --cutoff"
            )
    if not 0.0 < cutoff < 0.5 * rate:
        raise RecordingError(
            f"{source}: the cut-off is {cutoff:g} Hz; with {rate:.4g} states a second it must be "
            f"above 0 and below {0.5 * rate:.4g} Hz"
        )
    said = tuple(f"{source}: {note}" for note in notes)
    sos = butter(ORDER, cutoff, fs=rate, output="sos")
    margin = max(round(SETTLING / (cutoff * period)), REACH)
    motions = []
    for grid_time, grid_q, grid_effort, grid_clipped in grids:
        smooth = sosfiltfilt(sos, grid_q, axis=0)
        v = derivative(smooth, period)
        a = derivative(smooth, period, SECOND) / period
        settled = np.zeros(len(grid_time), dtype=np.bool_)
        settled[margin:-margin] = True
        counts = settled[:, None] & (np.abs(v) > STANDING) & ~grid_clipped
        motion = Motion(
            source=source,
            time=grid_time,
            q=smooth,
            v=v,
            a=a,
            effort=grid_effort,
            clipped=grid_clipped,
            counts=counts,
            ends=(len(grid_time),),
            period=period,
            cutoff=cutoff,
            rounding=rounding,
            notes=said,
        )
        motions.append(motion)
    return join(motions)


def _rounding(effort: FloatArray) -> float:
    """Step of rounded efforts; 0 if they are not rounded."""
    steps = np.diff(np.unique(effort))
    steps = steps[steps > SAME * np.abs(effort).max()]
    return float(np.median(steps)) if 0 < len(steps) <= FEW * len(effort) else 0.0


def _clipped(effort: FloatArray, rounding: float) -> BoolArray:
    """Mask of a joint's efforts at a largest or smallest value that is too frequent."""
    clipped = np.zeros(len(effort), np.bool_)
    if not np.ptp(effort) or rounding > COARSE_ROUNDING * np.std(effort):
        return clipped
    same = max(0.5 * rounding, SAME * np.abs(effort).max())
    for signed in (effort, -effort):
        below = signed.max() - signed
        there = below <= same
        count, beside = np.count_nonzero(there), np.count_nonzero(below <= same + rounding)
        often = count >= max(LEAST_CLIPPED, CLIPPED_PART * len(effort))
        if often and count >= CLIPPED_FACTOR * (beside - count):
            clipped |= there
    return clipped


def _on_grid(
    time: FloatArray, q: FloatArray, effort: FloatArray, clipped: BoolArray, period: float
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Resamples to a uniform grid by interpolation; returns uniform samples unchanged."""
    if np.abs(np.diff(time) - period).max() <= JITTER * period:
        return time, q, effort, clipped
    grid = time[0] + period * np.arange(int((time[-1] - time[0]) / period + 1e-9) + 1)
    between, was = (make_interp_spline(time, x, 1)(grid) for x in (effort, 1.0 * clipped))
    return grid, CubicSpline(time, q)(grid), between, was > 0.0


def _highest_frequency(positions: list[FloatArray], period: float) -> float:
    """Frequency below which 99 % of the power of the joints' velocities lies, [Hz], without noise;
    over all parts together, so that a short part at rest does not decide.

    Repeated and late states are steps of the position, which are white noise of the velocity. Noise
    of the positions is smaller than this at low frequencies."""
    frequencies, powers = [], []
    for q in positions:
        velocity = np.diff(q, axis=0) * np.hanning(len(q) - 1)[:, None]
        frequency = np.fft.rfftfreq(len(velocity))  # in sample rates
        power = np.abs(np.fft.rfft(velocity, axis=0)) ** 2 / len(velocity)
        power[power < ABOVE_NOISE * np.median(power[frequency > 0.25], axis=0)] = 0.0
        frequencies.append(frequency)
        powers.append(power.sum(axis=1))
    frequency, power = np.concatenate(frequencies), np.concatenate(powers)
    order = np.argsort(frequency, kind="stable")
    total = np.cumsum(power[order])
    if not total[-1] > 0.0:
        return 0.0
    return float(frequency[order][np.searchsorted(total, 0.99 * total[-1])] / period)


def derivative(values: FloatArray, period: float, kernel: FloatArray = FIRST) -> FloatArray:
    """First derivative, or with the kernel `SECOND` the second derivative times the period; the
    first and last samples repeat their neighbors' values."""
    result = correlate1d(values, kernel / period, axis=0)
    result[:REACH], result[-REACH:] = result[REACH], result[-REACH - 1]
    return result


def measurement_noise(motion: Motion) -> FloatArray:
    """Standard deviation of the measured torques' noise, shape (nv,). The noise is the part that
    the filter of the positions would remove; it is assumed white, without outliers."""
    sos = butter(ORDER, motion.cutoff, fs=1.0 / motion.period, output="sos")
    efforts = [motion.effort[part] for part in motion.parts]
    smooth = [sosfiltfilt(sos, x, axis=0, padlen=min(PADDING, len(x) - 1)) for x in efforts]
    rough = motion.effort - np.concatenate(smooth)
    counts = motion.counts | ~motion.counts.any(axis=0)  # a joint that never moves also has noise
    # Noise of feedback comes in bursts: its median is smaller than its usual size.
    sizes = np.where(counts, np.abs(rough), np.nan)
    usual = np.nanquantile(sizes, USUAL, axis=0) / USUAL_DEVIATIONS
    power = np.nanmean(np.minimum(sizes, OUTLYING * usual) ** 2, axis=0)
    kept = 1.0 - 2.0 * motion.cutoff * motion.period
    return np.asarray(np.sqrt(power / kept))
