"""The units of the demo's figures: joints that turn are told in mrad and Nm, those that slide in mm
and N, and no figure mixes them."""

from __future__ import annotations

from dataclasses import dataclass

from rnea_control.model import RobotModel
from rnea_control.model.units import units


@dataclass(frozen=True)
class Kind:
    """Joints that have the same units.

    Attributes:
        name: of joints of this kind.
        joints: their indices.
        position, effort: their units.
    """

    name: str
    joints: list[int]
    position: str
    effort: str

    @property
    def error(self) -> str:
        """The unit of errors: a thousandth of that of positions."""
        return f"m{self.position}"


def kinds(model: RobotModel) -> list[Kind]:
    """One or two kinds, the turning joints first."""
    found: dict[str, Kind] = {}
    for j in range(model.nv):
        unit = units(model, j)
        name = "sliding" if unit.position == "m" else "turning"
        kind = found.setdefault(name, Kind(name, [], unit.position, unit.effort))
        kind.joints.append(j)
    return sorted(found.values(), key=lambda kind: kind.name, reverse=True)
