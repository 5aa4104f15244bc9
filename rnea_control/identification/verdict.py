"""Comparison of measured torques with the torques of two models, and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import geometric_mean

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed, rounded
from rnea_control.identification.diagnosis import AT_NOISE
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

SAME = 0.05  # relative difference of errors that count as equal
ROUNDING = 1e-6  # error that is rounding, as a fraction of the torque
TINY = 1e-300  # smallest divisor, instead of 0


class Judgement(Enum):
    """Judgements of the identified parameters at a joint."""

    at_noise = "at the noise"  # they leave nothing to explain
    above_noise = "above the noise"
    worse = "worse than the URDF"
    still = "did not move"


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured torques of a robot and the torques of two models on one recording, shape (samples,
    joints), [Nm] or [N]; NaN for a joint at rest, as its friction is undetermined."""

    source: str  # name of the recording
    held_out: bool  # True if the recording was not used for the fit
    time: FloatArray  # time of the samples, shape (samples,), [s]
    measured: FloatArray
    before: FloatArray  # torques by the robot's description
    after: FloatArray  # torques with the identified parameters
    noise: FloatArray  # standard deviation of the measured torque's noise, shape (joints,)


def residuals_of(
    before: RobotModel, after: RobotModel, motion: Motion, held_out: bool
) -> Residuals:
    """Torques of a motion with a compensated delay, as measured and by two models of the same
    joints, friction included; `held_out`: True if the motion was not used to fit `after`."""
    by_before, by_after = (
        np.where(motion.counts, inverse_dynamics_batch(model, motion.q, motion.v, motion.a), np.nan)
        for model in (before, after)
    )
    measured, noise = motion.effort, measurement_noise(motion)
    return Residuals(motion.source, held_out, motion.time, measured, by_before, by_after, noise)


@dataclass(frozen=True)
class JointScore:
    """Errors of two models from the measured torque of a joint, [Nm] or [N]; NaN if the joint never
    moves."""

    joint: str
    unit: str
    before: float  # RMS error of the robot's description
    after: float  # RMS error with the identified parameters
    noise: float  # standard deviation of the noise, which no model explains
    torque: float  # RMS of the measured torque
    limit: float  # effort limit; NaN without one

    @property
    def is_known(self) -> bool:
        """True if the joint moved."""
        return math.isfinite(self.before) and math.isfinite(self.after)

    @property
    def gain(self) -> float:
        """Factor by which the error is smaller than before; below 1 the error is larger."""
        least = max(ROUNDING * self.torque, TINY)
        return max(self.before, least) / max(self.after, least)

    @property
    def share(self) -> float:
        """Error of the identified model as a fraction of the effort limit, or of the torque if
        there is no limit: comparable between joints of any strength."""
        return self.after / (max(self.torque, TINY) if math.isnan(self.limit) else self.limit)

    def explained(self, error: float) -> bool:
        """True if an error is at the noise: nothing to explain."""
        return error <= max(AT_NOISE * self.noise, ROUNDING * self.torque)

    @property
    def judgement(self) -> Judgement:
        """Judgement of the identified parameters."""
        if not self.is_known:
            return Judgement.still
        if self.explained(self.after):
            return Judgement.at_noise
        return Judgement.worse if self.gain < 1.0 - SAME else Judgement.above_noise


def scores(model: RobotModel, residuals: Sequence[Residuals]) -> list[JointScore]:
    """Scores of a robot's joints over several recordings, from samples with torques of both
    models."""
    squares, count = np.zeros((4, model.nv)), np.zeros(model.nv)
    for found in residuals:
        before, after = found.measured - found.before, found.measured - found.after
        known = np.isfinite(before + after)
        for k, values in enumerate((before, after, found.noise, found.measured)):
            squares[k] += np.sum(np.where(known, values, 0.0) ** 2, axis=0)
        count += known.sum(axis=0)
    limits = [limit if 0.0 < limit < math.inf else math.nan for limit in model.effort_limit]
    with np.errstate(invalid="ignore"):
        rows = np.vstack([np.sqrt(squares / count), limits]).T.tolist()
    return [
        JointScore(name, units(model, j).effort, *rows[j])
        for j, name in enumerate(model.joint_names)
    ]


def gain_of(known: Sequence[JointScore]) -> float:
    """Factor by which the errors of all these joints are smaller than before: the geometric mean,
    as torques and forces have no common unit. Its logarithm times the number of samples is the
    logarithm of the ratio of the likelihoods, if each joint has its own noise level.

    Raises:
        IdentificationError: no joint.
    """
    if not known:
        raise IdentificationError(
            "the held-out motion cannot be judged: no joint moves in it after the filter has "
            "settled and a delay is compensated. Record longer, or name another recording by "
            "--hold-out"
        )
    return geometric_mean(score.gain for score in known)


def is_better(model: RobotModel, residuals: Sequence[Residuals]) -> bool:
    """True if the errors on the held-out recordings are smaller than before.

    Raises:
        IdentificationError: no joint moves in these recordings.
    """
    held_out = scores(model, [found for found in residuals if found.held_out])
    return gain_of([score for score in held_out if score.is_known]) > 1.0


def summary(found: Identification) -> str:
    """Line with the number of identified parameters and the amount of data."""
    certainties = [estimate.certainty for estimate in found.estimates]
    counts = ", ".join(f"{certainties.count(each)} {each.value}" for each in Certainty)
    return (
        f"{len(certainties)} base parameters: {counts}; from {found.seconds:.1f} s of motion, "
        f"{min(found.samples):.0f} torques or more of each joint; filter {found.cutoff:.4g} Hz, "
        f"delay of the efforts {1e3 * found.delay:.3g} ms, condition {found.condition:.3g}"
    )


def verdict(result: Identification, residuals: Sequence[Residuals]) -> str:
    """A few sentences: improvement over the robot's description on the held-out recordings, and the
    next steps.

    Raises:
        IdentificationError: no joint moves in these recordings.
    """
    basis = [found for found in residuals if found.held_out]
    of_all = scores(result.model, basis)
    known = [score for score in of_all if score.is_known]
    gain = gain_of(known)
    sentences = [f"Do not use the result yet: {doubt}" for doubt in result.doubts]
    where = basis[0].source if len(basis) == 1 else f"{len(basis)} recordings"
    sentences += [f"On {where}, kept from the fit, {_comparison(known, gain)}", _noise(known)]
    worse = [score for score in known if score.judgement is Judgement.worse]
    if worse and gain >= 1.0 - SAME:
        names = [f"{score.joint} ({rounded(1.0 / score.gain, 2)} times)" for score in worse]
        sentences.append(f"It is larger than the URDF's at {listed(names)}.")
    if still := [score.joint for score in of_all if not score.is_known]:
        sentences.append(f"{listed(still)} did not move there and cannot be judged.")
    return " ".join([*sentences, *_to_do(result, known, gain)])


def _comparison(known: Sequence[JointScore], gain: float) -> str:
    ends = (choose(known, key=lambda score: score.gain) for choose in (min, max))
    reach = " to ".join(f"{rounded(score.gain, 2)} at {score.joint}" for score in ends)
    size = "about as large as"
    if gain > 1.0 + SAME:
        size = f"{rounded(gain, 2)} times smaller than"
    elif gain < 1.0 - SAME:
        size = f"{rounded(1.0 / gain, 2)} times larger than"
    return (
        f"the identified model's torque error, noise included, is {size} the URDF's (geometric "
        f"mean over the joints, {reach}){'' if gain > 1.0 else ': do not use it'}."
    )


def _noise(known: Sequence[JointScore]) -> str:
    """Words for the largest error beyond the noise."""
    above = [score for score in known if score.judgement is not Judgement.at_noise]
    if not above:
        already = all(score.explained(score.before) for score in known)
        also = "; so was the URDF's, and there was nothing to improve" if already else ""
        return f"It is at the noise of the measured torques at every joint{also}."
    worst = max(above, key=lambda score: score.share)
    whole = "torque" if math.isnan(worst.limit) else "effort limit"
    times = f"{worst.after / worst.noise:.2g} times the noise and " if worst.noise else ""
    return (
        f"It is above the noise of the measured torques at {len(above)} of {len(known)} joints; "
        f"{worst.joint} is furthest: what remains is {times}{100.0 * worst.share:.2g} % of the "
        f"{whole}."
    )


def _to_do(result: Identification, known: Sequence[JointScore], gain: float) -> list[str]:
    """Next steps, a sentence each."""
    if gain < 1.0 - SAME:
        return [
            "Check that all recordings are of the same robot with the same load, that the efforts "
            "are in Nm, and that the motion of the fit excites all joints."
        ]
    sentences = []
    at_noise = all(score.judgement is Judgement.at_noise for score in known)
    if not at_noise:
        sentences.append(
            "Rigid links with Coulomb and viscous friction do not explain the rest: friction that "
            "changes with load or temperature, elastic gears or cables may."
        )
    estimates = result.estimates
    unknown = [each.name for each in estimates if each.certainty is Certainty.unidentified]
    if unknown:
        sentences.append(
            f"{len(unknown)} of {len(estimates)} base parameters are not identified and stay near "
            f"the URDF's until a motion excites them (rnea_identify plan): {listed(unknown)}."
        )
    elif at_noise and not result.doubts:
        sentences.append("Nothing is left to do.")
    return sentences
