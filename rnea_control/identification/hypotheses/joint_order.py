"""Efforts that belong to other joints than those of their names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from rnea_control.array_types import BoolArray
from rnea_control.identification.hypotheses.hypothesis import Alternative
from rnea_control.identification.reading import Fit, Outlook, Proposal
from rnea_control.plausibility.causes import Cause, Contribution, told


class Exchange(Alternative):
    """Each pair of joints; the best assignment of all."""

    cause = Cause(
        "exchange",
        "{what}",
        "Correct the order of the joints or the wiring in the hardware interface",
        "each of the joints moving alone: its own effort must change",
    )

    def proposals(self, seen: Outlook) -> Iterator[Proposal]:
        now, nv = seen.best.reading, seen.model.nv
        each = np.eye(nv, dtype=np.bool_)
        for one, other in combinations(range(nv), 2):
            swapped = now.order.copy()
            swapped[[one, other]] = now.order[[other, one]]
            price = math.log(math.comb(nv, 2))
            yield Proposal(each[one] | each[other], price, (replace(now, order=swapped),))
        assigned = linear_sum_assignment(np.log(np.maximum(seen.left, 1e-6)))[1]
        moved = assigned != now.order
        if moved.sum() > 2:
            price = math.log(math.factorial(nv))
            yield Proposal(moved, price, (replace(now, order=assigned),))

    def found(self, seen: Outlook, joints: BoolArray, after: Fit, part: float) -> Contribution:
        names, order = seen.model.joint_names, after.reading.order
        moved = np.flatnonzero(order != seen.best.reading.order)
        pairs = ((names[j], names[order[j]]) for j in moved)
        what = "; ".join(f"the effort of {one} is called {other}" for one, other in pairs)
        return told(self.cause, seen.model, joints, part=part, what=what)


HYPOTHESES = (Exchange(),)
