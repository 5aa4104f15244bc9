"""`rnea_identify check`: compares a recording with a model, and lists causes of the difference."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from rnea_control.commands.identify import inputs
from rnea_control.exceptions import listed
from rnea_control.identification.diagnosis import Diagnosis, diagnose
from rnea_control.identification.motion import join
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

GOOD = 0.05  # residual of a good model, as a share of the torque; also above the noise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    inputs.add_recording_arguments(parser)
    inputs.add_robot_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Compares and prints; the exit status is 0 for a good model."""
    console = Console(markup=False, highlight=False)
    _, model = inputs.described_robot(options)
    motions = inputs.motions_of(options, model, options.recordings, console)
    inputs.check_distinct(motions)
    motion = join(motions)
    for note in motion.notes:
        console.print(f"note: {note}")
    found = diagnose(model, motion, options.delay)
    console.print(_table(model, found))
    small = bool((found.rms <= GOOD * found.torque).all())
    if found.doubts:
        console.print("The efforts are implausible, so the model cannot be judged.")
    elif found.at_noise:
        console.print("The model is accurate to the noise of the measurement.")
    elif small:
        console.print(f"The model is accurate to {100 * GOOD:.0f} % of the torque.")
    else:
        console.print("The model differs from the robot.")
    if still := [model.joint_names[j] for j in np.flatnonzero(found.rms == 0.0)]:
        console.print(f"{listed(still)} did not move and cannot be judged.")
    for k, each in enumerate(found.contributions, start=1):
        what = "of what is above the noise" if each.cause.fitted else "of the unexplained"
        share = "" if each.part is None else f"{100 * each.part:.0f} % {what}: "
        console.print(f"{k}. {share}{each.sentence}")
    if found.question:
        console.print(found.question)
    return int(bool(found.doubts) or not (found.at_noise or small))


def _table(model: RobotModel, found: Diagnosis) -> Table:
    rows = []
    for j, name in enumerate(model.joint_names):
        columns = (found.torque, found.rms, found.noise, found.rms_left)
        numbers = [f"{each[j]:.3g}" for each in columns]
        if not found.rms[j]:
            numbers[1] = numbers[3] = "-"  # the joint did not move
        rows.append([name, *numbers, units(model, j).effort])
    headings = ("joint", "torque", "residual", "noise", "unexplained", "")
    return inputs.table_of("Measured torque minus the model's, RMS", headings, rows)
