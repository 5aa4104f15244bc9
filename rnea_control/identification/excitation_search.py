"""The search for an exciting motion: random ones first, then the best of them improved.

Each step minimizes a cost in which leaving the limits has a price, by L-BFGS [Nocedal, Wright 2006,
sec. 7.2]; the price rises from step to step. What is left beyond the limits at the end, about a
thousandth, is taken off the amplitudes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from rnea_control.array_types import FloatArray
from rnea_control.compiled import compile_robot
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation_limits import ExcitationLimits
from rnea_control.identification.excitation_problem import ExcitationProblem
from rnea_control.identification.information import CRITERIA, Criterion
from rnea_control.model import RobotModel

# Random motions for each one that is improved.
CANDIDATES = 10
# The price of leaving the limits: first for all, then for the best one.
COARSE_WEIGHTS, FINE_WEIGHTS = (3.0, 30.0, 300.0), (300.0, 3000.0, 30000.0)
# Postures looked at for one that the torque limits allow.
_POSTURES = 4000
# Gravity may take this share of the torque at the centre of a random motion.
_HOLDING = 0.9
Progress = Callable[[float], object]


def search(
    problem: ExcitationProblem,
    criterion: Criterion,
    rng: np.random.Generator,
    starts: int,
    iterations: int,
    progress: Progress,
) -> FloatArray:
    """The variables of the best motion found; it keeps the limits.

    Args:
        problem: to be solved.
        criterion: of the result. The determinant always comes first: it is smooth, and leads near
            a motion of a good condition number.
        rng: draws the random motions.
        starts: how many of them are improved.
        iterations: at most, in each step of the best one; a quarter in those of the others.
        progress: is called with the share done, from 0 to 1.

    Raises:
        IdentificationError: no posture within the limits holds the arm against gravity.
    """
    postures = holding_postures(problem.model, problem.limits, rng)
    candidates = [random_motion(problem, postures, rng) for _ in range(CANDIDATES * starts)]
    candidates.sort(key=lambda x: _value(problem, x, Criterion.determinant))
    short = max(iterations // 4, 1)
    steps = [Criterion.determinant] * len(FINE_WEIGHTS)
    if criterion is not Criterion.determinant:
        steps += [criterion] * len(FINE_WEIGHTS)
    total = short * starts * len(COARSE_WEIGHTS) + iterations * len(steps)
    done = 0

    def improved(x: FloatArray, which: Criterion, weight: float, most: int) -> FloatArray:
        nonlocal done
        passed = done

        def step(_: FloatArray) -> None:
            nonlocal passed
            passed += 1
            progress(passed / total)

        result = minimize(
            problem.cost,
            x,
            (which, weight),
            method="L-BFGS-B",
            jac=True,
            callback=step,
            options={"maxiter": most, "maxfun": 2 * most, "maxcor": 30},
        )
        done += most
        progress(done / total)
        best: FloatArray = result.x
        return best

    found = []
    for candidate in candidates[:starts]:
        x = candidate
        for weight in COARSE_WEIGHTS:
            x = improved(x, Criterion.determinant, weight, short)
        found.append(x)
    costs = [problem.cost(x, Criterion.determinant, COARSE_WEIGHTS[-1])[0] for x in found]
    x = found[int(np.argmin(costs))]
    for which, weight in zip(steps, FINE_WEIGHTS * 2, strict=False):
        x = improved(x, which, weight, iterations)
    kept = [problem.within_limits(each) for each in (x, *found, *candidates[:starts])]
    return min(
        (each for each in kept if each is not None), key=lambda x: _value(problem, x, criterion)
    )


def _value(problem: ExcitationProblem, x: FloatArray, criterion: Criterion) -> float:
    return CRITERIA[criterion](problem.information(x))[0]


def random_motion(
    problem: ExcitationProblem, postures: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Variables of a random motion about one of the postures, as large as the limits allow; the
    postures are those of `holding_postures`."""
    while True:
        centre = postures[rng.integers(len(postures))]
        coefficients = rng.standard_normal((problem.model.nv, 2 * problem.harmonics - 2))
        coefficients *= problem.largest_amplitudes(centre, coefficients)[:, None]
        x = problem.within_limits(problem.variables(centre, coefficients), fine=False)
        if x is not None:
            return x


def holding_postures(
    model: RobotModel, limits: ExcitationLimits, rng: np.random.Generator
) -> FloatArray:
    """Random postures that take no more than `_HOLDING` of the torque allowed, shape (postures,
    joints).

    Raises:
        IdentificationError: there is none; the message names the joint and the best posture.
    """
    share = rng.uniform(size=(_POSTURES, model.nv))
    postures = limits.lower + share * (limits.upper - limits.lower)
    holding = compile_robot(model).batch("gravity", postures, workers=1) + model.torque_offset
    loads = np.abs(holding) / limits.torque
    worst = loads.max(axis=1)
    if worst.min() <= _HOLDING:
        return postures[worst <= _HOLDING]
    best = int(np.argmin(worst))
    j = int(np.argmax(loads[best]))
    unit = "N" if model.joint_types[j] == "prismatic" else "Nm"
    pairs = zip(model.joint_names, postures[best], strict=True)
    raise IdentificationError(
        f"gravity alone takes {abs(holding[best, j]):.3g} {unit} of joint "
        f"{model.joint_names[j]!r}, and the motion may use {limits.torque[j]:.3g} {unit}, even in "
        f"the easiest of {_POSTURES} postures within the ranges: "
        f"{', '.join(f'{name} {position:.2f}' for name, position in pairs)}; allow a greater share "
        "of the torque or other ranges, and check masses and effort limits of the URDF"
    )
