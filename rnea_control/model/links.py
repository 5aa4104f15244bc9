"""The inertia of each link, checked, as a pseudo-inertia in the link's frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError
from rnea_control.model.inertia import principal_second_moments, pseudo_inertia
from rnea_control.model.joints import read_origin

# What rounding in a URDF's printed numbers may leave of a second moment that is zero: relative, and
# [kg m^2].
_RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 1e-12


def read_link_inertia(link: urdf.Link, source: str, warn: Callable[[str], None]) -> FloatArray:
    """Pseudo-inertia of a URDF's link in its own frame, shape (4, 4); zero without <inertial>.

    Raises:
        RobotModelError: a negative mass.
    """
    if link.inertial is None:
        return np.zeros((4, 4))
    where = f"{source}: link {link.name!r}"
    mass = link.inertial.mass
    if mass < 0.0:
        raise RobotModelError(f"{where}: <mass value> is {mass:g} kg; it must not be negative")
    rotation, center_of_mass = read_origin(link.inertial.origin)
    # URDF gives the inertia about the centre of mass, in the axes of the inertial frame.
    inertia = rotation @ np.array(link.inertial.inertia.to_matrix()) @ rotation.T
    if mass == 0.0 and inertia.any():
        warn(
            f"{where}: has an inertia but no mass; the inertia counts. Give the link "
            "its mass, or set the inertia to 0"
        )
    _check_physical(inertia, where, warn)
    return pseudo_inertia(mass, center_of_mass, inertia)


def check_pseudo_inertia(matrix: FloatArray, where: str, warn: Callable[[str], None]) -> None:
    """Warns if no real body has this pseudo-inertia."""
    mass, first_moment = matrix[3, 3], matrix[:3, 3]
    if mass < 0.0:
        warn(f"{where}: the mass is {mass:.4g} kg; no real body has that")
    elif mass == 0.0 and matrix.any():
        warn(f"{where}: has an inertia but no mass; the inertia counts")
    else:
        second_moment = matrix[:3, :3]
        if mass > 0.0:
            second_moment = second_moment - np.outer(first_moment, first_moment) / mass
        _check_physical(np.trace(second_moment) * np.eye(3) - second_moment, where, warn)


def _check_physical(inertia: FloatArray, where: str, warn: Callable[[str], None]) -> None:
    moments = np.linalg.eigvalsh(inertia)
    largest = float(np.abs(moments).max())
    tolerance = _RELATIVE_TOLERANCE * largest + _ABSOLUTE_TOLERANCE
    if moments[0] < -tolerance:
        warn(
            f"{where}: the inertia is not positive definite: its smallest principal moment is "
            f"{moments[0]:.3g} kg m^2 (largest {moments[-1]:.3g}); no real body has that. Export "
            "it again from the CAD program"
        )
    elif principal_second_moments(inertia)[0] < -tolerance:
        a, b, c = moments
        warn(
            f"{where}: the principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} kg m^2 break the "
            f"triangle inequality by {c - a - b:.3g}; no real body has that. Check the inertia, "
            "often its units or its axes"
        )
