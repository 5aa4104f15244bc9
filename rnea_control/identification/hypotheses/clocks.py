"""Efforts with another clock than the positions."""

from __future__ import annotations

import numpy as np

from rnea_control.identification.hypotheses.hypothesis import Drift
from rnea_control.identification.least_squares import late
from rnea_control.identification.reading import Outlook
from rnea_control.plausibility.causes import Cause, Contribution, told

LATER = 0.02  # largest drift between two correct clocks within a recording [s]
DELAY = Cause(
    "delay",
    "the efforts are {what} than the positions",
    "A filter of the drives? fit makes up for it",
    fitted=True,
)


class Clock(Drift):
    """A delay of the efforts that grows or shrinks steadily."""

    cause = Cause(
        "clock",
        "efforts and positions have different clocks: from the beginning to the end the efforts "
        "become {what}",
        "Let one clock stamp positions and efforts",
    )

    def gain(self, seen: Outlook) -> float:
        later, gain = seen.clock
        return gain if abs(later) > LATER else 0.0

    def drift(self, seen: Outlook) -> Contribution:
        every = np.ones(seen.model.nv, np.bool_)
        return told(self.cause, seen.model, every, what=late(seen.clock[0], 0))


HYPOTHESES = (Clock(),)
