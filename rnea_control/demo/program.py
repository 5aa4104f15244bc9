"""Moves a simulated arm along one trajectory four times, and compares the tracking errors: PD with
gravity compensation and computed torque, each with an exact model of the arm and a wrong one."""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rnea_control.demo.cases import CASES, LAW_NAMES, Case
from rnea_control.demo.controller import BANDWIDTH
from rnea_control.demo.film import film, has_display, show
from rnea_control.demo.report import difference, draw, shown, summary, table
from rnea_control.demo.robots import (
    CONFIGURED,
    DemoRobot,
    known_robots,
    load_robot,
    share_directory,
)
from rnea_control.demo.run import Recording, disturbances, run, void
from rnea_control.demo.skeleton import draw_robots
from rnea_control.exceptions import RneaControlError, RobotModelError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.plausibility import suspicions
from rnea_control.ros.middleware import use_loopback
from rnea_control.ros.process import ros_process
from rnea_control.simulation.parameters import PARAMETERS

COMPARED = 0  # exit status: all runs were compared
FAILED = 1  # exit status: the demo could not run, or was stopped
WRONG_OPTION = 2  # exit status of argparse
DISTURBED = 3  # exit status: a run was disturbed
VOID = 4  # exit status: the robot cannot show a difference

CONSOLE = Console()
PICTURE = "rnea_demo.png"
FILMS = (".gif", ".mp4")
REMEDY = (
    "Computed torque is as good as its model: find rotors and gains with rnea_tune "
    "(docs/tune.md), and masses with rnea_identify (docs/identification.md)."
)

_EPILOG = f"""\
exit status:
  {COMPARED}  all runs were compared
  {FAILED}  the demo could not run, or was stopped
  {WRONG_OPTION}  wrong option
  {DISTURBED}  a run was disturbed (motion aborted, commands or states missing, torque at its
     limit): no comparison
  {VOID}  the robot has no inertias or no room to move: no comparison
"""


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options of a command line, by default that of the process. Ends the process with status 2 for
    a wrong option."""
    parser = argparse.ArgumentParser(
        prog="rnea_demo",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    # fmt: off
    add("--robot",
        help="a name that --list shows, or the path of a URDF file; by default panda, or the arm "
        "of this package if example-robot-data is not installed")
    add("--joints", type=lambda text: text.split(","),
        help="joints that move, separated by commas; the other joints are locked")
    add("--rate", type=float, default=1000.0, help="control rate [Hz]")
    add("--picture", metavar="FILE", type=Path,
        help=f"file for the picture of the result, {PICTURE} by default; with --list, for a "
        "picture of the robots")
    add("--video", metavar="FILE", type=Path,
        help="film the run with the exact model, as .gif, or .mp4 by ffmpeg")
    add("--view", action="store_true",
        help="show all runs in MuJoCo's viewer afterwards")
    add("--list", action="store_true", help="list the available robots, and end")
    # fmt: on
    given = parser.parse_args(arguments)
    if given.picture is None and not given.list:
        given.picture = Path(PICTURE)
    for problem in _problems(given):
        parser.error(problem)  # ends the process
    return given


def _problems(given: argparse.Namespace) -> Iterator[str]:
    """Wrong options, a sentence each."""
    rate = next(parameter for parameter in PARAMETERS if parameter.name == "rate")
    if not rate.at_least <= given.rate <= rate.at_most:
        yield f"--rate is {given.rate:g}; it must be {rate.at_least:g} to {rate.at_most:g} Hz"
    if given.joints is not None and not all(map(str.strip, given.joints)):
        yield f"--joints is {','.join(given.joints)!r}; it must be names separated by commas"
    if given.picture:
        formats = [f".{kind}" for kind in Figure().canvas.get_supported_filetypes()]
        yield from _unwritable("--picture", given.picture, formats)
    if given.video:
        yield from _unwritable("--video", given.video, FILMS)
        if given.video.suffix == ".mp4" and shutil.which("ffmpeg") is None:
            yield "--video to .mp4 needs ffmpeg, which is not installed; use a .gif"
    if given.view and not has_display():
        yield "--view needs a display, and there is none; use --video FILE"


def _unwritable(option: str, path: Path, suffixes: Sequence[str]) -> Iterator[str]:
    if path.suffix.lower() not in suffixes:
        yield f"{option} is {str(path)!r}; it must end in one of {', '.join(suffixes)}"
    new = not path.exists()
    try:
        path.open("ab").close()
        if new:
            path.unlink()
    except OSError as error:
        yield f"{option} is {str(path)!r}, which cannot be written: {error.strerror}"


def main() -> int:
    """Runs the demo; returns the exit status, which the end of `--help` explains."""
    given = options()
    use_loopback(share_directory() / "config" / "fastdds_localhost.xml")
    warnings.simplefilter("ignore", RobotModelWarning)  # printed by _print_introduction
    if given.list:
        list_robots(given.picture)
        return COMPARED
    try:
        robot = load_robot(given.robot, given.joints)
        _print_introduction(robot)
        if reason := void(robot):
            CONSOLE.print(f"No comparison: {reason}.", style="red", markup=False)
            return VOID
        with ros_process(["--ros-args", "--log-level", "error"]) as running:
            recordings = [_run(robot, case, given.rate, running) for case in CASES]
    except RneaControlError as error:
        CONSOLE.print(error.with_code, style="red", markup=False)
        return FAILED
    disturbed = _print_outcome(robot, recordings)
    _show(given, robot, recordings, disturbed)
    return DISTURBED if disturbed else COMPARED


def list_robots(picture: Path | None) -> None:
    """Prints the available robots by name, and draws those that have a joint."""
    result, moving = Table(title="Robots for --robot"), {}
    result.add_column("robot", no_wrap=True)
    for heading in ("joints", "mass, kg"):
        result.add_column(heading, justify="right")
    result.add_column("", overflow="fold")
    for name, path in sorted(known_robots().items()):
        try:
            model = RobotModel.from_urdf_file(path)
        except RobotModelError as error:
            reason = str(error).replace(str(path), path.name)
            result.add_row(name, "", "", f"does not load: {reason}")
            continue
        remark = "with its own parameters" if name in CONFIGURED else ""
        result.add_row(name, f"{model.nv}", f"{model.total_mass:.1f}", remark)
        if model.nv:
            moving[name] = path, model
    CONSOLE.print(result)
    if picture:
        draw_robots(picture, moving)
        CONSOLE.print(f"Picture: {picture.resolve()}", soft_wrap=True)


def _print_introduction(robot: DemoRobot) -> None:
    # Warnings are printed only for files that the user can change.
    own = robot.path not in known_robots().values()
    for warning in suspicions(robot.model) if own else ():
        text = warning.replace(robot.model.source, Path(robot.model.source).name)
        CONSOLE.print(text, style="yellow", markup=False)
    followers = len(robot.model.mimic_joints)
    more = f"; joints that mimic them: {followers}" if followers else ""
    CONSOLE.print(
        f"{robot.name}: {robot.model.nv} joints follow a trajectory of "
        f"{robot.waypoints[-1].time:g} s in real time{more}. The controller is a separate process, "
        f"connected to the simulated arm by ROS 2. {' and '.join(LAW_NAMES.values())} run first "
        f"with an exact model, then with a wrong model: {difference().partition(': ')[2]}. All "
        f"runs have the same gains: a bandwidth of {BANDWIDTH:g} rad/s for the inertias of the "
        "URDF."
    )


def _run(robot: DemoRobot, case: Case, rate: float, running: Callable[[], bool]) -> Recording:
    columns = (TextColumn("{task.description:<40}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=CONSOLE, auto_refresh=False) as bar:
        task = bar.add_task(f"{case.title}: starting", total=1.0)
        bar.refresh()

        def progress(part: float) -> None:
            bar.update(task, completed=part, description=f"{case.title}: moving", refresh=True)

        recording = run(robot, case, rate, running, progress)
        bar.update(task, completed=1.0, description=f"{case.title}: done", refresh=True)
    return recording


def _print_outcome(robot: DemoRobot, recordings: Sequence[Recording]) -> bool:
    """Prints the comparison, or the disturbances; returns True if a run was disturbed."""
    reasons = [
        f"- {recording.case.title}: {sentence}"
        for recording in recordings
        for sentence in disturbances(robot.model, recording, robot.waypoints[-1].time)
    ]
    if reasons:
        CONSOLE.print("No comparison: the demo was disturbed.", style="bold red")
        CONSOLE.print("\n".join(reasons), style="red", markup=False)
        CONSOLE.print("Run it again; on a busy computer with a lower --rate.")
        return True
    CONSOLE.print(table(robot, recordings))
    for line in summary(robot.model, recordings):
        CONSOLE.print(line, style="bold", markup=False)
    CONSOLE.print(REMEDY)
    CONSOLE.print(f"The trajectory was sent by {shown(recordings).sent}", markup=False)
    for recording in recordings:
        CONSOLE.print(
            f"State-to-command latency, {recording.case.title}, its start included: "
            f"{recording.latency}"
        )
    return False


def _show(
    given: argparse.Namespace, robot: DemoRobot, recordings: list[Recording], disturbed: bool
) -> None:
    """Draws the picture; makes the film and opens the viewer if requested."""
    draw(given.picture, robot.model, recordings, disturbed=disturbed)
    CONSOLE.print(f"Picture: {given.picture.resolve()}", soft_wrap=True)
    if given.video:
        CONSOLE.print("Drawing the film ...")
        how = film(given.video, robot, shown(recordings))
        CONSOLE.print(f"Film, drawn {how}: {given.video.resolve()}", soft_wrap=True)
    if given.view:
        CONSOLE.print("Playing all runs; close the window to end.")
        show(robot, recordings)
