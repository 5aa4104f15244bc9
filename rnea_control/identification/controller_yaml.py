"""The identified actuators, or a payload, as parameters of `rnea_controller` in YAML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import numpy as np

from rnea_control.identification.identify import Identification
from rnea_control.identification.payload import Payload
from rnea_control.identification.trajectory_file import decimal, quoted
from rnea_control.parameters.parameter import JOINT
from rnea_control.parameters.table import ROWS

# Significant digits: more than any identification determines.
DIGITS = 5
# A rod's inertia that is rounded more is no real body's, and `payload` refuses it.
PAYLOAD_INERTIA_DIGITS = 9
# Smaller numbers are 0, in SI units: all, and those of joints, whose bound of 0 no solver meets.
SMALLEST = 1e-11
SMALLEST_OF_JOINT = 1e-7
COMMENT_WIDTH = 90


def controller_yaml(found: Identification, source: str) -> str:
    """A file of parameters that adds to the controller's own: friction and armature of each joint,
    by the recordings of `source`. It does not switch `friction_compensation` on."""
    joints = found.model.joint_names
    seconds = f"{found.seconds:.0f} s of motion"
    header = [
        f"Parameters of rnea_controller for {found.model.name}, by rnea_identify from {source}",
        f"({len(joints)} joints, {seconds}). They go with the URDF of this fit.",
        "The friction counts once friction_compensation is true; try the arm without it first.",
    ]
    kinds = ("damping", "coulomb", "offset")
    lines = [*_comments(*(f"friction.{JOINT}.{kind}" for kind in kinds)), "friction:"]
    for j, joint in enumerate(joints):
        numbers = found.damping[j], found.friction[j], found.torque_offset[j]
        damping, coulomb, offset = (number(value, least=SMALLEST_OF_JOINT) for value in numbers)
        lines.append(
            f"  {quoted(joint)}: {{damping: {damping}, coulomb: {coulomb}, offset: {offset}}}"
        )
    lines += [*_comments(f"armature.{JOINT}"), "armature:"]
    for joint, value in zip(joints, found.armature, strict=True):
        lines.append(f"  {quoted(joint)}: {number(value, least=SMALLEST_OF_JOINT)}")
    return _file(header, lines)


def payload_yaml(payload: Payload, source: str) -> str:
    """The same of a payload, one that `RobotModel.set_payload` takes."""
    header = [
        f"Payload of rnea_controller on {payload.link}, by rnea_identify from {source}",
        f"({payload.seconds:.0f} s of motion): {payload.mass:.4g} kg, standard deviation "
        f"{payload.mass_deviation:.2g} kg.",
    ]
    center = ", ".join(map(number, payload.center_of_mass))
    about_center = ", ".join(
        number(value, PAYLOAD_INERTIA_DIGITS) for value in payload.inertia[np.triu_indices(3)]
    )
    lines = [
        *_comments("payload.mass", "payload.center_of_mass", "payload.inertia"),
        "payload:",
        f"  link: {quoted(payload.link)}",
        f"  mass: {number(payload.mass)}",
        f"  center_of_mass: [{center}]",
        f"  inertia: [{about_center}]",
    ]
    return _file(header, lines)


def _file(header: list[str], lines: Iterable[str]) -> str:
    usage = "Copy them into the controller's own file."
    comments = ["# " + " ".join(line.split()) for line in [*header, usage]]  # no name ends one
    section = ["/**:", "  rnea_controller:", "    ros__parameters:"]
    return "\n".join([*comments, *section, *(f"      {line}" for line in lines)]) + "\n"


def _comments(*names: str) -> list[str]:
    """The meanings of parameters, from the table."""
    lines = []
    for row in (ROWS[name] for name in names):
        key = row.name.rpartition(".")[2].replace(JOINT, "")
        text = f"{key}: {row.meaning}" if key else row.meaning
        lines += textwrap.wrap(f"{text} [{row.unit}]" if row.unit else text, COMMENT_WIDTH)
    return [f"# {line}" for line in lines]


def number(value: float, digits: int = DIGITS, least: float = SMALLEST) -> str:
    """As `decimal`; 0 if it is smaller than `least`."""
    return "0.0" if abs(value) < least else decimal(value, digits)
