"""Joints from a URDF or from Python, checked, with the defaults that urdf_parser_py omits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError
from rnea_control.model.rotations import rotation_about_axis, rotation_from_rpy

# How many positions and velocities a joint of each type has.
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

_IDENTITY = np.eye(3)
_ZERO = np.zeros(3)
_X_AXIS = np.array([1.0, 0.0, 0.0])
_Y_AXIS = np.array([0.0, 1.0, 0.0])


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
        mimic: the joint that this one follows, if any; only for joints with one position.

    Raises:
        RobotModelError: an unknown type, an axis of zero, a rotation that is none, a number that is
            not finite or out of range, a mimic of a joint type with several positions.
    """

    name: str
    type: str
    parent: str
    child: str
    rotation: FloatArray = field(default_factory=_IDENTITY.copy)
    translation: FloatArray = field(default_factory=_ZERO.copy)
    axis: FloatArray = field(default_factory=_X_AXIS.copy)
    second_axis: FloatArray = field(default_factory=_Y_AXIS.copy)
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
        if self.type not in POSITIONS:
            raise RobotModelError(
                f"{where}: its type is {self.type!r}; it must be one of {', '.join(POSITIONS)}"
            )
        for name in ("axis", "second_axis"):
            object.__setattr__(self, name, _unit_vector(getattr(self, name), f"{where}: {name}"))
        rotation = _real_array(self.rotation, (3, 3), f"{where}: rotation")
        if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) or (
            np.linalg.det(rotation) < 0.0
        ):
            raise RobotModelError(
                f"{where}: rotation is {rotation.tolist()}; it is not a rotation matrix"
            )
        object.__setattr__(self, "rotation", rotation)
        translation = _real_array(self.translation, (3,), f"{where}: translation")
        object.__setattr__(self, "translation", translation)
        self._check_numbers(where)
        if self.mimic is not None and self.nq != 1:
            raise RobotModelError(
                f"{where}: a {self.type} joint cannot mimic another one; only joints with one "
                "position can"
            )

    def _check_numbers(self, where: str) -> None:
        for name in ("velocity_limit", "effort_limit", "damping", "friction", "armature"):
            if not getattr(self, name) >= 0.0:
                raise RobotModelError(
                    f"{where}: {name} is {getattr(self, name)}; it must not be negative"
                )
        if not self.lower <= self.upper:
            raise RobotModelError(
                f"{where}: lower {self.lower} is above upper {self.upper}; swap or correct them"
            )
        numbers = {"pitch": self.pitch}
        numbers |= {"damping": self.damping, "friction": self.friction, "armature": self.armature}
        if self.mimic is not None:
            numbers |= {"multiplier": self.mimic.multiplier, "offset": self.mimic.offset}
        for name, value in numbers.items():
            if not math.isfinite(value):
                raise RobotModelError(f"{where}: {name} is {value}; it must be finite")

    @property
    def nq(self) -> int:
        """How many positions it has."""
        return POSITIONS[self.type]

    @property
    def nv(self) -> int:
        """How many velocities it has."""
        return VELOCITIES[self.type]

    @property
    def moves(self) -> bool:
        return self.nv > 0

    def placement_at(self, position: float) -> tuple[FloatArray, FloatArray]:
        """R_PC and p_PC of the child link's frame with the joint at `position` [rad] or [m]; those
        of more than one degree of freedom are at their neutral position."""
        rotation, translation = self.rotation, self.translation
        if self.type == "prismatic":
            return rotation, translation + rotation @ self.axis * position
        if self.nv != 1:
            return rotation, translation
        translation = translation + rotation @ self.axis * self.pitch * position
        return rotation @ rotation_about_axis(self.axis, position), translation


def read_joint(joint: urdf.Joint, source: str) -> Joint:
    """Checks one joint of a parsed URDF.

    Raises:
        RobotModelError: a zero axis, limits that are missing, reversed or negative, negative
            friction or damping.
    """
    where = f"{source}: joint {joint.name!r}"
    rotation, translation = read_origin(joint.origin)
    values: dict[str, Any] = {
        "name": joint.name,
        "type": joint.type,
        "parent": joint.parent,
        "child": joint.child,
        "rotation": rotation,
        "translation": translation,
    }
    if VELOCITIES[joint.type] in (1, 3):  # not fixed, not floating
        values["axis"] = _axis(joint, where)
    if VELOCITIES[joint.type] == 1:
        values.update(_limits(joint, where))
        values.update(_dissipation(joint, where))
        if joint.mimic is not None:
            multiplier, offset = joint.mimic.multiplier, joint.mimic.offset
            values["mimic"] = Mimic(
                joint.mimic.joint,
                1.0 if multiplier is None else multiplier,
                0.0 if offset is None else offset,
            )
    return Joint(**values)


def read_origin(origin: urdf.Pose | None) -> tuple[FloatArray, FloatArray]:
    """Rotation R and translation of an <origin>; 1 and 0 where they are not given."""
    xyz = origin.xyz if origin is not None and origin.xyz is not None else (0.0, 0.0, 0.0)
    rpy = origin.rpy if origin is not None and origin.rpy is not None else (0.0, 0.0, 0.0)
    return rotation_from_rpy(np.array(rpy)), np.array(xyz, dtype=np.float64)


def _axis(joint: urdf.Joint, where: str) -> FloatArray:
    axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))
    return _unit_vector(axis, f"{where}: <axis xyz>")


def _unit_vector(value: FloatArray, where: str) -> FloatArray:
    axis = _real_array(value, (3,), where)
    length = float(np.linalg.norm(axis))
    if not 1e-6 <= length < math.inf:
        raise RobotModelError(
            f"{where} is {value}; it must not be zero. Give the direction of motion, e.g. 0 0 1"
        )
    return axis / length


def _real_array(value: object, shape: tuple[int, ...], where: str) -> FloatArray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, math.nan)
    if array.shape != shape or not np.isfinite(array).all():
        raise RobotModelError(f"{where} is {value}; it must be finite numbers of shape {shape}")
    return array


def _limits(joint: urdf.Joint, where: str) -> dict[str, float]:
    limit = joint.limit
    if limit is None:
        if joint.type == "continuous":
            return {}
        raise RobotModelError(
            f"{where}: a {joint.type} joint needs a <limit> with effort, velocity, lower and upper"
        )
    for name in ("effort", "velocity"):
        value = getattr(limit, name)
        if value < 0.0:
            raise RobotModelError(f"{where}: <limit {name}> is {value:g}; it must not be negative")
    limits = {"effort_limit": limit.effort, "velocity_limit": limit.velocity}
    if joint.type != "continuous":
        if limit.lower > limit.upper:
            raise RobotModelError(
                f"{where}: <limit> lower {limit.lower:g} is above upper {limit.upper:g}; swap or "
                "correct them"
            )
        limits.update(lower=limit.lower, upper=limit.upper)
    return limits


def _dissipation(joint: urdf.Joint, where: str) -> dict[str, float]:
    values = {}
    for name in ("damping", "friction"):
        value = getattr(joint.dynamics, name, None) or 0.0
        if value < 0.0:
            raise RobotModelError(
                f"{where}: <dynamics {name}> is {value:g}; it must not be negative, or "
                "friction would accelerate the joint"
            )
        values[name] = value
    return values
