"""`plan_excitation`: a motion that makes a robot's parameters observable in its torques.

The search begins with random motions, and improves the best of them. Each step minimizes a cost
with a penalty for leaving the limits, by L-BFGS [Nocedal, Wright 2006, sec. 7.2]; the penalty rises
from step to step. At the end the amplitudes are reduced by the remaining excess over the limits,
about a thousandth.
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

# Expected standard deviation of the measured torques as a fraction of the effort limits; without a
# limit, of the largest torque in random motions.
NOISE = 0.02
RATE = 1000.0  # sample rate for which deviations are predicted [Hz]
# Largest torque of a negligible parameter, as a fraction of the allowed torque. The accuracy of a
# negligible parameter is given relative to the value with this torque.
NEGLIGIBLE = 0.01
_ROUNDING = 1e-12  # sums of parameters that are rounding of 0, relative to the largest sum
POOR = 0.1  # relative deviation above which a parameter is poorly known
SHORTEST = 3.0  # shortest duration of a motion [s]
LONGEST = 3600.0  # longest duration of a motion [s]
CANDIDATES = 10  # number of random motions for each motion that is improved
COARSE_WEIGHTS = (3.0, 30.0, 300.0)  # penalties of leaving the limits, for all motions
FINE_WEIGHTS = (300.0, 3000.0, 30000.0)  # penalties of leaving the limits, for the best motion
_POSTURES = 4000  # number of postures tried to find one that the torque limits allow
_HOLDING = 0.9  # gravity torque at the center of a random motion, as a fraction of the allowed one
Progress = Callable[[float], object]


@dataclass(frozen=True, eq=False)
class Excitation:
    """Planned motion, and its expected accuracy."""

    model: RobotModel
    duration: float  # [s]
    # Coefficients of the `rest_functions` with the period `duration`, shape (joints, FUNCTIONS).
    coefficients: FloatArray
    limits: ExcitationLimits  # limits that the motion keeps
    base: BaseParameters  # base parameters of the robot
    noise: FloatArray  # expected standard deviation of the measured torques, shape (joints,)
    # Condition number of the base regressor, rows divided by the noise, columns of length 1.
    condition: float
    prior: FloatArray  # base parameters by the robot's description, shape (base.rank,)
    # Predicted standard deviation of each base parameter, from white noise in all samples; infinite
    # if the motion does not excite it.
    deviation: FloatArray
    # `deviation` over the absolute value of `prior`, or over the value that makes `NEGLIGIBLE` of
    # the allowed torque if this is larger.
    relative_deviation: FloatArray
    # Largest positions (from the middle of the range), velocities, accelerations and torques as
    # fractions of `limits`, shape (4, joints).
    peaks: FloatArray

    def sample(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Positions, velocities and accelerations, shape (times, joints) each.

        Args:
            time: time from the start, shape (times,), [s]; before and after the motion the robot
                stands still.
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
    """Plans a motion from rest to rest that keeps the limits and determines the base parameters
    best.

    Collisions of the robot with itself and with its environment are not checked.

    Args:
        model: the robot; its friction and payload are part of the torques.
        duration: duration of the motion, [s].
        ranges: lower and upper position by joint, within the URDF's limits, [rad] or [m]. Other
            joints have the URDF's range less a margin; continuous joints -pi to pi.
        speed: allowed fraction of the velocity limits, in (0, 1].
        torque: allowed fraction of the effort limits, in (0, 1].
        seed: seed of the random motions; the same seed gives the same motion.
        starts, iterations: effort of the search: larger numbers take longer and find slightly
            better motions.
        progress: called with the finished fraction of the work, from 0 to 1.

    Raises:
        IdentificationError: a joint that is not revolute, continuous or prismatic, an option that
            is not allowed, too short or too long a duration, or gravity torques beyond the allowed
            torque.
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
    # Largest torque for a value of 1 of each base parameter, as a fraction of the allowed torque.
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
    """Effort limits, shape (nv,). A joint without a limit has the largest of random torques within
    the other limits; a joint that moves no mass that of all joints, or 1 if all torques are 0."""
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
    """Variables of the best motion found; it keeps the limits.

    The best `starts` random motions are improved with a quarter of the `iterations` at each
    penalty, the best result with all iterations.

    Raises:
        IdentificationError: the torque limits allow no posture that was tried.
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
    """Random postures whose gravity torques are at most `_HOLDING` of the allowed torque, shape
    (postures, joints).

    Raises:
        IdentificationError: no such posture; the message names the joint and the best posture.
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
