"""The identified actuators, and a payload, as parameters of `rnea_controller` in YAML."""

from __future__ import annotations

import json
import math
import re

import numpy as np

from rnea_control.exceptions import IdentificationError
from rnea_control.identification.payload import Payload
from rnea_control.identification.result import Identification
from rnea_control.model.payload import payload_inertia

# Significant digits: more than any identification determines.
DIGITS = 5
# A rod's inertia that is rounded more is no real body's, and `payload` refuses it.
PAYLOAD_INERTIA_DIGITS = 9
# Smaller numbers are 0, in SI units: all, and those of joints, whose bound of 0 no solver meets.
SMALLEST = 1e-11
SMALLEST_OF_JOINT = 1e-7

_INDENT = "      "
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# What YAML takes for something else than a string.
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def controller_yaml(
    identification: Identification, source: str, payload: Payload | None = None
) -> str:
    """A file of parameters that adds to the controller's own: friction and armature of each joint,
    and the payload if one is given.

    It does not switch `friction_compensation` on. What is NaN is left out, and what is negative is
    written as 0, both with a comment.

    Args:
        identification: what was found.
        source: what from, such as the names of the recordings; it stands in the header.
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
    sections = [_friction(identification), _armature(identification)]
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


def _friction(identification: Identification) -> list[str]:
    values = {
        "damping": identification.damping,
        "coulomb": identification.friction,
        "offset": identification.torque_offset,
    }
    lines = []
    for j, name in enumerate(identification.model.joint_names):
        entries, remarks = [], []
        for key, vector in values.items():
            text, remark = _checked(float(vector[j]), not_negative=key != "offset")
            entries += [f"{key}: {text}"] if text else []
            remarks += [f"{key} {remark}"] if remark else []
        lines.append(_line(name, f"{{{', '.join(entries)}}}" if entries else "", remarks))
    return _section(
        "friction",
        lines,
        "Viscous friction [Nm s/rad or N s/m], Coulomb friction [Nm or N], and the constant torque",
        "offset of the actuator [Nm or N].",
    )


def _armature(identification: Identification) -> list[str]:
    lines = []
    for j, name in enumerate(identification.model.joint_names):
        text, remark = _checked(float(identification.armature[j]), not_negative=True)
        lines.append(_line(name, text, [remark] if remark else []))
    words = "Rotor inertia of the actuator, times the gear ratio squared [kg m^2 or kg]."
    return _section("armature", lines, words)


def _payload(payload: Payload) -> list[str]:
    payload_inertia(payload.mass, payload.center_of_mass, payload.inertia)  # refuses what is none
    center = ", ".join(number(value) for value in payload.center_of_mass)
    about_center = ", ".join(
        number(value, PAYLOAD_INERTIA_DIGITS) for value in payload.inertia[np.triu_indices(3)]
    )
    return [
        "# In the link's frame: [kg], [m], and xx, xy, xz, yy, yz, zz about the centre of mass",
        "# [kg m^2].",
        "payload:",
        f"  link: {_string(payload.link)}",
        f"  mass: {number(payload.mass)}",
        f"  center_of_mass: [{center}]",
        f"  inertia: [{about_center}]",
    ]


def _section(key: str, lines: list[str], *words: str) -> list[str]:
    """Lines below a key; ROS refuses a key that has none, so there is no section then."""
    if all(line.startswith("#") for line in lines):
        return []
    return [*(f"# {part}" for part in words), f"{key}:", *(f"  {line}" for line in lines)]


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
