"""`diagnose`: from a recording and a model to a ranked list of causes, with what speaks for each.

First come the causes that no fit makes up for: what the efforts show by themselves, such as
clipping, then what else they are than the torques of the robot (`Readings`). Then, beside those, in
what the model differs from the robot: friction, offsets, rotors, a load, masses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.least_squares import Delay, late
from rnea_control.identification.motion import COARSE_ROUNDING, Motion, measurement_noise
from rnea_control.identification.noise_spectrum import enough_of
from rnea_control.identification.readings import Readings
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.model.causes import Cause, Contribution, effort_words, told
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_model import units

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# Values that make less than this part of a joint's residual are not told.
SMALL = 0.1
# Nothing explains efforts if more than this is left: of them, and of the effort limit.
LEFT, LEFT_OF_LIMIT = 0.5, 0.05
# Efforts are beyond the limits if so many are, by this factor.
BEYOND, OFTEN = 1.1, 0.01
# Efforts whose gravity torque is a smaller or larger multiple of the URDF's are in doubt, whatever
# else is found; no URDF's masses are that wrong.
LEAST_GRAVITY, MOST_GRAVITY = 0.4, 2.5
# A difference counts if it explains this part of what is above the noise.
LEAST_PART = 0.03


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How a model compares with a recording, and why; arrays have the shape (nv,), [Nm] or [N]."""

    rms: FloatArray  # of measured minus model's torque; 0 where a joint stands
    rms_left: FloatArray  # once all causes are accounted for
    noise: FloatArray  # of the measured torque
    torque: FloatArray  # root mean square of the measured torque
    delay: Delay | None  # of the efforts; None if it was not looked for
    contributions: tuple[Contribution, ...]  # the causes, those first that no fit makes up for
    question: str  # what else could explain the efforts, and the recording that decides

    @property
    def at_noise(self) -> bool:
        """Whether there is nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why parameters fitted to these efforts would be wrong, a sentence each."""
        return tuple(each.sentence for each in self.contributions if not each.cause.fitted)


def diagnose(model: RobotModel, motion: Motion, delay: float | None = None) -> Diagnosis:
    """Compares a model with a motion that was measured.

    Args:
        model: the robot, with its payloads, friction, armature and offsets; joints of one degree of
            freedom.
        motion: of its joints.
        delay: by which the efforts are later, [s]; from the data by default.

    Raises:
        IdentificationError: no link that moves has a mass.
    """
    recorded = [each for each in _of_signals(model, motion) if each.joints]
    # Some ranges of a long motion say as much.
    motion = motion.take(enough_of(motion)).delayed(delay or 0.0)
    noise = measurement_noise(motion)
    torque = np.sqrt(np.mean(motion.effort**2, axis=0))
    error = motion.effort - inverse_dynamics_batch(model, motion.q, motion.v, motion.a)
    squares = np.sum(error**2, axis=0, where=motion.counts)
    rms = np.sqrt(squares / np.maximum(motion.counts.sum(axis=0), 1))
    if (rms <= AT_NOISE * noise).all() or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, None, tuple(recorded), "")
    search = Readings(model, motion, delay is None)
    evidence, best, lies = search.evidence, search.best, search.found
    named = {name for each in lies for name in each.joints}
    for doubt in (_strength(evidence), _beyond(model, motion, noise)):
        if doubt.joints and named.isdisjoint(doubt.joints):
            lies.append(doubt)
    unexplained = _unexplained(search, noise)
    if unexplained.joints and not recorded:
        lies.insert(0, unexplained)
    parts, excess = _differences(evidence, best, SMALL * np.maximum(rms, noise))
    if search.delay and search.delay.is_significant and not lies and not recorded:
        own = float(evidence.independent @ (search.undelayed / best.variance - 1.0))
        none, part = np.zeros(model.nv, np.bool_), max(own / (own + excess), 0.0)
        what = late(search.delay.seconds)
        parts.append(told(Cause.delay, model, none, part=part, what=what))
    parts.sort(key=lambda each: each.part or 0.0, reverse=True)
    left = np.sqrt(best.variance + evidence.rough)
    causes = (*recorded, *lies, *parts)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _of_signals(model: RobotModel, motion: Motion) -> Iterator[Contribution]:
    """What the efforts show without any model."""
    clipped, steps = motion.clipped.mean(axis=0), motion.rounding
    yield told(Cause.clipping, model, clipped > 0.0, lambda j: f"({100.0 * clipped[j]:.0f} %)")
    coarse = steps > COARSE_ROUNDING * np.std(motion.effort, axis=0)
    yield told(Cause.rounding, model, coarse, lambda j: effort_words(model, j, steps))


def _strength(evidence: TorqueEvidence) -> Contribution:
    """Gravity torque at the joint that has most of it, far from the URDF's."""
    joint, ratio, deviation = evidence.gravity_ratio()
    far = ratio + 3.0 * deviation < LEAST_GRAVITY or ratio - 3.0 * deviation > MOST_GRAVITY
    which = (np.arange(evidence.model.nv) == joint) & far
    return told(Cause.strength, evidence.model, which, what=f"{ratio:.2g}")


def _beyond(model: RobotModel, motion: Motion, noise: FloatArray) -> Contribution:
    """Efforts that are beyond the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    sizes = np.abs(motion.effort)
    often = (sizes > BEYOND * limit + 4.0 * noise).mean(axis=0) > OFTEN
    largest = np.quantile(sizes, 1.0 - OFTEN, axis=0)

    def text(j: int) -> str:
        return f"up to {effort_words(model, j, largest)}, limit {limit[j]:.3g}"

    return told(Cause.limit, model, often, text)


def _unexplained(search: Readings, noise: FloatArray) -> Contribution:
    """The joints whose efforts nothing explains; where something was found most joints, as that is
    chance then, or none."""
    model, left = search.model, np.sqrt(search.best.variance)
    strength = np.sqrt(search.evidence.spread[search.best.reading.order])
    large = (left > 3.0 * noise) & (left > LEFT * strength)
    large &= large.mean() > 0.5 or not search.found
    large &= (left > LEFT_OF_LIMIT * model.effort_limit) | np.isinf(model.effort_limit)
    return told(Cause.unknown, model, large, lambda j: f"({effort_words(model, j, left)})")


def _differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """In what the model differs from the robot, beside the `best` reading: of all sets of causes
    the likeliest, the one first that explains most; and how much is above the noise, in squares of
    it. Torques of less than `least_told`, shape (nv,), are not worth to be told."""

    @cache
    def fit(causes: frozenset[Cause]) -> Fit:
        opened = [evidence.columns[cause] for cause in causes]
        return evidence.fit(best.reading, np.concatenate([np.zeros(0, int), *opened]))

    def above_noise(causes: Iterable[Cause]) -> float:
        variance = fit(frozenset(causes)).variance
        return float(evidence.independent @ (variance / best.variance - 1.0))

    every = [*evidence.columns]
    sets = chain.from_iterable(combinations(every, count) for count in range(len(every) + 1))
    likeliest = min(sets, key=lambda causes: fit(frozenset(causes)).cost)
    excess = left = max(above_noise(()), 1e-9)
    chosen: dict[Cause, float] = {}
    while others := [cause for cause in likeliest if cause not in chosen]:
        cause = min(others, key=lambda cause: above_noise((*chosen, cause)))
        before, left = left, above_noise((*chosen, cause))
        if before - left < LEAST_PART * excess:
            break
        chosen[cause] = (before - left) / excess
    with_all = fit(frozenset(chosen))
    parts = ((cause, min(part, 1.0)) for cause, part in chosen.items())
    return [_difference(evidence, *each, with_all, least_told) for each in parts], excess


def _difference(
    evidence: TorqueEvidence, cause: Cause, part: float, fit: Fit, least_told: FloatArray
) -> Contribution:
    """What one cause is in a fit."""
    model, own, columns = evidence.model, np.zeros_like(fit.theta), evidence.columns[cause]
    own[columns] = values = (fit.theta - evidence.declared)[columns]
    sizes = evidence.torque_of(own, fit.reading)
    felt = sizes > least_told
    felt[np.argmax(sizes)] |= not felt.any()

    def text(j: int) -> str:
        if cause is Cause.masses:
            return effort_words(model, j, sizes)
        if cause is Cause.rotor:
            return f"{values[j]:+.3g} {'kg' if model.joint_types[j] == 'prismatic' else 'kg m^2'}"
        constant = effort_words(model, j, values[-model.nv :], "+.3g")
        if cause is Cause.offset:
            return constant
        return f"{constant} {effort_words(model, j, values, '+.3g')} s/{units(model, j).position}"

    if cause is not Cause.payload:
        return told(cause, model, felt, text, part)
    link = model.child_links[-1]
    load = link_inertia_of(link, evidence.space.load_inertia(own))
    center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
    return told(cause, model, felt, part=part, link=link, mass=load.mass, center=center)
