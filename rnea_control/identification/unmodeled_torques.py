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
from enum import Enum
from functools import partial
from itertools import product

import numpy as np
from scipy import sparse

from rnea_control.array_types import FloatArray
from rnea_control.identification.least_squares import Solution, solve
from rnea_control.identification.motion import STANDING, Motion
from rnea_control.identification.noise_spectrum import enough_of
from rnea_control.identification.torque_equations import TorqueEquations
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
# The slope by kappa or v_s is a difference over this part of it, to either side.
STEP = 1e-5


class Kind(Enum):
    """What x is in a `Motion` of which a torque is a function, and the number of its sizes."""

    ripple = "q", 2
    stribeck = "v", 1

    def __init__(self, variable: str, sizes: int) -> None:
        self.variable, self.sizes = variable, sizes

    def shapes(self, x: FloatArray, scale: FloatArray | float) -> FloatArray:
        """The torques of sizes of 1, shape (sizes, samples), or (scales, sizes, samples) for scales
        of shape (scales, 1)."""
        if self is Kind.ripple:
            return np.stack([np.sin(scale * x), np.cos(scale * x)], axis=-2)
        return np.asarray(np.sign(x) * np.exp(-((x / scale) ** 2)))[..., None, :]

    def scales(self, lowest: float, highest: float) -> FloatArray:
        """Those to try for x in a range."""
        if self is Kind.ripple:
            reach = highest - lowest
            waves = np.arange(FINENESS, FINENESS * MOST_WAVES) / FINENESS
            return 2.0 * math.pi * waves[waves > reach / LONGEST] / reach
        fastest = max(SLOW * max(-lowest, highest), STANDING)
        steps = int(math.log(fastest / STANDING) / math.log(FACTOR))
        return np.asarray(STANDING * FACTOR ** np.arange(steps + 1.0))


@dataclass(frozen=True)
class Unmodeled:
    """A torque of one joint, sizes @ kind.shapes(x, scale) for x counted from a center.

    Its unknowns are the sizes, and by which part the scale is another, to first order.

    Attributes:
        kind, joint: above, and the joint's number.
        center: so that an error of the scale matters little.
        scale: kappa or v_s above.
        sizes: a and b, or c, as far as they are known, [Nm] or [N].
    """

    kind: Kind
    joint: int
    center: float
    scale: float
    sizes: tuple[float, ...]

    def columns(self, motion: Motion, rows: slice, Y: FloatArray) -> FloatArray:
        """The torques for 1 of each unknown, shape (samples, nv, unknowns)."""
        x, shapes = getattr(motion, self.kind.variable)[rows, self.joint], self.kind.shapes
        x = x - self.center
        lower, higher = (shapes(x, (1.0 + step) * self.scale) for step in (-STEP, STEP))
        slope = np.array(self.sizes) @ (higher - lower) / (2.0 * STEP)
        columns = np.zeros((*Y.shape[:2], len(self.sizes) + 1))
        columns[:, self.joint] = np.stack([*shapes(x, self.scale), slope], axis=1)
        return columns

    def refined(self, values: FloatArray) -> Unmodeled:
        """The same with unknowns of these values."""
        *sizes, part = values.tolist()
        factor = math.exp(min(max(part, -1.0), 1.0))
        return replace(self, scale=factor * self.scale, sizes=tuple(sizes))

    def words(self, model: RobotModel) -> str:
        """What it is."""
        name, unit = model.joint_names[self.joint], units(model, self.joint)
        if self.kind is Kind.stribeck:
            size, limit = f"{self.sizes[0]:+.3g} {unit.effort}", f"{self.scale:.2g} {unit.velocity}"
            return f"Stribeck friction of {name}: {size} below about {limit}"
        often = f"{self.scale:.3g} times a turn"
        if unit.position == "m":
            often = f"every {2.0 * math.pi / self.scale:.3g} m"
        return f"torque ripple of {name}: {math.hypot(*self.sizes):.3g} {unit.effort}, {often}"


def solve_beside_unmodeled(
    equations: TorqueEquations, prior: FloatArray, robust: bool = False, rounds: int = ROUNDS
) -> tuple[Solution, list[str]]:
    """The parameters of a motion, with covariance and information that account for slow noise and
    for torques that no parameter has.

    Args:
        equations, prior, robust: as of `solve`.
        rounds: how often to look for those torques; 0 for not at all.

    Returns:
        The solution for the columns of `prior`, and a note on each of these torques.

    Raises:
        IdentificationError: as `solve`.
    """
    alone, some = equations, enough_of(equations.motion)
    solution = solve(equations, prior, robust, some)
    first = len(solution.beta)
    found: list[Unmodeled] = []
    is_final = True
    for _ in range(rounds):
        new = [*_remaining(solution, equations)]
        if not new and is_final:
            break
        tried, found, end = [*found, *new], [], first
        columns = [partial(each.columns, alone.motion) for each in tried]
        equations = replace(alone, more=(*alone.more, *columns))
        solution = solve(equations, prior, robust, some)
        covariance = solution.covariance
        for each in tried:
            own = np.arange(end, end := end + len(each.sizes) + 1)
            known = own[solution.determined[own]]  # a scale is not before its sizes are
            values, spread = solution.beta[known], covariance[np.ix_(known, known)]
            # Some were found for what another one has explained since.
            if 0.5 * values @ np.linalg.solve(spread, values) > -math.log(CHANCE):
                found.append(each.refined(solution.beta[own]))
        # The scales of new ones are corrected in the next round.
        is_final = len(found) == len(tried) and not new
    if some != alone.motion.parts:
        solution = solve(equations, prior, robust)
    notes = [
        f"{each.words(alone.robot.model)}; no parameter has it, so it is fitted beside them"
        for each in found
    ]
    return solution.in_slow_noise(equations).first(len(prior)), notes


def _remaining(solution: Solution, equations: TorqueEquations) -> Iterator[Unmodeled]:
    """The strongest of each kind at each joint that the residual has beyond chance."""
    motion, spectrum, nv = equations.motion, solution.spectrum, len(solution.variance)
    rows = np.concatenate([np.arange(len(motion.time))[each] for each in spectrum.middles])
    residual = np.concatenate(spectrum.means)
    Y = np.concatenate([equations.rows(each) for each in spectrum.middles])
    samples = sum(part.stop - part.start for part in enough_of(motion))
    for j, kind in product(range(nv), Kind):
        used = motion.counts[rows, j]
        if np.count_nonzero(used) < LEAST:
            continue
        x, speeds = getattr(motion, kind.variable)[rows, j][used], np.abs(motion.v[rows, j][used])
        lowest, highest = float(x.min()), float(x.max())
        scales = kind.scales(lowest, highest)
        if not len(scales):
            continue
        edges = np.linspace(lowest, highest, BINS + 1)
        ones, bins = np.ones(len(x)), np.searchsorted(edges[1:-1], x)
        into_bins = sparse.csr_array((ones, (bins, np.arange(len(x)))), shape=(BINS, len(x)))
        sums = into_bins @ np.column_stack([ones, residual[used, j], Y[used, j]])
        tried = kind.shapes(0.5 * (edges[1:] + edges[:-1]), scales[:, None])
        center, trials, variance = 0.0, len(scales), float(solution.variance[j])
        # Each mean stands for several samples.
        gain = _gain(tried, sums, variance * len(rows) / samples, solution.inverse)
        if kind is Kind.ripple:
            center, trials = 0.5 * (lowest + highest), MOST_WAVES
            # Slow noise has more power where the joint passes the waves slowly.
            typical = np.quantile(speeds, (np.arange(QUANTILES) + 0.5) / QUANTILES)
            passing = scales[:, None] * typical / (2.0 * math.pi)
            power = np.interp(passing, spectrum.frequency, spectrum.power[:, j]).mean(axis=1)
            gain *= variance / np.maximum(power, variance)
        best = int(np.argmax(gain))
        if gain[best] > math.log(trials * nv / CHANCE):
            yield Unmodeled(kind, j, center, float(scales[best]), (0.0,) * kind.sizes)


def _gain(tried: FloatArray, sums: FloatArray, variance: float, inverse: FloatArray) -> FloatArray:
    """What some torques add to the logarithm of the likelihood, shape (candidates,).

    Args:
        tried: torques for 1 of each size, shape (candidates, sizes, BINS).
        sums: in each bin how many means there are, their residuals and equations, shape (BINS, 2 +
            columns).
        variance: of a mean's noise.
        inverse: of the information matrix.
    """
    number, residual, equations = sums[:, 0], sums[:, 1], sums[:, 2:]
    vector = tried @ residual / variance
    own = (tried * number) @ tried.transpose(0, 2, 1) / variance
    shared = tried @ equations / variance
    information = own - shared @ inverse @ shared.transpose(0, 2, 1)
    size = 1.0 / np.sqrt(np.maximum(np.diagonal(own, axis1=1, axis2=2), 1e-300))
    values, axes = np.linalg.eigh(information * size[:, :, None] * size[:, None, :])
    along = np.einsum("kij,ki->kj", axes, vector * size)
    gain = 0.5 * (along**2 / np.maximum(values, OWN_PART)).sum(axis=1)
    return np.where(values[:, 0] > OWN_PART, gain, 0.0)
