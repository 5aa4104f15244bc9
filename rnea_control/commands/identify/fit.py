"""`rnea_identify fit`: recordings in; a URDF, the controller's YAML and a report out."""

from __future__ import annotations

import argparse
import copy
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from rnea_control.commands.identify.inputs import (
    add_recording_arguments,
    add_robot_arguments,
    check_distinct,
    described_robot,
    load_robot,
    motions_of,
)
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.controller_yaml import controller_yaml, payload_yaml
from rnea_control.identification.identify import Certainty, Identification, identify
from rnea_control.identification.motion import Motion, join
from rnea_control.identification.payload import Payload, identify_payload
from rnea_control.identification.report import report
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.identification.verdict import Residuals, is_better, residuals_of, scores, verdict
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# The end of each recording that is kept from the fit, if no other one is given.
HELD_OUT = 0.2
URDF, PARAMETERS, REPORT = "robot.urdf", "rnea_controller.yaml", "report.html"
WORST = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    add_recording_arguments(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help=f"a new folder for {URDF}, {PARAMETERS} and {REPORT}",
    )
    parser.add_argument(
        "--hold-out",
        nargs="+",
        default=[],
        metavar="RECORDING",
        help="recordings to judge the result by, which it is not fitted to; the last fifth of each "
        "recording by default",
    )
    parser.add_argument(
        "--robust", action="store_true", help="let outliers count less (Huber's weights)"
    )
    parser.add_argument(
        "--payload",
        metavar="LINK",
        help="identify only what this link carries in the recordings; the robot's own parameters "
        "stay",
    )
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="RECORDING",
        help="with --payload: recordings of the same arm without the load",
    )
    add_robot_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fits and writes; the exit status is 0 if the new model is better on what it was not fitted
    to."""
    console = Console(markup=False, highlight=False)
    output = Path(options.output)
    check_new(output)
    if options.without and options.payload is None:
        raise IdentificationError("--without needs --payload LINK")
    urdf, model = described_robot(options)
    if options.payload is not None:
        # The controller has one payload, and this is what it will be: that of the --config goes.
        for link in model.link_names:
            model.set_payload(link, 0.0)
    motions = motions_of(options, model, options.recordings, console)
    # What is compared with these motions is filtered as they are.
    options.cutoff = options.cutoff or max(motion.cutoff for motion in motions)
    held_out = motions_of(options, model, options.hold_out, console)
    empty = motions_of(options, model, options.without, console)
    check_distinct([*motions, *held_out, *empty])
    if not held_out:
        motions, held_out = map(list, zip(*(each.split(HELD_OUT) for each in motions), strict=True))
    moves, judged = (any(each.counts.any() for each in part) for part in (motions, held_out))
    if moves and not judged:
        seconds = sum(motion.seconds for motion in held_out)
        raise IdentificationError(
            f"nothing of the {seconds:.2g} s of motion that is held out can be judged: no joint "
            "moves there once the filter has settled. Record longer, or name another recording by "
            "--hold-out"
        )
    if options.payload is not None:
        return _fit_payload(options, model, motions, held_out, empty, output, console)
    found = identify(model, join(motions), options.robust, options.delay)
    new_urdf = with_inertials(urdf, found.inertias, options.urdf or "robot_description")
    after = load_robot(options, new_urdf)
    after.armature, after.damping = found.armature, found.damping
    after.friction, after.torque_offset = found.friction, found.torque_offset
    residuals = [
        residuals_of(model, after, motion.delayed(found.delay), kept)
        for kept, part in ((True, held_out), (False, motions))
        for motion in part
    ]
    words = verdict(found, residuals)
    source = ", ".join(options.recordings)
    with new_folder(output) as folder:
        (folder / URDF).write_bytes(new_urdf)
        (folder / PARAMETERS).write_text(controller_yaml(found, source), encoding="utf-8")
        page = report(found, residuals, words, URDF, PARAMETERS)
        (folder / REPORT).write_text(page, encoding="utf-8")
    for warning in _new_warnings(model, after):
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True)
    _show(found, residuals[0], console)
    console.print(words)
    written = ", ".join(str(output / each) for each in (URDF, PARAMETERS, REPORT))
    console.print(f"\nwritten: {written}")
    return int(bool(found.doubts) or not is_better(model, residuals[: len(held_out)]))


def _fit_payload(
    options: argparse.Namespace,
    model: RobotModel,
    motions: list[Motion],
    held_out: list[Motion],
    empty: list[Motion],
    output: Path,
    console: Console,
) -> int:
    found = identify_payload(
        model,
        options.payload,
        join(motions),
        join(empty) if empty else None,
        options.robust,
        options.delay,
    )
    after = copy.deepcopy(model)
    after.set_payload(found.link, found.mass, found.center_of_mass, found.inertia)
    residuals = [
        residuals_of(model, after, motion.delayed(found.delay), True) for motion in held_out
    ]
    source = ", ".join(options.recordings)
    with new_folder(output) as folder:
        (folder / PARAMETERS).write_text(payload_yaml(found, source), encoding="utf-8")
    _show_payload(found, console)
    console.print(_torque_table(model, residuals[0]))
    for note in found.notes:
        console.print(f"note: {note}")
    better = is_better(model, residuals)
    if not better:
        console.print(
            "The load makes the torques that were held out no better: do not use it. Are these "
            "the recordings with the load, those of --without the ones without it, and is "
            f"{found.link} the link that carries it?"
        )
    console.print(f"\nwritten: {output / PARAMETERS}")
    return int(not better)


def _new_warnings(before: RobotModel, after: RobotModel) -> list[str]:
    """What is odd about the identified robot, and was not about the description."""
    known = {warning.removeprefix(f"{before.source}: ") for warning in before.warnings}
    found = [warning.removeprefix(f"{after.source}: ") for warning in after.warnings]
    return [warning for warning in found if warning not in known]


def _show(found: Identification, residuals: Residuals, console: Console) -> None:
    count = {
        certainty: sum(each.certainty is certainty for each in found.estimates)
        for certainty in Certainty
    }
    console.print(
        f"\n{len(found.estimates)} base parameters: "
        + ", ".join(f"{number} {certainty.value}" for certainty, number in count.items())
        + f"; condition {found.condition:.0f}, delay {1e3 * found.delay:.2f} ms",
    )
    console.print(_torque_table(found.model, residuals))
    unknown = [each for each in found.estimates if each.certainty is Certainty.unidentified]
    if unknown:
        table = Table(title="Not identified from these recordings: the URDF's values stay")
        for name in ("base parameter", "URDF", "standard deviation", ""):
            table.add_column(name, justify="left" if name in ("base parameter", "") else "right")
        for each in unknown[:WORST]:
            table.add_row(each.name, f"{each.prior:.3g}", f"{each.deviation:.2g}", each.unit)
        console.print(table)
        if len(unknown) > WORST:
            console.print(f"and {len(unknown) - WORST} more, in {REPORT}")
    for note in found.notes:
        console.print(f"note: {note}")
    console.print()


def _torque_table(model: RobotModel, residuals: Residuals) -> Table:
    words = (
        "a motion that was held out" if residuals.held_out else "the motion that it was fitted to"
    )
    table = Table(title=f"Measured minus predicted torque, RMS, on {words}")
    for k, name in enumerate(("joint", "before", "after", "noise", "")):
        table.add_column(name, justify="right" if 0 < k < 4 else "left")
    for j, score in enumerate(scores(model, [residuals])):
        values = (score.before, score.after, score.noise)
        numbers = ["-" if math.isnan(value) else f"{value:.3g}" for value in values]
        table.add_row(score.joint, *numbers, units(model, j).effort)
    return table


def _show_payload(found: Payload, console: Console) -> None:
    center = ", ".join(
        f"{value:.4f} (sd {deviation:.2g})"
        for value, deviation in zip(found.center_of_mass, found.center_deviation, strict=True)
    )
    console.print(
        f"\nload of {found.link}: {found.mass:.4g} kg (sd {found.mass_deviation:.2g}), center of "
        f"mass [{center}] m in its frame",
    )


def check_new(path: Path) -> None:
    """Raises IdentificationError if a folder cannot be made there."""
    try:
        is_there = bool(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except OSError as error:
        raise IdentificationError(
            f"{path} cannot be made: {error.strerror}. Name another folder by --output"
        ) from error
    if is_there:
        raise IdentificationError(
            f"{path} is there already; nothing is overwritten. Name a new folder by --output"
        )
    nearest = next(each for each in path.absolute().parents if os.path.lexists(each))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "cannot be written" if nearest.is_dir() else "is no folder"
        raise IdentificationError(
            f"{path} cannot be made: {nearest} {what}. Name another folder by --output"
        )


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, which gets its name at the end, or is removed if that fails.

    Raises:
        IdentificationError: it cannot be written.
    """
    temporary = path.with_name(f".rnea_identify_{uuid4().hex}")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        check_new(path)
        temporary.rename(path)
    except OSError as error:
        raise IdentificationError(
            f"{path} cannot be written: {error.strerror or error}. Name another folder by --output"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
