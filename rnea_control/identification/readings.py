"""`search`: checks that the efforts of a recording are the torques of its robot, and finds other
readings of them.

Correct efforts include gravity, belong to the joint of their name, are in Nm, and have the sign and
the clock of the positions. Another reading is accepted only if it is much likelier than the robot
as described with any masses, friction, rotors, offsets and delay (`TorqueEvidence`), as a fit
compensates these. The hypotheses are in `hypotheses/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.hypotheses import hypotheses
from rnea_control.identification.hypotheses.hypothesis import Alternative, Doubt, Drift, Recorded
from rnea_control.identification.reading import Fit
from rnea_control.identification.torque_evidence import CLOSE, TorqueEvidence
from rnea_control.plausibility.causes import UNKNOWN, Contribution, effort_words, told

LEFT = 0.5  # residual of unexplained efforts, as a fraction of the efforts
LEFT_OF_LIMIT = 0.05  # residual of unexplained efforts, as a fraction of the effort limit
STRONG = 14.0  # evidence for another reading: smallest logarithm of the ratio of likelihoods
MOST = 3  # largest number of causes at once


@dataclass(frozen=True, eq=False)
class Readings:
    """Result of a search."""

    best: Fit  # fit of the likeliest reading
    # Defects of the efforts: first unexplained efforts, then the others as they were found.
    causes: list[Contribution]
    question: str  # alternative explanation of the efforts, and the recording that decides


def search(evidence: TorqueEvidence, recorded: Recorded) -> Readings:
    """Searches for the likeliest reading of the efforts, cause by cause; then for what makes its
    efforts doubtful all the same."""
    evidence.weigh(evidence.fit(evidence.as_described))
    best = evidence.fit(evidence.as_described)
    causes: list[Contribution] = []
    question = ""
    while len(causes) < MOST:
        seen = evidence.outlook(best)
        tried = [
            (each, evidence.trial(proposal))
            for each in hypotheses(Alternative)
            for proposal in each.proposals(seen)
        ]
        tried.sort(key=lambda pair: pair[1].cost)
        supported = (
            (each, trial, part)
            for each, trial in tried
            if (part := evidence.support(best, trial))
            and each.is_relevant(best.reading, trial.fit.reading)
        )
        real = [*islice(supported, 2)]
        gained = best.cost - real[0][1].cost if real else 0.0
        drifts = [each for each in hypotheses(Drift) if each.gain(seen) > max(STRONG, gained)]
        if drifts:
            causes.append(drifts[0].drift(seen))
        if drifts or gained < STRONG:
            break
        first, *others = (
            each.found(seen, trial.joints, trial.fit, part) for each, trial, part in real
        )
        if not causes and others and real[1][1].cost - real[0][1].cost < CLOSE:
            question = (
                f"Not certain: it may also be that {others[0].words}. What decides is a recording "
                f"of {real[0][0].cause.decided_by}."
            )
        causes.append(first)
        best = real[0][1].fit
    named = {name for each in causes for name in each.joints}
    for doubt in (hypothesis.doubt(recorded) for hypothesis in hypotheses(Doubt)):
        if doubt.joints and named.isdisjoint(doubt.joints):
            causes.append(doubt)
    unexplained = _unexplained(evidence, best, recorded.noise, not causes)
    if unexplained.joints and not recorded.shown:
        causes.insert(0, unexplained)
    return Readings(best, causes, question)


def _unexplained(
    evidence: TorqueEvidence, best: Fit, noise: FloatArray, alone: bool
) -> Contribution:
    """Cause: joints whose efforts nothing explains. If another cause was found, it is reported only
    for most joints, as the other cause is then chance."""
    model, left = evidence.model, np.sqrt(best.variance)
    strength = np.sqrt(evidence.spread[best.reading.order])
    large = (left > 3.0 * noise) & (left > LEFT * strength)
    large &= large.mean() > 0.5 or alone
    large &= (left > LEFT_OF_LIMIT * model.effort_limit) | np.isinf(model.effort_limit)
    return told(UNKNOWN, model, large, lambda j: f"({effort_words(model, j, left)})")
