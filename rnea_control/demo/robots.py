"""Robots available to the demo, and the selected robot with a trajectory within its limits."""

from __future__ import annotations

import contextlib
import math
import os
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
from rnea_control.control.trajectory import spliced
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel
from rnea_control.model.joints import VELOCITIES
from rnea_control.model.urdf_text import urdf_text

# Robots with parameters in config/, and a start posture with room to move. Other robots start in
# the middle of their limits. Parameters of real robots are unsuitable: the demo simulates no
# firmware.
CONFIGURED = {
    "panda": ("robots/simulated_panda.yaml", (0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8)),
    "seven_axis_arm": ("rnea_controller.yaml", (0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0)),
}

# Displacements of the waypoints, as shares of the swing.
PATTERN = ((0.9, 0.5), (-0.4, -0.9), (-0.9, 0.6), (0.5, -0.3))
SWING = 0.8  # largest swing, as a share of the distance to the nearer limit
LEG = 1.2  # time from waypoint to waypoint [s]

# Fraction of the velocity and effort limits that the planned trajectory may use.
LIMIT_SHARE = 0.7


@dataclass(frozen=True)
class DemoRobot:
    """The robot of a demo: its URDF, the joints that move, their start and their waypoints."""

    name: str
    path: Path  # URDF file
    urdf: str  # text of the URDF
    model: RobotModel
    start: FloatArray  # positions at the start, shape (nq,), [rad] or [m]
    waypoints: list[Waypoint]
    parameters: dict[str, Any]  # parameters of the controller from config/; empty without a file

    def simulation(self, rate: float) -> dict[str, Any]:
        """Parameters of the simulated arm, with its states at `rate` [Hz]."""
        joints = list(self.model.joint_names)
        start = zip(joints, self.start.tolist(), strict=True)
        locked = self.parameters.get("locked_positions", {})
        return {
            "robot_description": self.urdf,
            "joints": joints,
            "rate": rate,
            **{f"initial_positions.{joint}": position for joint, position in start},
            **{f"locked_positions.{joint}": position for joint, position in locked.items()},
        }


def known_robots() -> dict[str, Path]:
    """URDFs of this package and of example-robot-data by name. Names that occur twice are preceded
    by the name of the robot's folder."""
    paths = sorted(share_directory().glob("urdf/*.urdf"))
    with contextlib.suppress(metadata.PackageNotFoundError):
        files = metadata.distribution("example-robot-data").files or []
        paths += sorted(Path(f.locate()) for f in files if f.suffix == ".urdf")
    names = [path.stem for path in paths]
    return {
        name if names.count(name) == 1 else f"{path.parent.parent.name}/{name}": path
        for name, path in zip(names, paths, strict=True)
    }


def find_urdf(robot: str | None) -> tuple[str, Path]:
    """Name and URDF file of a robot.

    Args:
        robot: a name from `known_robots`, or the path of a file. By default the Panda of
            example-robot-data, or the package's own arm if that is not installed.

    Raises:
        RneaControlError: the robot is unknown; the message lists the known robots.
    """
    known = known_robots()
    robot = robot or ("panda" if "panda" in known else "seven_axis_arm")
    if robot in known:
        return robot, known[robot]
    path = Path(robot)
    if path.suffix == ".urdf" or os.path.exists(robot):
        return path.stem, path
    more = "" if "panda" in known else "; pip install example-robot-data for more"
    raise RneaControlError(
        f"there is no robot {robot!r}; there are {', '.join(sorted(known))}, or give a path that "
        f"ends in .urdf{more}"
    )


def load_robot(robot: str | None, joints: Sequence[str] | None = None) -> DemoRobot:
    """The robot by name or path, with a trajectory of six seconds within its limits.

    Args:
        robot: a name from `known_robots`, or the path of a URDF.
        joints: joints that move; the others are locked at their start position. By default the
            joints of the robot's configuration, or all.

    Raises:
        RneaControlError: the robot is unknown, does not load, or has effort limits below its
            gravity torque.
    """
    name, path = find_urdf(robot)
    parameters: dict[str, Any] = {}
    if (robot or name) in CONFIGURED:
        content = (share_directory() / "config" / CONFIGURED[name][0]).read_text()
        parameters = yaml.safe_load(content)["/**"]["rnea_controller"]["ros__parameters"]
    locked = parameters.get("locked_positions", {})
    model = RobotModel.from_urdf_file(path, parameters.get("joints"), locked)
    if joints is not None:
        model = RobotModel.from_urdf_file(path, _of_one_degree(model), locked)
    _check_joints(model, path)
    start = np.array(CONFIGURED[name][1]) if parameters else _easy_posture(model)
    if joints is not None:
        posture = dict(zip(model.joint_names, start.tolist(), strict=True))
        locked = {joint: at for joint, at in (posture | locked).items() if joint not in joints}
        parameters |= {"joints": list(joints), "locked_positions": locked}
        model = RobotModel.from_urdf_file(path, joints, locked)
        _check_joints(model, path)
        easy = zip(joints, _easy_posture(model), strict=True)
        start = np.array([posture.get(joint, position) for joint, position in easy])
    swing, worst = SWING, math.inf
    while worst > LIMIT_SHARE:
        waypoints = _waypoints(model, start, swing)
        worst, joint = _limit_share(model, start, waypoints)
        swing *= 0.8
        if worst > LIMIT_SHARE and swing < 0.01:
            raise RneaControlError(
                f"{path}: joint {model.joint_names[joint]!r} cannot hold the robot against gravity "
                f"with {LIMIT_SHARE:.0%} of its effort limit, {model.effort_limit[joint]:g}; "
                "choose another robot, or other joints by --joints"
            )
    urdf = urdf_text(path.read_bytes())
    return DemoRobot(name, path, urdf, model, start, waypoints, parameters)


def _of_one_degree(model: RobotModel) -> list[str]:
    """Names of the joints with one degree of freedom."""
    types = zip(model.joint_names, model.joint_types, strict=True)
    return [joint for joint, kind in types if VELOCITIES[kind] == 1]


def _check_joints(model: RobotModel, path: Path) -> None:
    if model.nv == 0:
        raise RneaControlError(f"{path}: the robot has no joint that moves")
    single = _of_one_degree(model)
    if several := [joint for joint in model.joint_names if joint not in single]:
        raise RneaControlError(
            f"{path}: {', '.join(several)} has more than one degree of freedom, which the demo "
            "does not move; choose other joints by --joints"
        )


def _easy_posture(model: RobotModel) -> FloatArray:
    """Posture in the middle of the limits, or zero, whichever needs the smaller torques."""
    with np.errstate(invalid="ignore"):  # joints without limits
        middle = 0.5 * (model.lower + model.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    inside = 0.9 * (model.upper - middle)
    zero = np.clip(np.zeros(model.nq), middle - inside, middle + inside)
    return min(middle, zero, key=lambda q: _limit_share(model, q, [Waypoint(1.0, q)])[0])


def _waypoints(model: RobotModel, start: FloatArray, swing: float) -> list[Waypoint]:
    """Waypoints through the pattern and back to the start, at rest only at the end."""
    room = np.minimum(np.minimum(model.upper - start, start - model.lower), 1.0 / LIMIT_SHARE)
    reach = swing * LIMIT_SHARE * np.maximum(room, 0.0)
    # Neighboring joints use different columns; every second pair of joints has the opposite sign.
    joint = np.arange(model.nv)
    shares = np.array(PATTERN)[:, joint % 2] * np.where(joint // 2 % 2 == 0, 1.0, -1.0)
    points = np.array([start, *(start + reach * shares), start])
    velocities = np.zeros_like(points)
    velocities[1:-1] = (points[2:] - points[:-2]) / (2.0 * LEG)
    zero = np.zeros(model.nv)
    return [Waypoint(LEG * i, points[i], velocities[i], zero) for i in range(1, len(points))]


def motion(model: RobotModel, start: FloatArray, waypoints: list[Waypoint]) -> Trajectory:
    """Trajectory of the controller for waypoints received while it holds the start position."""
    hold, ahead = Trajectory.hold(0.0, start), Waypoints.of(waypoints, model.nv)
    points, turns = ahead.led_by(0.0, hold.sampled(0.0), model.continuous)
    return spliced(hold, 0.0, turns, points)


def _limit_share(
    model: RobotModel, start: FloatArray, waypoints: list[Waypoint]
) -> tuple[float, int]:
    """Largest share of a velocity or effort limit in use, and the index of its joint."""
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
    """Share directory of the package, in a ROS workspace or in a plain Python environment."""
    try:
        return Path(get_package_share_directory("rnea_control"))
    except (PackageNotFoundError, OSError):
        # Installed by pip without AMENT_PREFIX_PATH: the prefix is the Python environment.
        return Path(sys.prefix) / "share" / "rnea_control"
