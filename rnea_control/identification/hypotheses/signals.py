"""Defects of the efforts that show without a model."""

from __future__ import annotations

from rnea_control.identification.hypotheses.hypothesis import Signal
from rnea_control.identification.motion import COARSE_ROUNDING, Motion
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import Cause, Contribution, effort_words, told


class Clipping(Signal):
    """A largest or smallest value that comes too often."""

    cause = Cause(
        "clipping",
        "the efforts are clipped: {rows} are at the largest or smallest value",
        "Record a slower motion with less load, or let the driver report all of its range",
    )

    def signal(self, model: RobotModel, motion: Motion) -> Contribution:
        clipped = motion.clipped.mean(axis=0)
        words = "({:.0f} %)".format
        return told(self.cause, model, clipped > 0.0, lambda j: words(100.0 * clipped[j]))


class Rounding(Signal):
    """Steps that are coarse beside the efforts."""

    cause = Cause(
        "rounding",
        "the efforts come in coarse steps: {rows}. A delay or friction in them is a guess",
        "Let the driver report finer steps, or record a faster motion with more torque",
    )

    def signal(self, model: RobotModel, motion: Motion) -> Contribution:
        steps = motion.rounding
        coarse = steps > COARSE_ROUNDING * motion.effort.std(axis=0)
        return told(self.cause, model, coarse, lambda j: effort_words(model, j, steps))


HYPOTHESES = (Clipping(), Rounding())
