r"""What is asked of an exciting motion: `ExcitationLimits` to keep, and the accuracy it allows.

With the base regressor Y_b at each sample and noise of standard deviation sigma_j in the torque of
joint j, independent from sample to sample, least squares finds the base parameters with the
covariance [Swevers et al. 1997]

.. math:: C = G^{-1} / \text{samples}, \qquad
    G = \operatorname{mean} Y_b^T \operatorname{diag}(\sigma)^{-2} Y_b

The search makes `log_determinant` small: the volume of the confidence ellipsoid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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

    @property
    def middle(self) -> FloatArray:
        """Of the positions."""
        return 0.5 * (self.upper + self.lower)

    @property
    def half(self) -> FloatArray:
        """Half the range of the positions."""
        return 0.5 * (self.upper - self.lower)

    @property
    def scales(self) -> FloatArray:
        """`half`, and the largest velocities, accelerations and torques, shape (4, joints)."""
        return np.stack([self.half, self.velocity, self.acceleration, self.torque])

    def shares(self, q: FloatArray, v: FloatArray, a: FloatArray, tau: FloatArray) -> FloatArray:
        """Positions (from the middle), velocities, accelerations and torques of a motion, shape
        (times, joints) each, as shares of `scales`, shape (4, times, joints)."""
        return np.stack([q - self.middle, v, a, tau]) / self.scales[:, None]


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
    bounds = _ranges(model, ranges or {})
    return ExcitationLimits(*bounds, velocity, velocity / RISE_TIME, torque * model.effort_limit)


def _ranges(
    model: RobotModel, ranges: Mapping[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    if unknown := [name for name in ranges if name not in model.joint_names]:
        raise IdentificationError(
            f"range of {listed(unknown)}: {model.name!r} moves the joints "
            f"{listed(model.joint_names)}; correct the name"
        )
    found = []
    for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types, strict=True)):
        least, most = float(model.lower[j]), float(model.upper[j])
        if name in ranges:
            low, high = map(float, ranges[name])
            if not (least <= low < high <= most and math.isfinite(high - low)):
                raise IdentificationError(
                    f"the range of joint {name!r} is {low:g} to {high:g}; it must be two finite "
                    f"numbers, the lower one first, within the URDF's limits {least:g} to {most:g}"
                )
            found.append((low, high))
        elif least >= most:
            raise IdentificationError(
                f"the position limits of joint {name!r}, {least:g} and {most:g}, leave no range to "
                "move in; correct the URDF, or do not choose this joint"
            )
        elif math.isfinite(least) and math.isfinite(most):
            margin = max(MARGIN * (most - least), 0.0 if kind == "prismatic" else LEAST_MARGIN)
            margin = min(margin, 0.25 * (most - least))
            found.append((least + margin, most - margin))
        elif kind == "prismatic":
            raise IdentificationError(
                f"prismatic joint {name!r} has no position limits in the URDF of {model.name!r}; "
                "give its range"
            )
        else:
            lower = most - LEAST_MARGIN - 2.0 * math.pi if math.isfinite(most) else -math.pi
            lower = least + LEAST_MARGIN if math.isfinite(least) else lower
            found.append((lower, lower + 2.0 * math.pi))
    lower, upper = np.array(found).T
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
    """f = - log det G over its size, the mean logarithm of the variances along the principal axes;
    and the matrix S with df = tr(S dG)."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += REGULARIZATION
    S = -np.linalg.inv(H) * np.outer(d, d) / len(G)
    return float(2.0 * np.log(d).sum() - np.linalg.slogdet(H)[1]) / len(G), S


def _scaled(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    d = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G * np.outer(d, d), d
