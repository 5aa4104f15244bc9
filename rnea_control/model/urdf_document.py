"""Reads URDF text into urdf_parser_py objects, after taking out what the dynamics do not need.

urdf_parser_py loses the whole robot over a broken visual or transmission, prints unknown tags to
stderr, and raises bare AttributeErrors for malformed numbers. Here every element and number is
checked first, by the table `ELEMENTS`, so that the parser sees only what it can read and the user
sees where the fault is.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from urdf_parser_py.urdf import Robot
from urdf_parser_py.xml_reflection.core import ParseError

from rnea_control.exceptions import RobotModelError
from rnea_control.model.urdf_text import parse_xml, refuse_expression


@dataclass(frozen=True)
class Element:
    """What a URDF element may have: how many numbers in an attribute, or which strings."""

    numbers: dict[str, int] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    text: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    required_children: tuple[str, ...] = ()


SINGLE_TYPES = ("revolute", "continuous", "prismatic")  # with one degree of freedom
OTHER_TYPES = ("fixed", "floating", "planar")

ELEMENTS = {
    "robot": Element(text=("name",), required=("name",), children=("link", "joint")),
    "link": Element(text=("name",), required=("name",), children=("inertial",)),
    "inertial": Element(
        children=("origin", "mass", "inertia"), required_children=("mass", "inertia")
    ),
    "origin": Element(numbers={"xyz": 3, "rpy": 3}),
    "mass": Element(numbers={"value": 1}, required=("value",)),
    "inertia": Element(
        numbers=dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
        required=("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    ),
    "joint": Element(
        text=("name",),
        choices={"type": SINGLE_TYPES + OTHER_TYPES},
        required=("name", "type"),
        children=(
            "origin",
            "axis",
            "parent",
            "child",
            "limit",
            "dynamics",
            "mimic",
            "safety_controller",
        ),
        required_children=("parent", "child"),
    ),
    "axis": Element(numbers={"xyz": 3}, required=("xyz",)),
    "parent": Element(text=("link",), required=("link",)),
    "child": Element(text=("link",), required=("link",)),
    "limit": Element(
        numbers={"effort": 1, "velocity": 1, "lower": 1, "upper": 1},
        required=("effort", "velocity"),
    ),
    "dynamics": Element(numbers={"damping": 1, "friction": 1}),
    "mimic": Element(text=("joint",), numbers={"multiplier": 1, "offset": 1}, required=("joint",)),
    "safety_controller": Element(
        numbers=dict.fromkeys(
            ("k_velocity", "k_position", "soft_lower_limit", "soft_upper_limit"), 1
        ),
        required=("k_velocity",),
    ),
}

# Larger ones would overflow in the dynamics.
LARGEST_NUMBER = 1e20

# Legal in a URDF, or common beside it, and without a meaning for the dynamics.
UNUSED_TAGS = frozenset(
    {
        "visual",
        "collision",
        "material",
        "transmission",
        "gazebo",
        "ros2_control",
        "calibration",
        "sensor",
        "mujoco",
        "drake",
        "contact",
        "self_collision_checking",
    }
)
UNUSED_ATTRIBUTES = frozenset({("robot", "version"), ("link", "type")})


@dataclass(frozen=True)
class UrdfDocument:
    """A parsed URDF: the urdf_parser_py robot, and the unknown tags and attributes."""

    robot: Robot
    unknown: tuple[str, ...]


def parse_urdf(xml: str | bytes, source: str) -> UrdfDocument:
    """Parses URDF text.

    Args:
        xml: the URDF as text or as encoded bytes.
        source: where the text comes from, for error messages.

    Raises:
        RobotModelError: as `clean_urdf`; a URDF that urdf_parser_py cannot read.
    """
    clean, unknown = clean_urdf(xml, source)
    try:
        robot = Robot.from_xml_string(ET.tostring(clean, encoding="utf-8"))
    except ParseError as error:
        raise RobotModelError(f"{source}: urdf_parser_py does not read it: {error}") from error
    return UrdfDocument(robot, unknown)


def clean_urdf(xml: str | bytes, source: str) -> tuple[ET.Element, tuple[str, ...]]:
    """The URDF reduced to what the dynamics need, and the unknown tags and attributes left out.

    Args:
        xml: the URDF as text or as encoded bytes.
        source: where the text comes from, for error messages.

    Raises:
        RobotModelError: not the XML of a URDF (urdf_text.py), or a missing, repeated or malformed
            element or number, or an expression of xacro in its place.
    """
    unknown: dict[str, None] = {}
    return _checked_copy(parse_xml(xml, source), source, "robot", unknown), tuple(unknown)


def _checked_copy(
    element: ET.Element, source: str, where: str, unknown: dict[str, None]
) -> ET.Element:
    """A copy of `element` with only what `ELEMENTS` lists; raises on anything malformed."""
    tag = element.tag
    rule = ELEMENTS[tag]
    copy = ET.Element(tag)
    for attribute, text in element.attrib.items():
        refuse_expression(text, f"{source}: {where}: {attribute}")
        if attribute in rule.numbers:
            _check_numbers(text, rule.numbers[attribute], f"{source}: {where}: {attribute}")
        elif attribute in rule.choices:
            if text not in rule.choices[attribute]:
                raise RobotModelError(
                    f"{source}: {where}: {attribute} is {text!r}; allowed are "
                    f"{', '.join(rule.choices[attribute])}"
                )
        elif attribute not in rule.text:
            if (tag, attribute) not in UNUSED_ATTRIBUTES:
                what = f"attribute {attribute!r} of <{tag}>"
                known = (*rule.numbers, *rule.choices, *rule.text)
                unknown.setdefault(_misspelt(what, attribute, known, f"{source}: {where}"))
            continue
        elif not text.strip():
            raise RobotModelError(
                f"{source}: {where}: attribute {attribute!r} is empty; give it a name"
            )
        copy.set(attribute, text)
    for attribute in rule.required:
        if attribute not in copy.attrib:
            raise RobotModelError(
                f"{source}: {where}: <{tag}> has no attribute {attribute!r}; a URDF must give it"
            )
    for child in element:
        if not isinstance(child.tag, str) or child.tag in UNUSED_TAGS:
            continue
        if child.tag not in rule.children:
            what = f"tag <{child.tag}> in <{tag}>"
            unknown.setdefault(_misspelt(what, child.tag, rule.children, f"{source}: {where}"))
            continue
        if tag != "robot" and copy.find(child.tag) is not None:
            raise RobotModelError(
                f"{source}: {where}: <{child.tag}> is given more than once; keep one"
            )
        copy.append(_checked_copy(child, source, _place(where, child), unknown))
    for child_tag in rule.required_children:
        if copy.find(child_tag) is None:
            raise RobotModelError(
                f"{source}: {where}: <{tag}> has no <{child_tag}>; a URDF must give it"
            )
    return copy


def _place(where: str, child: ET.Element) -> str:
    """Where an element stands, in words: the link or joint by name, then the element's tag."""
    if child.tag in ("link", "joint"):
        return f"{child.tag} {child.get('name')!r}"
    return f"{where}: <{child.tag}>"


def _misspelt(what: str, name: str, known: Sequence[str], where: str) -> str:
    """What is unknown, with the name that it is probably meant to have; RobotModelError if only
    capitals are wrong, as in <Joint>."""
    if name.lower() in known:
        raise RobotModelError(f"{where}: {what}: URDF is case-sensitive; write {name.lower()}")
    similar = get_close_matches(name, known, 1, 0.8)
    return f"{what}, perhaps {similar[0]!r} misspelt" if similar else what


def _check_numbers(text: str, count: int, where: str) -> None:
    words = text.replace("_", "?").split()  # Python would read 1_0 as 10
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if any(LARGEST_NUMBER < abs(number) < math.inf for number in numbers):
        raise RobotModelError(
            f"{where} is {text!r}; no robot has numbers beyond {LARGEST_NUMBER:g} (SI units)"
        )
    if len(numbers) != count or not all(math.isfinite(number) for number in numbers):
        wanted = (
            "one finite number" if count == 1 else f"{count} finite numbers separated by spaces"
        )
        raise RobotModelError(f"{where} is {text!r}; it must be {wanted}")
