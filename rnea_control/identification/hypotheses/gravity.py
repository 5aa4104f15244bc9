"""Efforts with another gravity than the model's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.identification.hypotheses.hypothesis import Alternative
from rnea_control.identification.reading import Fit, Outlook, Proposal
from rnea_control.plausibility.causes import GRAVITY, Contribution, gravity_words, told

LARGEST_ERROR = 0.25  # largest relative error of a correct gravity
LARGEST_ANGLE = 0.17  # largest angle to a correct gravity [rad]
NOTABLE = 0.1  # smallest gain of a joint that is named, as a fraction of the largest gain


class Gravity(Alternative):
    """No gravity, the opposite, another direction, a share of gravity."""

    cause = GRAVITY

    def proposals(self, seen: Outlook) -> Iterator[Proposal]:
        now = seen.best.reading
        if not np.array_equal(now.gravity, seen.model.gravity):
            return
        every = np.ones(seen.model.nv, np.bool_)
        for gravity, price in self._gravities(seen):
            yield Proposal(every, price, (replace(now, gravity=gravity),))

    def _gravities(self, seen: Outlook) -> Iterator[tuple[FloatArray, float]]:
        """Gravities that differ from the model's by more than its errors, and the cost of the
        numbers in each; none is stronger than the Earth's."""
        own = seen.model.gravity
        strength = float(np.linalg.norm(own))
        if not strength:
            return
        yield 0.0 * own, 0.0
        yield -own, 0.0
        fitted = seen.gravity / strength
        size, along = float(np.linalg.norm(fitted)), float(fitted @ own) / strength
        if abs(size - 1.0) < LARGEST_ERROR and along < math.cos(LARGEST_ANGLE) * size:
            yield fitted * strength / size, 2.0 * seen.number
        if -1.0 - LARGEST_ERROR < along < 1.0 - LARGEST_ERROR:
            yield own * along, seen.number

    def found(self, seen: Outlook, joints: BoolArray, after: Fit, part: float) -> Contribution:
        shares = seen.independent * (seen.best.variance - after.variance) / after.variance
        what = gravity_words(seen.model, after.reading.gravity)
        return told(self.cause, seen.model, shares > NOTABLE * shares.max(), part=part, what=what)


HYPOTHESES = (Gravity(),)
