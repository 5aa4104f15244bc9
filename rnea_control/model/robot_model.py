"""`RobotModel`: a robot as the numbers that the equations of motion need."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rnea_control.exceptions import RobotModelError, RobotModelWarning
from rnea_control.model import bodies as layout
from rnea_control.model.joints import Joint, read_joint, suspicious_joints
from rnea_control.model.kinematic_tree import ordered_tree
from rnea_control.model.links import read_link_inertia
from rnea_control.model.rotations import FloatArray
from rnea_control.model.urdf_document import MOVING_TYPES, parse_urdf

EARTH_GRAVITY = (0.0, 0.0, -9.81)
STRONGEST_GRAVITY = 1000.0


class RobotModel:
    """A kinematic tree of revolute, continuous and prismatic joints on a fixed base, read from a
    URDF.

    Immutable but for `gravity`. Joint vectors are ordered as `joint_names`.

    Attributes:
        name: the robot's name in the URDF.
        joint_names: the moving joints, in the order of q, v, a and tau.
        joint_types: "revolute", "continuous" or "prismatic", one a joint.
        link_names: the link that each joint moves, in the order of `joint_names`.
        root_link: the link that stands still; gravity is expressed in its frame.
        merged_joints: joints that do not move (fixed, or not among the chosen ones); their links
            are part of the body they hang on, inertia and all.
        nq, nv: number of positions and of velocities; equal, as a continuous joint is one angle.
        lower, upper: position limits, shape (nq,), [rad] or [m]; infinite for continuous joints.
        velocity_limit: shape (nv,), [rad/s] or [m/s]; infinite where the URDF gives none.
        effort_limit: shape (nv,), [Nm] or [N]; infinite where the URDF gives none.
        damping, friction: of the URDF's <dynamics>, shape (nv,); not part of `rnea`.
        warnings: what is legal in the URDF but suspicious, one sentence each.
    """

    def __init__(
        self,
        xml: str | bytes,
        source: str,
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
    ) -> None:
        """Reads a URDF; `from_urdf_file` and `from_urdf_string` are the ways in."""
        notes: list[str] = []
        document = parse_urdf(xml, source)
        if document.unknown:
            notes.append(f"{source}: not known and ignored: {'; '.join(document.unknown)}")
        root, order = ordered_tree(document.robot, source)
        all_joints = [read_joint(document.robot.joints[i], source) for i in order]
        inertias = {
            link.name: read_link_inertia(link, source, notes.append)
            for link in document.robot.links
        }
        names = _chosen_joints(all_joints, joints, source)
        locked = _checked_locked_positions(all_joints, names, locked_positions or {}, source)
        index = {name: i for i, name in enumerate(names)}
        merged = layout.merge_bodies(root, all_joints, inertias, index, locked)
        moving = sorted(merged.joints, key=lambda joint: index[joint.name])

        self.name: str = document.robot.name
        self.source = source
        self.root_link = root
        self.joint_names = names
        self.joint_types = tuple(joint.type for joint in moving)
        self.link_names = tuple(joint.child for joint in moving)
        self.merged_joints = tuple(joint.name for joint in all_joints if joint.name not in index)
        self.nq = self.nv = len(names)
        self.lower = _per_joint(moving, "lower")
        self.upper = _per_joint(moving, "upper")
        self.velocity_limit = _per_joint(moving, "velocity_limit")
        self.effort_limit = _per_joint(moving, "effort_limit")
        self.damping = _per_joint(moving, "damping")
        self.friction = _per_joint(moving, "friction")
        # Read by the kernels of dynamics/; its columns stand in model/bodies.py.
        self._bodies = merged.array
        self._gravity = np.zeros(3)
        self.gravity = gravity
        controlled = [joint for joint in document.robot.joints if joint.name in index]
        notes.extend(suspicious_joints(controlled, source))
        notes.extend(self._suspicious_bodies(merged))
        self.warnings = tuple(notes)
        for note in notes:
            warnings.warn(note, RobotModelWarning, stacklevel=3)

    @classmethod
    def from_urdf_file(
        cls,
        path: str | os.PathLike[str],
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
    ) -> RobotModel:
        """Reads a URDF file.

        Args:
            path: the file.
            joints: names of the joints that move, in the order wanted for q, v, a and tau. All
                others are locked and their links merged. Default: every joint that can move, depth
                first as in the file.
            locked_positions: where to lock joints that could move, by name, [rad] or [m]. Default
                0.
            gravity: acceleration of gravity in the root link's frame, shape (3,), [m/s^2].

        Raises:
            RobotModelError: the file cannot be read, or is not a robot that this class covers. The
                message names file, link or joint, the value, what is allowed and the remedy.

        Warns:
            RobotModelWarning: once for each thing that is legal but suspicious.
        """
        try:
            xml = Path(path).read_bytes()
        except OSError as error:
            raise RobotModelError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from error
        return cls(xml, os.fspath(path), joints, locked_positions, gravity)

    @classmethod
    def from_urdf_string(
        cls,
        xml: str | bytes,
        joints: Sequence[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        gravity: Iterable[float] = EARTH_GRAVITY,
    ) -> RobotModel:
        """Reads a URDF from its text; arguments, errors and warnings as for `from_urdf_file`."""
        return cls(xml, "robot_description", joints, locked_positions, gravity)

    @property
    def gravity(self) -> FloatArray:
        """Acceleration of gravity in the root link's frame, shape (3,), [m/s^2]; a copy.

        Set it for walls, ceilings and other planets; it takes effect in the next call of any
        algorithm.
        """
        return self._gravity.copy()

    @gravity.setter
    def gravity(self, value: Iterable[float]) -> None:
        try:
            vector = np.array(list(value), dtype=np.float64)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.shape != (3,) or not (np.abs(vector) <= STRONGEST_GRAVITY).all():
            raise RobotModelError(
                f"gravity is {value}; it must be three finite numbers [m/s^2], none beyond "
                f"{STRONGEST_GRAVITY:g}, in the frame of "
                f"{self.root_link!r}"
            )
        self._gravity = vector
        # The recursions start from a root that accelerates upwards: that is how gravity enters
        # them.
        start = layout.BASE_ACCELERATION
        self._bodies[0, start : start + 3] = -vector

    @property
    def continuous(self) -> FloatArray:
        """1 for each continuous joint, 0 for the others, shape (nq,)."""
        return np.array([float(kind == "continuous") for kind in self.joint_types])

    @property
    def total_mass(self) -> float:
        """Mass of all links, the root's included, [kg]."""
        return float(self._bodies[:, layout.INERTIA].sum())

    def __repr__(self) -> str:
        return f"RobotModel({self.name!r}, joints={list(self.joint_names)})"

    def _suspicious_bodies(self, merged: layout.Bodies) -> list[str]:
        notes = []
        for row, joint in enumerate(merged.joints, start=1):
            if not merged.array[row, layout.INERTIA : layout.INERTIA + 10].any():
                notes.append(
                    f"{self.source}: link {joint.child!r} moves with joint {joint.name!r} but has "
                    "no inertia; "
                    "no torque is computed for moving it. Give it an <inertial>"
                )
            if joint.effort_limit == 0.0:
                notes.append(
                    f"{self.source}: joint {joint.name!r}: <limit effort> is 0, so the joint may "
                    "exert no torque at "
                    "all. Give the effort limit of its drive"
                )
        return notes


def _per_joint(joints: Sequence[Joint], attribute: str) -> FloatArray:
    values = np.array([getattr(joint, attribute) for joint in joints], dtype=np.float64)
    values.flags.writeable = False
    return values


def _chosen_joints(
    all_joints: Sequence[Joint], wanted: Sequence[str] | None, source: str
) -> tuple[str, ...]:
    if wanted is None:
        for joint in all_joints:
            if not joint.moves and joint.type != "fixed":
                raise RobotModelError(
                    f"{source}: joint {joint.name!r} is of type {joint.type!r}; supported are "
                    "fixed, "
                    f"{', '.join(MOVING_TYPES)}. Name the joints to control in `joints`; all "
                    "others are locked"
                )
        return tuple(joint.name for joint in all_joints if joint.moves)
    by_name = {joint.name: joint for joint in all_joints}
    movable = [joint.name for joint in all_joints if joint.moves]
    for name in wanted:
        if name not in by_name:
            raise RobotModelError(
                f"{source}: has no joint {name!r}, which `joints` names; it has "
                f"{', '.join(movable) or 'none'}"
            )
        if not by_name[name].moves:
            raise RobotModelError(
                f"{source}: joint {name!r} of `joints` is of type {by_name[name].type!r} and "
                "cannot be controlled; "
                f"supported are {', '.join(MOVING_TYPES)}"
            )
    if len(set(wanted)) != len(wanted):
        raise RobotModelError(f"{source}: `joints` names a joint twice: {', '.join(wanted)}")
    return tuple(wanted)


def _checked_locked_positions(
    all_joints: Sequence[Joint], names: Sequence[str], locked: Mapping[str, float], source: str
) -> dict[str, float]:
    movable = {joint.name for joint in all_joints if joint.moves}
    for name, position in locked.items():
        if name not in movable:
            raise RobotModelError(
                f"{source}: `locked_positions` names {name!r}, which is no joint of the robot "
                "that could move"
            )
        if name in names:
            raise RobotModelError(
                f"{source}: joint {name!r} is in `locked_positions` and in `joints`; keep it in "
                "one of them"
            )
        if not math.isfinite(position):
            raise RobotModelError(
                f"{source}: `locked_positions` of {name!r} is {position}; it must be a finite "
                "number"
            )
    return {name: float(position) for name, position in locked.items()}
