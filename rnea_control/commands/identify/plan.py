"""`rnea_identify plan`: an exciting motion for a robot, as a file and a picture."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rnea_control.commands.identify.inputs import add_robot_arguments, load_robot
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation import (
    NEGLIGIBLE,
    POOR,
    Excitation,
    plan_excitation,
)
from rnea_control.identification.excitation_goal import Criterion
from rnea_control.identification.pictures import draw_excitation, shortened
from rnea_control.identification.trajectory_file import LONGEST_ARGUMENT, trajectory_yaml

# Of a base parameter's name in the table.
_LONGEST_NAME = 33


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("urdf", metavar="ROBOT.urdf", help="the robot's URDF")
    add_robot_arguments(parser)
    files = parser.add_argument_group("files")
    files.add_argument(
        "--output", required=True, metavar="PLAN.yaml", help="the trajectory that is written"
    )
    files.add_argument("--picture", metavar="PLAN.png", help="a picture of it")
    files.add_argument("--force", action="store_true", help="overwrite output and picture")
    motion = parser.add_argument_group("motion")
    motion.add_argument("--duration", type=float, default=20.0, help="[s]; 20 by default")
    motion.add_argument(
        "--speed", type=float, default=0.5, help="share of the velocity limits; 0.5 by default"
    )
    motion.add_argument(
        "--torque", type=float, default=0.7, help="share of the effort limits; 0.7 by default"
    )
    motion.add_argument(
        "--range",
        nargs=3,
        action="append",
        default=[],
        dest="ranges",
        metavar=("JOINT", "LOWER", "UPPER"),
        help="range of a joint within its limits, [rad] or [m]; by default all but 5 %% at both "
        "ends; may be repeated",
    )
    motion.add_argument(
        "--approach",
        type=float,
        default=5.0,
        help="time for the way from where the arm is to the start, [s]; 5 by default",
    )
    motion.add_argument(
        "--criterion",
        choices=[each.value for each in Criterion],
        default=Criterion.determinant.value,
        help="what is made small: the determinant of the parameters' covariance (the default), or "
        "the condition number of the regressor",
    )
    motion.add_argument(
        "--seed", type=int, default=0, help="of the search: another one gives another motion"
    )


def run(options: argparse.Namespace) -> int:
    """Plans, writes and prints; returns the exit status 0.

    Args:
        options: of `add_arguments`.

    Raises:
        RneaControlError: a file that exists, or cannot be written; a robot or an option that no
            motion can be planned for. Nothing is written then.
    """
    console = Console(markup=False, highlight=False)
    _check_files(options)
    model = load_robot(options, options.urdf)
    for warning in model.warnings:
        console.print(f"Warning: {warning}", style="yellow", soft_wrap=True)
    ranges = _ranges(options.ranges)
    with Progress(
        TextColumn("planning"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=1.0)
        excitation = plan_excitation(
            model,
            options.duration,
            ranges=ranges,
            speed=options.speed,
            torque=options.torque,
            criterion=Criterion(options.criterion),
            seed=options.seed,
            progress=lambda done: bar.update(task, completed=done),
        )
    notes = {"limits": f"{options.speed:g} of the velocity, {options.torque:g} of the effort"}
    text = trajectory_yaml(excitation, options.approach, notes)
    path = options.output
    try:
        Path(path).write_text(text, encoding="utf-8")
        if options.picture is not None:
            path = options.picture
            draw_excitation(path, excitation)
    except OSError as error:
        raise IdentificationError(f"{path} cannot be written: {error}") from error
    _print(console, excitation, options, len(text.encode()))
    return 0


def _check_files(options: argparse.Namespace) -> None:
    given = {"--output": options.output, "--picture": options.picture}
    paths = {name: Path(path) for name, path in given.items() if path is not None}
    inputs = {"the URDF": options.urdf, "the --config": options.config}
    for name, path in paths.items():
        for what, source in inputs.items():
            if source is not None and os.path.realpath(path) == os.path.realpath(source):
                raise IdentificationError(
                    f"{name} {path} is {what}, which is never overwritten; give another name"
                )
        if path.is_dir():
            raise IdentificationError(f"{name} {path} is a folder; give the name of a file")
        if path.exists() and not options.force:
            raise IdentificationError(
                f"{name} {path} exists; give another name, or overwrite it with --force"
            )
        if not path.parent.is_dir():
            raise IdentificationError(
                f"{name} {path}: there is no folder {path.parent}; make it first"
            )
    if len({os.path.realpath(path) for path in paths.values()}) < len(paths):
        raise IdentificationError(f"--output and --picture are both {options.output}")


def _ranges(given: list[list[str]]) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, lower, upper in given:
        try:
            ranges[name] = (float(lower), float(upper))
        except ValueError as error:
            raise IdentificationError(
                f"--range {name} {lower} {upper}: LOWER and UPPER must be numbers, [rad] or [m]"
            ) from error
    return ranges


def _print(
    console: Console, excitation: Excitation, options: argparse.Namespace, size: int
) -> None:
    console.print(_motion_table(excitation))
    console.print(_parameter_table(excitation))
    console.print(
        f"Condition number of the regressor, weighted and scaled: {excitation.condition:.3g}"
    )
    poor = len(excitation.poor)
    console.print(
        f"{poor} of {excitation.base.rank} parameters will be poorly known, to worse than "
        f"{100.0 * POOR:g} % of their value, or of what makes {100.0 * NEGLIGIBLE:g} % of the "
        "torque allowed." + (" A longer motion, more speed and wider ranges help." if poor else "")
    )
    console.print(
        "Collisions of the arm with itself and with what is around it were not looked at: watch "
        "the motion in simulation first, and keep a hand on the emergency stop.",
        style="yellow",
    )
    console.print(f"Trajectory: {options.output}", soft_wrap=True)
    if options.picture is not None:
        console.print(f"Picture: {options.picture}", soft_wrap=True)
    console.print(
        f"Next: rnea_identify record {shlex.quote(options.output)} --output recording",
        soft_wrap=True,
    )
    if size > LONGEST_ARGUMENT:
        console.print(
            f"The file has {size} bytes. A shell passes at most {LONGEST_ARGUMENT} as "
            '"$(cat FILE)" to `ros2 topic pub`; rnea_identify record sends any.',
        )


def _motion_table(excitation: Excitation) -> Table:
    table = Table(
        title=f"{excitation.model.name}: {excitation.duration:g} s, largest shares of what "
        "is allowed",
        box=SIMPLE_HEAD,
    )
    table.add_column("joint", overflow="fold")
    table.add_column("range", justify="right")
    for heading in ("velocity", "acceleration", "torque"):
        table.add_column(heading, justify="right")
    limits = excitation.limits
    for j, name in enumerate(excitation.joint_names):
        torque = f"{100.0 * excitation.peaks[3, j]:.0f} %"
        table.add_row(
            name,
            f"{limits.lower[j]:.3g} to {limits.upper[j]:.3g}",
            *(f"{100.0 * share:.0f} %" for share in excitation.peaks[1:3, j]),
            torque if math.isfinite(limits.torque[j]) else "no limit",
        )
    return table


def _parameter_table(excitation: Excitation) -> Table:
    table = Table(title="What the motion will tell, in SI units", box=SIMPLE_HEAD)
    table.add_column("base parameter", overflow="fold")
    for heading in ("by URDF", "deviation", "relative"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for k, relative in enumerate(excitation.relative_deviation):
        table.add_row(
            shortened(excitation.base.names[k], _LONGEST_NAME),
            f"{excitation.prior[k]:.4g}",
            f"{excitation.deviation[k]:.2g}",
            f"{100.0 * relative:.2g} %",
            "poor" if relative > POOR else "",
            style="yellow" if relative > POOR else None,
        )
    return table
