"""Joints, validated, and the number of positions and velocities of each joint type."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import JointError
from rnea_control.model.rigid_body import rotation_about_axis

# Number of positions of a joint, by its type; VELOCITIES likewise.
POSITIONS = {
    "fixed": 0,
    "revolute": 1,
    "continuous": 1,
    "prismatic": 1,
    "helical": 1,
    "cylindrical": 2,
    "universal": 2,
    "planar": 3,
    "spherical": 4,
    "floating": 7,
}
VELOCITIES = {**POSITIONS, "spherical": 3, "floating": 6}

WITH_QUATERNION = ("spherical", "floating")  # the last four of their positions

_FINITE = ("pitch", "damping", "friction", "armature")
_NOT_NEGATIVE = {  # and why
    "velocity_limit": ". Give the actuator's largest velocity",
    "effort_limit": ". Give the actuator's effort limit",
    "damping": ", or friction would accelerate the joint",
    "friction": ", or friction would accelerate the joint",
    "armature": "",
}


def is_name(text: str) -> bool:
    """True if a name can be printed in one line of a log: not empty, only printable characters."""
    return bool(text.strip()) and text.isprintable()


@dataclass(frozen=True)
class Mimic:
    """A joint's position is `multiplier` times that of `joint`, plus `offset`."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Joint:
    """A joint: `rotation` R_PJ and `translation` p_PJ place its frame J at zero position in the
    parent link's frame P.

    ============  =========================================  ====================================
    type          position q                                 velocity v
    ============  =========================================  ====================================
    revolute      angle about `axis`; continuous: no limits  its rate
    prismatic     distance along `axis`                      its rate
    helical       angle about `axis`, which also moves       its rate
                  `pitch` meters along it a radian
    cylindrical   distance along `axis`, angle about it      their rates
    universal     angle about `axis`, angle about            their rates
                  `second_axis` (as turned by the first)
    planar        x, y and angle about `axis`, which is z    their rates, in J
    spherical     quaternion x, y, z, w of R_JC              angular velocity w_JC_C
    floating      p_JC, then the quaternion of R_JC          linear v_JC_C, then angular w_JC_C
    ============  =========================================  ====================================

    C is the child link's frame. Axes are expressed in J and need not have length 1. Limits in rad,
    rad/s and Nm, or m, m/s and N; infinite where there are none.

    Attributes:
        armature: inertia of the actuator's rotor as felt at the joint (its own times the gear
            ratio squared), [kg m^2] or [kg].
        damping: viscous friction, [Nm s/rad] or [N s/m].
        friction: Coulomb friction, [Nm] or [N].
        mimic: leader of this joint, if it mimics any; only for joints with one position.

    Raises:
        JointError: an unknown type, an invalid name, a zero axis, an invalid rotation matrix, a
            number that is not finite or out of range, a mimic of a joint type with several
            positions.
    """

    name: str
    type: str
    parent: str
    child: str
    rotation: FloatArray = field(default_factory=lambda: np.eye(3))
    translation: FloatArray = field(default_factory=lambda: np.zeros(3))
    axis: FloatArray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    second_axis: FloatArray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    pitch: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    velocity_limit: float = math.inf
    effort_limit: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    mimic: Mimic | None = None

    def __post_init__(self) -> None:
        where = f"joint {self.name!r}"
        for name in ("name", "parent", "child"):
            if not is_name(text := getattr(self, name)):
                raise JointError(
                    f"{where}: {name} is {text!r}; it must be a name without line breaks and "
                    "control characters"
                )
        if self.type not in POSITIONS:
            raise JointError(
                f"{where}: its type is {self.type!r}; it must be one of {', '.join(POSITIONS)}"
            )
        for name in ("axis", "second_axis"):
            object.__setattr__(self, name, unit_vector(getattr(self, name), f"{where}: {name}"))
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            value = _real_array(getattr(self, name), shape, f"{where}: {name}")
            object.__setattr__(self, name, value)
        R = self.rotation
        if not np.allclose(R @ R.T, np.eye(3), atol=1e-6) or np.linalg.det(R) < 0.0:
            raise JointError(f"{where}: rotation is {R.tolist()}; it is not a rotation matrix")
        for name, why in _NOT_NEGATIVE.items():
            if not (value := getattr(self, name)) >= 0.0:
                raise JointError(f"{where}: {name} is {value:g}; it must not be negative{why}")
        if not self.lower <= self.upper:
            raise JointError(
                f"{where}: lower {self.lower:g} is above upper {self.upper:g}; swap or correct them"
            )
        numbers = {name: getattr(self, name) for name in _FINITE}
        if self.mimic is not None:
            numbers |= {"multiplier": self.mimic.multiplier, "offset": self.mimic.offset}
        for name, value in numbers.items():
            if not math.isfinite(value):
                raise JointError(f"{where}: {name} is {value}; it must be finite")
        if self.mimic is not None and self.nq != 1:
            raise JointError(
                f"{where}: a {self.type} joint cannot mimic another joint; only joints with one "
                "position can"
            )

    @property
    def nq(self) -> int:
        """Number of positions."""
        return POSITIONS[self.type]

    @property
    def nv(self) -> int:
        """Number of velocities; 0 for a joint that does not move."""
        return VELOCITIES[self.type]

    def placement_at(self, position: float) -> tuple[FloatArray, FloatArray]:
        """R_PC and p_PC of the child link's frame with the joint at `position` [rad] or [m]; a
        joint with more than one degree of freedom is placed at its neutral position."""
        rotation, translation = self.rotation, self.translation
        if self.type == "prismatic":
            return rotation, translation + rotation @ self.axis * position
        if self.nv != 1:
            return rotation, translation
        translation = translation + rotation @ self.axis * self.pitch * position
        return rotation @ rotation_about_axis(self.axis, position), translation


def unit_vector(value: object, where: str) -> FloatArray:
    """Normalizes an axis; raises JointError, which begins with `where`, for a zero vector."""
    axis = _real_array(value, (3,), where)
    length = float(np.linalg.norm(axis))
    if not 1e-6 <= length < math.inf:
        raise JointError(
            f"{where} is {value}; it must not be zero. Give the direction of motion, e.g. 0 0 1"
        )
    return axis / length


def _real_array(value: object, shape: tuple[int, ...], where: str) -> FloatArray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, math.nan)
    if array.shape != shape or not np.isfinite(array).all():
        raise JointError(f"{where} is {value}; it must be finite numbers of shape {shape}")
    return array
