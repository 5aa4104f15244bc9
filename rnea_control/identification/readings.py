"""`Readings`: whether the efforts of a recording are the torques of its robot, or what else.

Gravity must be in them, each must be of its own joint, in Nm, of the same sign and clock as the
positions. Every other reading must be much likelier than the robot as described with any masses,
friction, rotors, offsets and delay (`TorqueEvidence`), since those a fit finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from rnea_control.analysis import base_parameters, inertial_parameters
from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.causes import Cause, Contribution, told
from rnea_control.identification.delay import Delay, delay_of
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations
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
        self.evidence = evidence = TorqueEvidence(model, motion)
        self.best = evidence.fit(evidence.as_described)
        self.undelayed = self.best.variance
        if self.delay and self.delay.is_significant:
            motion = motion.delayed(self.delay.seconds)
            self.evidence = evidence = TorqueEvidence(model, motion)
        evidence.weigh(evidence.fit(evidence.as_described))
        self.best = evidence.fit(evidence.as_described)
        self.found: list[Contribution] = []
        self.question = ""
        while len(self.found) < MOST and self._one_more():
            pass

    def _delay(self, motion: Motion) -> Delay | None:
        """The delay of the efforts, if there can be one."""
        base = base_parameters(self.model)
        equations = TorqueEquations(self.model, base.independent)
        try:
            return delay_of(equations, motion, base.values(inertial_parameters(self.model)))
        except IdentificationError:
            return None

    def _one_more(self) -> bool:
        """Whether another reading is much likelier; it is the best one then."""
        results = []
        later, gain = self.evidence.clock(self.best)
        for trial in self._trials():
            fit = self.evidence.fit(trial.reading, groups=trial.groups)
            if self._is_real(trial, fit):
                results.append((fit.cost + trial.price, trial, fit))
        results.sort(key=lambda each: each[0])
        gained = self.best.cost - results[0][0] if results else 0.0
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
        number = 0.5 * math.log(max(self.evidence.independent.sum(), 1.0))  # price of one
        scales, left = self.evidence.described(now)
        own = np.arange(nv)
        if now.gravity == tuple(self.model.gravity):
            for gravity, price in self._gravities(number):
                yield _Trial(Cause.gravity, (), replace(now, gravity=tuple(gravity)), None, price)
        for j in range(nv):
            before, after = now.scale[:j], now.scale[j + 1 :]
            turned = replace(now, scale=(*before, -now.scale[j], *after))
            yield _Trial(Cause.sign, (j,), turned, None, math.log(nv))
            alone = replace(now, scale=(*before, float(scales[j, now.order[j]]), *after))
            yield _Trial(Cause.unit, (j,), alone, np.where(own == j, 0, -1), number + math.log(nv))
            for k in range(j):
                swapped = list(now.order)
                swapped[j], swapped[k] = swapped[k], swapped[j]
                price = math.log(max(nv * (nv - 1) / 2, 1))
                yield _Trial(
                    Cause.exchange, (k, j), replace(now, order=tuple(swapped)), None, price
                )
        all_turned = replace(now, scale=tuple(-s for s in now.scale))
        yield _Trial(Cause.sign, tuple(range(nv)), all_turned)
        by_joint = scales[own, list(now.order)]
        weight = 1.0 / np.maximum(left[own, list(now.order)], 1e-3) - 1.0
        common = float(weight @ by_joint / max(weight.sum(), 1e-300))
        together = replace(now, scale=tuple([common] * nv))
        yield _Trial(Cause.unit, tuple(range(nv)), together, np.zeros(nv, int), number)
        apart = replace(now, scale=tuple(by_joint.tolist()))
        yield _Trial(Cause.unit, tuple(range(nv)), apart, own, nv * number)
        order = tuple(linear_sum_assignment(np.log(np.maximum(left, 1e-6)))[1].tolist())
        moved = tuple(j for j in range(nv) if order[j] != now.order[j])
        if len(moved) > 2:
            price = math.log(math.factorial(nv))
            yield _Trial(Cause.exchange, moved, replace(now, order=order), None, price)

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
        turned = np.array(fit.reading.scale) * self.best.reading.scale < 0.0
        if trial.cause is Cause.unit and turned[list(trial.joints)].all():
            trial = replace(trial, cause=Cause.sign)
        before, reading, names = self.best, fit.reading, self.model.joint_names
        part = 1.0 - float(np.sqrt((fit.variance / before.variance).min()))
        joints, what = list(trial.joints), ""
        values: tuple[float, ...] = ()
        if trial.cause is Cause.gravity:
            shares = self.evidence.independent * (before.variance - fit.variance) / fit.variance
            joints = np.flatnonzero(shares > 0.1 * shares.max()).tolist()
            values, what = reading.gravity, self._gravity_words(np.array(reading.gravity))
        elif trial.cause is Cause.exchange:
            what = "; ".join(
                f"the effort of {names[j]} is called {names[k]}"
                for j, k in enumerate(reading.order)
                if k != before.reading.order[j]
            )
        elif trial.cause is Cause.unit:
            values = reading.scale
            changed = np.array(values) / np.array(before.reading.scale)
            joints = np.flatnonzero(np.abs(np.log(np.abs(changed) + 1e-300)) > SCALE).tolist()
            factors = ", ".join(f"{names[j]} {changed[j]:.3g} times" for j in joints)
            what = f"are not the torques of the robot: {factors} their size"
            if len(trial.joints) > 1 and np.ptp(changed) == 0.0:
                what = f"of all joints are {changed[0]:.3g} times the torques of the robot"
                if abs(changed[0] - 1.0) < HEAVIER:
                    what += "; or all masses and inertias are so many times the URDF's"
        return told(trial.cause, {names[j]: "" for j in joints}, values, part, what=what)

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
