"""What the demo prints: the robots there are, and two runs that can be compared. Joints that turn
are told in mrad and Nm, those that slide in mm and N, and no figure mixes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from rnea_control.demo.recording import STALL, Recording
from rnea_control.demo.robots import DemoRobot, configuration_of, known_robots
from rnea_control.exceptions import RobotModelError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.model.joints import VELOCITIES
from rnea_control.model.robot_model import units


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


def table(robot: DemoRobot, model_based: Recording, baseline: Recording) -> Table:
    """Errors and torques of each joint."""
    result = Table(title=f"{robot.name}: tracking errors and torques", box=SIMPLE_HEAD)
    result.add_column("\njoint", overflow="fold", min_width=12)
    for heading in ("RMS", "largest"):
        for law in ("PD", "RNEA"):
            result.add_column(f"{heading}\n{law}", justify="right")
    result.add_column("torque\nRNEA", justify="right")
    result.add_column("\nlimit", justify="right")
    result.add_column("\nunits", no_wrap=True)
    for kind in kinds(robot.model):
        for j in kind.joints:
            limit = robot.model.effort_limit[j]
            result.add_row(
                robot.model.joint_names[j],
                f"{1e3 * baseline.rms[j]:.3f}",
                f"{1e3 * model_based.rms[j]:.4f}",
                f"{1e3 * baseline.largest[j]:.3f}",
                f"{1e3 * model_based.largest[j]:.4f}",
                f"{model_based.peak_torque[j]:.1f}",
                f"{limit:g}" if math.isfinite(limit) else "none",
                f"{kind.error}, {kind.effort}",
            )
    return result


def summary(model: RobotModel, model_based: Recording, baseline: Recording) -> list[str]:
    """A line for the joints of each kind."""
    lines = []
    every = kinds(model)
    for kind in every:
        count = len(kind.joints)
        which = "all joints"
        if len(every) > 1:
            which = f"{count} {kind.name} {'joint' if count == 1 else 'joints'}"
        figures = [
            f"{recording.law} {1e3 * recording.total_rms(kind.joints):.4g} {kind.error}"
            for recording in (baseline, model_based)
        ]
        lines.append(
            f"RMS over {which}: {', '.join(figures)}: {ratio(kind, model_based, baseline)}"
        )
    return lines


def ratio(kind: Kind, model_based: Recording, baseline: Recording) -> str:
    """Which of two runs follows closer, and how many times."""
    ours, theirs = model_based.total_rms(kind.joints), baseline.total_rms(kind.joints)
    if ours <= theirs:
        return f"RNEA is {_factor(theirs, ours)} times closer"
    return f"PD is {_factor(ours, theirs)} times closer"


def comparison(kind: Kind, model_based: Recording, baseline: Recording) -> str:
    """The same, with the joints' kind."""
    return f"{kind.name} joints: {ratio(kind, model_based, baseline)}"


def stalls(recording: Recording) -> str:
    """How often the run stalled."""
    count, longest = recording.stalls()
    if count == 0:
        return f"Stalls under {recording.law}: none longer than {1e3 * STALL:g} ms"
    return f"Stalls under {recording.law}: {count}, the longest {1e3 * longest:.0f} ms"


def _factor(large: float, small: float) -> str:
    if small == 0.0:
        return "infinitely many" if large > 0.0 else "1"
    factor = large / small
    return f"{factor:.0f}" if factor >= 10.0 else f"{factor:.2g}"


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


def robots_table(robots: list[Entry]) -> Table:
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
