"""`Readings`: checks that the efforts of a recording are the torques of its robot, and finds other
readings of them.

Correct efforts include gravity, belong to the joint of their name, are in Nm, and have the sign and
the clock of the positions. Another reading is accepted only if it is much likelier than the robot
as described with any masses, friction, rotors, offsets and delay (`TorqueEvidence`), as a fit
compensates these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from rnea_control.analysis import inertial_parameters
from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.least_squares import Delay, delay_of, late
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.torque_evidence import TRUST, Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.model.causes import Cause, Contribution, gravity_words, scale_words, told

STRONG = 14.0  # evidence for another reading: smallest logarithm of the ratio of likelihoods
CLOSE = 5.0  # smallest logarithm of the ratio of likelihoods that separates two readings
MOST = 3  # largest number of causes at once
SCALE = 0.12  # largest logarithm of a correct scale
GRAVITY = 0.25  # largest relative error of a correct gravity
ANGLE = 0.17  # largest angle to a correct gravity [rad]
LEFT = 0.4  # variance that a reading leaves at its best joint, at most, as a fraction
LEAST_EXPLAINED = 0.05  # smallest fraction of the residual that a cause explains
# Initial values of a common scale, as multiples of the mean of the joints' scales. Masses and a
# common scale compensate each other, so that a fit stays near its initial value.
STARTS = tuple(1.25**k for k in (0, 1, -1, 2, -2, 3, -3))
LATER = 0.02  # largest drift between two correct clocks within a recording [s]


@dataclass(frozen=True, eq=False)
class _Trial:
    """Another reading: its cause, a mask of the joints concerned, shape (nv,), its fit, and the
    cost of the fit with the cost of the choice among other readings."""

    cause: Cause
    joints: BoolArray
    fit: Fit
    cost: float


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
        every_trial = sorted(self._trials(), key=lambda trial: trial.cost)
        trials = [*islice(filter(self._is_real, every_trial), 2)]
        gained = self.best.cost - trials[0].cost if trials else 0.0
        later, gain = self.evidence.clock(self.best)
        if abs(later) > LATER and gain > max(STRONG, gained):
            every = np.ones(self.model.nv, np.bool_)
            self.found.append(told(Cause.clock, self.model, every, what=late(later, 0)))
            return False
        if gained < STRONG:
            return False
        if not self.found and len(trials) > 1 and trials[1].cost - trials[0].cost < CLOSE:
            other = self._told(trials[1]).words
            self.question = (
                f"Not certain: it may also be that {other}. What decides is a recording of "
                f"{trials[0].cause.decided_by}."
            )
        self.found.append(self._told(trials[0]))
        self.best = trials[0].fit
        return True

    def _trials(self) -> Iterator[_Trial]:
        """All readings that differ from the best reading by one cause."""
        now, nv = self.best.reading, self.model.nv
        every, each = np.ones(nv, np.bool_), np.eye(nv, dtype=np.bool_)
        scales, left, certainty = self.evidence.described(now)
        rows = np.arange(nv)
        own = scales[rows, now.order], certainty[rows, now.order]
        own_scale, common = _starting_scales(*own)
        number = 0.5 * math.log(max(self.evidence.independent.sum(), 1.0))  # cost of one number

        def trial(
            cause: Cause, about: BoolArray, price: float, groups: IntArray | None = None, **new: Any
        ) -> _Trial:
            fit = self.evidence.fit(replace(now, **new), groups=groups)
            return _Trial(cause, about, fit, fit.cost + price)

        if np.array_equal(now.gravity, self.model.gravity):
            for gravity, price in self._gravities(number):
                yield trial(Cause.gravity, every, price, gravity=gravity)
        apart, together = np.arange(nv), np.zeros(nv, np.int64)
        yield min(
            (
                trial(Cause.unit, every, nv * number, apart, scale=start)
                for start in (own_scale, own[0])
            ),
            key=lambda trial: trial.cost,
        )
        starts = [np.full(nv, common * multiple) for multiple in STARTS]
        scaled = [trial(Cause.unit, every, number, together, scale=start) for start in starts]
        least = min(each.cost for each in scaled)
        yield next(each for each in scaled if each.cost < least + CLOSE)
        yield trial(Cause.sign, every, 0.0, scale=-now.scale)
        for mask in each:
            choice, alone = math.log(nv), np.where(mask, 0, -1)
            turned = np.where(mask, -now.scale, now.scale)
            scale = np.where(mask, own_scale, now.scale)
            yield trial(Cause.sign, mask, choice, scale=turned)
            yield trial(Cause.unit, mask, number + choice, alone, scale=scale)
        for one, other in combinations(range(nv), 2):
            swapped = now.order.copy()
            swapped[[one, other]] = now.order[[other, one]]
            price = math.log(math.comb(nv, 2))
            yield trial(Cause.exchange, each[one] | each[other], price, order=swapped)
        assigned = linear_sum_assignment(np.log(np.maximum(left, 1e-6)))[1]
        moved = assigned != now.order
        if moved.sum() > 2:
            yield trial(Cause.exchange, moved, math.log(math.factorial(nv)), order=assigned)

    def _gravities(self, number: float) -> Iterator[tuple[FloatArray, float]]:
        """Gravities that differ from the model's by more than its errors, and the cost of the
        numbers in each; none is stronger than the Earth's."""
        own = self.model.gravity
        strength = float(np.linalg.norm(own))
        if not strength:
            return
        yield 0.0 * own, 0.0
        yield -own, 0.0
        seen = self.evidence.gravity_of(self.best) / strength
        size, along = float(np.linalg.norm(seen)), float(seen @ own) / strength
        if abs(size - 1.0) < GRAVITY and along < math.cos(ANGLE) * size:
            yield seen * strength / size, 2.0 * number
        if -1.0 - GRAVITY < along < 1.0 - GRAVITY:
            yield own * along, number

    def _is_real(self, trial: _Trial) -> bool:
        """True if the difference is relevant, explains some effort, and leaves less of it
        unexplained than the best reading so far."""
        variance, reading = trial.fit.variance, trial.fit.reading
        left = variance / np.maximum(self.evidence.spread[reading.order], 1e-300)
        if left[trial.joints].min() > LEFT or self._explained(trial) < LEAST_EXPLAINED:
            return False
        if trial.cause is Cause.unit:
            changed = reading.scale / self.best.reading.scale
            return bool((_is_wrong(changed) | (changed < 0.0)).any())
        return True

    def _explained(self, trial: _Trial) -> float:
        """Reduction by another reading of the residual that the URDF's masses leave with any
        friction, rotors and offsets; in squares of the noise, as a fraction of the residual above
        the noise.

        The residual with fitted masses is not used, as lighter links explain motor currents too.
        """
        now, after = self.best.reading, trial.fit.reading
        squares, noise = np.empty((2, self.model.nv)), np.empty(self.model.nv)
        for row, reading in zip(squares, (now, after), strict=True):
            row[reading.order] = self.evidence.as_declared(reading)
        noise[after.order] = trial.fit.variance
        about = now.order[trial.joints]
        before, left = ((self.evidence.independent * row / noise)[about].sum() for row in squares)
        above_noise = before - self.evidence.independent[about].sum()
        return float(min((before - left) / max(above_noise, 1e-9), 1.0))

    def _told(self, trial: _Trial) -> Contribution:
        """Message of another reading."""
        cause, which, names = trial.cause, trial.joints, self.model.joint_names
        before, now, fit, after = self.best, self.best.reading, trial.fit, trial.fit.reading
        part = self._explained(trial)
        changed, what = after.scale / now.scale, ""
        if cause is Cause.unit and (changed[which] < 0.0).all():
            cause = Cause.sign
        if cause is Cause.gravity:
            shares = self.evidence.independent * (before.variance - fit.variance) / fit.variance
            which, what = shares > 0.1 * shares.max(), gravity_words(self.model, after.gravity)
        elif cause is Cause.exchange:
            moved = np.flatnonzero(after.order != now.order)
            pairs = ((names[j], names[after.order[j]]) for j in moved)
            what = "; ".join(f"the effort of {one} is called {other}" for one, other in pairs)
        elif cause is Cause.unit and which.sum() > 1 and np.ptp(changed) == 0.0:
            what = scale_words(changed[0])
        elif cause is Cause.unit:
            which = _is_wrong(changed)
            factors = (f"{names[j]} {changed[j]:.3g} times" for j in np.flatnonzero(which))
            what = f"are not the torques of the robot: {', '.join(factors)} their size"
        return told(cause, self.model, which, part=part, what=what)


def _starting_scales(scale: FloatArray, certainty: FloatArray) -> tuple[FloatArray, float]:
    """Initial scales of fits: one for each joint, shape (nv,), and one for all joints.

    The common scale is the geometric mean, weighted by the certainty of each joint's scale: by its
    joint's effort, bounded by the uncertainty of the URDF's masses. A wrist whose effort is
    friction has no weight, and starts with the common scale.

    Args:
        scale: factor with which the URDF's torques fit each effort, shape (nv,).
        certainty: certainty of each factor, see `TorqueEvidence.described`, shape (nv,).
    """
    weight = 1.0 / (1.0 / np.maximum(certainty, 1e-9) + TRUST**2)
    size = np.maximum(np.abs(scale), 1e-12)
    common = math.exp(float(weight @ np.log(size)) / float(weight.sum()))
    common = math.copysign(common, float(weight @ np.sign(scale)))
    return np.where(certainty > 1.0, scale, common), common


def _is_wrong(scale: FloatArray) -> BoolArray:
    """True if the scale of efforts is not 1, shape as `scale`."""
    return np.asarray((np.abs(scale) < math.exp(-SCALE)) | (np.abs(scale) > math.exp(SCALE)))
