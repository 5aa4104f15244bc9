"""`diagnose`: ranked list of causes for a difference between a recording and a model.

First come the causes that no fit compensates: defects of the efforts that show without a model,
such as clipping, then efforts that are not the torques of the robot (`Readings`). Then come
differences between model and robot: friction, offsets, rotors, a load, masses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.hypotheses import hypotheses
from rnea_control.identification.hypotheses.clocks import DELAY
from rnea_control.identification.hypotheses.hypothesis import (
    Change,
    Difference,
    Doubt,
    Recorded,
    Signal,
)
from rnea_control.identification.least_squares import Delay, late
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.identification.noise_spectrum import enough_of
from rnea_control.identification.readings import Readings
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import UNKNOWN, Contribution, effort_words, told

AT_NOISE = 1.2  # largest residual of a joint with nothing to explain, over its noise
SMALL = 0.1  # smallest reported torque of a cause, as a fraction of a joint's residual
LEFT = 0.5  # residual of unexplained efforts, as a fraction of the efforts
LEFT_OF_LIMIT = 0.05  # residual of unexplained efforts, as a fraction of the effort limit
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
    signals = (hypothesis.signal(model, motion) for hypothesis in hypotheses(Signal))
    recorded = [each for each in signals if each.joints]
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
    numbers = Recorded(model, motion, noise, evidence.gravity_ratio())
    for doubt in (hypothesis.doubt(numbers) for hypothesis in hypotheses(Doubt)):
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
        parts.append(told(DELAY, model, none, part=part, what=what))
    parts.sort(key=lambda each: each.part or 0.0, reverse=True)
    left = np.sqrt(best.variance + evidence.rough)
    causes = (*recorded, *lies, *parts)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _unexplained(search: Readings, noise: FloatArray) -> Contribution:
    """Cause: joints whose efforts nothing explains. If another cause was found, it is reported only
    for most joints, as the other cause is then chance."""
    model, left = search.model, np.sqrt(search.best.variance)
    strength = np.sqrt(search.evidence.spread[search.best.reading.order])
    large = (left > 3.0 * noise) & (left > LEFT * strength)
    large &= large.mean() > 0.5 or not search.found
    large &= (left > LEFT_OF_LIMIT * model.effort_limit) | np.isinf(model.effort_limit)
    return told(UNKNOWN, model, large, lambda j: f"({effort_words(model, j, left)})")


def _differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """Differences between model and robot, given the `best` reading: the likeliest set of causes,
    ordered by how much each explains; and the residual above the noise, in squares of the noise.
    Torques below `least_told`, shape (nv,), are not reported."""

    every = hypotheses(Difference)

    @cache
    def fit(chosen: frozenset[Difference]) -> Fit:
        opened = [each.columns(evidence.space) for each in chosen]
        return evidence.fit(best.reading, np.concatenate([np.zeros(0, int), *opened]))

    def above_noise(chosen: Iterable[Difference]) -> float:
        variance = fit(frozenset(chosen)).variance
        return float(evidence.independent @ (variance / best.variance - 1.0))

    sets = chain.from_iterable(combinations(every, count) for count in range(len(every) + 1))
    likeliest = min(sets, key=lambda chosen: fit(frozenset(chosen)).cost)
    excess = left = max(above_noise(()), 1e-9)
    parts: dict[Difference, float] = {}
    while others := [each for each in likeliest if each not in parts]:
        next_one = min(others, key=lambda each: above_noise((*parts, each)))
        before, left = left, above_noise((*parts, next_one))
        if before - left < LEAST_PART * excess:
            break
        parts[next_one] = (before - left) / excess
    theta = fit(frozenset(parts)).theta - evidence.declared
    found = []
    for hypothesis, part in parts.items():
        columns, own = hypothesis.columns(evidence.space), np.zeros_like(theta)
        own[columns] = theta[columns]
        sizes = evidence.torque_of(own, best.reading)
        felt = sizes > least_told
        felt[np.argmax(sizes)] |= not felt.any()
        numbers = evidence.model, evidence.space, own, own[columns], sizes, felt, min(part, 1.0)
        found.append(hypothesis.change(Change(*numbers)))
    return found, excess
