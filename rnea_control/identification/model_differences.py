"""`model_differences`: the likeliest set of differences between model and robot, given a reading of
the efforts: friction, offsets, rotors, a load, masses. A fit compensates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain, combinations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.hypotheses import hypotheses
from rnea_control.identification.hypotheses.hypothesis import Change, Difference
from rnea_control.identification.reading import Fit
from rnea_control.identification.torque_evidence import TorqueEvidence
from rnea_control.plausibility.causes import Contribution

LEAST_PART = 0.03  # smallest fraction of the residual above the noise that a difference explains


def model_differences(
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
