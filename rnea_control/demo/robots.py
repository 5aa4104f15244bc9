"""Finds the demo's robot, and plans a trajectory within its limits."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rnea_control.array_types import FloatArray
from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.trajectory import continued
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel
from rnea_control.model.joints import VELOCITIES
from rnea_control.model.urdf_text import urdf_text

# From these postures the arms have room to move; other robots start in the middle of their limits.
READY = {
    "panda": (0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8),
    "seven_axis_arm": (0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0),
}

# Their parameters in config/. Those of real robots are not for the demo: it simulates no firmware.
CONFIGURATIONS = {
    "panda": "robots/simulated_panda.yaml",
    "seven_axis_arm": "rnea_controller.yaml",
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
        path: of the URDF.
        urdf: its text.
        parameters: of the controller, from config/ where there is a file for the robot.
    """

    name: str
    path: Path
    urdf: str
    model: RobotModel
    start: FloatArray
    waypoints: list[Waypoint]
    parameters: dict[str, Any]


def known_robots() -> dict[str, Path]:
    """The URDFs of this package and of example-robot-data by name; where two files have the same,
    the name is that of the robot's folder and of the file."""
    paths = sorted(share_directory().glob("urdf/*.urdf"))
    with contextlib.suppress(metadata.PackageNotFoundError):
        files = metadata.distribution("example-robot-data").files or []
        paths += sorted(Path(f.locate()) for f in files if f.suffix == ".urdf")
    names = [path.stem for path in paths]
    return {
        name if names.count(name) == 1 else f"{path.parent.parent.name}/{name}": path
        for name, path in zip(names, paths, strict=True)
    }


def find_urdf(robot: str) -> tuple[str, Path]:
    """Name and URDF file for what the user gave: a path, or a name in example-robot-data.

    Raises:
        RneaControlError: there is no such robot; the message lists the known ones.
    """
    if Path(robot).suffix == ".urdf":
        return Path(robot).stem, Path(robot)
    known = known_robots()
    if robot in known:
        return robot, known[robot]
    if not _has_example_robots():
        raise RneaControlError(
            f"robot {robot!r} comes with example-robot-data: pip install example-robot-data. "
            f"Without it there are {', '.join(known)}, or give a path that ends in .urdf"
        )
    raise RneaControlError(
        f"there is no robot {robot!r}; there are {', '.join(sorted(known))}, "
        "or give a path that ends in .urdf"
    )


def default_robot() -> str:
    """The Panda of example-robot-data, or the package's own arm where that is not installed."""
    return "panda" if _has_example_robots() else "seven_axis_arm"


def _has_example_robots() -> bool:
    try:
        metadata.distribution("example-robot-data")
    except metadata.PackageNotFoundError:
        return False
    return True


def load_robot(robot: str, joints: Sequence[str] | None = None) -> DemoRobot:
    """The robot by name or path, with a trajectory of about ten seconds within its limits.

    Args:
        robot: its name, or the path of its URDF.
        joints: those that move; the others are locked where they would start. By default those of
            the robot's configuration, or all.

    Raises:
        RneaControlError: there is no such robot, it does not load, or its effort limits are below
            its gravity torque.
    """
    name, path = find_urdf(robot)
    parameters = {} if Path(robot).suffix == ".urdf" else configuration_of(name)
    locked = parameters.get("locked_positions")
    model = RobotModel.from_urdf_file(path, parameters.get("joints"), locked)
    if joints is not None and len(_of_several(model)):
        single = [joint for joint in model.joint_names if joint not in _of_several(model)]
        model = RobotModel.from_urdf_file(path, single, locked)
    _check_joints(model, path)
    start = np.array(READY[name]) if parameters and name in READY else _easy_posture(model)
    if joints is not None:
        posture = dict(zip(model.joint_names, start.tolist(), strict=True))
        parameters = _restricted(parameters, joints, posture)
        model = RobotModel.from_urdf_file(path, joints, parameters["locked_positions"])
        _check_joints(model, path)
        middle = dict(zip(model.joint_names, _easy_posture(model).tolist(), strict=True))
        start = np.array([posture.get(joint, middle[joint]) for joint in joints])
    swing = SWING
    while True:
        waypoints = _waypoints(model, start, swing)
        worst, joint = _limit_share(model, start, waypoints)
        if worst <= LIMIT_SHARE:
            urdf = urdf_text(path.read_bytes())
            return DemoRobot(name, path, urdf, model, start, waypoints, parameters)
        swing *= 0.8
        if swing < 0.01:
            raise RneaControlError(
                f"{path}: joint {model.joint_names[joint]!r} cannot hold the robot against gravity "
                f"with {LIMIT_SHARE:.0%} of its effort limit, {model.effort_limit[joint]:g}; "
                "choose another robot, or other joints by --joints"
            )


def configuration_of(name: str) -> dict[str, Any]:
    """The controller's parameters in config/ for a robot of the list; empty without a file."""
    if name not in CONFIGURATIONS:
        return {}
    path = share_directory() / "config" / CONFIGURATIONS[name]
    return yaml.safe_load(path.read_text())["/**"]["rnea_controller"]["ros__parameters"]


def _of_several(model: RobotModel) -> list[str]:
    """The joints of more than one degree of freedom."""
    types = zip(model.joint_names, model.joint_types, strict=True)
    return [joint for joint, kind in types if VELOCITIES[kind] != 1]


def _check_joints(model: RobotModel, path: Path) -> None:
    if model.nv == 0:
        raise RneaControlError(f"{path}: the robot has no joint that moves")
    if several := _of_several(model):
        raise RneaControlError(
            f"{path}: {', '.join(several)} has more than one degree of freedom, which the demo "
            "does not move; choose other joints by --joints"
        )


def _restricted(
    parameters: dict[str, Any], joints: Sequence[str], posture: dict[str, float]
) -> dict[str, Any]:
    """The controller's parameters with only `joints`, and all others locked at `posture`."""
    locked = {**posture, **parameters.get("locked_positions", {})}
    locked = {joint: position for joint, position in locked.items() if joint not in joints}
    result = {
        key: {joint: part for joint, part in value.items() if joint in joints}
        if isinstance(value, dict) and posture.keys() & value.keys()
        else value
        for key, value in parameters.items()
    }
    return {**result, "joints": list(joints), "locked_positions": locked}


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
    # Neighboring joints move differently: by one column or the other, every second pair reversed.
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
            share = np.fmax(share, np.abs(v) / model.velocity_limit)
    joint = int(np.argmax(share))
    return float(share[joint]) if math.isfinite(share[joint]) else math.inf, joint


def share_directory() -> Path:
    """The package's share directory, in a ROS workspace and in a plain Python environment alike."""
    try:
        return Path(get_package_share_directory("rnea_control"))
    except (PackageNotFoundError, OSError):
        # No AMENT_PREFIX_PATH, or not in it: installed by pip, the environment is the prefix.
        return Path(sys.prefix) / "share" / "rnea_control"
