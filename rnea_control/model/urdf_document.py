"""Reads URDF text into joints and inertias of links, by way of urdf_parser_py.

urdf_parser_py fails on a broken visual or transmission, prints unknown tags to stderr, raises bare
AttributeErrors for malformed numbers, and omits the defaults. Here every element and number is
checked first, by the table `ELEMENTS`: the parser gets only valid input, and errors name the place
of the fault.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import (
    JointError,
    UrdfElementError,
    UrdfFileError,
    listed,
    named,
    plain,
    quoted,
)
from rnea_control.model.joints import VELOCITIES, Joint, Mimic, is_name, unit_vector
from rnea_control.model.rigid_body import (
    LinkInertia,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
)
from rnea_control.model.urdf_text import EXPAND, line_of, parse_xml


class Rule(NamedTuple):
    """Attributes and children that a URDF element may have. An attribute has a number of numbers,
    or a tuple of allowed strings; an empty tuple allows any name. Names in a string are separated
    by spaces."""

    attributes: dict[str, int | tuple[str, ...]]
    required: str = ""
    children: str = ""
    required_children: str = ""
    other_attributes: bool = True  # other attributes are only noted; False: an error


SINGLE_TYPES = ("revolute", "continuous", "prismatic")  # with one degree of freedom
OTHER_TYPES = ("fixed", "floating", "planar")
WITHOUT_AXIS = ("fixed", "floating")
_MOMENTS = "ixx ixy ixz iyy iyz izz"
_SOFT_LIMITS = "k_velocity k_position soft_lower_limit soft_upper_limit"

ELEMENTS = {
    "robot": Rule({"name": ()}, "name", "link joint"),
    "link": Rule({"name": ()}, "name", "inertial"),
    "inertial": Rule({}, "", "origin mass inertia", "mass inertia"),
    "origin": Rule({"xyz": 3, "rpy": 3, "quat_xyzw": 4}, other_attributes=False),
    "mass": Rule({"value": 1}, "value"),
    "inertia": Rule(dict.fromkeys(_MOMENTS.split(), 1), _MOMENTS),
    "joint": Rule(
        {"name": (), "type": SINGLE_TYPES + OTHER_TYPES},
        "name type",
        "origin axis parent child limit dynamics mimic safety_controller",
        "parent child",
    ),
    "axis": Rule({"xyz": 3}, "xyz"),
    "parent": Rule({"link": ()}, "link"),
    "child": Rule({"link": ()}, "link"),
    "limit": Rule({"effort": 1, "velocity": 1, "lower": 1, "upper": 1}, "effort velocity"),
    "dynamics": Rule({"damping": 1, "friction": 1}),
    "mimic": Rule({"joint": (), "multiplier": 1, "offset": 1}, "joint"),
    "safety_controller": Rule(dict.fromkeys(_SOFT_LIMITS.split(), 1), "k_velocity"),
}

LARGEST_NUMBER = 1e20  # larger numbers would overflow in the dynamics

# Tags that are legal in a URDF, or common in one, and do not affect the dynamics.
UNUSED_TAGS = (
    "visual collision material transmission gazebo ros2_control calibration sensor mujoco drake "
    "contact self_collision_checking"
)
UNUSED_ATTRIBUTES = frozenset(
    {("robot", "version"), ("link", "type"), ("dynamics", "armature")}  # the last: _rotor_inertias
)

VERSIONS = ("1.0", "1.1", "1.2")  # versions of the format that urdfdom 6 reads
_NORM_TOLERANCE = 1e-3  # for the norm of a quaternion whose digits are cut off
_MOST = 20  # number of unknown tags and attributes in a message

# URDF's names of the attributes of `Joint` that a URDF can give an invalid value.
_TAGS = {
    "effort_limit": "<limit effort>",
    "velocity_limit": "<limit velocity>",
    "lower": "<limit> lower",
    "damping": "<dynamics damping>",
    "friction": "<dynamics friction>",
}


def parse_urdf(xml: str | bytes) -> tuple[urdf.Robot, list[str]]:
    """Parses a URDF.

    Returns:
        The robot of urdf_parser_py, and a sentence for each kind of content that was not read, or
        that other programs read in another way.

    Raises:
        UrdfFileError: not the XML of a URDF (urdf_text.py), or a xacro file.
        UrdfElementError: a missing, repeated or malformed element or number, or an unexpanded
            xacro expression.
    """
    clean, notes = clean_urdf(xml)
    robot = urdf.Robot.from_xml_string(ET.tostring(clean, encoding="utf-8"))
    return robot, [*notes, *_lost_inertials(clean)]


def clean_urdf(xml: str | bytes) -> tuple[ET.Element, list[str]]:
    """Reduces a URDF to what the dynamics need, with every orientation as rpy.

    Returns:
        The root element, and a sentence for each kind of content that was left out and may matter.

    Raises:
        UrdfFileError: not the XML of a URDF (urdf_text.py), or a xacro file.
        UrdfElementError: a missing, repeated or malformed element or number, or an unexpanded
            xacro expression.
    """
    notes: list[str] = []
    unknown: dict[str, None] = {}
    root = parse_xml(xml, notes)
    clean = _checked_copy(root, "robot", unknown)
    version = root.get("version", VERSIONS[0])
    if version not in VERSIONS:
        notes.append(
            f"the URDF has the version {quoted(version)}; known are {', '.join(VERSIONS)}, and "
            "additions of other versions are not read"
        )
    _check_version(clean, version)
    for origin in clean.iter("origin"):
        if quaternion := origin.attrib.pop("quat_xyzw", None):
            origin.set("rpy", " ".join(map(repr, _rpy_of(quaternion))))
    if unknown:
        more = [f"and {len(unknown) - _MOST} more"] if len(unknown) > _MOST else []
        notes.append(f"unknown and ignored: {'; '.join([*islice(unknown, _MOST), *more])}")
    return clean, [*notes, *_rotor_inertias(root)]


def _check_version(robot: ET.Element, version: str) -> None:
    """Raises UrdfElementError for content whose meaning depends on the URDF's version: before 1.1
    urdfdom ignores quaternions, since 1.2 it requires both position limits."""
    for element in robot:
        here = f"{element.tag} {element.get('name')!r}"
        origins = element.iter("origin")
        if version == "1.0" and any("quat_xyzw" in origin.attrib for origin in origins):
            raise UrdfElementError(
                f"{here}: <origin quat_xyzw> needs version 1.1 of URDF, and other programs ignore "
                'it in this file of version 1.0; write <robot version="1.1" ...>, or give rpy'
            )
        limits = element.findall("limit") if version == "1.2" else []
        is_limited = element.get("type") in ("revolute", "prismatic")
        if is_limited and any(not {"lower", "upper"} <= set(limit.keys()) for limit in limits):
            raise UrdfElementError(
                f"{here}: <limit> needs both lower and upper in version 1.2 of URDF; give both"
            )


def _rpy_of(quaternion: str) -> list[float]:
    """Roll, pitch and yaw of a quaternion x, y, z, w, [rad]."""
    numbers = np.array([float(word) for word in quaternion.split()])
    rotation = rotation_from_quaternion(numbers / np.linalg.norm(numbers))
    return rpy_from_rotation(rotation).tolist()


def _checked_copy(element: ET.Element, here: str, unknown: dict[str, None]) -> ET.Element:
    """Copies the parts of `element` that `ELEMENTS` lists; raises on anything malformed."""
    tag = element.tag
    rule = ELEMENTS[tag]
    copy = ET.Element(tag)
    for attribute, text in element.attrib.items():
        if _is_read(element, attribute, here, unknown):
            _check_value(element, attribute, here)
            copy.set(attribute, text)
    for attribute in rule.required.split():
        if attribute not in copy.attrib:
            what = f"<{tag}> has no attribute {attribute!r}"
            raise UrdfElementError(f"{here}: {what}; a URDF must give it")
    if tag == "origin":
        _check_orientation(copy, here)
    left_over: dict[str, int] = {}
    for child in element:
        if child.tag in UNUSED_TAGS.split() or (
            child.tag == "axis" and element.get("type") in WITHOUT_AXIS
        ):
            continue
        if child.tag.startswith("xacro:"):
            if child.tag not in ("xacro:property", "xacro:arg"):
                what = f"<{child.tag}> in line {line_of(child)} is an unexpanded xacro element"
                raise UrdfFileError(f"{what}; {EXPAND}")
            left_over.setdefault(child.tag, line_of(child))
            continue
        if child.tag not in (children := rule.children.split()):
            what = f"tag <{plain(child.tag)}> in <{tag}>"
            unknown.setdefault(_misspelled(what, child.tag, children, here))
            continue
        if tag != "robot" and copy.find(child.tag) is not None:
            raise UrdfElementError(f"{here}: <{child.tag}> is given more than once; keep one")
        place = f"{here}: <{child.tag}>"
        if tag == "robot":  # a link or joint, which contains all other elements
            place = f"{child.tag} {quoted(child.get('name'))}"
        copy.append(_checked_copy(child, place, unknown))
    for left, line in left_over.items():
        unknown.setdefault(f"tag <{left}> in <{tag}>, line {line}, left over from xacro")
    for child_tag in rule.required_children.split():
        if copy.find(child_tag) is None:
            raise UrdfElementError(f"{here}: <{tag}> has no <{child_tag}>; a URDF must give it")
    return copy


def _is_read(element: ET.Element, attribute: str, here: str, unknown: dict[str, None]) -> bool:
    """True if an attribute is used. An unknown attribute is noted; it is an error in an element
    where ignoring it would change the robot."""
    tag = element.tag
    rule = ELEMENTS[tag]
    if attribute.startswith("xmlns"):
        return False
    text = element.get(attribute, "")
    if "${" in text or "$(" in text:
        raise UrdfElementError(
            f"{here}: {attribute} is {quoted(text)}, an unexpanded xacro expression of <{tag}> in "
            f"line {line_of(element)}; {EXPAND}"
        )
    if attribute in rule.attributes:
        return True
    if (tag, attribute) in UNUSED_ATTRIBUTES:
        return False
    what = f"attribute {quoted(attribute)} of <{tag}>"
    what = _misspelled(what, attribute, [*rule.attributes], here)
    if not rule.other_attributes:
        raise UrdfElementError(
            f"{here}: unknown {what}, in line {line_of(element)}; <{tag}> has "
            f"{', '.join(rule.attributes)}. Correct or remove it"
        )
    unknown.setdefault(what)
    return False


def _check_value(element: ET.Element, attribute: str, here: str) -> None:
    """Raises UrdfElementError unless the value of a known attribute is as `ELEMENTS` requires."""
    kind, text = ELEMENTS[element.tag].attributes[attribute], element.get(attribute, "")
    if isinstance(kind, int):
        _check_numbers(text, kind, f"{here}: {attribute}")
    elif kind and text not in kind:
        allowed = ", ".join(kind)
        raise UrdfElementError(f"{here}: {attribute} is {quoted(text)}; allowed are {allowed}")
    elif not text.strip():
        raise UrdfElementError(f"{here}: attribute {attribute!r} is empty; give it a name")
    elif not kind and not is_name(text):
        raise UrdfElementError(
            f"{here}: {attribute} is {quoted(text)}, in line {line_of(element)}; a name must not "
            "have line breaks or control characters"
        )


def _check_orientation(origin: ET.Element, here: str) -> None:
    """Raises UrdfElementError unless an <origin> has one orientation at most."""
    if (quaternion := origin.get("quat_xyzw")) is None:
        return
    if "rpy" in origin.attrib:
        raise UrdfElementError(f"{here}: both rpy and quat_xyzw are given; keep one")
    norm = math.hypot(*map(float, quaternion.split()))
    if abs(norm - 1.0) > _NORM_TOLERANCE:
        raise UrdfElementError(
            f"{here}: quat_xyzw is {quoted(quaternion)}, of norm {norm:.4g}; it must be a unit "
            "quaternion x y z w, of norm 1"
        )


def _misspelled(what: str, name: str, known: Sequence[str], where: str) -> str:
    """Words for an unknown name, with the known name that it may be a misspelling of; raises
    UrdfElementError if only capitals are wrong, as in <Joint>."""
    if name.lower() in known:
        raise UrdfElementError(f"{where}: {what}: URDF is case-sensitive; write {name.lower()}")
    similar = get_close_matches(name, known, 1, 0.8)
    return f"{what}, perhaps {similar[0]!r} misspelled" if similar else what


def _check_numbers(text: str, count: int, where: str) -> None:
    words = text.replace("_", "?").split()  # Python would read 1_0 as 10
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if any(LARGEST_NUMBER < abs(number) < math.inf for number in numbers):
        raise UrdfElementError(
            f"{where} is {quoted(text)}; no robot has numbers beyond {LARGEST_NUMBER:g} (SI units)"
        )
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        wanted = f"{count} finite numbers separated by spaces" if count > 1 else "one finite number"
        raise UrdfElementError(f"{where} is {quoted(text)}; it must be {wanted}")


def read_joint(joint: urdf.Joint) -> Joint:
    """Converts a joint of a parsed URDF, adding the defaults that urdf_parser_py omits.

    Raises:
        JointError: a zero axis, limits that are reversed or negative, negative friction or damping.
        UrdfElementError: missing limits.
    """
    own = ("name", "type", "parent", "child")
    values: dict[str, Any] = {name: getattr(joint, name) for name in own}
    values["rotation"], values["translation"] = _placement(joint.origin)
    if joint.type not in WITHOUT_AXIS:
        axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))
        values["axis"] = unit_vector(axis, f"joint {joint.name!r}: <axis xyz>")
    if VELOCITIES[joint.type] == 1:
        limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
        if limit is not None:
            values |= {"effort_limit": limit.effort, "velocity_limit": limit.velocity}
            if joint.type != "continuous":
                values |= {"lower": limit.lower, "upper": limit.upper}
        elif joint.type != "continuous":
            raise UrdfElementError(
                f"joint {joint.name!r}: a {joint.type} joint needs a <limit> with effort, "
                "velocity, lower and upper"
            )
        values["damping"] = getattr(dynamics, "damping", None) or 0.0
        values["friction"] = getattr(dynamics, "friction", None) or 0.0
        if mimic is not None:
            ratio = 1.0 if mimic.multiplier is None else mimic.multiplier
            values["mimic"] = Mimic(mimic.joint, ratio, mimic.offset or 0.0)
    try:
        return Joint(**values)
    except JointError as error:
        words = str(error)
        for name, tag in _TAGS.items():
            words = words.replace(f": {name} ", f": {tag} ")
        raise JointError(words) from error


def read_link_inertia(link: urdf.Link) -> LinkInertia:
    """The inertia of a link, zero without <inertial>; UrdfElementError for a negative mass."""
    if link.inertial is None:
        return LinkInertia(link.name)
    if (mass := link.inertial.mass) < 0.0:
        raise UrdfElementError(
            f"link {link.name!r}: <mass value> is {mass:g} kg; it must not be negative"
        )
    # URDF gives the inertia about the center of mass, in the axes of the inertial frame.
    rotation, center_of_mass = _placement(link.inertial.origin)
    inertia = np.array(link.inertial.inertia.to_matrix(), dtype=np.float64)
    return LinkInertia(link.name, mass, center_of_mass, inertia, rotation)


def _placement(origin: urdf.Pose | None) -> tuple[FloatArray, FloatArray]:
    """Rotation R and translation of an <origin>; default identity and 0."""
    xyz, rpy = (getattr(origin, name, None) or (0.0, 0.0, 0.0) for name in ("xyz", "rpy"))
    return rotation_from_rpy(np.array(rpy)), np.array(xyz, dtype=np.float64)


def _rotor_inertias(robot: ET.Element) -> Iterator[str]:
    """A sentence if the URDF has rotor inertias, in <dynamics armature> or as Drake reads them."""
    found: dict[str, str] = {}
    for element in robot:
        if element.tag == "joint":
            name = element.get("name", "")
        else:
            name = next((joint.get("name", "") for joint in element.iter("joint")), "")
        for dynamics in element.iter("dynamics"):
            if "armature" in dynamics.attrib:
                found[name] = dynamics.get("armature", "")
        for rotor in element.iter("drake:rotor_inertia"):
            ratio = next(element.iter("drake:gear_ratio"), None)
            with suppress(ValueError):
                gears = 1.0 if ratio is None else float(ratio.get("value", ""))
                found[name] = f"{float(rotor.get('value', '')) * gears**2:.5g}"
    if found:
        values = listed([f"armature.{name} {plain(value)}" for name, value in found.items()])
        yield (
            "rotor inertias in <dynamics armature> or drake:rotor_inertia are not read; set the "
            f"parameters, rotor inertia times gear ratio squared: {values}"
        )


def _lost_inertials(robot: ET.Element) -> Iterator[str]:
    """A sentence if urdfdom would lose inertials, as in several dexterous hands."""
    links = [
        link.get("name", "")
        for link in robot.iter("link")
        for element in (*link.iter("mass"), *link.iter("inertia"))
        if any(text != text.rstrip() for text in element.attrib.values())
    ]
    if links:
        yield (
            f"{named('link', list(dict.fromkeys(links)))}: white space follows a number in "
            "<inertial>, which urdfdom then reads in part: robot_state_publisher, MoveIt and "
            "others see another robot. Remove it"
        )
