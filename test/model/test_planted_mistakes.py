"""Mistakes made in real URDFs: each is answered by exactly one line that names its likely cause."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from robots import example_robot, example_robots, load_quietly, read_description

from rnea_control.model import RobotModel, RobotModelError, RobotModelWarning, pseudo_inertia
from rnea_control.model.links import link_inertia_of
from rnea_control.model.rotations import rotation_from_rpy

Edit = Callable[[ET.Element], object]

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
DEGREES = 180.0 / np.pi


@cache
def text_of(robot: str) -> str:
    return example_robot(robot).read_text()


def edited(robot: str, *edits: Edit) -> str:
    root = ET.fromstring(text_of(robot))
    for edit in edits:
        edit(root)
    return ET.tostring(root, encoding="unicode")


def said_of(xml: str | bytes, **arguments) -> Counter:
    """The warnings, how often each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotModelWarning)
        RobotModel.from_urdf_string(xml, **arguments)
    return Counter(str(warning.message) for warning in caught)


@cache
def said_of_robot(robot: str) -> Counter:
    return said_of(text_of(robot))


def elements(root: ET.Element, tag: str, names: tuple[str, ...] = ()) -> list[ET.Element]:
    """Links or joints by name; all without names."""
    found = [e for e in root.findall(tag) if not names or e.get("name") in names]
    assert len(found) >= max(1, len(names))
    return found


def scaled(tag: str, path: str, attributes: tuple[str, ...], factor: float, *names: str) -> Edit:
    """Multiplies numbers of links or joints."""

    def edit(root: ET.Element) -> None:
        changed = 0
        for element in elements(root, tag, names):
            for child in element.findall(path):
                for attribute in attributes:
                    if attribute in child.attrib:
                        numbers = [float(word) for word in child.get(attribute).split()]
                        changed += any(numbers)
                        child.set(attribute, " ".join(repr(factor * x) for x in numbers))
        assert changed

    return edit


def changed(tag: str, path: str, name: str, **attributes: object) -> Edit:
    """Sets attributes of one link or joint."""

    def edit(root: ET.Element) -> None:
        (element,) = elements(root, tag, (name,))
        (element if path == "." else element.find(path)).attrib.update(
            {key: str(value) for key, value in attributes.items()}
        )

    return edit


def inertias(factor: float, *links: str) -> Edit:
    return scaled("link", "inertial/inertia", MOMENTS, factor, *links)


def masses(factor: float, *links: str) -> Edit:
    return scaled("link", "inertial/mass", ("value",), factor, *links)


def centers(factor: float, *links: str) -> Edit:
    return scaled("link", "inertial/origin", ("xyz",), factor, *links)


def offsets(factor: float, *joints: str) -> Edit:
    return scaled("joint", "origin", ("xyz",), factor, *joints)


def angles(factor: float, *joints: str) -> Edit:
    return scaled("joint", "origin", ("rpy",), factor, *joints)


def limits(factor: float, attributes: tuple[str, ...], *joints: str) -> Edit:
    return scaled("joint", "limit", attributes, factor, *joints)


def inertia_set(link: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    """Replaces the inertia matrix of a link by what `change` makes of it."""

    def edit(root: ET.Element) -> None:
        (element,) = elements(root, "link", (link,))
        inertia = element.find("inertial/inertia")
        matrix = np.zeros((3, 3))
        rows, columns = np.triu_indices(3)
        matrix[rows, columns] = matrix[columns, rows] = [float(inertia.get(m)) for m in MOMENTS]
        for name, value in zip(MOMENTS, change(matrix)[rows, columns], strict=True):
            inertia.set(name, repr(float(value)))

    return edit


def of_other_axes(matrix: np.ndarray) -> np.ndarray:
    """A slender body's inertia about turned axes, written without the minus of its products."""
    R = rotation_from_rpy(np.array([0.4, 0.7, 0.5]))
    a, _, c = np.linalg.eigvalsh(matrix)
    turned = R @ np.diag([0.05 * a, c, c]) @ R.T
    return 2.0 * np.diag(np.diag(turned)) - turned


POSITION = ("lower", "upper")
ARM = [f"panda_joint{i}" for i in range(1, 8)]
JAW = ("moving_jaw_so101_v1_link",)
UR = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]

# The robot, what is done to it, and words of the one line that must come.
WARNED = {
    "inertias in g cm^2": ("panda", [inertias(1e7)], ["panda_link1", "given in g cm^2", "kg m^2"]),
    "inertias in kg mm^2": ("z1", [inertias(1e6)], ["link01", "given in kg mm^2"]),
    "inertias in g mm^2": ("ur10_robot", [inertias(1e9)], ["given in g mm^2"]),
    "inertias in g m^2": ("xarm7", [inertias(1e3)], ["link3", "given in g m^2"]),
    "inertias in g cm^2, legs": ("a1", [inertias(1e7)], ["g cm^2"]),
    "one inertia in g mm^2": (
        "talos_left_arm",
        [inertias(1e9, "arm_left_4_link")],
        ["link 'arm_left_4_link'", "g mm^2"],
    ),
    "one inertia in g cm^2": (
        "panda",
        [inertias(1e7, "panda_link5")],
        ["link 'panda_link5'", "radius of gyration", "g cm^2"],
    ),
    "one inertia in g m^2": ("kinova", [inertias(1e3, "j2s6s200_link_2")], ["g m^2"]),
    "inertia of 1 kg m^2": (
        "panda",
        [inertia_set("panda_link6", lambda _: np.eye(3))],
        ["link 'panda_link6'", "placeholder"],
    ),
    "no inertia": (
        "panda",
        [inertias(0.0, "panda_link2")],
        ["link 'panda_link2'", "inertia is 0"],
    ),
    "no inertia anywhere": (
        "ur10_robot",
        [inertias(0.0)],
        ["links 'shoulder_link'", "'wrist_3_link'", "inertia is 0"],
    ),
    "no <inertial> at the end": (
        "so101",
        [lambda root: [e.remove(e.find("inertial")) for e in elements(root, "link", JAW)]],
        ["has no inertia"],
    ),
    "negative axis": (
        "panda",
        [inertia_set("panda_link3", lambda m: m * np.diag([1, 1, -1]) + m * (1 - np.eye(3)))],
        ["link 'panda_link3'", "not positive definite", "izz must be positive"],
    ),
    "products with the other sign": (
        "xarm7",
        [inertia_set("link2", of_other_axes)],
        ["link 'link2'", "other sign of ixy, ixz and iyz"],
    ),
    "product in another unit": (
        "talos_left_arm",
        [inertia_set("arm_left_2_link", lambda m: m + 1e3 * (m - np.diag(np.diag(m))))],
        ["link 'arm_left_2_link'", "not positive definite"],
    ),
    "one axis in another unit": (
        "ur5_robot",
        [inertia_set("upper_arm_link", lambda m: m * np.diag([1.0, 10.0, 1.0]))],
        ["link 'upper_arm_link'", "triangle inequality"],
    ),
    "axes that break the triangle on six links": (
        "ur10_robot",
        [
            inertia_set(f"{name}_link", lambda m: np.diag(np.diag(m)) * np.diag([9.0, 1.0, 1.0]))
            for name in ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
        ],
        ["links 'shoulder_link', 'upper_arm_link'", "'wrist_3_link'", "triangle inequality"],
    ),
    "masses in g": ("panda", [masses(1e3)], ["weigh", "masses were given in g"]),
    "masses in g, ten kilos": ("ur3_robot", [masses(1e3)], ["masses were given in g"]),
    "masses in g, legs": ("solo12", [masses(1e3)], ["masses were given in g"]),
    "masses in g, inertias in g mm^2": (
        "z1",
        [masses(1e3), inertias(1e9)],
        ["masses were given in g", "inertias in g mm^2"],
    ),
    "masses in t": ("panda", [masses(1e-3)], ["weigh 0.0168 kg", "masses were given in t"]),
    "one mass in g": (
        "panda",
        [masses(1e3, "panda_link4")],
        ["link 'panda_link4'", "given in g"],
    ),
    "one small mass in g": (
        "z1",
        [masses(1e3, "link06")],
        ["link 'link06'", "given in g"],
    ),
    "mass left out": (
        "panda",
        [changed("link", "inertial/mass", "panda_link5", value=0)],
        ["link 'panda_link5'", "an inertia but no mass"],
    ),
    "origins of joints in mm": ("panda", [offsets(1e3)], ["panda_joint3", "given in mm"]),
    "all lengths in mm": (
        "panda",
        [offsets(1e3), centers(1e3)],
        ["panda_joint3", "panda_link3", "given in mm"],
    ),
    "all lengths in cm": ("ur10_robot", [offsets(1e2), centers(1e2)], ["mm or cm"]),
    "one origin in mm": ("xarm7", [offsets(1e3, "joint3")], ["joint 'joint3' ", "given in mm"]),
    "one centre of mass in mm": (
        "ur5_robot",
        [centers(1e3, "forearm_link")],
        ["link 'forearm_link' ", "given in mm"],
    ),
    "one angle in degrees": (
        "panda",
        [angles(DEGREES, "panda_joint3")],
        ["joint 'panda_joint3'", "rpy", "given in degrees"],
    ),
    "all angles in degrees": ("ur3_robot", [angles(DEGREES)], ["rpy", "given in degrees"]),
    "limits in degrees": (
        "panda",
        [limits(DEGREES, POSITION, *ARM)],
        ["panda_joint1", "turns", "given in degrees"],
    ),
    "limits of a humanoid in degrees": (
        "talos_left_arm",
        [limits(DEGREES, POSITION)],
        ["given in degrees"],
    ),
    "limits of one joint in degrees": (
        "ur5_joint_limited_robot",
        [limits(DEGREES, POSITION, "elbow_joint")],
        ["of elbow_joint ", "given in degrees"],
    ),
    "speeds in degrees/s": (
        "panda",
        [limits(DEGREES, ("velocity",), *ARM)],
        ["<limit velocity>", "degrees/s"],
    ),
    "speeds in rpm": ("go1", [limits(60.0 / (2.0 * np.pi), ("velocity",))], ["rpm"]),
    "one speed in degrees/s": (
        "ur5_robot",
        [limits(DEGREES, ("velocity",), "wrist_3_joint")],
        ["of wrist_3_joint ", "degrees/s"],
    ),
    "no speed": (
        "panda",
        [limits(0.0, ("velocity",), *ARM)],
        ["<limit velocity> of panda_joint1, panda_joint2", "is 0"],
    ),
    "torques in N mm": (
        "panda",
        [limits(1e3, ("effort",), *ARM)],
        ["<limit effort>", "panda_joint1", "given in N mm"],
    ),
    "torque of one joint in N mm": (
        "ur10_robot",
        [limits(1e3, ("effort",), "elbow_joint")],
        ["of elbow_joint ", "given in N mm"],
    ),
    "no torque on six joints": (
        "ur5_robot",
        [limits(0.0, ("effort",), *(f"{name}_joint" for name in UR))],
        ["'shoulder_pan_joint', 'shoulder_lift_joint'", "<limit effort> is 0"],
    ),
    "torques in kN m": ("panda", [limits(1e-3, ("effort",), *ARM)], ["close to 0", "kN m"]),
    "torque that is hardly any": (
        "xarm7",
        [changed("joint", "limit", "joint2", effort=0.01)],
        ["of joint2 ", "close to 0"],
    ),
    "fingers in mm": (
        "panda",
        [limits(1e3, POSITION, "panda_finger_joint1", "panda_finger_joint2")],
        ["panda_finger_joint1", "given in mm"],
    ),
    "fingers in mm/s": (
        "panda",
        [limits(1e3, ("velocity",), "panda_finger_joint1", "panda_finger_joint2")],
        ["panda_finger_joint1", "mm/s"],
    ),
    "limits equal": (
        "xarm7",
        [changed("joint", "limit", "joint4", lower=0, upper=0)],
        ["joint4", "are the same"],
    ),
    "tag misspelt": (
        "panda",
        [lambda root: setattr(root.find("joint/dynamics"), "tag", "dynamic")],
        ["<dynamic>", "perhaps 'dynamics' misspelt"],
    ),
}


@pytest.mark.parametrize("name", WARNED)
def test_mistake_is_warned_of_in_one_line(name: str) -> None:
    robot, edits, words = WARNED[name]
    new = said_of(edited(robot, *edits)) - said_of_robot(robot)
    assert len(new) == 1 and new.total() == 1, "\n".join(new) or "no word"
    (sentence,) = new
    assert sentence.startswith("robot_description: ")
    for word in words:
        assert word in sentence, sentence


def in_units(matrix: np.ndarray, mass: float, inertia: float) -> np.ndarray:
    """The pseudo-inertia with mass and inertia multiplied, about the same centre of mass."""
    link = link_inertia_of("", matrix)
    return pseudo_inertia(mass * link.mass, link.center_of_mass, inertia * link.inertia)


UNITS = {
    "g m^2": (1.0, 1e3, "times what robots' links"),
    "kg mm^2": (1.0, 1e6, "times what robots' links"),
    "g cm^2": (1.0, 1e7, "times what robots' links"),
    "g mm^2": (1.0, 1e9, "times what robots' links"),
    "g": (1e3, 1.0, "were given in g"),
}


@pytest.mark.parametrize("unit", UNITS)
def test_other_unit_is_seen_on_every_robot(unit: str) -> None:
    mass, inertia, words = UNITS[unit]
    missed, count = [], 0
    for path in example_robots():
        if path.stem == "ur3" or not load_quietly(path).nv:  # no name; nothing that moves
            continue
        description = read_description(path)
        inertias = {
            link: in_units(matrix, mass, inertia) for link, matrix in description.inertias.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotModelWarning)
            model = RobotModel(replace(description, inertias=inertias))
        count += 1
        if not any(words in sentence for sentence in model.warnings):
            missed.append(path.stem)
    assert count > 60 and not missed


def renamed(tag: str, old: str, new: str) -> Edit:
    return lambda root: elements(root, tag, (old,))[0].set("name", new)


def capital(path: str) -> Edit:
    def edit(root: ET.Element) -> None:
        for element in root.findall(path):
            element.tag = element.tag.capitalize()

    return edit


def with_joint(name: str, parent: str, child: str) -> Edit:
    text = f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/>'
    return lambda root: root.append(ET.fromstring(f"{text}</joint>"))


SWAPPED = changed("joint", "limit", "panda_joint2", lower=1.7, upper=-1.7)

# What cannot be loaded, and words of the error.
REFUSED = {
    "limits swapped": ("panda", [SWAPPED], ["'panda_joint2'", "lower 1.7 is above upper -1.7"]),
    "negative mass": ("ur5_robot", [masses(-1.0, "forearm_link")], ["'forearm_link'", "negative"]),
    "negative effort": (
        "xarm7",
        [limits(-1.0, ("effort",), "joint2")],
        ["'joint2'", "effort", "negative"],
    ),
    "xacro expression": (
        "panda",
        [changed("joint", "limit", "panda_joint4", upper="${-4 * pi / 180}")],
        ["'panda_joint4'", "upper", "unexpanded xacro expression"],
    ),
    "xacro substitution": (
        "z1",
        [changed("link", "inertial/mass", "link03", value="$(arg mass)")],
        ["'link03'", "value", "unexpanded xacro expression"],
    ),
    "capital <Joint>": ("panda", [capital("joint")], ["<Joint>", "write joint"]),
    "capital <Link>": ("ur5_robot", [capital("link")], ["<Link>", "write link"]),
    "capital <Inertial>": ("xarm7", [capital("link/inertial")], ["<Inertial>", "write inertial"]),
    "two parents": (
        "panda",
        [with_joint("weld", "panda_link2", "panda_link7")],
        ["'panda_link7'", "'panda_joint7'", "'weld'", "child of two joints"],
    ),
    "closed loop": (
        "ur5_robot",
        [with_joint("weld", "forearm_link", "world")],
        ["shoulder_lift_joint, elbow_joint", "weld", "closed loop", "no root"],
    ),
    "joint name twice": (
        "panda",
        [renamed("joint", "panda_joint5", "panda_joint4")],
        ["more than one joint", "'panda_joint4'"],
    ),
    "link name twice": (
        "talos_left_arm",
        [renamed("link", "arm_left_5_link", "arm_left_4_link")],
        ["more than one link", "'arm_left_4_link'"],
    ),
    "link forgotten": (
        "xarm7",
        [lambda root: root.remove(*elements(root, "link", ("link5",)))],
        ["'link5'", "not in the file"],
    ),
    "joint forgotten": (
        "xarm7",
        [lambda root: root.remove(*elements(root, "joint", ("joint5",)))],
        ["exactly one root", "link5"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistake_is_refused(name: str) -> None:
    robot, edits, words = REFUSED[name]
    refused(lambda: RobotModel.from_urdf_string(edited(robot, *edits)), words)


def refused(load: Callable[[], object], words: list[str]) -> None:
    with pytest.raises(RobotModelError) as caught:
        load()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_locked_positions_outside_the_limits() -> None:
    xml, arm = text_of("panda"), ARM
    known = said_of(xml, joints=arm)

    def new(**positions: float) -> list[str]:
        return list((said_of(xml, joints=arm, locked_positions=positions) - known).elements())

    assert new(panda_finger_joint1=0.0401, panda_finger_joint2=-0.0002) == []
    (sentence,) = new(panda_finger_joint1=0.1, panda_finger_joint2=0.2)
    assert "panda_finger_joint1 at 0.1 (0 to 0.04), panda_finger_joint2 at 0.2" in sentence
    refused(lambda: new(panda_finger_joint1=40.0), ["'panda_finger_joint1' is 40 m", "given in mm"])
    refused(
        lambda: RobotModel.from_urdf_string(xml, arm[:6], {"panda_joint7": 45.0}),
        ["'panda_joint7' is 45 rad", "far outside its limits -2.89", "given in degrees"],
    )
