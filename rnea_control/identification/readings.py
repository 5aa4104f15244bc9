"""`Readings`: whether the efforts of a recording are the torques of its robot, or what else.

Gravity must be in them, each must be of its own joint, in Nm, of the same sign and clock as the
positions. Every other reading must be much likelier than the robot as described with any masses,
friction, rotors, offsets and delay (`TorqueEvidence`), since those a fit finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from rnea_control.analysis import base_parameters, inertial_parameters
from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.causes import Cause, Contribution, told
from rnea_control.identification.delay import Delay, delay_of
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.torque_evidence import Fit, Reading, TorqueEvidence
from rnea_control.model import RobotModel

# The evidence, as the logarithm of a ratio of likelihoods, that another reading needs, and that
# tells two of them apart.
STRONG, CLOSE = 14.0, 5.0
# So many readings may be wrong at once.
MOST = 3
# Scales this near to 1 are right, as parts; gravity may differ by this part, or this angle [rad].
SCALE, GRAVITY, ANGLE = 0.12, 0.25, 0.17
# A reading that leaves more than this part of the variance at every joint explains nothing.
LEFT = 0.4
# A common scale nearer to 1 than this may be that of all masses.
HEAVIER = 0.5
# Clocks that go apart by more than this within a recording differ, [s].
LATER = 0.02


@dataclass(frozen=True, eq=False)
class _Trial:
    """Another reading: its cause, the joints it is about, which scales are unknown (see
    `TorqueEvidence.fit`), and what its choice among others costs."""

    cause: Cause
    joints: tuple[int, ...]
    reading: Reading
    groups: IntArray | None = None
    price: float = 0.0


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
        self.model = model
        self.delay = self._delay(motion) if finds_delay else None
        self.evidence = TorqueEvidence(model, motion)
        reading = self.evidence.as_described
        self.undelayed = self.evidence.fit(reading).variance
        if self.delay and self.delay.is_significant:
            self.evidence = TorqueEvidence(model, motion.delayed(self.delay.seconds))
        self.evidence.weigh(self.evidence.fit(reading))
        self.best = self.evidence.fit(reading)
        self.found: list[Contribution] = []
        self.question = ""
        while len(self.found) < MOST and self._one_more():
            pass

    def _delay(self, motion: Motion) -> Delay | None:
        """The delay of the efforts, if there can be one."""
        base = base_parameters(self.model)
        equations = TorqueEquations(identified_robot(self.model), base.independent, motion)
        try:
            return delay_of(equations, base.values(inertial_parameters(self.model)))
        except IdentificationError:
            return None

    def _one_more(self) -> bool:
        """Whether another reading is much likelier; it is the best one then."""
        fits = (
            (trial, self.evidence.fit(trial.reading, groups=trial.groups))
            for trial in self._trials()
        )
        results = [
            (fit.cost + trial.price, trial, fit) for trial, fit in fits if self._is_real(trial, fit)
        ]
        results.sort(key=lambda each: each[0])
        gained = self.best.cost - results[0][0] if results else 0.0
        later, gain = self.evidence.clock(self.best)
        if abs(later) > LATER and gain > max(STRONG, gained):
            what = f"{1e3 * abs(later):.0f} ms {'later' if later > 0.0 else 'earlier'}"
            rows = dict.fromkeys(self.model.joint_names, "")
            self.found.append(told(Cause.clock, rows, (later,), what=what))
            return False
        if gained < STRONG:
            return False
        cost, trial, fit = results[0]
        if not self.found and len(results) > 1 and results[1][0] - cost < CLOSE:
            other = self._told(*results[1][1:]).sentence.partition(". ")[0]
            self.question = (
                f"Not certain: it may also be that {other}. What decides is a recording of "
                f"{trial.cause.decided_by}."
            )
        self.found.append(self._told(trial, fit))
        self.best = fit
        return True

    def _trials(self) -> Iterator[_Trial]:
        """All readings that differ from the best one by one cause."""
        now, nv = self.best.reading, self.model.nv
        joints, order, scale = np.arange(nv), np.array(now.order), np.array(now.scale)
        scales, left = self.evidence.described(now)
        own_scale, own_left = scales[joints, order], left[joints, order]
        weight = 1.0 / np.maximum(own_left, 1e-3) - 1.0
        common = np.full(nv, weight @ own_scale / max(weight.sum(), 1e-300))
        number = 0.5 * math.log(max(self.evidence.independent.sum(), 1.0))  # price of one

        def scaled(values: FloatArray) -> Reading:
            return replace(now, scale=tuple(values.tolist()))

        def ordered(values: IntArray) -> Reading:
            return replace(now, order=tuple(values.tolist()))

        if now.gravity == tuple(self.model.gravity):
            for gravity, price in self._gravities(number):
                yield _Trial(Cause.gravity, (), replace(now, gravity=tuple(gravity)), None, price)
        every = tuple(range(nv))
        yield _Trial(Cause.sign, every, scaled(-scale))
        yield _Trial(Cause.unit, every, scaled(common), np.zeros(nv, int), number)
        yield _Trial(Cause.unit, every, scaled(own_scale), joints, nv * number)
        choice = math.log(nv)
        for j in every:
            turned, other = (np.where(joints == j, new, scale) for new in (-scale, own_scale))
            alone = np.where(joints == j, 0, -1)
            yield _Trial(Cause.sign, (j,), scaled(turned), None, choice)
            yield _Trial(Cause.unit, (j,), scaled(other), alone, number + choice)
        pairs = list(combinations(every, 2))
        for pair in pairs:
            swapped = order.copy()
            swapped[list(pair)] = order[list(reversed(pair))]
            yield _Trial(Cause.exchange, pair, ordered(swapped), None, math.log(len(pairs)))
        assigned = linear_sum_assignment(np.log(np.maximum(left, 1e-6)))[1]
        moved = tuple(np.flatnonzero(assigned != order).tolist())
        if len(moved) > 2:
            price = math.log(math.factorial(nv))
            yield _Trial(Cause.exchange, moved, ordered(assigned), None, price)

    def _gravities(self, number: float) -> Iterator[tuple[FloatArray, float]]:
        """Other gravities, and what the numbers in each cost."""
        own = self.model.gravity
        strength = float(np.linalg.norm(own))
        if not strength:
            return
        yield 0.0 * own, 0.0
        yield -own, 0.0
        seen = self.evidence.gravity_of(self.best)
        size, along = float(np.linalg.norm(seen)), float(seen @ own) / strength
        if size and abs(size / strength - 1.0) < GRAVITY:
            yield seen * strength / size, 2.0 * number
        yield own * along / strength, number

    def _is_real(self, trial: _Trial, fit: Fit) -> bool:
        """Whether the difference is one that matters, and explains some effort."""
        left = fit.variance / np.maximum(self.evidence.spread[list(fit.reading.order)], 1e-300)
        if left[list(trial.joints or range(self.model.nv))].min() > LEFT:
            return False
        if trial.cause is Cause.unit:
            changed = np.array(fit.reading.scale) / np.array(self.best.reading.scale)
            sizes = np.abs(np.log(np.maximum(np.abs(changed), 1e-300)))
            return bool(sizes.max() > SCALE or changed.min() < 0.0)
        if trial.cause is Cause.gravity:
            new, own = np.array(fit.reading.gravity), self.model.gravity
            size, strength = np.linalg.norm(new), np.linalg.norm(own)
            if abs(size / strength - 1.0) > GRAVITY:
                return bool(size < strength)  # there is no more than the Earth's
            return bool(new @ own < math.cos(ANGLE) * size * strength)
        return True

    def _told(self, trial: _Trial, fit: Fit) -> Contribution:
        """What another reading says."""
        cause, joints, names = trial.cause, list(trial.joints), self.model.joint_names
        before, after = self.best, fit.reading
        part = 1.0 - float(np.sqrt((fit.variance / before.variance).min()))
        changed = np.array(after.scale) / np.array(before.reading.scale)
        values: tuple[float, ...] = ()
        what = ""
        if cause is Cause.unit and (changed[joints] < 0.0).all():
            cause = Cause.sign
        if cause is Cause.gravity:
            shares = self.evidence.independent * (before.variance - fit.variance) / fit.variance
            joints = np.flatnonzero(shares > 0.1 * shares.max()).tolist()
            values, what = after.gravity, self._gravity_words(np.array(after.gravity))
        elif cause is Cause.exchange:
            what = "; ".join(
                f"the effort of {names[j]} is called {names[k]}"
                for j, k in enumerate(after.order)
                if k != before.reading.order[j]
            )
        elif cause is Cause.unit:
            values = after.scale
            joints = np.flatnonzero(np.abs(np.log(np.abs(changed) + 1e-300)) > SCALE).tolist()
            factors = ", ".join(f"{names[j]} {changed[j]:.3g} times" for j in joints)
            what = f"are not the torques of the robot: {factors} their size"
            if len(trial.joints) > 1 and np.ptp(changed) == 0.0:
                what = f"of all joints are {changed[0]:.3g} times the torques of the robot"
                if abs(changed[0] - 1.0) < HEAVIER:
                    what += "; or all masses and inertias are so many times the URDF's"
        return told(cause, {names[j]: "" for j in joints}, values, part, what=what)

    def _gravity_words(self, gravity: FloatArray) -> str:
        own = self.model.gravity
        factor = float(gravity @ own / (own @ own))
        if not gravity.any():
            return "is not in the efforts"
        if np.allclose(gravity, -own):
            return "in the efforts is the opposite of the model's"
        if np.allclose(gravity, factor * own):
            return f"in the efforts is {factor:.2f} times the model's"
        x, y, z = gravity
        return (
            f"in the efforts is along [{x:.2f}, {y:.2f}, {z:.2f}] in the frame of "
            f"{self.model.root_link!r}, not along [{own[0]:g}, {own[1]:g}, {own[2]:g}]"
        )
