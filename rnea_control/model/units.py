"""The units of a joint's quantities, for what users read."""

from __future__ import annotations

from typing import NamedTuple

from rnea_control.model import RobotModel


class Units(NamedTuple):
    position: str
    velocity: str
    effort: str


def units(model: RobotModel, j: int) -> Units:
    """Those of joint `j`, which has one degree of freedom."""
    if model.joint_types[j] == "prismatic":
        return Units("m", "m/s", "N")
    return Units("rad", "rad/s", "Nm")
