"""`diagnose`: ranked list of causes for a difference between a recording and a model.

First come the causes that no fit compensates: defects of the efforts that show without a model,
such as clipping, then efforts that are not the torques of the robot (`readings.py`). Then come
differences between model and robot (`model_differences.py`). A recording passes through these
stages once, in this order.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rnea_control.analysis import (
    base_parameters,
    inertial_parameters,
    inverse_dynamics_batch,
)
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.hypotheses import hypotheses
from rnea_control.identification.hypotheses.clocks import DELAY
from rnea_control.identification.hypotheses.hypothesis import Recorded, Signal
from rnea_control.identification.least_squares import Delay, delay_of, late
from rnea_control.identification.model_differences import model_differences
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.identification.noise_spectrum import enough_of
from rnea_control.identification.readings import search
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.torque_evidence import TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import Contribution, told

AT_NOISE = 1.2  # largest residual of a joint with nothing to explain, over its noise
SMALL = 0.1  # smallest reported torque of a cause, as a fraction of a joint's residual


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Differences between a model and a recording, and their causes; arrays have the shape (nv,),
    [Nm] or [N]."""

    rms: FloatArray  # root mean square of measured minus model's torque; 0 for a joint at rest
    rms_left: FloatArray  # the same after all causes are accounted for
    noise: FloatArray  # standard deviation of the measured torque's noise
    torque: FloatArray  # root mean square of the measured torque
    delay: Delay | None  # delay of the efforts; None if it was not estimated
    contributions: tuple[Contribution, ...]  # causes; first the causes that no fit compensates
    question: str  # alternative explanation of the efforts, and the recording that decides

    @property
    def at_noise(self) -> bool:
        """True if the residuals are at the noise: nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why parameters fitted to these efforts would be wrong, a sentence each."""
        return tuple(each.sentence for each in self.contributions if not each.cause.fitted)


def diagnose(model: RobotModel, motion: Motion, delay: float | None = None) -> Diagnosis:
    """Compares a model with a measured motion.

    Args:
        model: the robot, with its payloads, friction, armature and offsets; its joints have one
            degree of freedom each.
        motion: motion of its joints.
        delay: delay of the efforts against the motion, [s]; from the data by default.

    Raises:
        IdentificationError: no link that moves has a mass.
    """
    signals = (hypothesis.signal(model, motion) for hypothesis in hypotheses(Signal))
    shown = [each for each in signals if each.joints]
    enough = enough_of(motion)  # some ranges of a long motion are enough
    motion = motion.take(enough).delayed(delay or 0.0)
    noise = measurement_noise(motion)
    torque = np.sqrt(np.mean(motion.effort**2, axis=0))
    error = motion.effort - inverse_dynamics_batch(model, motion.q, motion.v, motion.a)
    squares = np.sum(error**2, axis=0, where=motion.counts)
    rms = np.sqrt(squares / np.maximum(motion.counts.sum(axis=0), 1))
    if (rms <= AT_NOISE * noise).all() or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, None, tuple(shown), "")
    robot, found_delay, aligned = identified_robot(model), None, motion
    if delay is None:
        base = base_parameters(model)
        equations = TorqueEquations(robot, base.independent, motion)
        with suppress(IdentificationError):  # the delay cannot be estimated
            found_delay = delay_of(equations, base.values(inertial_parameters(model)))
    if found_delay and found_delay.is_significant:
        aligned = motion.delayed(found_delay.seconds)
    evidence = TorqueEvidence(model, robot, aligned)
    recorded = Recorded(model, motion, noise, evidence.gravity_ratio(), tuple(shown))
    readings = search(evidence, recorded)
    best, lies = readings.best, (*shown, *readings.causes)
    least_told = SMALL * np.maximum(rms, noise)
    parts, excess = model_differences(evidence, best, least_told)
    if found_delay and aligned is not motion and not lies:
        before = TorqueEvidence(model, robot, motion)
        undelayed = before.fit(before.as_described).variance
        own = float(evidence.independent @ (undelayed / best.variance - 1.0))
        none, part = np.zeros(model.nv, np.bool_), max(own / (own + excess), 0.0)
        what = late(found_delay.seconds)
        parts.append(told(DELAY, model, none, part=part, what=what))
    parts.sort(key=lambda each: each.part or 0.0, reverse=True)
    left = np.sqrt(best.variance + evidence.rough)
    causes = (*lies, *parts)
    return Diagnosis(rms, left, noise, torque, found_delay, causes, readings.question)
