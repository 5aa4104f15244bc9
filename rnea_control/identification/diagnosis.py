"""`diagnose`: from a recording and a model to a ranked list of causes, with what speaks for each.

First come the causes that no fit makes up for: what the efforts show by themselves, such as
clipping, then what else they are than the torques of the robot (`Readings`). Then, beside those, in
what the model differs from the robot (`differences`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.causes import Cause, Contribution, told
from rnea_control.identification.differences import differences
from rnea_control.identification.least_squares import late
from rnea_control.identification.motion import COARSE_ROUNDING, Motion, measurement_noise
from rnea_control.identification.readings import Readings
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# Values that make less than this part of a joint's residual are not told.
SMALL = 0.1
# Nothing explains efforts if more than this is left: of them, and of the effort limit.
LEFT, LEFT_OF_LIMIT = 0.5, 0.05
# Efforts are beyond the limits if so many are, by this factor.
BEYOND, OFTEN = 1.1, 0.01


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How a model compares with a recording, and why.

    Attributes:
        rms: of measured minus model's torque, shape (nv,), [Nm] or [N]; 0 where a joint stands.
        rms_left: once all causes are accounted for.
        noise: of the measured torque.
        torque: root mean square of the measured torque.
        delay: by which the efforts are later than the motion, [s]; 0 if that is not significant.
        contributions: the causes, those first that no fit makes up for. Their values are, one for
            each joint, scales, offsets, damping and then Coulomb friction, or rotor inertias that
            the model lacks; gravity; the delay; or ten parameters of the load in its link's frame.
        question: what else could explain the efforts as well, and the recording that decides.
    """

    rms: FloatArray
    rms_left: FloatArray
    noise: FloatArray
    torque: FloatArray
    delay: float
    contributions: tuple[Contribution, ...]
    question: str

    @property
    def at_noise(self) -> bool:
        """Whether there is nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why parameters fitted to these efforts would be wrong, a sentence each."""
        wrong = [each for each in self.contributions if not each.cause.value.fitted]
        return tuple(each.sentence for each in wrong)


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
    rms = np.sqrt(
        (np.where(motion.counts, rest, 0.0) ** 2).sum(axis=0)
        / np.maximum(motion.counts.sum(axis=0), 1)
    )
    recorded = _of_signals(model, motion)
    at_noise = bool((rms <= AT_NOISE * noise).all())
    if at_noise or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, 0.0, tuple(recorded), "")
    search = Readings(model, motion, delay is None)
    lies, best = search.found, search.best
    names = {name for each in lies for name in each.joints}
    lies += [each for each in _beyond(model, motion, noise) if not names & {*each.joints}]
    if not lies and not recorded:
        lies += _unexplained(search, noise)
    parts, excess = differences(search.evidence, best, SMALL * np.maximum(rms, noise))
    if search.delay and not lies and not recorded:
        words = f"the efforts are {late(search.delay)} than the positions"
        own = float(search.evidence.independent @ (search.undelayed / best.variance - 1.0))
        part = max(own / (own + excess), 0.0)
        parts.append(told(Cause.delay, words, (), (search.delay,), part))
    parts.sort(key=lambda each: -each.part)
    causes = (*recorded, *lies, *parts)
    left = np.sqrt(best.variance + search.evidence.rough)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _of_signals(model: RobotModel, motion: Motion) -> list[Contribution]:
    """What the efforts show without any model."""
    found, names = [], model.joint_names
    clipped = motion.clipped.mean(axis=0)
    if clipped.any():
        joints = np.flatnonzero(clipped).tolist()
        where = ", ".join(f"{names[j]} ({100.0 * clipped[j]:.0f} %)" for j in joints)
        words = f"the efforts are clipped: {where} are at the largest or smallest value"
        found.append(told(Cause.clipping, words, (names[j] for j in joints), clipped))
    steps = motion.rounding
    coarse = np.flatnonzero(steps > COARSE_ROUNDING * np.std(motion.effort, axis=0)).tolist()
    if coarse:
        where = ", ".join(f"{names[j]} {steps[j]:.3g} {units(model, j).effort}" for j in coarse)
        words = f"the efforts come in coarse steps: {where}. A delay or friction in them is a guess"
        found.append(told(Cause.rounding, words, (names[j] for j in coarse), steps))
    return found


def _beyond(model: RobotModel, motion: Motion, noise: FloatArray) -> list[Contribution]:
    """Efforts that are beyond the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    sizes = np.abs(motion.effort)
    joints = np.flatnonzero((sizes > BEYOND * limit + 4.0 * noise).mean(axis=0) > OFTEN).tolist()
    if not joints:
        return []
    where = ", ".join(
        f"{model.joint_names[j]} up to {np.quantile(sizes[:, j], 1.0 - OFTEN):.3g} "
        f"{units(model, j).effort}, limit {limit[j]:.3g}"
        for j in joints
    )
    words = f"{Cause.limit.value.name}: {where}"
    return [told(Cause.limit, words, (model.joint_names[j] for j in joints))]


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
    words = f"no cause that is known explains the efforts of {', '.join(found.values())}"
    return [told(Cause.unknown, words, found)] if found else []
