r"""Torques of a joint that the model does not have, and that would bias its parameters: torque
ripple and Stribeck friction.

.. math:: a \sin(\kappa q) + b \cos(\kappa q), \qquad
          c \, \mathrm{sign}(v) \, e^{-(v / v_s)^2} \quad \text{[Armstrong-Helouvry 1994]}

If the residual of a fit has such a torque, beyond chance in its noise, the torque becomes unknown
in addition to the parameters, so that the parameters and their standard deviations are right.
Stribeck friction hidden in the noise is not fitted. Its possible effect on the parameters, for all
c and v_s that agree with the residual, is included in their standard deviations.
"""

from __future__ import annotations

import math
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

CHANCE = 0.01  # fraction of all fits to pure noise in which a torque is found
ROUNDS = 4  # number of searches for remaining torques
LEAST = 100  # smallest number of means of a joint that is searched
BINS = 1024  # number of intervals of the range of positions or velocities
# Ripple is searched in steps of 1 / FINENESS waves over the range of positions.
MOST_WAVES = 64  # largest number of waves
FINENESS = 8
LONGEST = 2.5  # longest wave; torques of rigid bodies have longer waves [rad] or [m]
FACTOR = 1.25  # ratio of successive Stribeck velocities
SLOW = 0.3  # largest Stribeck velocity as a fraction of the largest velocity
OWN_PART = 0.01  # smallest fraction of a torque that the parameters cannot represent
QUANTILES = 64  # number of velocities, with equal numbers of samples, for the mean noise power
STEP = 1e-5  # relative step to either side of the difference by kappa or v_s


class Kind(Enum):
    """Kind of torque: the array x of `Motion` that it depends on, and the number of its sizes."""

    ripple = "q", 2
    stribeck = "v", 1

    def __init__(self, variable: str, sizes: int) -> None:
        self.variable, self.sizes = variable, sizes

    def shapes(self, x: FloatArray, scale: FloatArray | float) -> FloatArray:
        """Torques for sizes of 1, shape (sizes, samples), or (scales, sizes, samples) for scales of
        shape (scales, 1)."""
        if self is Kind.ripple:
            return np.stack([np.sin(scale * x), np.cos(scale * x)], axis=-2)
        return np.asarray(np.sign(x) * np.exp(-((x / scale) ** 2)))[..., None, :]

    def scales(self, lowest: float, highest: float) -> FloatArray:
        """Scales to try for x in a range."""
        if self is Kind.ripple:
            reach = highest - lowest
            waves = np.arange(FINENESS, FINENESS * MOST_WAVES) / FINENESS
            return 2.0 * math.pi * waves[waves > reach / LONGEST] / reach
        fastest = max(SLOW * max(-lowest, highest), STANDING)
        steps = int(math.log(fastest / STANDING) / math.log(FACTOR))
        return np.asarray(STANDING * FACTOR ** np.arange(steps + 1.0))


@dataclass(frozen=True)
class Unmodeled:
    """Torque of one joint, sizes @ kind.shapes(x, scale) for x counted from a center.

    Its unknowns are the sizes, and the relative error of the scale, to first order.

    Attributes:
        kind: kind of torque.
        joint: index of the joint.
        center: origin of x, chosen so that an error of the scale has little effect.
        scale: kappa or v_s of the module's docstring.
        sizes: a and b, or c, as far as they are known, [Nm] or [N].
    """

    kind: Kind
    joint: int
    center: float
    scale: float
    sizes: tuple[float, ...]

    def columns(self, motion: Motion, rows: slice, Y: FloatArray) -> FloatArray:
        """Torques for a value of 1 of each unknown, shape (samples, nv, unknowns)."""
        x, shapes = getattr(motion, self.kind.variable)[rows, self.joint], self.kind.shapes
        x = x - self.center
        lower, higher = (shapes(x, (1.0 + step) * self.scale) for step in (-STEP, STEP))
        slope = np.array(self.sizes) @ (higher - lower) / (2.0 * STEP)
        columns = np.zeros((*Y.shape[:2], len(self.sizes) + 1))
        columns[:, self.joint] = np.stack([*shapes(x, self.scale), slope], axis=1)
        return columns

    def refined(self, values: FloatArray) -> Unmodeled:
        """Copy with these values of the unknowns."""
        *sizes, part = values.tolist()
        factor = math.exp(min(max(part, -1.0), 1.0))
        return replace(self, scale=factor * self.scale, sizes=tuple(sizes))

    def words(self, model: RobotModel) -> str:
        """Description of the torque."""
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
    """Solves the equations of a motion, with covariance and information that account for slow noise
    and for torques that the model does not have.

    Args:
        equations: equations of the robot along the motion.
        prior: values of the columns by the robot's description; parameters that the data do not
            determine keep them.
        robust: True to give outliers less weight.
        rounds: number of searches for torques that the model does not have.

    Returns:
        The solution for the columns of `prior`, and a note on each of these torques.

    Raises:
        IdentificationError: too few torques.
    """
    alone, some = equations, enough_of(equations.motion)
    solution = solve(equations, prior, robust, some)
    first = len(solution.beta)
    found: list[Unmodeled] = []
    is_final = True
    for look in range(rounds + 1):
        new, hidden = _remaining(solution, equations)
        if look == rounds or (not new and is_final):
            break
        tried, found, end = [*found, *new], [], first
        columns = [partial(each.columns, alone.motion) for each in tried]
        equations = replace(alone, more=(*alone.more, *columns))
        solution = solve(equations, prior, robust, some)
        covariance = solution.covariance
        for each in tried:
            own = np.arange(end, end := end + len(each.sizes) + 1)
            known = own[solution.determined[own]]  # a scale is determined only if its sizes are
            values, spread = solution.beta[known], covariance[np.ix_(known, known)]
            # Torques that another torque has explained since are dropped.
            if 0.5 * values @ np.linalg.solve(spread, values) > -math.log(CHANCE):
                found.append(each.refined(solution.beta[own]))
        # The scales of new torques are corrected in the next round.
        is_final = len(found) == len(tried) and not new
    hidden[[each.joint for each in found if each.kind is Kind.stribeck]] = 0.0
    if some != alone.motion.parts:
        solution = solve(equations, prior, robust)
    notes = [
        f"{each.words(alone.robot.model)}; no parameter has it, so it is fitted beside them"
        for each in found
    ]
    solution = solution.in_slow_noise(equations)
    A = solution.information
    spread = solution.vector_covariance + A @ hidden.sum(axis=0) @ A
    return replace(solution, vector_covariance=spread).first(len(prior)), notes


def _remaining(
    solution: Solution, equations: TorqueEquations
) -> tuple[list[Unmodeled], FloatArray]:
    """Strongest torque of each kind at each joint that the residual has beyond chance; and the mean
    square of the estimates' errors by hidden Stribeck friction, by joint, shape (nv, columns,
    columns)."""
    motion, spectrum, nv = equations.motion, solution.spectrum, len(solution.variance)
    rows = np.concatenate([np.arange(len(motion.time))[each] for each in spectrum.middles])
    residual = np.concatenate(spectrum.means)
    Y = np.concatenate([equations.rows(each) for each in spectrum.middles])
    samples = sum(part.stop - part.start for part in enough_of(motion))
    beyond, hidden = [], np.zeros((nv, *solution.inverse.shape))
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
        variance = float(solution.variance[j])
        # Each mean has the weight of several samples.
        weighted = tried * (samples / (variance * len(rows)))
        own = (weighted * sums[:, 0]) @ tried.transpose(0, 2, 1)
        vector, shared = weighted @ sums[:, 1], weighted @ sums[:, 2:]
        information = own - shared @ solution.inverse @ shared.transpose(0, 2, 1)
        gain = _gain(vector, own, information)
        center, trials = 0.0, len(scales)
        if kind is Kind.stribeck:
            told = gain > 0.0
            errors = shared[told, 0] @ solution.inverse
            hidden[j] = _hidden(gain[told], information[told, 0, 0], errors)
        else:
            center, trials = 0.5 * (lowest + highest), MOST_WAVES
            # Slow noise has more power at velocities at which the joint passes the waves slowly.
            typical = np.quantile(speeds, (np.arange(QUANTILES) + 0.5) / QUANTILES)
            passing = scales[:, None] * typical / (2.0 * math.pi)
            power = np.interp(passing, spectrum.frequency, spectrum.power[:, j]).mean(axis=1)
            gain *= variance / np.maximum(power, variance)
        best = int(np.argmax(gain))
        if gain[best] > math.log(trials * nv / CHANCE):
            scale, sizes = float(scales[best]), (0.0,) * kind.sizes
            beyond.append(Unmodeled(kind, j, center, scale, sizes))
    return beyond, hidden


def _gain(vector: FloatArray, own: FloatArray, information: FloatArray) -> FloatArray:
    """Gain in the logarithm of the likelihood by each candidate torque, shape (candidates,).

    Args:
        vector: vector of the normal equations of the sizes, shape (candidates, sizes).
        own: information matrix of the sizes with known parameters, shape (candidates, sizes,
            sizes).
        information: the same with unknown parameters.
    """
    size = 1.0 / np.sqrt(np.maximum(np.diagonal(own, axis1=1, axis2=2), 1e-300))
    values, axes = np.linalg.eigh(information * size[:, :, None] * size[:, None, :])
    along = np.einsum("kij,ki->kj", axes, vector * size)
    gain = 0.5 * (along**2 / np.maximum(values, OWN_PART)).sum(axis=1)
    return np.where(values[:, 0] > OWN_PART, gain, 0.0)


def _hidden(gain: FloatArray, information: FloatArray, errors: FloatArray) -> FloatArray:
    """Mean square of the estimates' errors by a torque of one size that is not fitted, over all
    candidates and sizes, weighted by their likelihood, shape (columns, columns).

    Args:
        gain: gain of each candidate with its likeliest size, shape (candidates,).
        information: information of its size, shape (candidates,).
        errors: errors of the estimates for a size of 1, shape (candidates, columns).
    """
    likely = np.exp(gain - gain.max(initial=0.0)) / np.sqrt(information)
    square = (1.0 + 2.0 * gain) / information  # mean square of the size: mean squared plus variance
    return np.asarray((errors.T * (likely / likely.sum() * square)) @ errors)
