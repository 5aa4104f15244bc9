"""A load that a link carries, checked."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError
from rnea_control.model.inertia import pseudo_inertia


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
