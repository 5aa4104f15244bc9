"""`rnea_identify fit`: fits a model to recordings; writes a URDF, the controller's YAML and a
report."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from rnea_control.commands.identify import inputs
from rnea_control.commands.identify.new_folder import new_folder
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.controller_yaml import controller_yaml, payload_yaml
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import join
from rnea_control.identification.payload import identify_payload
from rnea_control.identification.report import PARAMETERS, URDF, number, report
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.identification.verdict import (
    Residuals,
    is_better,
    residuals_of,
    scores,
    summary,
    verdict,
)
from rnea_control.model import RobotModel
from rnea_control.plausibility import suspicions

HELD_OUT = 0.2  # share at the end of each recording that is held out if --hold-out is not given
REPORT = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    inputs.add_recording_arguments(parser)
    add = parser.add_argument
    # fmt: off
    add("--output", required=True, type=Path, metavar="FOLDER",
        help=f"a new folder for {URDF}, {PARAMETERS} and {REPORT}")
    add("--hold-out", nargs="+", default=[], metavar="RECORDING",
        help="recordings for the validation, not used in the fit; by default the last fifth of "
        "each recording")
    add("--robust", action="store_true", help="reduce the weight of outliers (Huber)")
    add("--payload", metavar="LINK",
        help="identify only the load that this link carries; the robot's own parameters stay "
        "unchanged")
    add("--without", nargs="+", default=[], metavar="RECORDING",
        help="with --payload: recordings of the same arm without the load")
    # fmt: on
    inputs.add_robot_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fits and writes; the exit status is 0 if the new model is better on the held-out motions."""
    if options.without and options.payload is None:
        raise IdentificationError("--without needs --payload LINK")
    console = Console(markup=False, highlight=False)
    fit = _fit if options.payload is None else _fit_payload
    with new_folder(options.output) as folder:
        status = fit(_Given(options, console), folder, console)
    console.print(f"\nwritten: {', '.join(map(str, sorted(options.output.iterdir())))}")
    return status


class _Given:
    """Inputs of a fit: the robot as described, its motions, motions without the load, and held-out
    motions."""

    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options = options
        self.urdf, self.model = inputs.described_robot(options)
        if options.payload is not None:
            # The identified load replaces the payload of --config: the controller has only one.
            for link in self.model.link_names:
                self.model.set_payload(link, 0.0)
        motions = inputs.motions_of(options, self.model, options.recordings, console)
        # All motions have the same filter, so that their torques can be compared.
        options.cutoff = options.cutoff or max(motion.cutoff for motion in motions)
        held_out = inputs.motions_of(options, self.model, options.hold_out, console)
        self.without = inputs.motions_of(options, self.model, options.without, console)
        inputs.check_distinct([*motions, *held_out, *self.without])
        if not held_out:
            motions, held_out = zip(*(each.split(HELD_OUT) for each in motions), strict=True)
        self.motions, self.held_out = [*motions], [*held_out]


def _fit(given: _Given, folder: Path, console: Console) -> int:
    model, options = given.model, given.options
    found = identify(model, join(given.motions), options.robust, options.delay)
    new_urdf = with_inertials(given.urdf, found.inertias, options.urdf or "robot_description")
    after = inputs.load_robot(options, new_urdf)
    after.armature, after.damping = found.armature, found.damping
    after.friction, after.torque_offset = found.friction, found.torque_offset
    residuals = [
        residuals_of(model, after, motion.delayed(found.delay), kept)
        for kept, part in ((True, given.held_out), (False, given.motions))
        for motion in part
    ]
    words = verdict(found, residuals)
    (folder / URDF).write_bytes(new_urdf)
    parameters = controller_yaml(found, ", ".join(options.recordings))
    (folder / PARAMETERS).write_text(parameters, encoding="utf-8")
    (folder / REPORT).write_text(report(found, residuals, words), encoding="utf-8")
    known = {warning.removeprefix(f"{model.source}: ") for warning in suspicions(model)}
    for warning in suspicions(after):
        if (words_alone := warning.removeprefix(f"{after.source}: ")) not in known:
            console.print(f"warning: {words_alone}", style="yellow", soft_wrap=True)
    console.print(f"\n{summary(found)}")
    _print_torques(console, model, residuals[0], found.notes)
    console.print(f"\n{words}")
    return int(bool(found.doubts) or not is_better(model, residuals))


def _fit_payload(given: _Given, folder: Path, console: Console) -> int:
    options, without = given.options, join(given.without) if given.without else None
    found = identify_payload(
        given.model, options.payload, join(given.motions), without, options.robust, options.delay
    )
    after = given.model.copy()
    after.set_payload(found.link, found.mass, found.center_of_mass, found.inertia)
    residuals = [
        residuals_of(given.model, after, motion.delayed(found.delay), True)
        for motion in given.held_out
    ]
    parameters = payload_yaml(found, ", ".join(options.recordings))
    (folder / PARAMETERS).write_text(parameters, encoding="utf-8")
    numbers = zip(found.center_of_mass, found.center_deviation, strict=True)
    center = ", ".join(f"{value:.4f} (sd {deviation:.2g})" for value, deviation in numbers)
    console.print(
        f"\nload of {found.link}: {found.mass:.4g} kg (sd {found.mass_deviation:.2g}), center of "
        f"mass [{center}] m in its frame"
    )
    _print_torques(console, given.model, residuals[0], found.notes)
    for doubt in found.doubts:
        console.print(f"Do not use the load: {doubt}")
    better = is_better(given.model, residuals)
    if not better:
        console.print(
            "The load does not improve the held-out torques: do not use it. Check that the "
            "recordings are those with the load, that --without names those without it, and that "
            f"{found.link} is the link that carries it."
        )
    return int(bool(found.doubts) or not better)


def _print_torques(
    console: Console, model: RobotModel, residuals: Residuals, notes: Iterable[str]
) -> None:
    rows = [
        [each.joint, *(number(x, 3) for x in (each.before, each.after, each.noise)), each.unit]
        for each in scores(model, [residuals])
    ]
    title = "Measured minus predicted torque, RMS, on a held-out motion"
    console.print(inputs.table_of(title, ("joint", "before", "after", "noise", ""), rows))
    for note in notes:
        console.print(f"note: {note}")
