"""`plan_excitation`: a motion that makes a robot's parameters visible in its torques.

Random motions come first, then the best of them are improved. Each step minimizes a cost in which
leaving the limits has a price, by L-BFGS [Nocedal, Wright 2006, sec. 7.2]; the price rises from
step to step. What is left beyond the limits at the end, about a thousandth, is taken off the
amplitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from rnea_control.analysis import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    inverse_dynamics_batch,
)
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation_limits import ExcitationLimits, excitation_limits
from rnea_control.identification.excitation_problem import (
    ExcitationProblem,
    accuracy,
    rest_functions,
)
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# Expected standard deviation of the measured torques, as a share of the effort limits; of the
# largest torque in random motions where a joint has none.
NOISE = 0.02
# Of the samples that the deviations are predicted for, [Hz].
RATE = 1000.0
# A parameter that makes less than this share of the torque allowed, at its most, hardly matters:
# its accuracy is given relative to the value that makes as much.
NEGLIGIBLE = 0.01
# Sums of parameters that are this small, relative to the largest, are 0 but for rounding.
_ROUNDING = 1e-12
# A parameter is poorly known if its relative deviation is larger.
POOR = 0.1
# What a motion may take, [s].
SHORTEST, LONGEST = 3.0, 3600.0
# Random motions for each one that is improved.
CANDIDATES = 10
# The price of leaving the limits: first for all, then for the best one.
COARSE_WEIGHTS, FINE_WEIGHTS = (3.0, 30.0, 300.0), (300.0, 3000.0, 30000.0)
# Postures looked at for one that the torque limits allow.
_POSTURES = 4000
# Gravity may take this share of the torque at the center of a random motion.
_HOLDING = 0.9
Progress = Callable[[float], object]


@dataclass(frozen=True, eq=False)
class Excitation:
    """A planned motion, and its expected accuracy."""

    model: RobotModel
    duration: float  # [s]
    coefficients: FloatArray  # of the `rest_functions` with this period, shape (joints, FUNCTIONS)
    limits: ExcitationLimits  # that it keeps
    base: BaseParameters  # of the robot
    noise: FloatArray  # standard deviation expected of the measured torques, shape (joints,)
    # Of the base regressor, rows divided by the noise, columns of length 1.
    condition: float
    prior: FloatArray  # the base parameters by the robot's description, shape (base.rank,)
    # Predicted standard deviation of each, from white noise in all samples; infinite if the motion
    # does not excite it.
    deviation: FloatArray
    # `deviation` over the absolute value of `prior`, or over what makes `NEGLIGIBLE` of the torque
    # allowed if that is more.
    relative_deviation: FloatArray
    # The largest positions (from the middle of the range), velocities, accelerations and torques as
    # shares of `limits`, shape (4, joints).
    peaks: FloatArray

    def sample(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations, shape (times, joints) each.

        Args:
            time: from the start, shape (times,), [s]; outside the motion the robot stands still
                where it begins and ends.
        """
        times = np.clip(time, 0.0, self.duration)
        motion = self.coefficients @ rest_functions(times, self.duration)
        q, v, a = np.ascontiguousarray(motion.transpose(0, 2, 1))
        return q, v, a


def plan_excitation(
    model: RobotModel,
    duration: float = 20.0,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    speed: float = 0.5,
    torque: float = 0.7,
    seed: int = 0,
    starts: int = 6,
    iterations: int = 300,
    progress: Progress | None = None,
) -> Excitation:
    """A motion from rest to rest that keeps the limits and tells most about the base parameters.

    Collisions, of the robot with itself and with what is around it, are not looked at.

    Args:
        model: the robot; its friction and payload are part of the torques.
        duration: [s].
        ranges, speed, torque: as of `excitation_limits`.
        seed: of the random motions that the search starts from; the same one gives the same motion.
        starts, iterations: of the search: more take longer and find a little more.
        progress: is called with the share of the work that is done, from 0 to 1.

    Raises:
        IdentificationError: a joint that is not revolute, continuous or prismatic, an option that
            is not allowed, too short or too long a duration, or gravity that takes all torque
            allowed.
    """
    limits = excitation_limits(model, ranges, speed, torque)
    if not SHORTEST <= duration <= LONGEST:
        raise IdentificationError(
            f"duration is {duration:g} s; it must be from {SHORTEST:g} s, as joints need time to "
            f"move far enough, to {LONGEST:g} s: a motion can be recorded several times"
        )
    if seed < 0:
        raise IdentificationError(f"seed is {seed}; it must be an integer, at least 0")
    base = base_parameters(model)
    scale = _effort_scale(model, limits)
    noise = NOISE * scale
    problem = ExcitationProblem(model, base, limits, noise, duration)
    rng = np.random.default_rng(seed)
    x = search(problem, rng, starts, iterations, progress or (lambda _: None))
    Y_b = problem.base_regressor(x)
    condition, deviation = accuracy(problem.information(Y_b), RATE * duration)
    prior = base.values(inertial_parameters(model))
    prior[np.abs(prior) < _ROUNDING * np.abs(prior).max(initial=0.0)] = 0.0
    # The largest torque that 1 of each makes, as a share of the torque allowed.
    effects = np.abs(Y_b / (torque * scale)[:, None, None]).max(axis=(0, 2))
    size = np.maximum(np.abs(prior), NEGLIGIBLE / effects)
    return Excitation(
        model=model,
        duration=duration,
        coefficients=problem.coefficients(x),
        limits=limits,
        base=base,
        noise=noise,
        condition=condition,
        prior=prior,
        deviation=deviation,
        relative_deviation=deviation / size,
        peaks=problem.peaks(x),
    )


def _effort_scale(model: RobotModel, limits: ExcitationLimits) -> FloatArray:
    """The effort limits, or the largest of random torques within the other limits, shape (nv,): of
    all joints for one that moves nothing, and 1 if none moves anything."""
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 1000, model.nv))
    states = limits.middle + limits.half * q, limits.velocity * v, limits.acceleration * a
    largest = np.abs(inverse_dynamics_batch(model, *states)).max(axis=0)
    largest[largest <= _ROUNDING * largest.max()] = largest.max() or 1.0
    return np.where(np.isfinite(model.effort_limit), model.effort_limit, largest)


def search(
    problem: ExcitationProblem,
    rng: np.random.Generator,
    starts: int,
    iterations: int,
    progress: Progress,
) -> FloatArray:
    """The variables of the best motion found; it keeps the limits. Errors as of `holding_postures`.

    The best random motions, `starts` of them, are improved with a quarter of the `iterations` at
    each price, the best of these with all.
    """
    postures = holding_postures(problem.model, problem.limits, rng)
    many = range(CANDIDATES * starts)
    candidates = [problem.random_motion(rng.choice(postures), rng) for _ in many]
    candidates = sorted(candidates, key=problem.value)[:starts]
    quarter, done = max(iterations // 4, 1), 0
    total = starts * len(COARSE_WEIGHTS) * quarter + len(FINE_WEIGHTS) * iterations

    def improved(x: FloatArray, weights: tuple[float, ...], most: int) -> FloatArray:
        nonlocal done
        options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 30}
        for weight in weights:
            x = minimize(problem.cost, x, (weight,), "L-BFGS-B", jac=True, options=options).x
            done += most
            progress(done / total)
        return x

    found = [improved(x, COARSE_WEIGHTS, quarter) for x in candidates]
    best = min(found, key=lambda x: problem.cost(x, COARSE_WEIGHTS[-1])[0])
    finest = improved(best, FINE_WEIGHTS, iterations)
    return min(map(problem.within_limits, (finest, *found, *candidates)), key=problem.value)


def holding_postures(
    model: RobotModel, limits: ExcitationLimits, rng: np.random.Generator
) -> FloatArray:
    """Random postures that take no more than `_HOLDING` of the torque allowed, shape (postures,
    joints).

    Raises:
        IdentificationError: there is none; the message names the joint and the best posture.
    """
    shares, rest = rng.uniform(size=(_POSTURES, model.nv)), np.zeros((_POSTURES, model.nv))
    postures = limits.lower + shares * (limits.upper - limits.lower)
    holding = inverse_dynamics_batch(model, postures, rest, rest)
    loads = np.abs(holding) / limits.torque
    worst = loads.max(axis=1)
    if worst.min() <= _HOLDING:
        return postures[worst <= _HOLDING]
    best = int(np.argmin(worst))
    j = int(np.argmax(loads[best]))
    unit = units(model, j).effort
    posture = [f"{name} {q:.2f}" for name, q in zip(model.joint_names, postures[best], strict=True)]
    raise IdentificationError(
        f"gravity alone takes {abs(holding[best, j]):.3g} {unit} of joint "
        f"{model.joint_names[j]!r}, and the motion may use {limits.torque[j]:.3g} {unit}, even in "
        f"the easiest of {_POSTURES} postures within the ranges: {', '.join(posture)}; allow more "
        "torque or other ranges, and check masses and effort limits of the URDF"
    )
