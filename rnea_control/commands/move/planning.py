"""Plans the requested motion as the controller accepts it, and describes it in words. No ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.client.motion import (
    check_duration,
    check_target,
    motion_limits,
    motion_to,
    shortest,
)
from rnea_control.client.profile import (
    MotionLimits,
    Profile,
    chained,
    largest_rates,
    straight,
    through,
)
from rnea_control.commands.move.points_file import Points, read_points
from rnea_control.commands.move.pose_memory import PoseMemory
from rnea_control.control.motion import MotionRequest
from rnea_control.control.planner import Planner, Situation
from rnea_control.control.trajectory import Trajectory
from rnea_control.exceptions import (
    TrajectoryJointsError,
    TrajectoryTimesError,
    listed,
    quoted,
)
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.node.parameters import InForce

STAYS = 1e-4  # displacement below which a joint is described as at rest [rad] or [m]
DIGITS = 3  # decimals of positions in words
LEAD = 0.005  # time by which the controller plans ahead [s]


@dataclass(frozen=True)
class Wish:
    """Requested goal; exactly one of the first four attributes is set.

    Attributes:
        pose: positions of all joints in the controller's order, [rad] or [m].
        steps: displacements of single joints by name, [rad] or [m].
        back: True to return to the start of the last motion.
        file: CSV file with points.
        speed: share of the velocity limits, above 0 and at most 1.
        acceleration: one number for all joints or one for each, [rad/s^2] or [m/s^2]; empty for the
            default.
    """

    pose: tuple[float, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    back: bool = False
    file: Path | None = None
    speed: float = 0.1
    acceleration: tuple[float, ...] = ()


@dataclass(frozen=True)
class PlannedMotion:
    """A motion that is ready to be sent.

    Attributes:
        profile: positions, velocities and accelerations over time.
        words: description for the user.
        note: the controller's warning about the motion; empty without one.
    """

    profile: Profile
    words: str
    note: str

    @property
    def moves(self) -> bool:
        return self.profile.duration > 0.0


def plan(
    wish: Wish, given: InForce, held: FloatArray, measured: FloatArray, memory: PoseMemory
) -> PlannedMotion:
    """The motion to the requested goal.

    Args:
        wish: the requested goal.
        given: model and settings in force in the controller.
        held: position at which the controller holds the arm, shape (nv,), [rad] or [m].
        measured: measured position, shape (nv,), [rad] or [m].
        memory: start of the last motion.

    Raises:
        TrajectoryError: the request cannot be fulfilled; the message names joint and values.
    """
    model = given.model
    limits = motion_limits(given, wish.speed, _acceleration(wish, model))
    about = ""
    if wish.file is not None:
        points = read_points(wish.file, model.joint_names)
        profile = _through_points(points, str(wish.file), model, held, limits)
        about = f" through {len(points.positions)} points of {wish.file}"
    else:
        target = held.copy()
        if wish.back:
            pose = memory.read(model.joint_names)
            target, about = pose.position, f" back to its position of {_age(pose.age)} ago"
        elif wish.pose:
            target = _pose(wish.pose, model)
        for name, way in wish.steps:
            target[_place(name, model)] += way
        profile = motion_to(target, held, model, limits, turns=bool(wish.steps))
    check_duration(profile)
    note = _judge(given, profile, held, measured) if profile.duration else ""
    return PlannedMotion(profile, _words(model, profile, wish.speed, about), note)


def _acceleration(wish: Wish, model: RobotModel) -> FloatArray | None:
    """Requested accelerations, shape (nv,); None for the default."""
    if not wish.acceleration:
        return None
    if len(wish.acceleration) not in (1, model.nv):
        raise TrajectoryJointsError(
            f"--acceleration has {len(wish.acceleration)} numbers; give one for all joints, or "
            f"{model.nv}: {listed(model.joint_names)}"
        )
    return np.broadcast_to(np.array(wish.acceleration), model.nv)


def _pose(numbers: Sequence[float], model: RobotModel) -> FloatArray:
    if len(numbers) != model.nv:
        raise TrajectoryJointsError(
            f"--to has {len(numbers)} numbers; the controller has {model.nv} joints: "
            f"{listed(model.joint_names)}"
        )
    return np.array(numbers)


def _place(name: str, model: RobotModel) -> int:
    if name not in model.joint_names:
        raise TrajectoryJointsError(
            f"--joint {quoted(name)} is not a joint of the controller; its joints are "
            f"{listed(model.joint_names)}"
        )
    return model.joint_names.index(name)


def _through_points(
    points: Points, source: str, model: RobotModel, held: FloatArray, limits: MotionLimits
) -> Profile:
    """Motion to the first point and through the others, at their times or from rest to rest."""
    places = [model.joint_names.index(name) for name in points.joints]
    positions = np.tile(held, (len(points.positions), 1))
    positions[:, places] = points.positions
    for k, row in enumerate(positions):
        check_target(row, model, f"{source}: point {k + 1}: ")
    # Continuous joints take the shortest way to the first point, and then follow the file exactly.
    positions += held + shortest(positions[0] - held, model) - positions[0]
    profile = straight(held, positions[0], limits)
    if points.times is not None:
        times = points.times
        if times[0] < 0.0:
            raise TrajectoryTimesError(f"{source}: the time of point 1 is negative, {times[0]:g} s")
        for k in np.flatnonzero(np.diff(times) <= 0.0):
            raise TrajectoryTimesError(
                f"{source}: the time of point {k + 2}, {times[k + 1]:g} s, is not after that of "
                f"point {k + 1}, {times[k]:g} s"
            )
        return chained([profile, through(times, positions, limits)])
    legs = pairwise(positions)
    return chained([profile, *(straight(one, other, limits) for one, other in legs)])


def _judge(given: InForce, profile: Profile, held: FloatArray, measured: FloatArray) -> str:
    """Warning of the controller about the motion; empty without one.

    Raises:
        TrajectoryError: the controller would refuse the motion.
    """
    situation = Situation(
        trajectory=Trajectory.hold(0.0, held),
        revision=0,
        t=0.0,
        s=0.0,
        ahead=0.0,
        scaling=1.0,
        position=measured,
        velocity=np.zeros_like(held),
        error=held - measured,
    )
    request = MotionRequest(profile.waypoints)
    return Planner(given.model, given.controller).plan(request, situation, LEAD).motion.note


def _words(model: RobotModel, profile: Profile, speed: float, about: str) -> str:
    """Description of the motion, a line for each joint."""
    if not profile.duration:
        return "The arm is already at its goal: nothing moves."
    slower = "" if profile.slowed == 1.0 else f", {profile.slowed:.3g} times slower than the file"
    lines = [
        f"The arm will move{about} in {profile.duration:.1f} s, at {speed:g} of its velocity "
        f"limits at most{slower}:"
    ]
    width = max(map(len, model.joint_names))
    first, last = (np.round(profile.positions[k], DIGITS) + 0.0 for k in (0, -1))  # no -0.000
    reach = np.abs(profile.positions - profile.positions[0]).max(axis=0)
    fastest, _ = largest_rates(profile.waypoints)
    for j, name in enumerate(model.joint_names):
        unit, way = units(model, j), last[j] - first[j]
        line = f"  {name.ljust(width)}  "
        if reach[j] < STAYS:
            lines.append(f"{line}stays at {first[j]:.3f} {unit.position}")
            continue
        line += f"from {first[j]:.3f} to {last[j]:.3f} {unit.position} ({way:+.3f})"
        if reach[j] > abs(way) + 0.1**DIGITS:
            low, high = profile.positions[:, j].min(), profile.positions[:, j].max()
            line += f", between {low:.3f} and {high:.3f}"
        lines.append(f"{line}, at most {fastest[j]:.2g} {unit.velocity}")
    return "\n".join(lines)


def _age(seconds: float) -> str:
    for name, unit in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= unit:
            return f"{math.floor(seconds / unit)} {name}"
    return f"{seconds:.0f} s"
