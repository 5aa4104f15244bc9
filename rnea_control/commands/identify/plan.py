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

# A parameter whose relative deviation is larger would need a motion that is ten thousand times
# longer.
HOPELESS = 100.0 * POOR
WARNING = (
    "Collisions of the arm with itself and with what is around it were not looked at: watch the "
    "motion in simulation first, and keep a hand on the emergency stop."
)
# Of a base parameter's name, in the table and in the picture.
_LONGEST_NAME, _LONGEST_LABEL = 33, 44
# Points of a line of the picture.
_POINTS = 2000
# Where its bars end, relative to the parameter.
_SMALLEST, _LARGEST = 1e-4, 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("urdf", metavar="ROBOT.urdf", help="the robot's URDF")
    add_robot_arguments(parser)
    add = parser.add_argument_group("files").add_argument
    # fmt: off
    add("--output", required=True, metavar="PLAN.yaml", help="the trajectory that is written")
    add("--picture", metavar="PLAN.png", help="a picture of it")
    add("--force", action="store_true", help="overwrite output and picture")
    add = parser.add_argument_group("motion").add_argument
    add("--duration", type=float, default=20.0, help="[s]; %(default)g by default")
    add("--speed", type=float, default=0.5,
        help="share of the velocity limits; %(default)g by default")
    add("--torque", type=float, default=0.7,
        help="share of the effort limits; %(default)g by default")
    add("--approach", type=positive, default=5.0,
        help="time for the way from where the arm is to the start, [s]; %(default)g by default")
    add("--range", nargs=3, action="append", default=[], dest="ranges",
        metavar=("JOINT", "LOWER", "UPPER"),
        help="range of a joint within its limits, [rad] or [m]; by default all but 5 %% at both "
        "ends; may be repeated")
    add("--seed", type=int, default=0, help="of the search: another one gives another motion")
    # fmt: on


def run(options: argparse.Namespace) -> int:
    """Plans, writes and prints; returns the exit status 0.

    Raises:
        RneaControlError: a file that exists, or cannot be written; a robot or an option that no
            motion can be planned for. Nothing is written then.
    """
    console = Console(markup=False, highlight=False)
    _check_files(options)
    try:
        ranges = {name: (float(lower), float(upper)) for name, lower, upper in options.ranges}
    except ValueError as error:
        raise IdentificationError(f"--range JOINT LOWER UPPER, in rad or m: {error}") from error
    model = load_robot(options, options.urdf)
    for warning in model.warnings:
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
    """Refuses outputs that would overwrite something, or have no folder."""
    taken = {os.path.realpath(options.urdf): "the URDF"}
    if options.config is not None:
        taken[os.path.realpath(options.config)] = "the --config"
    given = {"--output": options.output, "--picture": options.picture}
    for name, path in ((name, Path(path)) for name, path in given.items() if path is not None):
        real, wrong = os.path.realpath(path), ""
        if real in taken:
            wrong = f" is {taken[real]}, which it must not overwrite; give another name"
        elif path.is_dir():
            wrong = " is a folder; give the name of a file"
        elif path.exists() and not options.force:
            wrong = " exists; give another name, or overwrite it with --force"
        elif not path.parent.is_dir():
            wrong = f": there is no folder {path.parent}; make it first"
        if wrong:
            raise IdentificationError(f"{name} {path}{wrong}")
        taken[real] = f"the {name}"


def _comment(options: argparse.Namespace, excitation: Excitation) -> str:
    """What the motion is, for the beginning of its file."""
    numbers = ("duration", "speed", "torque", "approach", "seed")
    made_by = " ".join(f"--{name} {getattr(options, name)}" for name in numbers)
    text = io.StringIO()
    paper = Console(file=text, width=90, markup=False, highlight=False)
    for each in (f"WARNING: {WARNING}", f"rnea_identify plan {made_by}", _motion_table(excitation)):
        paper.print(each)
    return text.getvalue().replace("\N{BOX DRAWINGS LIGHT HORIZONTAL}", "-")


def _judgement(excitation: Excitation) -> Iterator[str]:
    """What the motion will tell, in sentences."""
    base, relative = excitation.base, excitation.relative_deviation
    yield f"Condition number of the regressor, weighted and scaled: {excitation.condition:.3g}"
    if base.hidden:
        yield (
            f"The URDF writes angles that are off by up to {base.rounding:.2g} rad, as 1.5708 for "
            f"pi/2. {len(base.hidden)} parameters that only this rounding makes visible are "
            f"grouped with others: {listed(base.hidden)}."
        )
    hopeless = [base.names[k] for k in np.flatnonzero(relative > HOPELESS).tolist()]
    poor = int(np.count_nonzero(relative > POOR))
    yield (
        f"{poor} of {base.rank} parameters will be poorly known, to worse than "
        f"{100.0 * POOR:g} % of their value, or of what makes {100.0 * NEGLIGIBLE:g} % of the "
        "torque allowed."
        + (" A longer motion, more speed and wider ranges help." if poor > len(hopeless) else "")
    )
    if hopeless:
        yield (
            f"No motion helps with {len(hopeless)} of them, which hardly act on any torque and "
            "will keep the URDF's values: "
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
    title = f"{excitation.model.name}: {excitation.duration:g} s, largest shares of what is allowed"
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
    return table_of("What the motion will tell, in SI units", headings, rows)


def draw_excitation(path: str | os.PathLike[str], excitation: Excitation) -> None:
    """Draws one period, and the predicted accuracy of each base parameter, the worst one first, to
    a PNG file, which is overwritten."""
    # It takes a second to import.
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
        whole = "half the range" if kind == "position" else "what is allowed"
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
        f"or of what makes {100.0 * NEGLIGIBLE:g} % of the torque allowed",
    )
    axis.axvline(100.0 * POOR, color="crimson", linestyle=":")
    axis.tick_params(axis="y", labelsize="small")
    figure.savefig(os.fspath(path), format="png", dpi=110)


def shortened(name: str, longest: int) -> str:
    """The beginning of a sum, as much as fits into so many characters, at least one term."""
    end = " ..."
    least = len(name.partition(" ")[0]) + len(end)
    return textwrap.shorten(name, max(longest, least), placeholder=end)
