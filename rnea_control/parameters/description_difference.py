"""Comparison of two robot descriptions by the properties on which torques depend."""

from __future__ import annotations

import numpy as np

from rnea_control.exceptions import RobotModelError, listed
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly


def description_difference(own: str, other: str) -> str:
    """Difference of another description in the properties on which torques depend, in words; empty
    if there is none, or if `own` is empty."""
    if not own or own == other:
        return ""
    try:
        ours = quietly(RobotModel.from_urdf_string, own)
    except RobotModelError:
        return ""  # an invalid description is a separate finding
    try:
        theirs = quietly(RobotModel.from_urdf_string, other)
    except RobotModelError as problem:
        return str(problem)
    for what in ("joint", "link"):
        names, others = (getattr(model, f"{what}_names") for model in (ours, theirs))
        if names != others:
            return f"it has the {what}s {listed(others)}, not {listed(names)}"
    masses = f"{ours.total_mass:.6g} and {theirs.total_mass:.6g} kg in total"
    numbers = {
        "lower position limits": (ours.lower, theirs.lower),
        "upper position limits": (ours.upper, theirs.upper),
        "velocity limits": (ours.velocity_limit, theirs.velocity_limit),
        "effort limits": (ours.effort_limit, theirs.effort_limit),
        f"poses of joints or inertias of links ({masses})": (ours.bodies, theirs.bodies),
    }
    different = [what for what, (one, other) in numbers.items() if not np.array_equal(one, other)]
    return f"they differ in {' and '.join(different)}" if different else ""
