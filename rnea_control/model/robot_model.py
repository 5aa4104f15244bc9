"""`RobotModel`: a robot as the numbers that the equations of motion need."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, RobotModelWarning, errors_of
from rnea_control.model import bodies as layout
from rnea_control.model import robot_description
from rnea_control.model.joint_selection import select_joints
from rnea_control.model.joints import WITH_QUATERNION, Joint
from rnea_control.model.rigid_body import payload_inertia, ten_parameters
from rnea_control.model.robot_description import RobotDescription
from rnea_control.model.urdf_text import read_urdf_file

EARTH_GRAVITY = (0.0, 0.0, -9.81)
STRONGEST_GRAVITY = 1000.0

# Range of random positions without limits, by joint type, [m] or [rad]; pi for other types.
_REACHES: dict[str, float | FloatArray] = {
    "prismatic": 1.0,
    "floating": 1.0,
    "cylindrical": np.array([1.0, math.pi]),
    "planar": np.array([1.0, 1.0, math.pi]),
}


class RobotModel:
    """A kinematic tree on a fixed or a floating base, from a URDF or from Python.

    Immutable except for the setters. `model.damping = [...]` sets the values of all joints; the
    array that the getter returns is read-only, as a value written into it would have no effect.
    Joint vectors are ordered as `joint_names`; `Joint` documents the positions and velocities of
    each joint type.

    Attributes:
        name: the robot's name in the URDF.
        joint_names: the moving joints that mimic none, in the order of q, v, a and tau.
        joint_types: types of these joints, such as "revolute".
        mimic_joints: the joints that mimic one of `joint_names`, which bears their torques.
        child_links: the link that each joint moves, in the order of `joint_names`.
        link_names: all links, the root first.
        root_link: the link that stands still; gravity is expressed in its frame.
        merged_joints: joints that do not move (fixed, or locked); the inertias of their links are
            part of the body that they are fixed to.
        merged_placements: placement of the child link's frame C in the parent link's frame P, R_PC
            and p_PC, by the name of the merged joint.
        nq, nv: number of positions and of velocities; a continuous joint is one angle.
        q_slices, v_slices: slices of each joint's positions in q and velocities in v, by name.
        lower, upper: position limits, shape (nq,), [rad] or [m]; infinite without a limit.
        velocity_limit: shape (nv,), [rad/s] or [m/s]; infinite without a limit, also where the URDF
            gives 0.
        effort_limit: shape (nv,), [Nm] or [N]; infinite without a limit, 0 if no torque at all is
            allowed.
        continuous: 1 for each position that is an angle of a continuous joint, else 0, shape (nq,).
        link_inertias: pseudo-inertia of each link in its own frame, shape (4, 4), by name, without
            payloads. Do not write to them.
        urdf_damping, urdf_friction: damping and friction of the URDF's <dynamics>, shape (nv,).
        description: links and joints that the model was made of.
        notes: a sentence for each kind of content that was not read, is read in another way by
            other programs, or belongs to no real body. `rnea_control.plausibility.suspicions` lists
            them with the values that are probably not meant.
        bodies, links, joint_links, joint_rows, friction_parameters: the model as the kernels read
            it, see model/bodies.py; do not write to them.
    """

    def __init__(
        self,
        description: RobotDescription,
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
        floating_base: bool = False,
    ) -> None:
        """Use `from_urdf_file`, `from_urdf_string` or `from_joints`."""
        base: tuple[str, ...] = ()
        if floating_base:
            description = description.with_floating_base()
            base = (description.joints[0].name,)
        with errors_of(description.source):
            selection = select_joints(description.joints, joints, locked_positions or {}, base)
        merged = layout.merge_bodies(description, selection)
        chosen, followers = (selection.joints(leads=leads) for leads in (True, False))
        self.description = description
        self.name: str = description.name
        self.source = description.source
        self.root_link = description.root
        self.joint_names = tuple(joint.name for joint in chosen)
        self.joint_types = tuple(joint.type for joint in chosen)
        self.mimic_joints = tuple(joint.name for joint in followers)
        self.child_links = tuple(joint.child for joint in chosen)
        self.link_names = merged.link_names
        at = selection.coordinates
        self.merged_placements = {
            joint.name: selection.placement(joint)
            for joint in description.joints
            if joint.name not in at
        }
        self.merged_joints = tuple(self.merged_placements)
        self.q_slices = {j.name: slice(at[j.name].q, at[j.name].q + j.nq) for j in chosen}
        self.v_slices = {j.name: slice(at[j.name].v, at[j.name].v + j.nv) for j in chosen}
        positions = [joint for joint in chosen for _ in range(joint.nq)]
        velocities = [joint for joint in chosen for _ in range(joint.nv)]
        self.nq, self.nv = len(positions), len(velocities)
        self.lower = _frozen([joint.lower for joint in positions])
        self.upper = _frozen([joint.upper for joint in positions])
        self.continuous = _frozen([float(joint.type == "continuous") for joint in positions])
        self.velocity_limit = _frozen([joint.velocity_limit or math.inf for joint in velocities])
        self.effort_limit = _frozen([joint.effort_limit for joint in velocities])
        self._armature = _frozen([joint.armature for joint in velocities])
        self.bodies = merged.array
        self.links = merged.links
        self.friction_parameters = np.zeros((len(layout.FRICTION_ROWS), self.nv))
        dissipation = np.zeros((2, self.nv))  # the followers' is reflected onto their leaders
        for each in at.values():
            joint, velocity = each.joint, slice(each.v, each.v + each.joint.nv)
            dissipation[0, velocity] += each.ratio**2 * joint.damping
            dissipation[1, velocity] += abs(each.ratio) * joint.friction
        self.urdf_damping, self.urdf_friction = map(_frozen, dissipation)
        self.damping, self.friction = self.urdf_damping, self.urdf_friction
        links = self.root_link, *self.child_links, *(joint.child for joint in followers)
        self.joint_links = np.array([self._place_of(link) for link in links])
        self.joint_rows = {name: merged.rows[name] for name in at}
        self.link_inertias = {link: description.inertias[link] for link in self.link_names}
        self._own_inertias = merged.array[:, layout.PARAMETERS].copy()
        self._payloads: dict[str, FloatArray] = {}
        self.gravity = gravity
        self.notes = tuple(
            f"{description.source}: {note}" for note in (*description.notes, *selection.notes)
        )
        for note in self.notes:
            warnings.warn(note, RobotModelWarning, stacklevel=3)

    @classmethod
    def from_urdf_file(
        cls,
        path: str | os.PathLike[str],
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
        floating_base: bool = False,
    ) -> RobotModel:
        """Reads a URDF file.

        Args:
            path: the file.
            joints: names of the joints that move, in the order wanted for q, v, a and tau. Joints
                that mimic one of them follow it; all others are locked and their links merged.
                Default: every joint that can move and mimics none, depth first as in the file.
            locked_positions: positions of the locked joints that could move, by name, [rad] or [m].
                Default 0.
            gravity: acceleration of gravity in the root link's frame, shape (3,), [m/s^2].
            floating_base: True if the root link floats: the first joint is then "root_joint", its
                parent is a new root link "world", and gravity is expressed in the frame of "world".

        Raises:
            RobotModelError: the file cannot be read, or is not a valid URDF. The message names
                file, link or joint, the value, what is allowed and the remedy.

        Warns:
            RobotModelWarning: once for each of the model's `notes`.
        """
        xml = read_urdf_file(path)
        description = robot_description.description_from_urdf(xml, os.fspath(path))
        return cls(description, joints, locked_positions, gravity, floating_base)

    @classmethod
    def from_urdf_string(
        cls,
        xml: str | bytes,
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
        floating_base: bool = False,
    ) -> RobotModel:
        """Reads a URDF from its text.

        Args:
            xml: the URDF as text, or as bytes.
            joints: names of the joints that move, in the order wanted for q, v, a and tau. Joints
                that mimic one of them follow it; all others are locked and their links merged.
                Default: every joint that can move and mimics none, depth first as in the file.
            locked_positions: positions of the locked joints that could move, by name, [rad] or [m].
                Default 0.
            gravity: acceleration of gravity in the root link's frame, shape (3,), [m/s^2].
            floating_base: True if the root link floats: the first joint is then "root_joint", its
                parent is a new root link "world", and gravity is expressed in the frame of "world".

        Raises:
            RobotModelError: the text is not a valid URDF. The message names link or joint, the
                value, what is allowed and the remedy.

        Warns:
            RobotModelWarning: once for each of the model's `notes`.
        """
        description = robot_description.description_from_urdf(xml, "robot_description")
        return cls(description, joints, locked_positions, gravity, floating_base)

    @classmethod
    def from_joints(
        cls,
        name: str,
        joints: Iterable[Joint],
        inertias: Mapping[str, FloatArray],
        gravity: Iterable[float] = EARTH_GRAVITY,
        floating_base: bool = False,
    ) -> RobotModel:
        """A robot made in Python, of joints of any type.

        Args:
            name: name of the robot.
            joints: joints that form a tree; the robot's links are their parent and child links.
            inertias: inertias by the link's name, each a `pseudo_inertia` in the link's frame,
                shape (4, 4); links that are not named have none.
            gravity: acceleration of gravity in the root link's frame, shape (3,), [m/s^2].
            floating_base: True if the root link floats: the first joint is then "root_joint", its
                parent is a new root link "world", and gravity is expressed in the frame of "world".

        Raises:
            RobotModelError: joints that are not a tree, an inertia of an unknown link, or an
                inertia that is not a pseudo-inertia.

        Warns:
            RobotModelWarning: once for each of the model's `notes`.
        """
        description = robot_description.description_from_joints(name, joints, inertias)
        return cls(description, None, None, gravity, floating_base)

    @property
    def gravity(self) -> FloatArray:
        """Acceleration of gravity in the root link's frame, shape (3,), [m/s^2]; read-only.

        Set it for arms on walls and ceilings; it takes effect in the next call of any algorithm.
        """
        return _frozen(self._gravity)

    @gravity.setter
    def gravity(self, value: Iterable[float]) -> None:
        vector = _numbers(value)
        if vector.shape != (3,) or not (np.abs(vector) <= STRONGEST_GRAVITY).all():
            raise RobotModelError(
                f"gravity is {value}; it must be three finite numbers [m/s^2], none beyond "
                f"{STRONGEST_GRAVITY:g}, in the frame of {self.root_link!r}"
            )
        self._gravity = vector
        # Gravity enters the recursions as the root's acceleration, -g.
        start = layout.BASE_ACCELERATION
        self.bodies[0, start : start + 3] = -vector
        self.bodies[0, layout.CHANGES] += 1.0

    @property
    def armature(self) -> FloatArray:
        """Inertia of each actuator's rotor reflected to its joint: rotor inertia times gear ratio
        squared, shape (nv,), [kg m^2] or [kg]. Part of `rnea` and `aba`."""
        return _frozen(self._armature)

    @armature.setter
    def armature(self, value: Iterable[float]) -> None:
        self._armature = self._checked("armature", value)
        for name in self.joint_names:
            end, part = self.joint_rows[name] + 1, self.v_slices[name]
            rows = slice(end - (part.stop - part.start), end)
            self.bodies[rows, layout.ARMATURE] = self._armature[part]
        self.bodies[0, layout.CHANGES] += 1.0

    @property
    def damping(self) -> FloatArray:
        """Viscous friction, shape (nv,), [Nm s/rad] or [N s/m]; initially that of the URDF's
        <dynamics>. Like `friction` and `torque_offset` part of `inverse_dynamics`, not of `rnea`.
        """
        return _frozen(self.friction_parameters[layout.DAMPING])

    @damping.setter
    def damping(self, value: Iterable[float]) -> None:
        self.friction_parameters[layout.DAMPING] = self._checked("damping", value)

    @property
    def friction(self) -> FloatArray:
        """Coulomb friction, shape (nv,), [Nm] or [N]; initially that of the URDF's <dynamics>."""
        return _frozen(self.friction_parameters[layout.COULOMB])

    @friction.setter
    def friction(self, value: Iterable[float]) -> None:
        self.friction_parameters[layout.COULOMB] = self._checked("friction", value)

    @property
    def torque_offset(self) -> FloatArray:
        """Constant torque offset of each actuator, shape (nv,), [Nm] or [N]; initially zero."""
        return _frozen(self.friction_parameters[layout.TORQUE_OFFSET])

    @torque_offset.setter
    def torque_offset(self, value: Iterable[float]) -> None:
        offset = self._checked("torque_offset", value, -math.inf)
        self.friction_parameters[layout.TORQUE_OFFSET] = offset

    def set_payload(
        self,
        link: str,
        mass: float,
        center_of_mass: Iterable[float] = (0.0, 0.0, 0.0),
        inertia: FloatArray | None = None,
    ) -> None:
        """Sets the load of a link, replacing the link's previous load; a mass of 0 removes it. It
        takes effect in the next call of any algorithm.

        Args:
            link: any link of the robot.
            mass: mass of the load, [kg].
            center_of_mass: center of mass in the link's frame, shape (3,), [m].
            inertia: about the center of mass, in axes parallel to the link's, shape (3, 3),
                [kg m^2]; default 0, a point mass.

        Raises:
            RobotModelError: an unknown link, or an inertia that no real body has.
        """
        if link not in self.link_names:
            raise RobotModelError(
                f"the payload's link is {link!r}; {self.name!r} has {', '.join(self.link_names)}"
            )
        self._payloads[link] = payload_inertia(mass, center_of_mass, inertia)
        row = int(self.links[self._place_of(link), layout.LINK_BODY])
        parameters = self._own_inertias[row].copy()
        for name, payload in self._payloads.items():
            place = self.links[self._place_of(name)]
            if place[layout.LINK_BODY] == row:
                transform = layout.placement(place, layout.LINK_ROTATION)
                parameters += ten_parameters(transform @ payload @ transform.T)
        self.bodies[row, layout.PARAMETERS] = parameters
        self.bodies[0, layout.CHANGES] += 1.0

    def copy(self) -> RobotModel:
        """Independent copy: setters of one do not change the other."""
        twin = copy.copy(self)
        twin.bodies = self.bodies.copy()
        twin.friction_parameters = self.friction_parameters.copy()
        twin._payloads = self._payloads.copy()
        return twin

    @property
    def urdf_angles(self) -> tuple[float, ...]:
        """All rpy of the URDF's joints as written, [rad]; empty for a robot made in Python."""
        joints = self.description.urdf.joints if self.description.urdf else ()
        origins = [joint.origin for joint in joints if joint.origin is not None]
        return tuple(float(angle) for origin in origins for angle in origin.rpy or ())

    @property
    def payload_mass(self) -> float:
        """Mass of all payloads, [kg]."""
        return float(sum(payload[3, 3] for payload in self._payloads.values()))

    @property
    def total_mass(self) -> float:
        """Mass of all links, including the root, and of all payloads, [kg]."""
        return float(self.bodies[:, layout.INERTIA].sum())

    def neutral(self) -> FloatArray:
        """Positions of zero, and identity quaternions, shape (nq,)."""
        q = np.zeros(self.nq)
        for name, kind in zip(self.joint_names, self.joint_types, strict=True):
            if kind in WITH_QUATERNION:
                q[self.q_slices[name].stop - 1] = 1.0
        return q

    def random(self, rng: np.random.Generator | None = None) -> FloatArray:
        """A random position, shape (nq,): uniform within the limits, without limits within +-pi or
        +-1 m, and over all rotations."""
        rng = np.random.default_rng() if rng is None else rng
        q = np.empty(self.nq)
        for name, kind in zip(self.joint_names, self.joint_types, strict=True):
            part, reach = self.q_slices[name], _REACHES.get(kind, math.pi)
            least, most = self.lower[part], self.upper[part]
            low = np.where(np.isfinite(least), least, np.minimum(-reach, most - reach))
            high = np.where(np.isfinite(most), most, np.maximum(reach, low + reach))
            q[part] = rng.uniform(low, high)
            if kind in WITH_QUATERNION:
                quaternion = rng.standard_normal(4)
                q[part.stop - 4 : part.stop] = quaternion / np.linalg.norm(quaternion)
        return q

    def __repr__(self) -> str:
        return f"RobotModel({self.name!r}, joints={list(self.joint_names)})"

    def _place_of(self, link: str) -> int:
        return self.link_names.index(link)

    def _checked(self, name: str, value: Iterable[float], least: float = 0.0) -> FloatArray:
        vector = _numbers(value)
        if vector.shape != (self.nv,) or not (np.isfinite(vector) & (vector >= least)).all():
            allowed = ", none negative" if least == 0.0 else ""
            raise RobotModelError(
                f"{name} is {value}; it must be {self.nv} finite numbers{allowed}: one for each "
                f"velocity of {', '.join(self.joint_names)}"
            )
        return _frozen(vector)


class Units(NamedTuple):
    position: str
    velocity: str
    effort: str


def units(model: RobotModel, j: int) -> Units:
    """Units of joint `j`, which has one degree of freedom."""
    if model.joint_types[j] == "prismatic":
        return Units("m", "m/s", "N")
    return Units("rad", "rad/s", "Nm")


def _numbers(value: Iterable[float]) -> FloatArray:
    """Converts to an array; returns an empty array if the value cannot be converted."""
    try:
        return np.array(list(value), dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _frozen(values: Iterable[float]) -> FloatArray:
    array = np.array(list(values), dtype=np.float64)
    array.flags.writeable = False
    return array
