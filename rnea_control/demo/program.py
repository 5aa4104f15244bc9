"""Moves a simulated arm under PD and under RNEA computed torque, and shows the difference."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rnea_control.control import ControlLaw
from rnea_control.demo.picture import draw
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot, default_robot, load_robot
from rnea_control.demo.run import BANDWIDTH, run
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModelWarning
from rnea_control.ros.process import ros_process


def main() -> int:
    """Runs the demo; the exit status is 0, or 1 where it could not run."""
    arguments = _arguments()
    console = Console()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    warnings.simplefilter("ignore", RobotModelWarning)  # printed below, once
    try:
        robot = load_robot(arguments.robot or default_robot())
        _print_introduction(console, robot)
        with ros_process(["--ros-args", "--log-level", "error"]) as running:
            recordings = [
                _run(robot, law, arguments.rate, running, console)
                for law in (ControlLaw.computed_torque, ControlLaw.pd)
            ]
    except RneaControlError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    console.print(_table(robot, *recordings))
    _print_summary(console, *recordings)
    path = Path(arguments.picture).resolve()
    draw(path, robot.model, *recordings)
    console.print(f"Picture: {path}")
    return 0


def _print_introduction(console: Console, robot: DemoRobot) -> None:
    for warning in robot.model.warnings:
        text = warning.replace(robot.model.source, Path(robot.model.source).name)
        console.print(text, style="yellow", markup=False)
    console.print(
        f"{robot.name}: {robot.model.nv} joints follow a trajectory of "
        f"{robot.waypoints[-1].time:g} s in real time. The controller is a process of its own and "
        "talks to the simulated arm over ROS 2. It runs first with the RNEA (computed torque), "
        f"then with PD alone. Both are tuned to a bandwidth of {BANDWIDTH:g} rad/s; PD uses each "
        "joint's own inertia for that, and models neither gravity nor the coupling of the joints."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--robot",
        help="a name in example-robot-data, or the path of a URDF file; by default panda, or "
        "the arm that comes with this package where example-robot-data is not installed",
    )
    parser.add_argument("--rate", type=float, default=1000.0, help="control rate [Hz]")
    parser.add_argument("--picture", default="rnea_demo.png", help="where to write the picture")
    return parser.parse_args()


def _run(robot: DemoRobot, law: ControlLaw, rate: float, running, console: Console) -> Recording:
    columns = (TextColumn("{task.description:<30}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False) as bar:
        task = bar.add_task(f"{law.name}: starting", total=1.0)
        bar.refresh()

        def progress(part: float) -> None:
            bar.update(task, completed=part, description=f"{law.name}: moving", refresh=True)

        recording = run(robot, law, rate, running, progress)
        bar.update(task, completed=1.0, description=f"{law.name}: done", refresh=True)
    return recording


def _table(robot: DemoRobot, model_based: Recording, baseline: Recording) -> Table:
    table = Table(title=f"{robot.name}: tracking errors in mrad (mm), torques in Nm (N)")
    table.add_column("joint", overflow="fold")
    for heading in ("RMS", "largest"):
        for law in ("PD", "RNEA"):
            table.add_column(f"{heading}\n{law}", justify="right")
    table.add_column("peak torque\nRNEA", justify="right")
    table.add_column("limit", justify="right")
    for j, name in enumerate(robot.model.joint_names):
        table.add_row(
            name,
            f"{1e3 * baseline.rms[j]:.3f}",
            f"{1e3 * model_based.rms[j]:.3f}",
            f"{1e3 * baseline.largest[j]:.3f}",
            f"{1e3 * model_based.largest[j]:.3f}",
            f"{model_based.peak_torque[j]:.1f}",
            f"{robot.model.effort_limit[j]:g}",
        )
    return table


def _print_summary(console: Console, model_based: Recording, baseline: Recording) -> None:
    ratio = baseline.total_rms / model_based.total_rms
    console.print(
        f"RMS over all joints: {baseline.law} {1e3 * baseline.total_rms:.3f} mrad, "
        f"{model_based.law} {1e3 * model_based.total_rms:.4f} mrad: "
        f"[bold]{ratio:.0f} times closer[/]"
    )
    console.print(f"The trajectory was sent by {model_based.sent}")
    for recording in (baseline, model_based):
        console.print(f"State-to-command latency under {recording.law}: {recording.latency}")
