"""The inertia of each link and of the load that it carries, and which of them no real body has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, named
from rnea_control.model.inertia import principal_second_moments, pseudo_inertia
from rnea_control.model.joints import read_origin

# What rounding in a URDF's printed numbers may leave of a second moment that is zero: relative, and
# [kg m^2].
_RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class LinkInertia:
    """Mass and inertia of a link: `inertia` about the center of mass, shape (3, 3), in the axes in
    which it was given, R_LI of the link's frame L."""

    link: str
    mass: float
    center_of_mass: FloatArray
    inertia: FloatArray
    rotation: FloatArray

    def pseudo_inertia(self) -> FloatArray:
        """In the link's frame, shape (4, 4)."""
        turned = self.rotation @ self.inertia @ self.rotation.T
        return pseudo_inertia(self.mass, self.center_of_mass, turned)


def read_link_inertia(link: urdf.Link, source: str) -> LinkInertia:
    """The inertia of a URDF's link; zero without <inertial>.

    Raises:
        RobotModelError: a negative mass.
    """
    if link.inertial is None:
        return LinkInertia(link.name, 0.0, np.zeros(3), np.zeros((3, 3)), np.eye(3))
    mass = link.inertial.mass
    if mass < 0.0:
        raise RobotModelError(
            f"{source}: link {link.name!r}: <mass value> is {mass:g} kg; it must not be negative"
        )
    # URDF gives the inertia about the center of mass, in the axes of the inertial frame.
    rotation, center_of_mass = read_origin(link.inertial.origin)
    inertia = np.array(link.inertial.inertia.to_matrix(), dtype=np.float64)
    return LinkInertia(link.name, mass, center_of_mass, inertia, rotation)


def link_inertia_of(link: str, matrix: FloatArray) -> LinkInertia:
    """The same of a pseudo-inertia in the link's frame."""
    mass, second_moment, center = float(matrix[3, 3]), matrix[:3, :3], np.zeros(3)
    if mass != 0.0:
        center = matrix[:3, 3] / mass
        second_moment = second_moment - mass * np.outer(center, center)
    inertia = np.trace(second_moment) * np.eye(3) - second_moment
    return LinkInertia(link, mass, center, inertia, np.eye(3))


def impossible_inertias(links: Iterable[LinkInertia], source: str) -> list[str]:
    """A sentence for each kind of inertia that no real body has, with the links that have it."""
    found: dict[tuple[str, str], list[tuple[float, str, str]]] = {}
    for link in links:
        if fault := _fault(link):
            kind, remedy, badness, words = fault
            found.setdefault((kind, remedy), []).append((badness, link.link, words))
    notes = []
    for (_, remedy), cases in found.items():
        names = [link for _, link, _ in cases]
        badness, worst, words = max(cases)
        of_worst = f" for {worst!r}" if len(cases) > 1 and badness > 0.0 else ""
        notes.append(f"{source}: {named('link', names)}: {words}{of_worst}; {remedy}")
    return notes


def is_of_real_body(link: LinkInertia) -> bool:
    """Whether a real body can have this inertia."""
    return _fault(link) is None


def _fault(link: LinkInertia) -> tuple[str, str, float, str] | None:
    """The kind of fault, what to do, how bad it is, and the words for it; None for a real body."""
    if link.mass < 0.0:
        return "mass", "no real body has that", -link.mass, f"the mass is {link.mass:.4g} kg"
    if link.mass == 0.0 and link.inertia.any():
        remedy = "the inertia counts. Give the mass, or set the inertia to 0"
        return "phantom", remedy, 0.0, "an inertia but no mass"
    moments = np.linalg.eigvalsh(link.inertia)
    smallest, largest = float(moments[0]), float(moments[-1])
    # Rounding grows with the parallel axes that `link_inertia_of` takes off.
    shifted = link.mass * float(link.center_of_mass @ link.center_of_mass)
    tolerance = _RELATIVE_TOLERANCE * float(np.abs(moments).max()) + _ABSOLUTE_TOLERANCE * max(
        1.0, shifted
    )
    if smallest < -tolerance:
        words = (
            "the inertia is not positive definite: its smallest principal moment is "
            f"{smallest:.3g} kg m^2 (largest {largest:.3g})"
        )
        return "definite", _remedy(link.inertia), -smallest, words
    if principal_second_moments(link.inertia)[0] < -tolerance:
        a, b, c = (float(moment) if abs(moment) > tolerance else 0.0 for moment in moments)
        words = (
            f"the principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} kg m^2 break the triangle "
            f"inequality by {c - a - b:.3g}"
        )
        return "triangle", _remedy(link.inertia), c - a - b, words
    return None


def _remedy(inertia: FloatArray) -> str:
    """What is probably wrong with an impossible inertia."""
    if np.ptp(inertia) == 0.0:
        return "no real body has that. The products of inertia, ixy, ixz and iyz, must be 0"
    names = ("ixx", "iyy", "izz")
    below = [name for name, moment in zip(names, np.diag(inertia), strict=True) if moment < 0.0]
    if below:
        return f"no real body has that. {' and '.join(below)} must be positive"
    reversed_ = inertia.copy()
    reversed_[0, 1] = reversed_[1, 0] = -inertia[0, 1]  # as good as turning the sign of all three
    if inertia.any() and principal_second_moments(reversed_)[0] >= 0.0:
        return (
            "no real body has that, but one has it with the other sign of ixy, ixz and iyz, or of "
            "one of them: CAD programs also write products of inertia without the minus of URDF"
        )
    return (
        "no real body has that. Check the inertia, often its units or its axes, or export it again "
        "from the CAD program"
    )


def payload_inertia(
    mass: float, center_of_mass: Iterable[float], inertia: FloatArray | None
) -> FloatArray:
    """The pseudo-inertia of a load in its link's frame, shape (4, 4).

    Args:
        mass, center_of_mass, inertia: as of `RobotModel.set_payload`.

    Raises:
        RobotModelError: values that are not numbers of the right shape, or of no real body.
    """
    try:
        mass = float(mass)
        center = np.array(list(center_of_mass), dtype=np.float64)
        about_center = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RobotModelError(
            f"the payload has mass {mass!r}, centre of mass {center_of_mass!r} and inertia "
            f"{inertia!r}; they must be numbers of shapes (), (3,) and (3, 3)"
        ) from error
    if center.shape != (3,) or about_center.shape != (3, 3):
        raise RobotModelError(
            f"the payload's centre of mass has shape {center.shape} and its inertia "
            f"{about_center.shape}; they must be (3,) and (3, 3)"
        )
    matrix = pseudo_inertia(float(mass), center, 0.5 * (about_center + about_center.T))
    if not np.isfinite(matrix).all() or mass < 0.0:
        raise RobotModelError(
            f"the payload has mass {mass} kg, centre of mass {center} and inertia "
            f"{about_center.tolist()}; all must be finite, and the mass not negative"
        )
    if mass == 0.0 and about_center.any():
        raise RobotModelError("the payload has no mass but an inertia; give its mass")
    if not np.allclose(about_center, about_center.T):
        raise RobotModelError(
            f"the payload's inertia {about_center.tolist()} is not symmetric; give Ixy in both "
            "places"
        )
    smallest = np.linalg.eigvalsh(pseudo_inertia(float(mass), np.zeros(3), about_center))[0]
    if smallest < -1e-9 * (1.0 + np.trace(about_center)):
        raise RobotModelError(
            f"the payload's inertia {about_center.tolist()} belongs to no real body (its principal "
            "moments must be positive, each at most the sum of the others)"
        )
    return matrix
