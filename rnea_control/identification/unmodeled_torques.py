r"""Torques of a joint that no parameter has, which would pass for some: torque ripple and Stribeck
friction.

.. math:: a \sin(\kappa q) + b \cos(\kappa q), \qquad
          c \, \mathrm{sign}(v) \, e^{-(v / v_s)^2} \quad \text{[Armstrong-Helouvry 1994]}

Where the residual of a fit has one of them, beyond what its noise would have by chance, they become
unknowns beside the parameters, so that these and their standard deviations are right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.least_squares import Solution, weighted_solution, with_spectrum
from rnea_control.identification.motion import STANDING, Motion
from rnea_control.identification.noise_spectrum import NoiseSpectrum
from rnea_control.identification.torque_equations import MoreColumns, TorqueEquations
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# In noise alone one is found in this part of all fits.
CHANCE = 0.01
# So often those are looked for that remain.
ROUNDS = 4
# A joint with fewer means tells nothing.
LEAST = 100
# Positions and velocities are told apart by their range over this.
BINS = 1024
# So many waves over the range of positions are tried, in steps of one over `FINENESS`; none is
# longer than this, as those of rigid bodies are, [rad] or [m].
MOST_WAVES, FINENESS, LONGEST = 64, 8, 2.5
# Stribeck velocities are tried in steps of this factor, up to this part of the largest velocity.
FACTOR, SLOW = 1.25, 0.3
# What the parameters can stand for but for this part is not told from them.
OWN_PART = 0.01
# Velocities for the mean power of the noise, each with the same number of samples.
QUANTILES = 64


@dataclass(frozen=True)
class Ripple:
    """Torque ripple of a joint.

    Its unknowns are a and b above, and by how much the frequency is another, to first order.

    Attributes:
        joint: its number.
        center: of its positions, where the phase is 0.
        frequency: kappa above, in radians of phase for each radian or meter.
        sine, cosine: a and b as far as they are known, [Nm] or [N].
    """

    joint: int
    center: float
    frequency: float
    sine: float = 0.0
    cosine: float = 0.0
    unknowns = 3

    def columns(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """The torques for 1 of each unknown, shape (samples, unknowns)."""
        away = q - self.center
        sine, cosine = np.sin(self.frequency * away), np.cos(self.frequency * away)
        slope = away * (self.sine * cosine - self.cosine * sine)
        return np.stack([sine, cosine, slope], axis=1)

    def refined(self, values: FloatArray) -> Ripple:
        """The same with unknowns of these values."""
        sine, cosine, more = values.tolist()
        return Ripple(self.joint, self.center, self.frequency + more, sine, cosine)

    def words(self, model: RobotModel) -> str:
        """What it is."""
        name, unit = model.joint_names[self.joint], units(model, self.joint)
        often = f"{self.frequency:.3g} times a turn"
        if unit.position == "m":
            often = f"every {2.0 * math.pi / self.frequency:.3g} m"
        size = math.hypot(self.sine, self.cosine)
        return f"torque ripple of {name}: {size:.3g} {unit.effort}, {often}"


@dataclass(frozen=True)
class StribeckFriction:
    """What friction of a joint is more than Coulomb friction, below about `velocity`; `size` is c
    above as far as it is known, [Nm] or [N]."""

    joint: int
    velocity: float
    size: float = 0.0
    unknowns = 1

    def columns(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """As of `Ripple`."""
        return _stribeck(v[:, None], self.velocity)

    def refined(self, values: FloatArray) -> StribeckFriction:
        """As of `Ripple`."""
        return replace(self, size=float(values[0]))

    def words(self, model: RobotModel) -> str:
        """As of `Ripple`."""
        name, unit = model.joint_names[self.joint], units(model, self.joint)
        size, limit = f"{self.size:+.3g} {unit.effort}", f"{self.velocity:.2g} {unit.position}/s"
        return f"Stribeck friction of {name}: {size} below about {limit}"


Unmodeled = Ripple | StribeckFriction


def solve_beside_unmodeled(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    robust: bool = False,
    more: MoreColumns | None = None,
) -> tuple[Solution, list[str]]:
    """As `solve`, with covariance and information that account for torques that no parameter has.

    Returns:
        The solution, and a note on each of these torques.

    Raises:
        IdentificationError: too few torques.
    """
    solution = weighted_solution(equations, motion, prior, robust, more)
    columns, count = more, len(prior)
    found: list[Unmodeled] = []
    is_final = True
    for _ in range(ROUNDS):
        new = [*_remaining(solution, equations, motion, columns)]
        if not new and is_final:
            break
        found += new
        columns = _together(more, found, motion)
        start = np.append(prior, np.zeros(sum(each.unknowns for each in found)))
        solution = weighted_solution(equations, motion, start, robust, columns)
        covariance, tried, found, end = solution.covariance, found, [], count
        for each in tried:
            own = slice(end, end := end + each.unknowns)
            # Some were found for what another one has explained since.
            if _gain(solution.beta[own], covariance[own, own]) > -math.log(CHANCE):
                found.append(each.refined(solution.beta[own]))
        # The frequencies of new ripple are corrected in the next round.
        is_final = len(found) == len(tried) and not any(isinstance(each, Ripple) for each in new)
    solution = with_spectrum(solution, equations, motion, columns)
    notes = [
        f"{each.words(equations.model)}; no parameter has it, so it is fitted beside them"
        for each in found
    ]
    return solution.first(count), notes


def _gain(values: FloatArray, covariance: FloatArray) -> float:
    """What unknowns add to the logarithm of the likelihood; the third of a ripple is its phase."""
    a, C = values[:2], covariance[:2, :2]
    return 0.5 * float(a @ np.linalg.solve(C, a)) if np.isfinite(C).all() else 0.0


def _together(more: MoreColumns | None, found: list[Unmodeled], motion: Motion) -> MoreColumns:
    def columns(rows: slice, Y: FloatArray) -> FloatArray:
        blocks = [] if more is None else [more(rows, Y)]
        for each in found:
            own = each.columns(motion.q[rows, each.joint], motion.v[rows, each.joint])
            block = np.zeros((*Y.shape[:2], own.shape[1]))
            block[:, each.joint] = own
            blocks.append(block)
        return np.concatenate(blocks, axis=2)

    return columns


def _remaining(
    solution: Solution, equations: TorqueEquations, motion: Motion, more: MoreColumns | None
) -> Iterator[Unmodeled]:
    """The strongest of each kind at each joint that the residual has beyond chance."""
    spectrum = NoiseSpectrum(motion, solution.residual)
    rows = np.concatenate([np.arange(len(motion.time))[each] for each in spectrum.middles])
    factor = len(motion.time) / len(rows)  # each stands for so many
    joints = np.flatnonzero(np.count_nonzero(motion.counts[rows], axis=0) >= LEAST).tolist()
    of_q, of_v = (
        {j: _Sums(values[rows][motion.counts[rows, j], j], len(solution.beta)) for j in joints}
        for values in (motion.q, motion.v)
    )
    for middles, means in zip(spectrum.middles, spectrum.means, strict=True):
        Y = equations.rows(motion, middles, more)
        for j in joints:
            used = motion.counts[middles, j]
            of_q[j].add(motion.q[middles, j][used], means[used, j], Y[used, j])
            of_v[j].add(motion.v[middles, j][used], means[used, j], Y[used, j])
    chance = CHANCE / len(solution.variance)
    for j in joints:
        v = np.abs(motion.v[rows, j][motion.counts[rows, j]])
        variance = float(solution.variance[j])
        noise = variance / factor, solution.inverse
        waves = np.arange(FINENESS, FINENESS * MOST_WAVES) / FINENESS
        frequencies = 2.0 * math.pi * waves[waves > of_q[j].reach / LONGEST] / of_q[j].reach
        if len(frequencies):
            phase = frequencies[:, None] * of_q[j].middle
            gain = of_q[j].gain(np.stack([np.sin(phase), np.cos(phase)], axis=1), *noise)
            # Slow noise has more power where the joint passes the waves slowly.
            typical = np.quantile(v, (np.arange(QUANTILES) + 0.5) / QUANTILES)
            passing = frequencies[:, None] * typical / (2.0 * math.pi)
            power = np.interp(passing, spectrum.frequency, spectrum.power[:, j]).mean(axis=1)
            gain *= variance / np.maximum(power, variance)
            best = int(np.argmax(gain))
            if gain[best] > math.log(MOST_WAVES / chance):
                yield Ripple(j, float(of_q[j].middle.mean()), float(frequencies[best]))
        steps = math.log(max(SLOW * v.max() / STANDING, 1.0)) / math.log(FACTOR)
        speeds = STANDING * FACTOR ** np.arange(int(steps) + 1.0)
        gain = of_v[j].gain(_stribeck(of_v[j].middle, speeds[:, None, None]), *noise)
        best = int(np.argmax(gain))
        if gain[best] > math.log(len(speeds) / chance):
            yield StribeckFriction(j, float(speeds[best]))


class _Sums:
    """Sums over the states of a joint, in bins of its position or velocity.

    Args:
        values: positions or velocities.
        columns: of the equations.

    Attributes:
        reach: of the values.
        middle: of each bin, shape (BINS,).
    """

    def __init__(self, values: FloatArray, columns: int) -> None:
        self._edges = np.linspace(values.min(), values.max(), BINS + 1)
        self.reach = float(np.ptp(values))
        self.middle = 0.5 * (self._edges[1:] + self._edges[:-1])
        self._number, self._residual = np.zeros(BINS), np.zeros(BINS)
        self._equations = np.zeros((BINS, columns))

    def add(self, values: FloatArray, residual: FloatArray, equations: FloatArray) -> None:
        """Counts some states, their residuals and equations."""
        bins = np.searchsorted(self._edges[1:-1], values)
        order = np.argsort(bins, kind="stable")
        there, first, number = np.unique(bins[order], return_index=True, return_counts=True)
        if len(there):
            self._number[there] += number
            self._residual[there] += np.add.reduceat(residual[order], first)
            self._equations[there] += np.add.reduceat(equations[order], first, axis=0)

    def gain(self, tried: FloatArray, variance: float, inverse: FloatArray) -> FloatArray:
        """What some torques add to the logarithm of the likelihood, shape (candidates,).

        Args:
            tried: torques for 1 of each unknown, shape (candidates, unknowns, BINS).
            variance: of a state's noise.
            inverse: of the information matrix.
        """
        vector = tried @ self._residual / variance
        own = (tried * self._number) @ tried.transpose(0, 2, 1) / variance
        shared = tried @ self._equations / variance
        information = own - shared @ inverse @ shared.transpose(0, 2, 1)
        size = 1.0 / np.sqrt(np.maximum(np.diagonal(own, axis1=1, axis2=2), 1e-300))
        values, axes = np.linalg.eigh(information * size[:, :, None] * size[:, None, :])
        along = np.einsum("kij,ki->kj", axes, vector * size)
        gain = 0.5 * (along**2 / np.maximum(values, OWN_PART)).sum(axis=1)
        return np.where(values[:, 0] > OWN_PART, gain, 0.0)


def _stribeck(v: FloatArray, velocity: FloatArray | float) -> FloatArray:
    return np.asarray(np.sign(v) * np.exp(-((v / velocity) ** 2)))
