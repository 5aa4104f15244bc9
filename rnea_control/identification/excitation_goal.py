r"""What is asked of an exciting motion: `ExcitationLimits` to keep, a criterion to make small.

With the base regressor Y_b at each sample and noise of standard deviation sigma_j in the torque of
joint j, independent from sample to sample, least squares finds the base parameters with the
covariance [Swevers et al. 1997]

.. math:: C = G^{-1} / \text{samples}, \qquad
    G = \operatorname{mean} Y_b^T \operatorname{diag}(\sigma)^{-2} Y_b

A criterion is a function of G that becomes smaller as the motion becomes better; it gives its value
f and the matrix S with df = tr(S dG).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.identification.identify import check_joints
from rnea_control.model import RobotModel

# Distance from the position limits, as a share of the range, and at least for angles, [rad].
MARGIN, LEAST_MARGIN = 0.05, 0.05
# Where the URDF has no velocity limit, [rad/s] or [m/s].
DEFAULT_VELOCITY = {"revolute": math.pi, "continuous": math.pi, "prismatic": 1.0}
# Joints reach the velocity allowed in this time, [s].
RISE_TIME = 0.5
# A motion must have the time for a share of the range, or for this much, there and back.
STROKE = {"revolute": 0.5, "continuous": 0.5, "prismatic": 0.25}
STROKE_SHARE = 0.25
LONGEST = 3600.0  # [s]
# Added to the diagonal, relative to it: a motion that does not excite a parameter has a cost, too.
REGULARIZATION = 1e-12


@dataclass(frozen=True, eq=False)
class ExcitationLimits:
    """Bounds of a motion, shape (joints,) each."""

    lower: FloatArray  # of the positions, finite, [rad] or [m]
    upper: FloatArray
    velocity: FloatArray  # finite, [rad/s] or [m/s]
    acceleration: FloatArray  # finite, [rad/s^2] or [m/s^2]
    torque: FloatArray  # [Nm] or [N]; infinite where the URDF has no effort limit


def excitation_limits(
    model: RobotModel,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    speed: float = 0.5,
    torque: float = 0.7,
) -> ExcitationLimits:
    """The limits of a robot's exciting motion.

    Args:
        model: the robot; its joints are revolute, continuous or prismatic.
        ranges: lower and upper position by joint, within the URDF's limits, [rad] or [m]. Other
            joints have the URDF's range less `MARGIN` on both sides; continuous ones, and revolute
            ones without limits, -pi to pi.
        speed, torque: shares of the velocity and effort limits that may be used, in (0, 1].

    Raises:
        IdentificationError: a joint of another type, an unknown joint, a range that is empty or not
            within the limits, a share that is not allowed, a limit of 0 in the URDF.
    """
    check_joints(model)
    if model.nv == 0:
        raise IdentificationError(
            f"robot {model.name!r} has no joint that moves; choose the joints to identify"
        )
    efforts = zip(model.joint_names, model.effort_limit, strict=True)
    if zero := [name for name, limit in efforts if limit <= 0.0]:
        raise IdentificationError(
            f"the effort limit of {listed(zero)} in the URDF of {model.name!r} is 0, so that no "
            "motion is allowed; correct the URDF, or do not choose these joints"
        )
    for name, share, limit in (("speed", speed, "velocity"), ("torque", torque, "effort")):
        if not 0.0 < share <= 1.0:
            raise IdentificationError(
                f"{name} is {share}; it must be above 0 and at most 1: the share of the URDF's "
                f"{limit} limits that the motion may use"
            )
    default = [DEFAULT_VELOCITY[kind] for kind in model.joint_types]
    finite = np.isfinite(model.velocity_limit)
    velocity = speed * np.where(finite, model.velocity_limit, default)
    bounds = _ranges(model, dict(ranges or {}))
    return ExcitationLimits(*bounds, velocity, velocity / RISE_TIME, torque * model.effort_limit)


def check_duration(model: RobotModel, limits: ExcitationLimits, duration: float) -> None:
    """Whether every joint has the time for a motion that is worth it.

    The simplest series at rest at both ends, cos wt - cos(2wt)/4, has for a stroke S there and back
    the largest velocity 0.650 w S and the largest acceleration w^2 S.

    Raises:
        IdentificationError: it is too long, or too short; the message says what would be enough.
    """
    if not 0.0 < duration < math.inf:
        raise IdentificationError(f"duration is {duration} s; it must be positive and finite")
    if duration > LONGEST:
        raise IdentificationError(
            f"{duration:g} s is longer than an hour; plan a shorter motion, and record it several "
            "times"
        )
    most = np.array([STROKE[kind] for kind in model.joint_types])
    stroke = np.minimum(most, STROKE_SHARE * (limits.upper - limits.lower))
    by_velocity = 2.0 * math.pi * 0.375 * math.sqrt(3.0) * stroke / limits.velocity
    by_acceleration = 2.0 * math.pi * np.sqrt(stroke / limits.acceleration)
    needed = np.maximum(by_velocity, by_acceleration)
    j = int(np.argmax(needed))
    if needed[j] > duration:
        fast = by_velocity[j] > by_acceleration[j]
        limit = limits.velocity[j] if fast else limits.acceleration[j]
        raise IdentificationError(
            f"duration is {duration:g} s: too short for joint {model.joint_names[j]!r}, which "
            f"needs {needed[j]:.1f} s to move by {stroke[j]:.2g} and back at "
            f"{'velocities' if fast else 'accelerations'} up to {limit:.3g}; give at least "
            f"{math.ceil(needed[j])} s, better {math.ceil(5.0 * needed[j])} s, or raise the limit"
        )


def _ranges(
    model: RobotModel, ranges: dict[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    unknown = [name for name in ranges if name not in model.joint_names]
    if unknown:
        raise IdentificationError(
            f"range of {listed(unknown)}: {model.name!r} moves the joints "
            f"{listed(model.joint_names)}; correct the name"
        )
    lower, upper = np.empty(model.nv), np.empty(model.nv)
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types, strict=True)):
        least, most = float(model.lower[j]), float(model.upper[j])
        if name in ranges:
            low, high = lower[j], upper[j] = tuple(map(float, ranges[name]))
            wrong = ""
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                wrong = "; it must be two finite numbers, the lower one first"
            elif low < least or high > most:
                limits = f"{least:g} to {most:g} in the URDF"
                wrong = f", outside its limits {limits}; give a range within them"
            if wrong:
                raise IdentificationError(
                    f"the range of joint {name!r} is {low:g} to {high:g}{wrong}"
                )
        elif math.isfinite(least) and math.isfinite(most):
            margin = max(MARGIN * (most - least), 0.0 if kind == "prismatic" else LEAST_MARGIN)
            margin = min(margin, 0.25 * (most - least))
            lower[j], upper[j] = least + margin, most - margin
        elif kind == "prismatic":
            raise IdentificationError(
                f"prismatic joint {name!r} has no position limits in the URDF of {model.name!r}; "
                "give its range"
            )
        elif math.isfinite(most):
            upper[j] = most - LEAST_MARGIN
            lower[j] = upper[j] - 2.0 * math.pi
        else:
            lower[j] = least + LEAST_MARGIN if math.isfinite(least) else -math.pi
            upper[j] = lower[j] + 2.0 * math.pi
        if not lower[j] < upper[j]:
            raise IdentificationError(
                f"the position limits of joint {name!r}, {least:g} and {most:g}, leave no range to "
                "move in; correct the URDF, or do not choose this joint"
            )
    return lower, upper


def condition_number(G: FloatArray) -> float:
    """Of the weighted base regressor with columns of length 1; infinite where it is singular."""
    H, _ = _scaled(G)
    values = np.linalg.eigvalsh(H)
    smallest = values[0]
    rounding = len(G) * np.finfo(float).eps * values[-1]
    return float(np.sqrt(values[-1] / smallest)) if smallest > rounding else np.inf


def covariance(G: FloatArray, samples: float) -> FloatArray:
    """Of the base parameters from this many samples; infinite where G is singular."""
    if not np.isfinite(condition_number(G)):
        return np.full_like(G, np.inf)
    H, d = _scaled(G)
    inverse: FloatArray = np.linalg.inv(H) * np.outer(d, d) / samples
    return inverse


def log_determinant(G: FloatArray) -> tuple[float, FloatArray]:
    """- log det G over its size: the mean logarithm of the variances along the principal axes."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += REGULARIZATION
    L = np.linalg.cholesky(H)
    inverse = np.linalg.inv(L)
    S = -(inverse.T @ inverse) * np.outer(d, d) / len(G)
    S[np.diag_indices_from(S)] *= 1.0 + REGULARIZATION
    return 2.0 * float(np.log(d).sum() - np.log(np.diag(L)).sum()) / len(G), S


def log_condition(G: FloatArray) -> tuple[float, FloatArray]:
    """log of `condition_number`. The derivative is that of the outermost eigenvalues of the scaled
    matrix D G D, where D depends on G too."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += REGULARIZATION
    values, vectors = np.linalg.eigh(H)
    smallest = max(float(values[0]), REGULARIZATION)
    high, low = d * vectors[:, -1], d * vectors[:, 0]
    S = np.outer(high, high) / values[-1] - np.outer(low, low) / smallest
    S[np.diag_indices_from(S)] -= high**2 - low**2
    return 0.5 * float(np.log(values[-1] / smallest)), 0.5 * S


# What an exciting motion may minimize: the volume of the confidence ellipsoid, or the condition
# number of the weighted base regressor with columns of length 1.
CRITERIA: dict[str, Callable[[FloatArray], tuple[float, FloatArray]]] = {
    "determinant": log_determinant,
    "condition": log_condition,
}


def _scaled(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    d = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G * np.outer(d, d), d
