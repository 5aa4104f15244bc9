"""`diagnose`: ranked list of causes for a difference between a recording and a model.

First come the causes that no fit compensates: defects of the efforts that show without a model,
such as clipping, then efforts that are not the torques of the robot (`Readings`). Then come
differences between model and robot: friction, offsets, rotors, a load, masses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.least_squares import Delay, late
from rnea_control.identification.motion import COARSE_ROUNDING, Motion, measurement_noise
from rnea_control.identification.noise_spectrum import enough_of
from rnea_control.identification.readings import Readings
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.model.causes import Cause, Contribution, effort_words, told
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_model import units

AT_NOISE = 1.2  # largest residual of a joint with nothing to explain, over its noise
SMALL = 0.1  # smallest reported torque of a cause, as a fraction of a joint's residual
LEFT = 0.5  # residual of unexplained efforts, as a fraction of the efforts
LEFT_OF_LIMIT = 0.05  # residual of unexplained efforts, as a fraction of the effort limit
BEYOND = 1.1  # effort beyond the limit, over the limit
OFTEN = 0.01  # fraction of efforts beyond the limit that is reported
# Measured gravity torque over the URDF's torque. Outside this range the efforts are in doubt: no
# URDF's masses are that wrong.
LEAST_GRAVITY = 0.4
MOST_GRAVITY = 2.5
LEAST_PART = 0.03  # smallest fraction of the residual above the noise that a difference explains


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Differences between a model and a recording, and their causes; arrays have the shape (nv,),
    [Nm] or [N]."""

    rms: FloatArray  # root mean square of measured minus model's torque; 0 for a joint at rest
    rms_left: FloatArray  # the same after all causes are accounted for
    noise: FloatArray  # standard deviation of the measured torque's noise
    torque: FloatArray  # root mean square of the measured torque
    delay: Delay | None  # delay of the efforts; None if it was not estimated
    contributions: tuple[Contribution, ...]  # causes; first the causes that no fit compensates
    question: str  # alternative explanation of the efforts, and the recording that decides

    @property
    def at_noise(self) -> bool:
        """True if the residuals are at the noise: nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why parameters fitted to these efforts would be wrong, a sentence each."""
        return tuple(each.sentence for each in self.contributions if not each.cause.fitted)


def diagnose(model: RobotModel, motion: Motion, delay: float | None = None) -> Diagnosis:
    """Compares a model with a measured motion.

    Args:
        model: the robot, with its payloads, friction, armature and offsets; its joints have one
            degree of freedom each.
        motion: motion of its joints.
        delay: delay of the efforts against the motion, [s]; from the data by default.

    Raises:
        IdentificationError: no link that moves has a mass.
    """
    recorded = [each for each in _of_signals(model, motion) if each.joints]
    # Some ranges of a long motion are enough.
    motion = motion.take(enough_of(motion)).delayed(delay or 0.0)
    noise = measurement_noise(motion)
    torque = np.sqrt(np.mean(motion.effort**2, axis=0))
    error = motion.effort - inverse_dynamics_batch(model, motion.q, motion.v, motion.a)
    squares = np.sum(error**2, axis=0, where=motion.counts)
    rms = np.sqrt(squares / np.maximum(motion.counts.sum(axis=0), 1))
    if (rms <= AT_NOISE * noise).all() or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, None, tuple(recorded), "")
    search = Readings(model, motion, delay is None)
    evidence, best, lies = search.evidence, search.best, search.found
    named = {name for each in lies for name in each.joints}
    for doubt in (_strength(evidence), _beyond(model, motion, noise)):
        if doubt.joints and named.isdisjoint(doubt.joints):
            lies.append(doubt)
    unexplained = _unexplained(search, noise)
    if unexplained.joints and not recorded:
        lies.insert(0, unexplained)
    parts, excess = _differences(evidence, best, SMALL * np.maximum(rms, noise))
    if search.delay and search.delay.is_significant and not lies and not recorded:
        own = float(evidence.independent @ (search.undelayed / best.variance - 1.0))
        none, part = np.zeros(model.nv, np.bool_), max(own / (own + excess), 0.0)
        what = late(search.delay.seconds)
        parts.append(told(Cause.delay, model, none, part=part, what=what))
    parts.sort(key=lambda each: each.part or 0.0, reverse=True)
    left = np.sqrt(best.variance + evidence.rough)
    causes = (*recorded, *lies, *parts)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _of_signals(model: RobotModel, motion: Motion) -> Iterator[Contribution]:
    """Causes that the efforts show without a model."""
    clipped, steps = motion.clipped.mean(axis=0), motion.rounding
    yield told(Cause.clipping, model, clipped > 0.0, lambda j: f"({100.0 * clipped[j]:.0f} %)")
    coarse = steps > COARSE_ROUNDING * np.std(motion.effort, axis=0)
    yield told(Cause.rounding, model, coarse, lambda j: effort_words(model, j, steps))


def _strength(evidence: TorqueEvidence) -> Contribution:
    """Cause: at the joint with the largest gravity torque, the torque is far from the URDF's."""
    joint, ratio, deviation = evidence.gravity_ratio()
    far = ratio + 3.0 * deviation < LEAST_GRAVITY or ratio - 3.0 * deviation > MOST_GRAVITY
    which = (np.arange(evidence.model.nv) == joint) & far
    return told(Cause.strength, evidence.model, which, what=f"{ratio:.2g}")


def _beyond(model: RobotModel, motion: Motion, noise: FloatArray) -> Contribution:
    """Cause: efforts beyond the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    sizes = np.abs(motion.effort)
    often = (sizes > BEYOND * limit + 4.0 * noise).mean(axis=0) > OFTEN
    largest = np.quantile(sizes, 1.0 - OFTEN, axis=0)

    def text(j: int) -> str:
        return f"up to {effort_words(model, j, largest)}, limit {limit[j]:.3g}"

    return told(Cause.limit, model, often, text)


def _unexplained(search: Readings, noise: FloatArray) -> Contribution:
    """Cause: joints whose efforts nothing explains. If another cause was found, it is reported only
    for most joints, as the other cause is then chance."""
    model, left = search.model, np.sqrt(search.best.variance)
    strength = np.sqrt(search.evidence.spread[search.best.reading.order])
    large = (left > 3.0 * noise) & (left > LEFT * strength)
    large &= large.mean() > 0.5 or not search.found
    large &= (left > LEFT_OF_LIMIT * model.effort_limit) | np.isinf(model.effort_limit)
    return told(Cause.unknown, model, large, lambda j: f"({effort_words(model, j, left)})")


def _differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """Differences between model and robot, given the `best` reading: the likeliest set of causes,
    ordered by how much each explains; and the residual above the noise, in squares of the noise.
    Torques below `least_told`, shape (nv,), are not reported."""

    @cache
    def fit(causes: frozenset[Cause]) -> Fit:
        opened = [evidence.columns[cause] for cause in causes]
        return evidence.fit(best.reading, np.concatenate([np.zeros(0, int), *opened]))

    def above_noise(causes: Iterable[Cause]) -> float:
        variance = fit(frozenset(causes)).variance
        return float(evidence.independent @ (variance / best.variance - 1.0))

    every = [*evidence.columns]
    sets = chain.from_iterable(combinations(every, count) for count in range(len(every) + 1))
    likeliest = min(sets, key=lambda causes: fit(frozenset(causes)).cost)
    excess = left = max(above_noise(()), 1e-9)
    chosen: dict[Cause, float] = {}
    while others := [cause for cause in likeliest if cause not in chosen]:
        cause = min(others, key=lambda cause: above_noise((*chosen, cause)))
        before, left = left, above_noise((*chosen, cause))
        if before - left < LEAST_PART * excess:
            break
        chosen[cause] = (before - left) / excess
    with_all = fit(frozenset(chosen))
    parts = ((cause, min(part, 1.0)) for cause, part in chosen.items())
    return [_difference(evidence, *each, with_all, least_told) for each in parts], excess


def _difference(
    evidence: TorqueEvidence, cause: Cause, part: float, fit: Fit, least_told: FloatArray
) -> Contribution:
    """Contribution of one cause to a fit."""
    model, own, columns = evidence.model, np.zeros_like(fit.theta), evidence.columns[cause]
    own[columns] = values = (fit.theta - evidence.declared)[columns]
    sizes = evidence.torque_of(own, fit.reading)
    felt = sizes > least_told
    felt[np.argmax(sizes)] |= not felt.any()

    def text(j: int) -> str:
        if cause is Cause.masses:
            return effort_words(model, j, sizes)
        if cause is Cause.rotor:
            return f"{values[j]:+.3g} {'kg' if model.joint_types[j] == 'prismatic' else 'kg m^2'}"
        constant = effort_words(model, j, values[-model.nv :], "+.3g")
        if cause is Cause.offset:
            return constant
        return f"{constant} {effort_words(model, j, values, '+.3g')} s/{units(model, j).position}"

    if cause is not Cause.payload:
        return told(cause, model, felt, text, part)
    link = model.child_links[-1]
    load = link_inertia_of(link, evidence.space.load_inertia(own))
    center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
    return told(cause, model, felt, part=part, link=link, mass=load.mass, center=center)
