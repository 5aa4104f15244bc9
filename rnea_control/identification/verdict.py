"""Measured torques beside those of two models, and what they say of the parameters, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import listed, rounded
from rnea_control.identification.diagnosis import AT_NOISE
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.model import RobotModel

# Errors that differ by less than this part are the same.
SAME = 0.05
# An error that is smaller than this part of the torque is rounding.
ROUNDING = 1e-6
TINY = 1e-300  # nothing is divided by 0
# A noise this much smaller than the error is no measure of it.
NO_NOISE = 1e-3


class Judgement(Enum):
    """What the identified parameters are at a joint."""

    at_noise = "at the noise"  # they leave nothing to explain
    above_noise = "above the noise"
    worse = "worse than the URDF"
    still = "did not move"


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured torques of a robot beside those of two models of it, on one recording, shape
    (samples, joints), [Nm] or [N]; NaN where a joint stands, as its friction may be anything."""

    source: str  # the recording
    held_out: bool  # whether it was kept from the fit
    time: FloatArray  # shape (samples,), [s]
    measured: FloatArray
    before: FloatArray  # by the robot's description
    after: FloatArray  # with the identified parameters
    # Standard deviation of the measured torque about its own smooth course, which no model
    # explains, shape (joints,).
    noise: FloatArray


def residuals_of(
    before: RobotModel, after: RobotModel, motion: Motion, held_out: bool
) -> Residuals:
    """The torques of a motion, with any delay made up for, as measured and by two models of the
    same joints, friction included; `held_out` says whether `after` knows nothing of it."""
    by_before, by_after = (
        np.where(motion.counts, inverse_dynamics_batch(model, motion.q, motion.v, motion.a), np.nan)
        for model in (before, after)
    )
    measured, noise = motion.effort, measurement_noise(motion)
    return Residuals(motion.source, held_out, motion.time, measured, by_before, by_after, noise)


@dataclass(frozen=True)
class JointScore:
    """How far two models are from the measured torque of a joint, [Nm] or [N]; NaN if it never
    moves."""

    joint: str
    before: float  # RMS of the error of the robot's description
    after: float  # the same with the identified parameters
    noise: float  # standard deviation of the part that no model explains
    torque: float  # RMS of the measured torque
    limit: float  # effort limit; NaN if there is none

    @property
    def is_known(self) -> bool:
        """Whether the joint moved."""
        return math.isfinite(self.before) and math.isfinite(self.after)

    @property
    def gain(self) -> float:
        """By what factor the error is smaller than before: below 1 it is larger."""
        least = max(ROUNDING * self.torque, TINY)
        return max(self.before, least) / max(self.after, least)

    def explained(self, error: float) -> bool:
        """Whether an error leaves nothing to explain."""
        return error <= max(AT_NOISE * self.noise, ROUNDING * self.torque)

    @property
    def judgement(self) -> Judgement:
        """Of the identified parameters."""
        if not self.is_known:
            return Judgement.still
        if self.explained(self.after):
            return Judgement.at_noise
        return Judgement.worse if self.gain < 1.0 - SAME else Judgement.above_noise


def scores(model: RobotModel, residuals: Sequence[Residuals]) -> list[JointScore]:
    """The joints of a robot over some recordings. Samples count where both models have a torque."""
    squares, count = np.zeros((4, model.nv)), np.zeros(model.nv)
    for found in residuals:
        errors = found.measured - found.before, found.measured - found.after
        noise = np.broadcast_to(found.noise, found.measured.shape)
        known = np.isfinite(errors[0] + errors[1])
        columns = (*errors, noise, found.measured)
        squares += [np.sum(values**2, axis=0, where=known) for values in columns]
        count += known.sum(axis=0)
    with np.errstate(invalid="ignore"):
        rms = np.sqrt(squares / count).T.tolist()
    limits = [limit if 0.0 < limit < math.inf else math.nan for limit in model.effort_limit]
    return [
        JointScore(name, before, after, noise, torque, limit)
        for name, (before, after, noise, torque), limit in zip(
            model.joint_names, rms, limits, strict=True
        )
    ]


def is_better(model: RobotModel, residuals: Sequence[Residuals]) -> bool:
    """Whether the joints' errors together, each as a part of its noise, have become smaller."""
    known = [score for each in residuals for score in scores(model, [each]) if score.is_known]
    errors = np.array([(score.before, score.after, score.noise) for score in known]).reshape(-1, 3)
    before, after, _ = np.nansum((errors / errors[:, 2:]) ** 2, axis=0)
    return bool(after < before)


def verdict(identification: Identification, residuals: Sequence[Residuals]) -> str:
    """Whether the identified parameters are better than the description's, by how much, and the
    next steps: a few sentences. Judged by the recordings that were held out, in which a joint must
    move."""
    basis = [found for found in residuals if found.held_out]
    of_all = scores(identification.model, basis)
    known = [score for score in of_all if score.is_known]
    gain = mean_gain(known)
    sentences = [f"Do not use the result yet: {doubt}" for doubt in identification.doubts]
    one = f"{basis[0].source}, which was"
    sources = one if len(basis) == 1 else f"{len(basis)} recordings, which were"
    sentences += [f"On {sources} kept from the fit, {_comparison(known, gain)}", _noise(known)]
    worse = [score for score in known if score.judgement is Judgement.worse]
    if worse and gain >= 1.0 - SAME:
        names = [f"{score.joint} ({rounded(1.0 / score.gain, 2)} times)" for score in worse]
        sentences.append(f"It is larger than the URDF's at {listed(names)}.")
    if still := [score.joint for score in of_all if not score.is_known]:
        sentences.append(f"{listed(still)} did not move there and cannot be judged.")
    return " ".join([*sentences, *_to_do(identification, known, gain)])


def mean_gain(known: Sequence[JointScore]) -> float:
    """Geometric mean of the joints' gains, as torques and forces have no common unit."""
    return math.exp(sum(math.log(score.gain) for score in known) / len(known))


def _comparison(known: Sequence[JointScore], gain: float) -> str:
    low, high = min(known, key=lambda s: s.gain), max(known, key=lambda s: s.gain)
    reach = f"{rounded(low.gain, 2)} at {low.joint} to {rounded(high.gain, 2)} at {high.joint}"
    size, end = "about as large as", ""
    if gain > 1.0 + SAME:
        size = f"{rounded(gain, 2)} times smaller than"
    elif gain < 1.0 - SAME:
        size, end = f"{rounded(1.0 / gain, 2)} times larger than", ": do not use it"
    return (
        f"the identified model's torque error, noise included, is {size} the URDF's (geometric "
        f"mean over the joints, {reach}){end}."
    )


def _noise(known: Sequence[JointScore]) -> str:
    """How much is left beyond the noise, and where most."""
    above = [score for score in known if score.judgement is not Judgement.at_noise]
    if not above:
        already = all(score.explained(score.before) for score in known)
        also = "; so was the URDF's, and there was nothing to improve" if already else ""
        return f"It is at the noise of the measured torques at every joint{also}."

    def part(score: JointScore) -> tuple[float, str]:
        """What is left, among joints of any strength, and of what it is a part."""
        if math.isnan(score.limit):
            return score.after / max(score.torque, TINY), "torque"
        return score.after / score.limit, "effort limit"

    worst = max(above, key=part)
    share, whole = part(worst)
    times = ""
    if worst.noise > NO_NOISE * worst.after:
        times = f"{worst.after / worst.noise:.2g} times the noise and "
    return (
        f"It is above the noise of the measured torques at {len(above)} of {len(known)} joints; "
        f"{worst.joint} is furthest: what remains is {times}{100.0 * share:.2g} % of the {whole}."
    )


def _to_do(identification: Identification, known: Sequence[JointScore], gain: float) -> list[str]:
    """The next steps."""
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
    unknown = sum(e.certainty is Certainty.unidentified for e in identification.estimates)
    if unknown:
        sentences.append(
            f"{unknown} of {len(identification.estimates)} base parameters are not identified: "
            "they stay near the URDF's until a motion excites them (rnea_identify plan)."
        )
    elif at_noise and not identification.doubts:
        sentences.append("Nothing is left to do.")
    return sentences
