"""`diagnose`: from a recording and a model to a ranked list of causes, with what speaks for each.

First come the causes that no fit makes up for: what the efforts show by themselves, such as
clipping, then what else they are than the torques of the robot (`Readings`). Then, beside those, in
what the model differs from the robot: friction, offsets, rotors, a load, masses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.causes import Cause, Contribution, told
from rnea_control.identification.delay import Delay, late
from rnea_control.identification.motion import COARSE_ROUNDING, Motion, measurement_noise
from rnea_control.identification.readings import Readings
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of, pseudo_inertia_of
from rnea_control.model.robot_model import units

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# Values that make less than this part of a joint's residual are not told.
SMALL = 0.1
# Nothing explains efforts if more than this is left: of them, and of the effort limit.
LEFT, LEFT_OF_LIMIT = 0.5, 0.05
# Efforts are beyond the limits if so many are, by this factor.
BEYOND, OFTEN = 1.1, 0.01
# A difference counts if it explains this part of what is above the noise.
LEAST_PART = 0.03


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How a model compares with a recording, and why.

    Attributes:
        rms: of measured minus model's torque, shape (nv,), [Nm] or [N]; 0 where a joint stands.
        rms_left: once all causes are accounted for.
        noise: of the measured torque.
        torque: root mean square of the measured torque.
        delay: by which the efforts are later than the motion; None if it was not looked for.
        contributions: the causes, those first that no fit makes up for. Their values are, one for
            each joint, scales, offsets, damping and then Coulomb friction, or rotor inertias that
            the model lacks; gravity; the delay; or ten parameters of the load in its link's frame.
        question: what else could explain the efforts as well, and the recording that decides.
    """

    rms: FloatArray
    rms_left: FloatArray
    noise: FloatArray
    torque: FloatArray
    delay: Delay | None
    contributions: tuple[Contribution, ...]
    question: str

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
    """
    if delay:
        motion = motion.delayed(delay)
    noise = measurement_noise(motion)
    torque = np.sqrt(np.mean(motion.effort**2, axis=0))
    rest = motion.effort - inverse_dynamics_batch(model, motion.q, motion.v, motion.a)
    squares = np.where(motion.counts, rest, 0.0) ** 2
    rms = np.sqrt(squares.sum(axis=0) / np.maximum(motion.counts.sum(axis=0), 1))
    recorded = _of_signals(model, motion)
    at_noise = bool((rms <= AT_NOISE * noise).all())
    if at_noise or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, None, tuple(recorded), "")
    search = Readings(model, motion, delay is None)
    lies, best = search.found, search.best
    names = {name for each in lies for name in each.joints}
    lies += [each for each in _beyond(model, motion, noise) if not names & {*each.joints}]
    if not lies and not recorded:
        lies += _unexplained(search, noise)
    parts, excess = _differences(search.evidence, best, SMALL * np.maximum(rms, noise))
    if search.delay and search.delay.is_significant and not lies and not recorded:
        own = float(search.evidence.independent @ (search.undelayed / best.variance - 1.0))
        part = max(own / (own + excess), 0.0)
        later = search.delay.seconds
        parts.append(told(Cause.delay, {}, (later,), part, what=late(later)))
    parts.sort(key=lambda each: -each.part)
    causes = (*recorded, *lies, *parts)
    left = np.sqrt(best.variance + search.evidence.rough)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _of_signals(model: RobotModel, motion: Motion) -> list[Contribution]:
    """What the efforts show without any model."""
    clipped, steps = motion.clipped.mean(axis=0), motion.rounding
    at_ends, coarse = {}, {}
    for j, name in enumerate(model.joint_names):
        if clipped[j]:
            at_ends[name] = f"{name} ({100.0 * clipped[j]:.0f} %)"
        if steps[j] > COARSE_ROUNDING * np.std(motion.effort[:, j]):
            coarse[name] = f"{name} {steps[j]:.3g} {units(model, j).effort}"
    found = ((Cause.clipping, at_ends, clipped), (Cause.rounding, coarse, steps))
    return [told(*each) for each in found if each[1]]


def _beyond(model: RobotModel, motion: Motion, noise: FloatArray) -> list[Contribution]:
    """Efforts that are beyond the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    sizes = np.abs(motion.effort)
    often = (sizes > BEYOND * limit + 4.0 * noise).mean(axis=0) > OFTEN
    rows = {
        model.joint_names[j]: f"{model.joint_names[j]} up to "
        f"{np.quantile(sizes[:, j], 1.0 - OFTEN):.3g} {units(model, j).effort}, "
        f"limit {limit[j]:.3g}"
        for j in np.flatnonzero(often).tolist()
    }
    return [told(Cause.limit, rows)] if rows else []


def _unexplained(search: Readings, noise: FloatArray) -> list[Contribution]:
    """The joints whose efforts nothing explains."""
    predicted, measured = search.evidence.predicted(search.best)
    found = {}
    for j, name in enumerate(search.model.joint_names):
        used = np.isfinite(predicted[:, j])
        left = math.sqrt(search.best.variance[j])
        limit = float(search.model.effort_limit[j])
        large = left > 3.0 * noise[j] and left > LEFT * np.std(measured[used, j])
        if used.any() and large and not left < LEFT_OF_LIMIT * limit < math.inf:
            found[name] = f"{name} ({left:.3g} {units(search.model, j).effort})"
    return [told(Cause.unknown, found)] if found else []


def _differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """In what the model differs from the robot, by the torques that it lacks or has too much.

    Causes are added one by one, the one first that explains most for the numbers it needs, until
    nothing above the noise has a cause.

    Args:
        evidence: of the recording.
        best: the reading to take, with all parameters of the robot fitted.
        least_told: a torque of a joint that is worth to be told, shape (nv,), [Nm] or [N].

    Returns:
        The causes, and how much is above the noise, in squares of it.
    """
    least = evidence.independent / best.variance
    fits: dict[frozenset[Cause], Fit] = {}

    def fit(causes: tuple[Cause, ...]) -> Fit:
        key = frozenset(causes)
        if key not in fits:
            names = sorted(key, key=lambda cause: cause.name)
            opened = np.concatenate([np.zeros(0, int), *(evidence.columns[each] for each in names)])
            fits[key] = evidence.fit(best.reading, opened)
        return fits[key]

    def power(causes: tuple[Cause, ...]) -> float:
        return float(least @ fit(causes).variance)

    total = float(evidence.independent.sum())
    excess = max(power(()) - total, 1e-9)
    chosen: tuple[Cause, ...] = ()
    while True:
        others = [cause for cause in evidence.columns if cause not in chosen]
        more = min(((*chosen, c) for c in others), key=lambda t: fit(t).cost, default=chosen)
        gain = power(chosen) - power(more)
        if fit(more).cost >= fit(chosen).cost or gain < LEAST_PART * excess:
            break
        # One that came first may have stood for another.
        trials = [more]
        for k in range(len(more)):
            rest = (*more[:k], *more[k + 1 :])
            trials += [rest, *((*rest, c) for c in evidence.columns if c not in more)]
        chosen = min(trials, key=lambda t: fit(t).cost)
    found, left = [], power(())
    change = fit(chosen).theta - evidence.declared
    for k, cause in enumerate(chosen):
        after = power(chosen[: k + 1])
        part = max(min((left - after) / excess, 1.0), 0.0)
        left = after
        columns, own = evidence.columns[cause], np.zeros_like(change)
        own[columns] = change[columns]
        sizes = evidence.torque_of(own, best.reading)
        joints = np.flatnonzero(sizes > least_told).tolist() or [int(np.argmax(sizes))]
        found.append(_difference(evidence, cause, part, change[columns], sizes, joints))
    return found, excess


def _difference(
    evidence: TorqueEvidence,
    cause: Cause,
    part: float,
    values: FloatArray,
    sizes: FloatArray,
    joints: list[int],
) -> Contribution:
    """What a difference of the model means: `values` of theta, the root mean square of its
    torque at each joint, and the joints that are to be named."""
    model, names = evidence.model, {}
    link = model.child_links[-1]
    if cause is Cause.payload:
        values = evidence.space.to_load @ values
        load = link_inertia_of(link, pseudo_inertia_of(values))
        center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
        names = {"link": link, "mass": load.mass, "center": center}
    rows = {}
    for j in joints:
        unit, text = units(model, j), ""
        if cause is Cause.friction:
            damping, coulomb = values[j], values[model.nv + j]
            text = f"{coulomb:+.3g} {unit.effort} {damping:+.3g} {unit.effort} s/{unit.position}"
        elif cause is Cause.masses:
            text = f"{sizes[j]:.3g} {unit.effort}"
        elif cause is not Cause.payload:
            text = f"{values[j]:+.3g} {'kg m^2' if cause is Cause.rotor else unit.effort}"
        rows[model.joint_names[j]] = f"{model.joint_names[j]} {text}"
    if cause is Cause.masses:
        values = values[:0]
    return told(cause, rows, values, part, **names)
