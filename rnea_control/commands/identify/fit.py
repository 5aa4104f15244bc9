"""`rnea_identify fit`: recordings in; a URDF, the controller's YAML and a report out."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rnea_control.commands.identify import one_blas_thread  # noqa: F401  # before NumPy
from rnea_control.commands.identify.motions import (
    add_recording_arguments,
    described_robot,
    motions_of,
)
from rnea_control.commands.identify.robot import add_robot_arguments, load_robot
from rnea_control.control.units import units
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.controller_yaml import controller_yaml, payload_yaml
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import Motion, join
from rnea_control.identification.payload import Payload, identify_payload
from rnea_control.identification.report import write_report
from rnea_control.identification.residuals import residuals_of
from rnea_control.identification.result import Certainty, Identification, Residuals
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.identification.verdict import verdict
from rnea_control.model import RobotModel

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
    console = Console()
    output = Path(options.output)
    if output.exists():
        raise IdentificationError(
            f"{output} is there already; nothing is overwritten. Name a new folder by --output"
        )
    if options.without and options.payload is None:
        raise IdentificationError("--without needs --payload LINK")
    urdf, model = described_robot(options)
    motions = motions_of(options, model, options.recordings, console)
    if options.hold_out:
        held_out = motions_of(options, model, options.hold_out, console)
    else:
        motions, held_out = map(list, zip(*(each.split(HELD_OUT) for each in motions), strict=True))
    if options.payload is not None:
        return _fit_payload(options, model, motions, held_out, output, console)
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
    output.mkdir(parents=True)
    (output / URDF).write_bytes(new_urdf)
    source = ", ".join(options.recordings)
    (output / PARAMETERS).write_text(controller_yaml(found, source))
    write_report(output / REPORT, found, residuals, words, URDF, PARAMETERS)
    _show(found, residuals[0], console)
    console.print(words, highlight=False)
    console.print(
        f"\nwritten: {', '.join(str(output / each) for each in (URDF, PARAMETERS, REPORT))}"
    )
    return int(not _is_better(residuals[: len(held_out)]))


def _fit_payload(
    options: argparse.Namespace,
    model: RobotModel,
    motions: list[Motion],
    held_out: list[Motion],
    output: Path,
    console: Console,
) -> int:
    empty = motions_of(options, model, options.without, console) if options.without else None
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
    output.mkdir(parents=True)
    (output / PARAMETERS).write_text(payload_yaml(found, ", ".join(options.recordings)))
    _show_payload(found, console)
    console.print(_torque_table(model, residuals[0]))
    for note in found.notes:
        console.print(f"note: {note}", highlight=False)
    console.print(f"\nwritten: {output / PARAMETERS}")
    return int(not _is_better(residuals))


def _is_better(residuals: list[Residuals]) -> bool:
    """Whether the joints' errors together, each as a part of its noise, have become smaller."""
    before = sum(float(((each.rms_before / each.noise) ** 2).sum()) for each in residuals)
    after = sum(float(((each.rms_after / each.noise) ** 2).sum()) for each in residuals)
    return after < before


def _show(found: Identification, residuals: Residuals, console: Console) -> None:
    count = {
        certainty: sum(each.certainty is certainty for each in found.estimates)
        for certainty in Certainty
    }
    console.print(
        f"\n{len(found.estimates)} base parameters: "
        + ", ".join(f"{number} {certainty.value}" for certainty, number in count.items())
        + f"; condition {found.condition:.0f}, delay {1e3 * found.delay:.2f} ms",
        highlight=False,
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
        console.print(f"note: {note}", highlight=False)
    console.print()


def _torque_table(model: RobotModel, residuals: Residuals) -> Table:
    words = (
        "a motion that was held out" if residuals.held_out else "the motion that it was fitted to"
    )
    table = Table(title=f"Measured minus predicted torque, RMS, on {words}")
    for k, name in enumerate(("joint", "before", "after", "noise", "")):
        table.add_column(name, justify="right" if 0 < k < 4 else "left")
    rows = zip(residuals.rms_before, residuals.rms_after, residuals.noise, strict=True)
    for j, values in enumerate(rows):
        numbers = [f"{value:.3g}" for value in values]
        table.add_row(model.joint_names[j], *numbers, units(model, j).effort)
    return table


def _show_payload(found: Payload, console: Console) -> None:
    center = ", ".join(
        f"{value:.4f} (sd {deviation:.4f})"
        for value, deviation in zip(found.center_of_mass, found.center_deviation, strict=True)
    )
    console.print(
        f"\nload of {found.link}: {found.mass:.3f} kg (sd {found.mass_deviation:.3f}), centre of "
        f"mass [{center}] m in its frame",
        highlight=False,
    )
