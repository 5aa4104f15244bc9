r"""The matrices of rigid bodies: rotations, placements and inertias, all of float64.

The inertial parameters of a body are ten numbers, [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]:
mass, mass times center of mass, and the inertia about the frame's origin. They enter the equations
of motion linearly. For changes of frame and sums the same ten numbers form the symmetric 4x4
pseudo-inertia matrix [Wensing, Kim, Slotine 2018]

.. math:: J = \begin{bmatrix} \Sigma & m c \\ (m c)^T & m \end{bmatrix}, \quad
          \Sigma = \int r r^T dm = \tfrac{1}{2} \mathrm{tr}(I) 1 - I

because a change of frame is then one product, J_A = X_AB J_B X_AB^T with the homogeneous transform
X_AB, and bodies that move together simply add. Masses of zero need no special case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, named

_UPPER = np.triu_indices(3)

# Tolerances of a second moment of zero for the rounding of the numbers printed in a URDF.
_RELATIVE_TOLERANCE = 1e-6  # fraction of the largest principal moment
_ABSOLUTE_TOLERANCE = 1e-12  # [kg m^2]
_NEARLY = 0.01  # upper bound of the tolerance from the last printed digit, as that fraction

_UNREAL = "no real body has that"


def rotation_from_rpy(rpy: FloatArray) -> FloatArray:
    """R = Rz(yaw) Ry(pitch) Rx(roll): turns about the fixed axes x, y, z in that order."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rotation_from_quaternion(quaternion: FloatArray) -> FloatArray:
    """R of a unit quaternion x, y, z, w."""
    vector, w = quaternion[:3], float(quaternion[3])
    return np.eye(3) + 2.0 * (w * skew(vector) + skew(vector) @ skew(vector))


def skew(p: FloatArray) -> FloatArray:
    """The matrix [p]x with [p]x r = p x r."""
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def rotation_about_axis(axis: FloatArray, angle: float) -> FloatArray:
    """Rodrigues' formula, R = 1 + sin(angle) [axis]x + (1 - cos(angle)) [axis]x^2."""
    k = skew(axis)
    return np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)


def rotation_to_z(axis: FloatArray) -> FloatArray:
    """A rotation whose third column is the unit vector `axis`: it turns z into `axis`.

    For the coordinate axes its entries are exactly 0 and +-1.
    """
    if axis[2] == 1.0:
        return np.eye(3)
    # Any unit vector far from the axis can serve as a start for x.
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(axis)))] = 1.0
    x = np.cross(helper, axis)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def rpy_from_rotation(rotation: FloatArray) -> FloatArray:
    """Roll, pitch and yaw, shape (3,), [rad]: the inverse of `rotation_from_rpy`."""
    level = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], level)
    if level < 1e-9:  # roll and yaw turn about the same axis
        return np.array([math.atan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0])
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])])


def homogeneous(rotation: FloatArray, translation: FloatArray) -> FloatArray:
    """The homogeneous transform X_AB of `rotation` R_AB and `translation` p_AB, shape (4, 4)."""
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = translation
    return transform


def pseudo_inertia(mass: float, center_of_mass: FloatArray, inertia: FloatArray) -> FloatArray:
    """Pseudo-inertia of a body, shape (4, 4), about the origin of the frame in which
    `center_of_mass` is given.

    Args:
        mass: mass of the body, [kg].
        center_of_mass: center of mass, shape (3,), [m].
        inertia: about the center of mass, in axes parallel to the frame's, shape (3, 3), [kg m^2].
    """
    center = np.asarray(center_of_mass)
    second = second_moment(np.asarray(inertia)) + mass * np.outer(center, center)
    return _pseudo_inertia(mass, mass * center, second)


def _pseudo_inertia(mass: float, first: FloatArray, second: FloatArray) -> FloatArray:
    matrix = np.empty((4, 4))
    matrix[:3, :3], matrix[:3, 3], matrix[3, :3], matrix[3, 3] = second, first, first, mass
    return matrix


def second_moment(inertia: FloatArray) -> FloatArray:
    """Second moment Sigma of an inertia about the same point, shape (3, 3).

    No eigenvalue of a real body's Sigma is negative. This is the triangle inequality of the
    principal moments of inertia (A + B >= C); it implies that the inertia is positive semidefinite.
    """
    return 0.5 * np.trace(inertia) * np.eye(3) - inertia


def _inertia(second: FloatArray) -> FloatArray:
    """The inverse of `second_moment`."""
    return np.trace(second) * np.eye(3) - second


def ten_parameters(matrix: FloatArray) -> FloatArray:
    """[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] of a pseudo-inertia, shape (10,)."""
    return np.concatenate([[matrix[3, 3]], matrix[:3, 3], _inertia(matrix[:3, :3])[_UPPER]])


def pseudo_inertia_of(parameters: FloatArray) -> FloatArray:
    """Pseudo-inertia with these ten parameters, shape (4, 4): the inverse of `ten_parameters`."""
    inertia = np.zeros((3, 3))
    inertia[_UPPER] = inertia.T[_UPPER] = parameters[4:]
    return _pseudo_inertia(parameters[0], parameters[1:4], second_moment(inertia))


@dataclass(frozen=True, eq=False)
class LinkInertia:
    """Mass and inertia of a link: `inertia` about the center of mass, shape (3, 3), in the axes in
    which it was given, R_LI of the link's frame L."""

    link: str
    mass: float = 0.0
    center_of_mass: FloatArray = field(default_factory=lambda: np.zeros(3))
    inertia: FloatArray = field(default_factory=lambda: np.zeros((3, 3)))
    rotation: FloatArray = field(default_factory=lambda: np.eye(3))

    def pseudo_inertia(self) -> FloatArray:
        """Pseudo-inertia in the link's frame, shape (4, 4)."""
        turned = self.rotation @ self.inertia @ self.rotation.T
        return pseudo_inertia(self.mass, self.center_of_mass, turned)


def link_inertia_of(link: str, matrix: FloatArray) -> LinkInertia:
    """`LinkInertia` of a pseudo-inertia in the link's frame."""
    mass, second, center = float(matrix[3, 3]), matrix[:3, :3], np.zeros(3)
    if mass != 0.0:
        center = matrix[:3, 3] / mass
        second = second - mass * np.outer(center, center)
    return LinkInertia(link, mass, center, _inertia(second))


def impossible_inertias(links: Iterable[LinkInertia]) -> list[str]:
    """A sentence for each kind of inertia that no real body has, with the links concerned."""
    found: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    for link in links:
        if fault := _fault(link):
            kind, remedy, badness, words = fault
            found.setdefault((kind, remedy), []).append((badness, link.link, words))
    notes = []
    for (_, remedy), cases in found.items():
        badness, worst, words = max(cases)
        of_worst = f" for {worst!r}" if len(cases) > 1 and badness > 0.0 else ""
        where = named("link", [link for _, link, _ in cases])
        notes.append(f"{where}: {words}{of_worst}; {remedy}")
    return notes


def _fault(link: LinkInertia) -> tuple[str, str, float, str] | None:
    """Kind, remedy, severity and words of a fault; None for the inertia of a real body."""
    if link.mass < 0.0:
        return "mass", _UNREAL, -link.mass, f"the mass is {link.mass:.4g} kg"
    if link.mass == 0.0 and link.inertia.any():
        remedy = "the inertia counts. Give the mass, or set the inertia to 0"
        return "phantom", remedy, 0.0, "an inertia but no mass"
    moments = np.linalg.eigvalsh(link.inertia)
    smallest, largest = float(moments[0]), float(moments[-1])
    # Rounding grows with the parallel-axis term that `link_inertia_of` subtracts.
    shifted = link.mass * float(link.center_of_mass @ link.center_of_mass)
    tolerance = _RELATIVE_TOLERANCE * float(np.abs(moments).max())
    tolerance += _ABSOLUTE_TOLERANCE * max(1.0, shifted)
    # Three quarters of the last printed digit, for moments that are nearly right.
    printed = [Decimal(repr(x)).as_tuple() for x in np.diag(link.inertia).tolist() if x]
    last_digit = 10.0 ** max((int(number.exponent) for number in printed), default=-300)
    tolerance = max(tolerance, min(0.75 * last_digit, _NEARLY * largest))
    if smallest < -tolerance:
        words = (
            "the inertia is not positive definite: its smallest principal moment is "
            f"{smallest:.3g} kg m^2 (largest {largest:.3g})"
        )
        return "definite", _remedy(link.inertia), -smallest, words
    if _least_second_moment(link.inertia) < -tolerance:
        a, b, c = (float(moment) if abs(moment) > tolerance else 0.0 for moment in moments)
        words = (
            f"the principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} kg m^2 break the triangle "
            f"inequality by {c - a - b:.3g}"
        )
        return "triangle", _remedy(link.inertia), c - a - b, words
    return None


def _least_second_moment(inertia: FloatArray) -> float:
    return float(np.linalg.eigvalsh(second_moment(inertia))[0])


def _remedy(inertia: FloatArray) -> str:
    """Probable mistake in an impossible inertia, and its remedy."""
    if np.ptp(inertia) == 0.0:
        return f"{_UNREAL}. The products of inertia, ixy, ixz and iyz, must be 0"
    moments = zip(("ixx", "iyy", "izz"), np.diag(inertia), strict=True)
    if below := [name for name, moment in moments if moment < 0.0]:
        return f"{_UNREAL}. {' and '.join(below)} must be positive"
    reversed_ = inertia.copy()
    reversed_[0, 1] = reversed_[1, 0] = -inertia[0, 1]  # same as reversing all three
    if inertia.any() and _least_second_moment(reversed_) >= 0.0:
        return (
            f"{_UNREAL}, but it is possible with the opposite sign of ixy, ixz and iyz, or of one "
            "of them: CAD programs also write products of inertia without the minus of URDF"
        )
    return (
        f"{_UNREAL}. Check the inertia, often its units or its axes, or export it again from the "
        "CAD program"
    )


def payload_inertia(
    mass: float, center_of_mass: Iterable[float], inertia: FloatArray | None
) -> FloatArray:
    """Pseudo-inertia of a load in its link's frame, shape (4, 4).

    Args:
        mass: mass of the load, [kg].
        center_of_mass: center of mass in the link's frame, shape (3,), [m].
        inertia: about the center of mass, in axes parallel to the link's, shape (3, 3), [kg m^2];
            None for a point mass.

    Raises:
        RobotModelError: a value that is not a number, has the wrong shape, or that no real body
            has.
    """
    given = mass, center_of_mass, inertia
    try:
        mass = float(mass)
        center = np.array(list(center_of_mass), dtype=np.float64)
        about_center = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=np.float64)
        matrix = pseudo_inertia(mass, center, 0.5 * (about_center + about_center.T))
        shapes = center.shape, about_center.shape
        if shapes != ((3,), (3, 3)) or not np.isfinite(matrix).all() or mass < 0.0:
            raise ValueError
    except (TypeError, ValueError):
        shown = [repr(x.tolist() if isinstance(x, np.ndarray) else x) for x in given]
        raise RobotModelError(
            f"the payload has mass {shown[0]}, center of mass {shown[1]} and inertia {shown[2]}; "
            "they must be finite numbers of shapes (), (3,) and (3, 3), and the mass not negative"
        ) from None
    if mass == 0.0 and about_center.any():
        raise RobotModelError("the payload has no mass but an inertia; give its mass")
    if not np.allclose(about_center, about_center.T):
        raise RobotModelError(
            f"the payload's inertia {about_center.tolist()} is not symmetric; give Ixy in both "
            "places"
        )
    smallest = np.linalg.eigvalsh(pseudo_inertia(mass, np.zeros(3), about_center))[0]
    if smallest < -1e-9 * (1.0 + np.trace(about_center)):
        raise RobotModelError(
            f"the payload's inertia {about_center.tolist()} belongs to no real body (its principal "
            "moments must be positive, each at most the sum of the others)"
        )
    return matrix
