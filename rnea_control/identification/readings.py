"""`Readings`: checks that the efforts of a recording are the torques of its robot, and finds other
readings of them.

Correct efforts include gravity, belong to the joint of their name, are in Nm, and have the sign and
the clock of the positions. Another reading is accepted only if it is much likelier than the robot
as described with any masses, friction, rotors, offsets and delay (`TorqueEvidence`), as a fit
compensates these. The hypotheses are in `hypotheses/`.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from rnea_control.analysis import inertial_parameters
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.hypotheses import hypotheses
from rnea_control.identification.hypotheses.hypothesis import Alternative, Drift, Proposal, Trial
from rnea_control.identification.least_squares import Delay, delay_of
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.torque_evidence import CLOSE, Outlook, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import Contribution

STRONG = 14.0  # evidence for another reading: smallest logarithm of the ratio of likelihoods
MOST = 3  # largest number of causes at once
LEFT = 0.4  # variance that a reading leaves at its best joint, at most, as a fraction
LEAST_EXPLAINED = 0.05  # smallest fraction of the residual that a cause explains


class Readings:
    """Search for defects of the efforts of one recording.

    Args:
        model: the robot as described.
        motion: measured motion, with a given delay compensated.
        finds_delay: True to estimate a delay.

    Attributes:
        evidence: evidence of the motion, with the delay compensated.
        delay: delay of the efforts; None if it was not or cannot be estimated.
        undelayed: mean square of the residuals without compensation of the delay, shape (nv,).
        best: fit of the likeliest reading so far.
        found: causes, in the order of their discovery.
        question: alternative explanation of the efforts, and the recording that decides.
    """

    def __init__(self, model: RobotModel, motion: Motion, finds_delay: bool) -> None:
        self.model, robot = model, identified_robot(model)
        self.evidence = TorqueEvidence(model, robot, motion)
        self.delay: Delay | None = None
        base = self.evidence.space.base
        if finds_delay:
            equations = TorqueEquations(robot, base.independent, motion)
            with suppress(IdentificationError):  # the delay cannot be estimated
                self.delay = delay_of(equations, base.values(inertial_parameters(model)))
        reading = self.evidence.as_described
        self.undelayed = self.evidence.fit(reading).variance
        if self.delay and self.delay.is_significant:
            self.evidence = TorqueEvidence(model, robot, motion.delayed(self.delay.seconds))
        self.evidence.weigh(self.evidence.fit(reading))
        self.best = self.evidence.fit(reading)
        self.found: list[Contribution] = []
        self.question = ""
        while len(self.found) < MOST and self._one_more():
            pass

    def _one_more(self) -> bool:
        """Tries one more cause. Returns True if a reading is much likelier; it is then the best."""
        seen = self.evidence.outlook(self.best)
        tried = [
            (each, self._trial(proposal))
            for each in hypotheses(Alternative)
            for proposal in each.proposals(seen)
        ]
        tried.sort(key=lambda pair: pair[1].cost)
        real = [*islice((pair for pair in tried if self._is_real(seen, *pair)), 2)]
        gained = self.best.cost - real[0][1].cost if real else 0.0
        for drift in hypotheses(Drift):
            if drift.gain(seen) > max(STRONG, gained):
                self.found.append(drift.drift(seen))
                return False
        if gained < STRONG:
            return False
        first, *others = (self._told(seen, *pair) for pair in real)
        if not self.found and others and real[1][1].cost - real[0][1].cost < CLOSE:
            self.question = (
                f"Not certain: it may also be that {others[0].words}. What decides is a recording "
                f"of {real[0][0].cause.decided_by}."
            )
        self.found.append(first)
        self.best = real[0][1].fit
        return True

    def _trial(self, proposal: Proposal) -> Trial:
        """Fits the readings of a proposal."""
        fits = [self.evidence.fit(start, groups=proposal.groups) for start in proposal.starts]
        least = min(fit.cost for fit in fits)
        fit = next(fit for fit in fits if fit.cost <= least + proposal.slack)
        return Trial(proposal.joints, fit.cost + proposal.price, fit)

    def _is_real(self, seen: Outlook, hypothesis: Alternative, trial: Trial) -> bool:
        """True if the difference is relevant, explains some effort, and leaves less of it
        unexplained than the best reading so far."""
        if self.evidence.left_at(trial.fit)[trial.joints].min() > LEFT:
            return False
        if self.evidence.explained(seen.best, trial.fit, trial.joints) < LEAST_EXPLAINED:
            return False
        return hypothesis.is_relevant(seen.best.reading, trial.fit.reading)

    def _told(self, seen: Outlook, hypothesis: Alternative, trial: Trial) -> Contribution:
        part = self.evidence.explained(seen.best, trial.fit, trial.joints)
        return hypothesis.found(seen, trial.joints, trial.fit, part)
