"""By how much measured efforts are later than the motion.

Where they are later by a delay d, tau = Y beta - d dtau/dt to first order; d is one more unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.least_squares import solve
from rnea_control.identification.torque_equations import TorqueEquations

# So many samples are enough, in ranges of this length, [s].
DELAY_SAMPLES, DELAY_SECONDS = 30_000, 2.0
DELAY_PASSES = 5
LONGEST_DELAY = 0.15
# A delay of fewer standard deviations may be none.
SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class Delay:
    """By how much the effort is later than the motion."""

    seconds: float
    deviation: float  # its standard deviation, [s]
    beta: FloatArray  # the base parameters that it was found with

    @property
    def is_significant(self) -> bool:
        """Whether it is more than its uncertainty."""
        return abs(self.seconds) > SIGNIFICANT * self.deviation


def delay_of(equations: TorqueEquations, prior: FloatArray, robust: bool = False) -> Delay:
    """The delay of a motion, from enough of its samples.

    Args:
        equations, prior, robust: as of `solve`, with the base parameters' columns alone.

    Raises:
        IdentificationError: as `solve`; or a delay of more than `LONGEST_DELAY`.
    """
    motion, seconds = equations.motion, 0.0
    motion = motion.take(motion.spread(DELAY_SAMPLES, DELAY_SECONDS))
    beta = solve(replace(equations, motion=motion), prior, robust).beta
    for _ in range(DELAY_PASSES):
        shifted = beside_delay(replace(equations, motion=motion.delayed(seconds)), beta)
        solution = solve(shifted, prior, robust)
        step, beta = -float(solution.beta[-1]), solution.beta[:-1]
        seconds += step
        if abs(seconds) > LONGEST_DELAY:
            raise IdentificationError(
                f"{motion.source}: the efforts seem to be {late(seconds)} than the "
                "motion; do efforts and positions have the same clock, and are the efforts "
                "those of this robot? Give the delay by the option --delay"
            )
        if abs(step) <= max(0.1 * math.sqrt(solution.covariance[-1, -1]), 1e-6):
            break
    covariance = solution.in_slow_noise(shifted).covariance
    return Delay(seconds, math.sqrt(covariance[-1, -1]), beta)


def late(delay: float, decimals: int = 1) -> str:
    """By how much efforts are late, in words."""
    return f"{1e3 * abs(delay):.{decimals}f} ms {'later' if delay >= 0.0 else 'earlier'}"


def beside_delay(equations: TorqueEquations, near: FloatArray) -> TorqueEquations:
    """The equations with one more unknown, minus the delay: its column is the slope of the torques
    by base parameters `near`."""
    tau, motion = equations.predicted(near), equations.motion
    slope = np.concatenate([np.gradient(tau[p], motion.period, axis=0) for p in motion.parts])
    return replace(equations, more=(*equations.more, lambda rows, Y: slope[rows, :, None]))
