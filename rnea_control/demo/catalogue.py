"""What `rnea_demo --list` shows: the robots there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from rnea_control.demo.robots import configuration_of, known_robots
from rnea_control.exceptions import RobotModelError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.model.joints import VELOCITIES


@dataclass(frozen=True)
class Entry:
    """A robot of the list.

    Attributes:
        name, path: of the robot and its URDF.
        model: None if it does not load.
        special: in a few words.
        configured: whether a configuration exists for it.
    """

    name: str
    path: Path
    model: RobotModel | None
    special: str
    configured: bool


def entries() -> list[Entry]:
    """All robots, by name."""
    return [_entry(name, path) for name, path in sorted(known_robots().items())]


def _entry(name: str, path: Path) -> Entry:
    configured = bool(configuration_of(name))
    try:
        model = RobotModel.from_urdf_file(path)
    except RobotModelError as error:
        reason = str(error).replace(str(path), path.name)
        return Entry(name, path, None, f"does not load: {reason}", configured)
    return Entry(name, path, model, ", ".join(special(model)), configured)


def special(model: RobotModel) -> list[str]:
    """What is special about a robot, a few words each."""
    found = []
    if model.nv == 0:
        return ["no joint moves"]
    if model.mimic_joints:
        found.append(f"{len(model.mimic_joints)} mimic")
    for words, kinds in (
        ("sliding", ("prismatic",)),
        ("of several degrees of freedom", [kind for kind, nv in VELOCITIES.items() if nv > 1]),
    ):
        count = sum(kind in kinds for kind in model.joint_types)
        if count:
            found.append(f"{count} {words}")
    moving = model.bodies[list(model.joint_rows.values()), INERTIA : INERTIA + 10]
    massless = len(moving) - int(moving.any(axis=1).sum())
    if massless == len(moving):
        found.append("no inertias")
    elif massless:
        found.append(f"{massless} without inertia")
    return found


def table(robots: list[Entry]) -> Table:
    """The list as a table."""
    result = Table(title="Robots for --robot")
    result.add_column("robot", no_wrap=True)
    result.add_column("joints", justify="right")
    result.add_column("mass, kg", justify="right")
    result.add_column("special", overflow="fold")
    result.add_column("config", overflow="fold")
    for robot in robots:
        joints, mass = "", ""
        if robot.model is not None:
            joints, mass = str(robot.model.nv), f"{robot.model.total_mass:.1f}"
        result.add_row(robot.name, joints, mass, robot.special, "yes" if robot.configured else "")
    return result
