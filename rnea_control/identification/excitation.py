"""`plan_excitation`: a motion that makes a robot's parameters visible in its torques."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rnea_control.analysis import BaseParameters, base_parameters, inertial_parameters
from rnea_control.array_types import FloatArray
from rnea_control.compiled import compile_robot
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation_limits import (
    ExcitationLimits,
    check_duration,
    excitation_limits,
)
from rnea_control.identification.excitation_problem import ExcitationProblem
from rnea_control.identification.excitation_search import search
from rnea_control.identification.fourier_series import FourierSeries
from rnea_control.identification.information import Criterion, condition_number, covariance
from rnea_control.model import RobotModel

MOST_HARMONICS = 20
# Of all periods together, [s].
LONGEST = 3600.0
# A parameter that makes less than this share of the torque allowed, at its most, hardly matters:
# its accuracy is given relative to the value that makes as much.
NEGLIGIBLE = 0.01
# Sums of parameters that are this small, relative to the largest, are 0 but for rounding.
_ROUNDING = 1e-12
# A parameter is poorly known if its relative deviation is larger.
POOR = 0.1


@dataclass(frozen=True, eq=False)
class Excitation:
    """A planned motion, and its expected accuracy.

    Attributes:
        model: the robot.
        series: one period of the motion.
        periods: how often it is repeated.
        limits: that it keeps.
        base: the robot's base parameters.
        criterion: that was minimized.
        seed: of the search.
        noise: standard deviation that was expected of the measured torques, shape (joints,), [Nm]
            or [N].
        rate: of the samples, [Hz].
        condition: condition number of the base regressor, rows divided by the noise, columns of
            length 1.
        prior: the base parameters by the robot's description, shape (base.rank,).
        deviation: predicted standard deviation of each, from white noise in all samples, the same
            shape; infinite if the motion does not excite it.
        size: by which the deviations are judged, the same shape: the absolute value of `prior`, or
            what makes `NEGLIGIBLE` of the torque allowed if that is more.
        peaks: the largest positions (from the middle of the range), velocities, accelerations and
            torques as shares of `limits`, shape (4, joints).
    """

    model: RobotModel
    series: FourierSeries
    periods: int
    limits: ExcitationLimits
    base: BaseParameters
    criterion: Criterion
    seed: int
    noise: FloatArray
    rate: float
    condition: float
    prior: FloatArray
    deviation: FloatArray
    size: FloatArray
    peaks: FloatArray

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The order of the columns."""
        return self.model.joint_names

    @property
    def duration(self) -> float:
        """Of all periods, [s]."""
        return self.periods * self.series.period

    @property
    def relative_deviation(self) -> FloatArray:
        """`deviation` over `size`."""
        return self.deviation / self.size

    @property
    def poor(self) -> tuple[str, ...]:
        """Names of the base parameters that will be poorly known, the worst first."""
        order = np.argsort(-self.relative_deviation, kind="stable")
        return tuple(self.base.names[i] for i in order if self.relative_deviation[i] > POOR)

    def sample(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations, shape (times, joints) each.

        Args:
            time: from the start, shape (times,), [s]; outside the motion the robot stands still
                where it begins and ends.
        """
        return self.series.sample(np.clip(time, 0.0, self.duration))


def plan_excitation(
    model: RobotModel,
    duration: float = 20.0,
    periods: int = 1,
    harmonics: int = 5,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    speed: float = 0.5,
    torque: float = 0.7,
    acceleration: float | None = None,
    criterion: Criterion = Criterion.determinant,
    noise: float = 0.02,
    rate: float = 1000.0,
    seed: int = 0,
    starts: int = 6,
    iterations: int = 300,
    progress: Callable[[float], object] | None = None,
) -> Excitation:
    """A motion from rest to rest that keeps the limits and tells most about the base parameters.

    Collisions, of the robot with itself and with what is around it, are not looked at.

    Args:
        model: the robot; its friction and payload are part of the torques.
        duration: of one period, [s].
        periods: how often it is repeated.
        harmonics: of the Fourier series, 2 to `MOST_HARMONICS`.
        ranges, speed, torque, acceleration: as of `excitation_limits`.
        criterion: to minimize.
        noise: expected standard deviation of the measured torques, as a share of the effort limits;
            of the largest torque in random motions where a joint has none.
        rate: of the samples that the deviations are predicted for, [Hz].
        seed: of the random motions that the search starts from; the same one gives the same motion.
        starts, iterations: of the search: more take longer and find a little more.
        progress: is called with the share of the work that is done, from 0 to 1.

    Raises:
        IdentificationError: a joint that is not revolute, continuous or prismatic, an option that
            is not allowed, too short or too long a duration, or gravity that takes all torque
            allowed.
    """
    limits = excitation_limits(model, ranges, speed, torque, acceleration)
    check_duration(model, limits, duration)
    _check_at_least(1, periods=periods, starts=starts, iterations=iterations)
    _check_at_least(2, harmonics=harmonics)
    if duration * periods > LONGEST:
        raise IdentificationError(
            f"{periods} x {duration:g} s is longer than an hour; plan a shorter motion, and record "
            "it several times"
        )
    if harmonics > MOST_HARMONICS:
        raise IdentificationError(f"harmonics is {harmonics}; at most {MOST_HARMONICS} are planned")
    for name, value in {"noise": noise, "rate": rate}.items():
        if not 0.0 < value < np.inf:
            raise IdentificationError(f"{name} is {value}; it must be positive and finite")
    _check_at_least(0, seed=seed)
    rng = np.random.default_rng(seed)
    base = base_parameters(model)
    scale = _effort_scale(model, limits)
    deviations = noise * scale
    problem = ExcitationProblem(model, base, limits, deviations, duration, harmonics)
    criterion = Criterion(criterion)
    x = search(problem, criterion, rng, starts, iterations, progress or (lambda _: None))
    G = problem.information(x)
    prior = base.values(inertial_parameters(model))
    prior[np.abs(prior) < _ROUNDING * np.abs(prior).max(initial=0.0)] = 0.0
    return Excitation(
        model,
        problem.series(x),
        periods,
        limits,
        base,
        criterion,
        seed,
        deviations,
        rate,
        condition_number(G),
        prior,
        np.sqrt(np.diag(covariance(G, rate * duration * periods))),
        np.maximum(np.abs(prior), NEGLIGIBLE / problem.effects(x, torque * scale)),
        problem.peaks(x),
    )


def _effort_scale(model: RobotModel, limits: ExcitationLimits) -> FloatArray:
    """The effort limits, or the largest of random torques within the other limits, shape (nv,)."""
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 1000, model.nv))
    q = 0.5 * (limits.upper + limits.lower) + 0.5 * (limits.upper - limits.lower) * q
    tau = compile_robot(model).batch(
        "rnea", q, v * limits.velocity, a * limits.acceleration, workers=1
    )
    largest = np.abs(tau).max(axis=0)
    return np.where(np.isfinite(model.effort_limit), model.effort_limit, largest)


def _check_at_least(least: int, **values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or value < least:
            raise IdentificationError(f"{name} is {value}; it must be an integer, at least {least}")
