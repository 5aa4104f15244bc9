"""Reads URDF text into joints and inertias of links, by way of urdf_parser_py.

That loses the whole robot over a broken visual or transmission, prints unknown tags to
stderr, raises bare AttributeErrors for malformed numbers, and omits the defaults. Here
every element and number is checked first, by the table `ELEMENTS`, so that the parser sees only
what it can read and the user sees where the fault is.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from urdf_parser_py import urdf
from urdf_parser_py.xml_reflection.core import ParseError

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RobotModelError, named
from rnea_control.model.joints import VELOCITIES, Joint, Mimic, unit_vector
from rnea_control.model.rigid_body import LinkInertia, rotation_from_rpy
from rnea_control.model.urdf_text import XACRO, parse_xml, refuse_expression


@dataclass(frozen=True)
class Element:
    """What a URDF element may have: attributes with so many numbers, with one of these strings or
    with text, and children. Names are separated by spaces."""

    numbers: dict[str, int] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    text: str = ""
    required: str = ""
    children: str = ""
    required_children: str = ""


SINGLE_TYPES = ("revolute", "continuous", "prismatic")  # with one degree of freedom
OTHER_TYPES = ("fixed", "floating", "planar")
WITHOUT_AXIS = ("fixed", "floating")
_MOMENTS = "ixx ixy ixz iyy iyz izz"

ELEMENTS = {
    "robot": Element(text="name", required="name", children="link joint"),
    "link": Element(text="name", required="name", children="inertial"),
    "inertial": Element(children="origin mass inertia", required_children="mass inertia"),
    "origin": Element(numbers={"xyz": 3, "rpy": 3}),
    "mass": Element(numbers={"value": 1}, required="value"),
    "inertia": Element(numbers=dict.fromkeys(_MOMENTS.split(), 1), required=_MOMENTS),
    "joint": Element(
        text="name",
        choices={"type": SINGLE_TYPES + OTHER_TYPES},
        required="name type",
        children="origin axis parent child limit dynamics mimic safety_controller",
        required_children="parent child",
    ),
    "axis": Element(numbers={"xyz": 3}, required="xyz"),
    "parent": Element(text="link", required="link"),
    "child": Element(text="link", required="link"),
    "limit": Element(
        numbers={"effort": 1, "velocity": 1, "lower": 1, "upper": 1}, required="effort velocity"
    ),
    "dynamics": Element(numbers={"damping": 1, "friction": 1}),
    "mimic": Element(text="joint", numbers={"multiplier": 1, "offset": 1}, required="joint"),
    "safety_controller": Element(
        numbers={"k_velocity": 1, "k_position": 1, "soft_lower_limit": 1, "soft_upper_limit": 1},
        required="k_velocity",
    ),
}

# Larger ones would overflow in the dynamics.
LARGEST_NUMBER = 1e20

# Legal in a URDF, or common beside it, and without a meaning for the dynamics.
UNUSED_TAGS = (
    "visual collision material transmission gazebo ros2_control calibration sensor mujoco drake "
    "contact self_collision_checking"
)
UNUSED_ATTRIBUTES = frozenset({("robot", "version"), ("link", "type")})

# One turn, which no rpy needs; those of the robots of example-robot-data go to 4.72.
_LARGEST_ANGLE = 2.0 * math.pi + 0.01

# What the URDF calls the attributes of `Joint` that it can get wrong.
_TAGS = {
    "effort_limit": "<limit effort>",
    "velocity_limit": "<limit velocity>",
    "lower": "<limit> lower",
    "damping": "<dynamics damping>",
    "friction": "<dynamics friction>",
}


def parse_urdf(xml: str | bytes, source: str) -> tuple[urdf.Robot, list[str]]:
    """The robot as urdf_parser_py has it, and a sentence for all that is legal but probably not
    meant.

    Args:
        xml: the URDF as text or as encoded bytes.
        source: where the text comes from, for error messages.

    Raises:
        RobotModelError: as `clean_urdf`; a URDF that urdf_parser_py cannot read.
    """
    clean, unknown = clean_urdf(xml, source)
    try:
        robot = urdf.Robot.from_xml_string(ET.tostring(clean, encoding="utf-8"))
    except ParseError as error:
        raise RobotModelError(f"{source}: urdf_parser_py does not read it: {error}") from error
    notes = [f"unknown and ignored: {'; '.join(unknown)}"] if unknown else []
    return robot, notes + _lost_inertials(clean) + _turned_in_degrees(robot)


def clean_urdf(xml: str | bytes, source: str) -> tuple[ET.Element, tuple[str, ...]]:
    """The URDF reduced to what the dynamics need, and the unknown tags and attributes left out;
    arguments as of `parse_urdf`.

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
    tag, here = element.tag, f"{source}: {where}"
    rule = ELEMENTS[tag]
    copy = ET.Element(tag)
    for attribute, text in element.attrib.items():
        if attribute.startswith("xmlns"):
            continue
        refuse_expression(text, f"{here}: {attribute}")
        known = (*rule.numbers, *rule.choices, *rule.text.split())
        if attribute in rule.numbers:
            _check_numbers(text, rule.numbers[attribute], f"{here}: {attribute}")
        elif text not in rule.choices.get(attribute, (text,)):
            raise RobotModelError(
                f"{here}: {attribute} is {text!r}; allowed are {', '.join(rule.choices[attribute])}"
            )
        elif attribute not in known:
            if (tag, attribute) not in UNUSED_ATTRIBUTES:
                what = f"attribute {attribute!r} of <{tag}>"
                unknown.setdefault(_misspelt(what, attribute, known, here))
            continue
        elif not text.strip():
            raise RobotModelError(f"{here}: attribute {attribute!r} is empty; give it a name")
        copy.set(attribute, text)
    for attribute in rule.required.split():
        if attribute not in copy.attrib:
            raise RobotModelError(
                f"{here}: <{tag}> has no attribute {attribute!r}; a URDF must give it"
            )
    for child in element:
        if child.tag in UNUSED_TAGS.split() or (
            child.tag == "axis" and element.get("type") in WITHOUT_AXIS
        ):
            continue
        if child.tag.startswith("xacro:"):
            if child.tag not in ("xacro:property", "xacro:arg"):
                raise RobotModelError(f"{source}: {XACRO}")
            unknown.setdefault(f"tag <{child.tag}> in <{tag}>, left over from xacro")
            continue
        if child.tag not in (children := rule.children.split()):
            what = f"tag <{child.tag}> in <{tag}>"
            unknown.setdefault(_misspelt(what, child.tag, children, here))
            continue
        if tag != "robot" and copy.find(child.tag) is not None:
            raise RobotModelError(f"{here}: <{child.tag}> is given more than once; keep one")
        is_named = tag == "robot"  # a link or joint; all other elements stand in one
        place = f"{child.tag} {child.get('name')!r}" if is_named else f"{where}: <{child.tag}>"
        copy.append(_checked_copy(child, source, place, unknown))
    for child_tag in rule.required_children.split():
        if copy.find(child_tag) is None:
            raise RobotModelError(f"{here}: <{tag}> has no <{child_tag}>; a URDF must give it")
    return copy


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
        several = f"{count} finite numbers separated by spaces"
        wanted = "one finite number" if count == 1 else several
        raise RobotModelError(f"{where} is {text!r}; it must be {wanted}")


def read_joint(joint: urdf.Joint, source: str) -> Joint:
    """One joint of a parsed URDF, with the defaults that urdf_parser_py omits.

    Raises:
        RobotModelError: a zero axis, limits that are missing, reversed or negative, negative
            friction or damping.
    """
    values: dict[str, Any] = {name: getattr(joint, name) for name in ("name", "type", "parent")}
    values["child"] = joint.child
    values["rotation"], values["translation"] = _placement(joint.origin)
    if joint.type not in WITHOUT_AXIS:
        axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))
        values["axis"] = unit_vector(axis, f"{source}: joint {joint.name!r}: <axis xyz>")
    if VELOCITIES[joint.type] == 1:
        limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
        if limit is not None:
            values |= {"effort_limit": limit.effort, "velocity_limit": limit.velocity}
            if joint.type != "continuous":
                values |= {"lower": limit.lower, "upper": limit.upper}
        elif joint.type != "continuous":
            raise RobotModelError(
                f"{source}: joint {joint.name!r}: a {joint.type} joint needs a <limit> with "
                "effort, velocity, lower and upper"
            )
        values["damping"] = getattr(dynamics, "damping", None) or 0.0
        values["friction"] = getattr(dynamics, "friction", None) or 0.0
        if mimic is not None:
            ratio = 1.0 if mimic.multiplier is None else mimic.multiplier
            values["mimic"] = Mimic(mimic.joint, ratio, mimic.offset or 0.0)
    try:
        return Joint(**values)
    except RobotModelError as error:
        words = str(error)
        for name, tag in _TAGS.items():
            words = words.replace(f": {name} ", f": {tag} ")
        raise RobotModelError(f"{source}: {words}") from error


def read_link_inertia(link: urdf.Link, source: str) -> LinkInertia:
    """The inertia of a link, zero without <inertial>; RobotModelError for a negative mass."""
    if link.inertial is None:
        return LinkInertia(link.name, 0.0, np.zeros(3), np.zeros((3, 3)), np.eye(3))
    mass = link.inertial.mass
    if mass < 0.0:
        raise RobotModelError(
            f"{source}: link {link.name!r}: <mass value> is {mass:g} kg; it must not be negative"
        )
    # URDF gives the inertia about the center of mass, in the axes of the inertial frame.
    rotation, center_of_mass = _placement(link.inertial.origin)
    inertia = np.array(link.inertial.inertia.to_matrix(), dtype=np.float64)
    return LinkInertia(link.name, mass, center_of_mass, inertia, rotation)


def _placement(origin: urdf.Pose | None) -> tuple[FloatArray, FloatArray]:
    """Rotation R and translation of an <origin>; 1 and 0 where they are not given."""
    xyz, rpy = (getattr(origin, name, None) or (0.0, 0.0, 0.0) for name in ("xyz", "rpy"))
    return rotation_from_rpy(np.array(rpy)), np.array(xyz, dtype=np.float64)


def _turned_in_degrees(robot: urdf.Robot) -> list[str]:
    """A sentence if angles of <origin rpy> are beyond a turn."""
    turned: dict[str, list[str]] = {}
    largest = 0.0
    origins = [("joint", joint.name, joint.origin) for joint in robot.joints]
    origins += [("link", link.name, link.inertial.origin) for link in robot.links if link.inertial]
    for kind, name, origin in origins:
        angle = max(map(abs, getattr(origin, "rpy", None) or (0.0,)))
        largest = max(largest, angle)
        if angle > _LARGEST_ANGLE:
            turned.setdefault(kind, []).append(name)
    if not turned:
        return []
    where = " and ".join(named(kind, names) for kind, names in turned.items())
    return [
        f"<origin rpy> of {where} has angles up to {largest:g} rad, more than a turn, as if given "
        "in degrees. Give rad"
    ]


def _lost_inertials(robot: ET.Element) -> list[str]:
    """A sentence if urdfdom would lose inertials, as in several dexterous hands."""
    links = [
        link.get("name", "")
        for link in robot.iter("link")
        for element in (*link.iter("mass"), *link.iter("inertia"))
        if any(text != text.rstrip() for text in element.attrib.values())
    ]
    if not links:
        return []
    return [
        f"{named('link', list(dict.fromkeys(links)))}: white space follows a number in <inertial>, "
        "which urdfdom then reads in part: robot_state_publisher, MoveIt and others see another "
        "robot. Remove it"
    ]
