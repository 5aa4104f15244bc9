"""Measured torques beside those of two models, and what they say of the parameters, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import listed
from rnea_control.identification.diagnosis import AT_NOISE
from rnea_control.identification.identify import Certainty, Identification
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.model import RobotModel

# Errors that differ by less than this part are the same.
SAME = 0.05
# An error that is smaller than this part of the torque is rounding.
ROUNDING = 1e-6
# A noise this much smaller than the error is no measure of it.
NO_NOISE = 1e-3


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured torques beside those of two models, on one recording, shape (samples, joints), [Nm]
    or [N]; NaN where a joint stands."""

    source: str  # the recording
    held_out: bool  # whether it was kept from the fit
    joints: tuple[str, ...]  # the order of the columns
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
    arrays = motion.q, motion.v, motion.a
    by_before, by_after = (inverse_dynamics_batch(model, *arrays) for model in (before, after))
    by_before[~motion.counts] = by_after[~motion.counts] = (
        np.nan
    )  # friction may be anything at rest
    measured = before.joint_names, motion.time, motion.effort
    noise = measurement_noise(motion)
    return Residuals(motion.source, held_out, *measured, by_before, by_after, noise)


@dataclass(frozen=True)
class JointScore:
    """How far two models are from the measured torque of a joint, [Nm] or [N]; NaN if it never
    moves."""

    joint: str
    before: float  # RMS of the error of the robot's description
    after: float  # the same with the identified parameters
    noise: float  # standard deviation of the part that no model explains
    torque: float  # RMS of the measured torque
    limit: float  # effort limit; infinite if there is none

    @property
    def is_known(self) -> bool:
        """Whether the joint moved."""
        return math.isfinite(self.before) and math.isfinite(self.after)

    @property
    def gain(self) -> float:
        """By what factor the error is smaller than before: below 1 it is larger."""
        least = max(ROUNDING * self.torque, 1e-300)
        return max(self.before, least) / max(self.after, least)

    def explained(self, error: float) -> bool:
        """Whether an error leaves nothing to explain."""
        return error <= max(AT_NOISE * self.noise, ROUNDING * self.torque)

    @property
    def is_at_noise(self) -> bool:
        """Whether the identified parameters leave nothing to explain."""
        return self.explained(self.after)

    @property
    def is_worse(self) -> bool:
        """Whether the identified parameters are worse here than the description's."""
        return self.gain < 1.0 - SAME and not self.is_at_noise


def scores(model: RobotModel, residuals: Sequence[Residuals]) -> list[JointScore]:
    """The joints of `model` over some recordings. Samples count where both models have a torque."""
    result = []
    for name, part in model.v_slices.items():
        rows = [np.zeros((4, 0))]
        for found in residuals:
            if name in found.joints:
                j = found.joints.index(name)
                torques = found.measured[:, j], found.before[:, j], found.after[:, j]
                rows.append(np.stack([*torques, np.full(len(found.time), found.noise[j])]))
        measured, before, after, noise = np.concatenate(rows, axis=1)
        known = np.isfinite(measured + before + after)
        values = (measured - before)[known], (measured - after)[known], noise, measured[known]
        a, b, c, d = (math.sqrt(np.mean(each**2)) if len(each) else math.nan for each in values)
        result.append(JointScore(name, a, b, c, d, float(model.effort_limit[part].min())))
    return result


def is_better(model: RobotModel, residuals: Sequence[Residuals]) -> bool:
    """Whether the joints' errors together, each as a part of its noise, have become smaller."""
    known = [score for each in residuals for score in scores(model, [each]) if score.is_known]
    errors = np.array([(score.before, score.after, score.noise) for score in known]).reshape(-1, 3)
    before, after, _ = np.nansum((errors / errors[:, 2:]) ** 2, axis=0)
    return bool(after < before)


def verdict(identification: Identification, residuals: Sequence[Residuals]) -> str:
    """Whether the identified parameters are better than the description's, by how much, and the
    next steps: a few sentences. Judged by held-out recordings; without any, by those of the fit, as
    it then says."""
    basis = [found for found in residuals if found.held_out] or residuals
    of_all = scores(identification.model, basis)
    known = [score for score in of_all if score.is_known]
    if not known:
        return (
            "No joint moves in any recording, so nothing can be said about the parameters. Record "
            "a motion of all joints."
        )
    gain = mean_gain(known)
    doubts = [f"Do not use the result yet: {doubt}" for doubt in identification.doubts]
    sentences = [*doubts, _comparison(known, gain, basis), _noise(known)]
    worse = [score for score in known if score.is_worse]
    if worse and gain >= 1.0 - SAME:
        names = [f"{score.joint} ({factor(1.0 / score.gain)} times)" for score in worse]
        sentences.append(f"It is larger than the URDF's at {listed(names)}.")
    still = [score.joint for score in of_all if not score.is_known]
    if still:
        sentences.append(f"{listed(still)} did not move there and cannot be judged.")
    return " ".join([*sentences, *_to_do(identification, known, gain, basis[0].held_out)])


def mean_gain(known: Sequence[JointScore]) -> float:
    """Geometric mean of the joints' gains, as torques and forces have no common unit."""
    return math.exp(sum(math.log(score.gain) for score in known) / len(known))


def _comparison(known: Sequence[JointScore], gain: float, basis: Sequence[Residuals]) -> str:
    where = (
        "No recording was kept from the fit: the figures are of the data that the parameters "
        "were fitted to and say little about any other motion. There,"
    )
    if basis[0].held_out:
        one = len(basis) == 1
        sources = f"{basis[0].source}, which was" if one else f"{len(basis)} recordings, which were"
        where = f"On {sources} kept from the fit,"
    low, high = min(known, key=lambda s: s.gain), max(known, key=lambda s: s.gain)
    span, reach = "", f", {factor(low.gain)} at {low.joint} to {factor(high.gain)} at {high.joint}"
    if len(known) > 1 and high.gain > (1.0 + SAME) * low.gain:
        span = f" (geometric mean over the joints{reach if low.gain > 1.0 - SAME else ''})"
    size, end = "about as large as", ""
    if gain > 1.0 + SAME:
        size = f"{factor(gain)} times smaller than"
    elif gain < 1.0 - SAME:
        size, end = f"{factor(1.0 / gain)} times larger than", ": do not use it"
    of = "the identified model's torque error, noise included, is"
    return f"{where} {of} {size} the URDF's{span}{end}."


def _noise(known: Sequence[JointScore]) -> str:
    above = [score for score in known if not score.is_at_noise]
    if not above:
        already = all(score.explained(score.before) for score in known)
        also = "; so was the URDF's, and there was nothing to improve" if already else ""
        return f"It is at the noise of the measured torques at every joint{also}."
    words = "At no joint does it reach" if len(above) == len(known) else "It does not reach"
    where = "" if len(above) == len(known) else f" at {len(above)} of {len(known)} joints"

    def of_strength(score: JointScore) -> tuple[float, str]:
        """What an error is a part of, among joints of any strength, and its name."""
        limited = 0.0 < score.limit < math.inf
        return (score.limit, "effort limit") if limited else (score.torque, "torque")

    worst = max(above, key=lambda score: score.after / max(of_strength(score)[0], 1e-300))
    largest = "" if len(known) == 1 else f" {worst.joint} is furthest:"
    remains = []
    if worst.noise > NO_NOISE * worst.after:
        remains.append(f"{worst.after / worst.noise:.2g} times the noise")
    size, name = of_strength(worst)
    if size > 0.0:
        remains.append(f"{100.0 * worst.after / size:.2g} % of the {name}")
    return (
        f"{words} the noise of the measured torques{where};{largest} what remains is "
        f"{' and '.join(remains)}."
    )


def _to_do(
    identification: Identification, known: Sequence[JointScore], gain: float, held_out: bool
) -> list[str]:
    """The next steps."""
    if gain < 1.0 - SAME:
        return [
            "Check that all recordings are of the same robot with the same load, that the efforts "
            "are in Nm, and that the motion of the fit excites all joints."
        ]
    sentences = []
    if not held_out:
        sentences.append("Record another motion, and keep it from the fit.")
    if any(not score.is_at_noise for score in known):
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
    elif held_out and not identification.doubts and all(score.is_at_noise for score in known):
        sentences.append("Nothing is left to do.")
    return sentences


def factor(value: float) -> str:
    """A factor with two digits at least, and never with an exponent."""
    return f"{value:.2f}" if value < 1.0 else f"{value:.1f}" if value < 10.0 else f"{value:.0f}"
