"""`rnea_identify plan`: an exciting motion for a robot, as a file and a picture."""

from __future__ import annotations

import argparse
import io
import math
import os
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.commands.identify.inputs import add_robot_arguments, load_robot, table_of
from rnea_control.commands.options import positive
from rnea_control.exceptions import IdentificationError, listed
from rnea_control.identification.controller_yaml import trajectory_yaml
from rnea_control.identification.excitation import NEGLIGIBLE, POOR, Excitation, plan_excitation
from rnea_control.plausibility import suspicions

# Relative deviation above which a parameter would need a motion ten thousand times longer.
HOPELESS = 100.0 * POOR
WARNING = (
    "Collisions of the arm with itself and its surroundings were not checked: watch the motion in "
    "simulation first, and keep a hand on the emergency stop."
)
_LONGEST_NAME = 33  # characters of a base parameter's name in the table
_LONGEST_LABEL = 44  # characters of a base parameter's name in the picture
_POINTS = 2000  # points of a line of the picture
_SMALLEST = 1e-4  # lower end of the bars of the picture, relative to the parameter
_LARGEST = 10.0  # upper end of the bars of the picture, relative to the parameter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("urdf", metavar="ROBOT.urdf", help="the robot's URDF")
    add_robot_arguments(parser)
    add = parser.add_argument_group("files").add_argument
    # fmt: off
    add("--output", required=True, metavar="PLAN.yaml", help="file for the trajectory")
    add("--picture", metavar="PLAN.png", help="file for a picture of the trajectory")
    add("--force", action="store_true", help="overwrite output and picture")
    add = parser.add_argument_group("motion").add_argument
    add("--duration", type=float, default=20.0,
        help="duration of the motion [s]; %(default)g by default")
    add("--speed", type=float, default=0.5,
        help="share of the velocity limits; %(default)g by default")
    add("--torque", type=float, default=0.7,
        help="share of the effort limits; %(default)g by default")
    add("--approach", type=positive, default=5.0,
        help="time to move from the present position to the start [s]; %(default)g by default")
    add("--range", nargs=3, action="append", default=[], dest="ranges",
        metavar=("JOINT", "LOWER", "UPPER"),
        help="range of a joint within its limits, [rad] or [m]; by default the range without 5 %% "
        "at both ends; may be repeated")
    add("--seed", type=int, default=0,
        help="seed of the search: another seed gives another motion")
    # fmt: on


def run(options: argparse.Namespace) -> int:
    """Plans, writes and prints; returns the exit status 0.

    Raises:
        RneaControlError: a file exists or cannot be written, or no motion can be planned for this
            robot and these options. No file is written then.
    """
    console = Console(markup=False, highlight=False)
    _check_files(options)
    try:
        ranges = {name: (float(lower), float(upper)) for name, lower, upper in options.ranges}
    except ValueError as error:
        raise IdentificationError(f"--range JOINT LOWER UPPER, in rad or m: {error}") from error
    model = load_robot(options, options.urdf)
    for warning in suspicions(model):
        console.print(f"Warning: {warning}", style="yellow", soft_wrap=True)
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("planning", total=1.0)
        excitation = plan_excitation(
            model,
            options.duration,
            ranges=ranges,
            speed=options.speed,
            torque=options.torque,
            seed=options.seed,
            progress=lambda done: bar.update(task, completed=done),
        )
    text = trajectory_yaml(excitation, options.approach, _comment(options, excitation))
    try:
        Path(options.output).write_text(text, encoding="utf-8")
        if options.picture is not None:
            draw_excitation(options.picture, excitation)
    except OSError as error:
        raise IdentificationError(f"{error.filename} cannot be written: {error}") from error
    console.print(_motion_table(excitation))
    console.print(_parameter_table(excitation))
    for sentence in _judgement(excitation):
        console.print(sentence)
    console.print(WARNING, style="yellow")
    files = {"Trajectory": options.output, "Picture": options.picture}
    files["Next"] = f"rnea_identify record {shlex.quote(options.output)} --output recording"
    for name, words in files.items():
        if words is not None:
            console.print(f"{name}: {words}", soft_wrap=True)
    return 0


def _check_files(options: argparse.Namespace) -> None:
    """Raises for outputs that would overwrite a file, or have no folder."""
    taken = {os.path.realpath(options.urdf): "the URDF"}
    if options.config is not None:
        taken[os.path.realpath(options.config)] = "the --config"
    given = {"--output": options.output, "--picture": options.picture}
    for name, path in ((name, Path(path)) for name, path in given.items() if path is not None):
        real, wrong = os.path.realpath(path), ""
        if real in taken:
            wrong = f" is {taken[real]}, which must not be overwritten; give another name"
        elif path.is_dir():
            wrong = " is a folder; give the name of a file"
        elif path.exists() and not options.force:
            wrong = " exists; give another name, or overwrite it with --force"
        elif not path.parent.is_dir():
            wrong = f": the folder {path.parent} does not exist; create it first"
        if wrong:
            raise IdentificationError(f"{name} {path}{wrong}")
        taken[real] = f"the {name}"


def _comment(options: argparse.Namespace, excitation: Excitation) -> str:
    """Comment for the beginning of the file: options and limits of the motion."""
    numbers = ("duration", "speed", "torque", "approach", "seed")
    made_by = " ".join(f"--{name} {getattr(options, name)}" for name in numbers)
    text = io.StringIO()
    paper = Console(file=text, width=90, markup=False, highlight=False)
    for each in (f"WARNING: {WARNING}", f"rnea_identify plan {made_by}", _motion_table(excitation)):
        paper.print(each)
    return text.getvalue().replace("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "-")


def _judgement(excitation: Excitation) -> Iterator[str]:
    """Sentences about the predicted accuracy of the parameters."""
    base, relative = excitation.base, excitation.relative_deviation
    yield f"Condition number of the regressor, weighted and scaled: {excitation.condition:.3g}"
    if base.hidden:
        yield (
            f"The URDF rounds angles, such as 1.5708 for pi/2, by up to {base.rounding:.2g} rad. "
            f"{len(base.hidden)} parameters are identifiable only because of this rounding, and "
            f"are grouped with others: {listed(base.hidden)}."
        )
    hopeless = [base.names[k] for k in np.flatnonzero(relative > HOPELESS).tolist()]
    poor = int(np.count_nonzero(relative > POOR))
    yield (
        f"{poor} of {base.rank} parameters will be poorly known: their standard deviation will "
        f"exceed {100.0 * POOR:g} % of the value, or of the value that makes "
        f"{100.0 * NEGLIGIBLE:g} % of the allowed torque."
        + (" A longer motion, more speed and wider ranges help." if poor > len(hopeless) else "")
    )
    if hopeless:
        yield (
            f"No motion improves {len(hopeless)} of them, which hardly affect any torque and will "
            "keep the URDF's values: "
            f"{listed([shortened(name, _LONGEST_NAME) for name in hopeless])}."
        )


def _motion_table(excitation: Excitation) -> Table:
    limits, rows = excitation.limits, []
    for j, name in enumerate(excitation.model.joint_names):
        reach = f"{limits.lower[j]:.3g} to {limits.upper[j]:.3g}"
        shares = [f"{100.0 * share:.0f} %" for share in excitation.peaks[1:, j]]
        if not math.isfinite(limits.torque[j]):
            shares[-1] = "no limit"
        rows.append([name, reach, *shares])
    title = f"{excitation.model.name}: {excitation.duration:g} s, largest shares of the limits"
    return table_of(title, ("joint", "range", "velocity", "acceleration", "torque"), rows)


def _parameter_table(excitation: Excitation) -> Table:
    prior, deviation = excitation.prior, excitation.deviation
    rows = [
        [
            shortened(excitation.base.names[k], _LONGEST_NAME),
            f"{prior[k]:.4g}",
            f"{deviation[k]:.2g}",
            f"{100.0 * relative:.2g} %",
            "poor" if relative > POOR else "",
        ]
        for k, relative in enumerate(excitation.relative_deviation)
    ]
    headings = ("base parameter", "by URDF", "deviation", "relative", "")
    return table_of("Predicted accuracy of the parameters, in SI units", headings, rows)


def draw_excitation(path: str | os.PathLike[str], excitation: Excitation) -> None:
    """Draws one period, and the predicted accuracy of each base parameter, the worst first, to a
    PNG file. Overwrites the file."""
    # Imported here, because the import takes a second.
    from matplotlib.figure import Figure  # noqa: PLC0415

    model, duration = excitation.model, excitation.duration
    time = np.linspace(0.0, duration, _POINTS)
    q, v, a = excitation.sample(time)
    tau = inverse_dynamics_batch(model, q, v, a)
    figure = Figure(figsize=(14.0, max(8.0, 0.17 * excitation.base.rank)), layout="constrained")
    kinds = ("position", "velocity", "acceleration", "torque")
    axes = figure.subplot_mosaic([[kind, "accuracy"] for kind in kinds])
    for kind, shares in zip(kinds, excitation.limits.shares(q.T, v.T, a.T, tau.T), strict=True):
        for j, name in enumerate(model.joint_names):
            axes[kind].plot(time, 100.0 * shares[j], "-" if j < 10 else "--", label=name)
        axes[kind].hlines([-100.0, 100.0], 0.0, duration, color="crimson", linestyle=":")
        whole = "half the range" if kind == "position" else "the limit"
        axes[kind].set_ylabel(f"{kind}, %\nof {whole}")
    axes["position"].set_title(
        f"{model.name}: {duration:g} s, condition number {excitation.condition:.3g}"
    )
    axes["torque"].set_xlabel("time, s")
    figure.legend(*axes["position"].get_legend_handles_labels(), loc="outside lower left", ncols=4)

    order = np.argsort(excitation.relative_deviation, kind="stable")
    shares = np.clip(excitation.relative_deviation[order], _SMALLEST, _LARGEST)
    axis = axes["accuracy"]
    axis.barh(
        range(len(order)),
        100.0 * shares,
        color=np.where(shares > POOR, "C1", "C0").tolist(),
        tick_label=[shortened(excitation.base.names[k], _LONGEST_LABEL) for k in order],
    )
    axis.set(
        xscale="log",
        ylim=(-0.6, len(order) - 0.4),
        title=f"predicted deviation of the parameters after {duration:g} s",
        xlabel="standard deviation, % of the parameter,\n"
        f"or of the value that makes {100.0 * NEGLIGIBLE:g} % of the allowed torque",
    )
    axis.axvline(100.0 * POOR, color="crimson", linestyle=":")
    axis.tick_params(axis="y", labelsize="small")
    figure.savefig(os.fspath(path), format="png", dpi=110)


def shortened(name: str, longest: int) -> str:
    """The first terms of a sum, at least one, in at most `longest` characters if possible."""
    end = " ..."
    least = len(name.partition(" ")[0]) + len(end)
    return textwrap.shorten(name, max(longest, least), placeholder=end)
