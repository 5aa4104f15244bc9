"""The identified actuators, and a payload, as parameters of `rnea_controller` in YAML."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.payload import Payload
from rnea_control.identification.result import Identification
from rnea_control.model.rigid_body import payload_inertia
from rnea_control.parameters.parameter import JOINT
from rnea_control.parameters.table import ROWS

# Significant digits: more than any identification determines.
DIGITS = 5
# A rod's inertia that is rounded more is no real body's, and `payload` refuses it.
PAYLOAD_INERTIA_DIGITS = 9
# Smaller numbers are 0, in SI units: all, and those of joints, whose bound of 0 no solver meets.
SMALLEST = 1e-11
SMALLEST_OF_JOINT = 1e-7

_INDENT = "      "
COMMENT_WIDTH = 90
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Strings that YAML takes for something else.
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def controller_yaml(
    identification: Identification, source: str, payload: Payload | None = None
) -> str:
    """A file of parameters that adds to the controller's own: friction and armature of each joint,
    and the payload if one is given.

    It does not switch `friction_compensation` on. NaN is left out, and a negative value is written
    as 0, both with a comment.

    Args:
        identification: its results.
        source: such as the names of the recordings; it stands in the header.
        payload: none is written by default.

    Raises:
        IdentificationError: a joint of several degrees of freedom, which the controller cannot
            have.
        RobotModelError: a payload that no real body is.
    """
    model = identification.model
    if len(model.joint_names) != model.nv:
        raise IdentificationError(
            f"{model.name!r} has joints with several degrees of freedom; rnea_controller has "
            "parameters for joints with one. Choose the joints"
        )
    seconds = f"{identification.seconds:.0f} s of motion"
    header = [
        f"Parameters of rnea_controller for {model.name}, by rnea_identify from {source}",
        f"({len(model.joint_names)} joints, {seconds}). They go with the URDF of this fit.",
        "The friction counts once friction_compensation is true; try the arm without it first.",
    ]
    friction = {
        "friction.<joint>.damping": identification.damping,
        "friction.<joint>.coulomb": identification.friction,
        "friction.<joint>.offset": identification.torque_offset,
    }
    armature = {"armature.<joint>": identification.armature}
    sections = [_of_joints(model.joint_names, given) for given in (friction, armature)]
    return _file(header, [*sections, [] if payload is None else _payload(payload)])


def payload_yaml(payload: Payload, source: str) -> str:
    """The same of a payload alone.

    Raises:
        RobotModelError: a payload that no real body is.
    """
    header = [
        f"Payload of rnea_controller on {payload.link}, by rnea_identify from {source}",
        f"({payload.seconds:.0f} s of motion): {payload.mass:.4g} kg, standard deviation "
        f"{payload.mass_deviation:.2g} kg.",
    ]
    return _file(header, [_payload(payload)])


def _file(header: list[str], sections: list[list[str]]) -> str:
    usage = "Copy them into the controller's own file."
    comments = ["# " + " ".join(line.split()) for line in [*header, usage]]  # no name ends one
    lines = [_INDENT + line for section in sections for line in section]
    last = "    ros__parameters:" if lines else "    ros__parameters: {}"
    return "\n".join([*comments, "/**:", "  rnea_controller:", last, *lines]) + "\n"


def _of_joints(joint_names: Sequence[str], given: Mapping[str, FloatArray]) -> list[str]:
    """The section of rows of the table whose values are those of joints."""
    lines = []
    for j, joint in enumerate(joint_names):
        entries, remarks = [], []
        for name, vector in given.items():
            key = name.rpartition(".")[2].replace(JOINT, "")
            text, remark = _checked(float(vector[j]), ROWS[name].at_least == 0.0)
            entries += [f"{key}: {text}" if key else text] if text else []
            remarks += [f"{key} {remark}".strip()] if remark else []
        value = ", ".join(entries)
        lines.append(_line(joint, f"{{{value}}}" if ":" in value else value, remarks))
    # ROS refuses a key that has nothing below it.
    if all(line.startswith("#") for line in lines):
        return []
    section = next(iter(given)).partition(".")[0]
    return [*_comments(given), f"{section}:", *(f"  {line}" for line in lines)]


def _comments(names: Iterable[str]) -> list[str]:
    """The meanings of parameters, from the table."""
    lines = []
    for row in (ROWS[name] for name in names):
        key = row.name.rpartition(".")[2].replace(JOINT, "")
        text = f"{key}: {row.meaning}" if key else row.meaning
        lines += textwrap.wrap(f"{text} [{row.unit}]" if row.unit else text, COMMENT_WIDTH)
    return [f"# {line}" for line in lines]


def _payload(payload: Payload) -> list[str]:
    payload_inertia(payload.mass, payload.center_of_mass, payload.inertia)  # refuses what is none
    center = ", ".join(number(value) for value in payload.center_of_mass)
    about_center = ", ".join(
        number(value, PAYLOAD_INERTIA_DIGITS) for value in payload.inertia[np.triu_indices(3)]
    )
    return [
        *_comments(f"payload.{key}" for key in ("mass", "center_of_mass", "inertia")),
        "payload:",
        f"  link: {_string(payload.link)}",
        f"  mass: {number(payload.mass)}",
        f"  center_of_mass: [{center}]",
        f"  inertia: [{about_center}]",
    ]


def _line(name: str, value: str, remarks: list[str]) -> str:
    """A joint's line, which is a comment if it has no value."""
    comment = f"# {'; '.join(remarks)}" if remarks else ""
    if not value:
        return f"# {_string(name)}: {comment[2:]}"
    return f"{_string(name)}: {value}" + (f"  {comment}" if comment else "")


def _checked(value: float, not_negative: bool) -> tuple[str, str]:
    """The number, empty if there is none, and what there is to say about it."""
    if not math.isfinite(value):
        return "", "not identified"
    if abs(value) < SMALLEST_OF_JOINT:
        return "0.0", ""
    if not_negative and value < 0.0:
        return "0.0", f"came out as {value:.3g}, which no joint has"
    return number(value), ""


def number(value: float, digits: int = DIGITS) -> str:
    """A number with that many digits that YAML and ROS take for a double: with a point, without an
    exponent."""
    if abs(value) < SMALLEST:
        return "0.0"
    return np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="0"
    )


def _string(name: str) -> str:
    """A name as YAML reads it as a string."""
    plain = _PLAIN_KEY.fullmatch(name) and name.lower() not in _RESERVED
    return name if plain else json.dumps(name, ensure_ascii=False)
