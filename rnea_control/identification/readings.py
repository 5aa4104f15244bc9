"""`Readings`: whether the efforts of a recording are the torques of its robot, or what else.

Gravity must be in them, each must be of its own joint, in Nm, of the same sign and clock as the
positions. Every other reading must be much likelier than the robot as described with any masses,
friction, rotors, offsets and delay (`TorqueEvidence`), since those a fit finds.
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

# The evidence, as the logarithm of a ratio of likelihoods, that another reading needs, and that
# tells two of them apart.
STRONG, CLOSE = 14.0, 5.0
# So many readings may be wrong at once.
MOST = 3
# Scales this near to 1 are right, as parts; gravity may differ by this part, or this angle [rad].
SCALE, GRAVITY, ANGLE = 0.12, 0.25, 0.17
# A reading that leaves more than this part of the variance at every joint explains nothing.
LEFT = 0.4
# A reading that takes away less than this part of the residual is no cause.
LEAST_EXPLAINED = 0.05
# The fit of a common scale is tried from these multiples of the mean of the joints' scales: masses
# and a common scale make up for each other, so that a fit stays near where it starts.
STARTS = tuple(1.25**k for k in (0, 1, -1, 2, -2, 3, -3))
# Clocks that go apart by more than this within a recording differ, [s].
LATER = 0.02


@dataclass(frozen=True, eq=False)
class _Trial:
    """Another reading: its cause, the joints it is about, shape (nv,), its fit, and what this costs
    with the choice among others."""

    cause: Cause
    joints: BoolArray
    fit: Fit
    cost: float


class Readings:
    """The search for what is wrong with the efforts of one recording.

    Args:
        model: the robot as described.
        motion: that was measured, with any given delay made up for.
        finds_delay: whether a delay is looked for.

    Attributes:
        evidence: of the motion, with the delay made up for.
        delay: by which the efforts are later; None if it was not looked for, or cannot be.
        undelayed: mean square of the residuals without that, shape (nv,).
        best: the likeliest reading so far.
        found: the causes, in the order in which they were found.
        question: see `Diagnosis`.
    """

    def __init__(self, model: RobotModel, motion: Motion, finds_delay: bool) -> None:
        self.model, robot = model, identified_robot(model)
        self.evidence = TorqueEvidence(model, robot, motion)
        self.delay: Delay | None = None
        base = self.evidence.space.base
        if finds_delay:
            equations = TorqueEquations(robot, base.independent, motion)
            with suppress(IdentificationError):  # there can be none
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
        """Whether another reading is much likelier; it is the best one then."""
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
        """All readings that differ from the best one by one cause."""
        now, nv = self.best.reading, self.model.nv
        every, each = np.ones(nv, np.bool_), np.eye(nv, dtype=np.bool_)
        scales, left, certainty = self.evidence.described(now)
        rows = np.arange(nv)
        own = scales[rows, now.order], certainty[rows, now.order]
        own_scale, common = _starting_scales(*own)
        number = 0.5 * math.log(max(self.evidence.independent.sum(), 1.0))  # price of one

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
        """Gravities that differ from the model's by more than its errors, and what the numbers in
        each cost; there is none stronger than the Earth's."""
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
        """Whether the difference is one that matters, explains some effort, and leaves less of it
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
        """What another reading takes away of the residual that the URDF's masses leave beside any
        friction, rotors and offsets, in squares of the noise and as a part of what is above it.

        Not the residual beside fitted masses: lighter links explain motor currents as well.
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
        """What another reading says."""
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
    """Scales from which fits start: one for each joint, shape (nv,), and one for all.

    The common one is the geometric mean, weighted by how well each is known: by its joint's effort,
    and no better than the masses of the URDF are. A wrist whose effort is friction has no vote, and
    starts from the common scale.

    Args:
        scale, certainty: see `TorqueEvidence.described`, shape (nv,).
    """
    weight = 1.0 / (1.0 / np.maximum(certainty, 1e-9) + TRUST**2)
    size = np.maximum(np.abs(scale), 1e-12)
    common = math.exp(float(weight @ np.log(size)) / float(weight.sum()))
    common = math.copysign(common, float(weight @ np.sign(scale)))
    return np.where(certainty > 1.0, scale, common), common


def _is_wrong(scale: FloatArray) -> BoolArray:
    """Whether efforts are of another size than the torques."""
    return np.asarray((np.abs(scale) < math.exp(-SCALE)) | (np.abs(scale) > math.exp(SCALE)))
