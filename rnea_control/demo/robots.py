"""Finds the demo's robot, and plans a trajectory within its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rnea_control.array_types import FloatArray
from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.splicing import continued
from rnea_control.demo.share import share_directory
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel

# From these postures the arms have room to move; other robots start in the middle of their limits.
READY = {
    "panda": (0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8),
    "seven_axis_arm": (0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0),
}

# How far the waypoints lead, as factors on `SWING` and on the way to the nearer limit.
PATTERN = ((0.9, 0.5), (-0.4, -0.9), (-0.9, 0.6), (0.5, -0.3))
SWING = 0.8
LEG = 2.0

# Fraction of the velocity and effort limits that the planned trajectory may use.
LIMIT_SHARE = 0.7


@dataclass(frozen=True)
class DemoRobot:
    """A robot to show: its URDF, the joints that move, where they start, where they go.

    Attributes:
        parameters: of the controller, from config/ where there is a file for the robot.
    """

    name: str
    urdf: str
    model: RobotModel
    start: FloatArray
    waypoints: list[Waypoint]
    parameters: dict[str, Any]


def find_urdf(robot: str) -> tuple[str, Path]:
    """Name and URDF file for what the user gave: a path, or a name in example-robot-data.

    Raises:
        RneaControlError: there is no such robot; the message lists the known ones.
    """
    if Path(robot).suffix == ".urdf":
        return Path(robot).stem, Path(robot)
    known = {path.stem: path for path in sorted(share_directory().glob("urdf/*.urdf"))}
    try:
        files = metadata.files("example-robot-data") or []
        known.update((f.stem, Path(f.locate())) for f in files if f.suffix == ".urdf")
    except metadata.PackageNotFoundError as error:
        if robot not in known:
            raise RneaControlError(
                f"robot {robot!r} comes with example-robot-data: pip install example-robot-data. "
                f"Without it there are {', '.join(known)}, or give a path that ends in .urdf"
            ) from error
    if robot not in known:
        raise RneaControlError(
            f"there is no robot {robot!r}; there are {', '.join(sorted(known))}, "
            "or give a path that ends in .urdf"
        )
    return robot, known[robot]


def default_robot() -> str:
    """The Panda of example-robot-data, or the package's own arm where that is not installed."""
    try:
        metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        return "seven_axis_arm"
    return "panda"


def load_robot(robot: str) -> DemoRobot:
    """The robot by name or path, with a trajectory of about ten seconds within its limits.

    Raises:
        RneaControlError: there is no such robot, it does not load, or its effort limits are below
            its gravity torque.
    """
    name, path = find_urdf(robot)
    parameters = {} if Path(robot).suffix == ".urdf" else _configuration(name)
    locked = parameters.get("locked_positions")
    model = RobotModel.from_urdf_file(path, parameters.get("joints"), locked)
    if model.nv == 0:
        raise RneaControlError(f"{path}: the robot has no joint that moves")
    known = parameters and name in READY
    start = np.array(READY[name]) if known else _easy_posture(model)
    swing = SWING
    while True:
        waypoints = _waypoints(model, start, swing)
        worst, joint = _limit_share(model, start, waypoints)
        if worst <= LIMIT_SHARE:
            urdf = path.read_text(encoding="utf-8")
            return DemoRobot(name, urdf, model, start, waypoints, parameters)
        swing *= 0.8
        if swing < 0.01:
            raise RneaControlError(
                f"{path}: joint {model.joint_names[joint]!r} cannot hold the robot against gravity "
                f"with {LIMIT_SHARE:.0%} of its effort limit, {model.effort_limit[joint]:g}; "
                "choose another robot"
            )


def _configuration(name: str) -> dict[str, Any]:
    """The controller's parameters in config/ for this robot, if there is such a file."""
    files = {"seven_axis_arm": "rnea_controller.yaml"}
    path = share_directory() / "config" / files.get(name, f"{name}.yaml")
    if not path.exists():
        return {}
    return yaml.safe_load(path.read_text())["/**"]["rnea_controller"]["ros__parameters"]


def _easy_posture(model: RobotModel) -> FloatArray:
    """The middle of the limits, or zero, whichever needs the smaller torques."""
    with np.errstate(invalid="ignore"):  # joints without limits
        middle = 0.5 * (model.lower + model.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    inside = 0.9 * (model.upper - middle)
    zero = np.clip(np.zeros(model.nq), middle - inside, middle + inside)
    return min(middle, zero, key=lambda q: _limit_share(model, q, [Waypoint(1.0, q)])[0])


def _waypoints(model: RobotModel, start: FloatArray, swing: float) -> list[Waypoint]:
    """Through the pattern's points and back; at rest at both ends only."""
    room = np.minimum(np.minimum(model.upper - start, start - model.lower), 1.0 / LIMIT_SHARE)
    reach = swing * LIMIT_SHARE * np.maximum(room, 0.0)
    # Neighbouring joints move differently: by one column or the other, every second pair reversed.
    joint = np.arange(model.nv)
    shares = np.array(PATTERN)[:, joint % 2] * np.where(joint // 2 % 2 == 0, 1.0, -1.0)
    points = [start, *(start + reach * share for share in shares), start]
    velocities = [np.zeros(model.nv)]
    velocities += [
        (after - before) / (2.0 * LEG)
        for before, after in zip(points[:-2], points[2:], strict=True)
    ]
    velocities.append(np.zeros(model.nv))
    zero = np.zeros(model.nv)
    return [
        Waypoint(LEG * (i + 1), point, velocity, zero)
        for i, (point, velocity) in enumerate(zip(points[1:], velocities[1:], strict=True))
    ]


def motion(model: RobotModel, start: FloatArray, waypoints: list[Waypoint]) -> Trajectory:
    """What the controller makes of waypoints that are sent while it holds the start position."""
    points = Waypoints.of(waypoints, model.nv)
    return continued(Trajectory.hold(0.0, start), 0.0, 0.0, points, model.continuous)


def _limit_share(
    model: RobotModel, start: FloatArray, waypoints: list[Waypoint]
) -> tuple[float, int]:
    """The largest fraction of a velocity or effort limit that is used, and its joint."""
    trajectory = motion(model, start, waypoints)
    ws, tau = Workspace(model), np.zeros(model.nv)
    share = np.zeros(model.nv)
    for time in np.linspace(0.0, trajectory.end_time, 400):
        q, v, a = trajectory.at(time)
        rnea(model, ws, q, v, a, tau)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.fmax(share, np.abs(tau) / model.effort_limit)
            if model.velocity_limit.all():
                share = np.fmax(share, np.abs(v) / model.velocity_limit)
    joint = int(np.argmax(share))
    return float(share[joint]) if math.isfinite(share[joint]) else math.inf, joint
