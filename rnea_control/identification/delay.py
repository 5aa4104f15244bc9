"""By how much measured efforts are later than the motion.

Where they are later by a delay d, tau = Y beta - d dtau/dt to first order; d is one more unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.least_squares import weighted_solution, with_spectrum
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import MoreColumns, TorqueEquations

# So many samples are enough, in ranges of this length, [s].
DELAY_SAMPLES, DELAY_SECONDS = 30_000, 2.0
DELAY_PASSES = 5
LONGEST_DELAY = 0.15
# A delay of fewer standard deviations may be none.
SIGNIFICANT = 3.0


@dataclass(frozen=True, eq=False)
class Delay:
    """By how much the effort is later than the motion.

    Attributes:
        seconds, deviation: the delay and its standard deviation, [s].
        beta: the base parameters that it was found with.
    """

    seconds: float
    deviation: float
    beta: FloatArray

    @property
    def is_significant(self) -> bool:
        """Whether it is more than its uncertainty."""
        return abs(self.seconds) > SIGNIFICANT * self.deviation


def delay_of(
    equations: TorqueEquations,
    motion: Motion,
    prior: FloatArray,
    near: float = 0.0,
    robust: bool = False,
) -> Delay:
    """The delay of a motion, from enough of its samples; arguments as of `solve`.

    Args:
        near: where the search starts, [s].

    Raises:
        IdentificationError: as `solve`; or a delay of more than `LONGEST_DELAY`.
    """
    motion = motion.take(motion.spread(DELAY_SAMPLES, DELAY_SECONDS))
    seconds = near
    beta = weighted_solution(equations, motion.delayed(near), prior, robust).beta
    for _ in range(DELAY_PASSES):
        shifted = motion.delayed(seconds)
        column = delay_column(equations, shifted, beta)
        solution = weighted_solution(equations, shifted, np.append(prior, 0.0), robust, column)
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
    solution = with_spectrum(solution, equations, shifted, column)
    return Delay(seconds, math.sqrt(solution.covariance[-1, -1]), beta)


def late(delay: float) -> str:
    """By how much efforts are late, in words."""
    return f"{1e3 * abs(delay):.1f} ms {'later' if delay >= 0.0 else 'earlier'}"


def delay_column(equations: TorqueEquations, motion: Motion, near: FloatArray) -> MoreColumns:
    """The column of minus the delay: the slope of the torques by base parameters `near`."""
    tau = equations.predicted(motion, near)
    slope = np.concatenate([np.gradient(tau[p], motion.period, axis=0) for p in motion.parts])
    return lambda rows, Y: slope[rows, :, None]
