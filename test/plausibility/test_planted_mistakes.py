"""Mistakes made in real URDFs: each is answered by exactly one line that names its likely cause."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from robots import example_robot, example_robots, load_quietly, read_description

from rnea_control.model import RobotModel, RobotModelError, pseudo_inertia
from rnea_control.model.rigid_body import link_inertia_of, rotation_from_rpy
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.parameters.settings import quietly
from rnea_control.plausibility import suspicions

Edit = Callable[[ET.Element], object]

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
DEGREES = 180.0 / np.pi
RPM = 60.0 / (2.0 * np.pi)


@cache
def text_of(robot: str) -> str:
    return example_robot(robot).read_text()


def said_of(xml: str, **arguments) -> Counter:
    return Counter(suspicions(quietly(partial(RobotModel.from_urdf_string, **arguments), xml)))


@cache
def said_of_robot(robot: str) -> Counter:
    return said_of(text_of(robot))


def elements(root: ET.Element, tag: str, names: tuple[str, ...] = ()) -> list[ET.Element]:
    """Links or joints by name; all without names."""
    found = [e for e in root.findall(tag) if not names or e.get("name") in names]
    assert len(found) >= max(1, len(names))
    return found


def scaled(path: str, attributes: tuple[str, ...], factor: float, *names: str) -> Edit:
    """Multiplies numbers of links or joints; `path` begins with the one or the other."""

    def edit(root: ET.Element) -> None:
        tag, _, rest = path.partition("/")
        changed = 0
        for element in elements(root, tag, names):
            for child in element.findall(rest):
                for attribute in attributes:
                    if attribute in child.attrib:
                        numbers = [float(word) for word in child.get(attribute).split()]
                        changed += any(numbers)
                        child.set(attribute, " ".join(repr(factor * x) for x in numbers))
        assert changed

    return edit


inertias = partial(scaled, "link/inertial/inertia", MOMENTS)
masses = partial(scaled, "link/inertial/mass", ("value",))
centers = partial(scaled, "link/inertial/origin", ("xyz",))
offsets = partial(scaled, "joint/origin", ("xyz",))
angles = partial(scaled, "joint/origin", ("rpy",))
positions = partial(scaled, "joint/limit", ("lower", "upper"))
speeds = partial(scaled, "joint/limit", ("velocity",))
efforts = partial(scaled, "joint/limit", ("effort",))


def inertia_set(link: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    def edit(root: ET.Element) -> None:
        (element,) = elements(root, "link", (link,))
        inertia = element.find("inertial/inertia")
        matrix = np.zeros((3, 3))
        rows, columns = np.triu_indices(3)
        matrix[rows, columns] = matrix[columns, rows] = [float(inertia.get(m)) for m in MOMENTS]
        for name, value in zip(MOMENTS, change(matrix)[rows, columns], strict=True):
            inertia.set(name, repr(float(value)))

    return edit


def about_origins(root: ET.Element) -> None:
    for name, found in description_from_urdf(ET.tostring(root), "").inertias.items():
        link = link_inertia_of(name, found)
        c = link.center_of_mass
        about = link.inertia + link.mass * (c @ c * np.eye(3) - np.outer(c, c))
        for inertial in elements(root, "link", (name,))[0].findall("inertial"):
            inertial.find("origin").attrib.pop("rpy", None)
            inertia_set(name, lambda _, about=about: about)(root)


def negative_axis(matrix: np.ndarray) -> np.ndarray:
    return matrix * np.diag([1, 1, -1]) + matrix * (1 - np.eye(3))


def of_other_axes(matrix: np.ndarray) -> np.ndarray:
    """A slender body's inertia about turned axes, written without the minus of its products."""
    R = rotation_from_rpy(np.array([0.4, 0.7, 0.5]))
    a, _, c = np.linalg.eigvalsh(matrix)
    turned = R @ np.diag([0.05 * a, c, c]) @ R.T
    return 2.0 * np.diag(np.diag(turned)) - turned


def without_inertial(link: str) -> Edit:
    return lambda root: [e.remove(e.find("inertial")) for e in elements(root, "link", (link,))]


def misspelled(root: ET.Element) -> None:
    root.find("joint/dynamics").tag = "dynamic"


ARM = [f"panda_joint{i}" for i in range(1, 8)]
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
JAW = "moving_jaw_so101_v1_link"
UR = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
UR_LINKS = ["shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3"]
DRIVES = [f"{name}_joint" for name in UR]

# The robot, words of the one line that must come, and what is done to the URDF.
WARNED = [
    ("panda", "'panda_link1'.* given in g cm.2. Give it in kg m.2", inertias(1e7)),
    ("z1", "'link01'.* given in kg mm.2", inertias(1e6)),
    ("ur10_robot", "given in g mm.2", inertias(1e9)),
    ("xarm7", "'link3'.* given in g m.2", inertias(1e3)),
    ("talos_left_arm", "link 'arm_left_4_link'.* g mm.2", inertias(1e9, "arm_left_4_link")),
    ("panda", "link 'panda_link5'.* radius of gyration.* g cm.2", inertias(1e7, "panda_link5")),
    ("kinova", "g m.2", inertias(1e3, "j2s6s200_link_2")),
    ("panda", "link 'panda_link6'.* placeholder", inertia_set("panda_link6", lambda _: np.eye(3))),
    ("panda", "link 'panda_link2': the inertia is 0", inertias(0.0, "panda_link2")),
    ("ur10_robot", "links 'shoulder_link',.* 'wrist_3_link': the inertia is 0", inertias(0.0)),
    ("so101", f"link '{JAW}' moves with joint 'gripper' but has no inertia", without_inertial(JAW)),
    (
        "panda",
        "link 'panda_link3': .* not positive definite.* izz must be positive",
        inertia_set("panda_link3", negative_axis),
    ),
    ("panda", "link 'panda_link4' .*'panda_joint4' but .* all", without_inertial("panda_link4")),
    ("ur5_robot", "all links that move are at 0 0 0", centers(0.0)),
    *(
        (name, "about the links' origins", about_origins)
        for name in ("panda", "ur10_robot", "xarm7")
    ),
    ("xarm7", "'link2'.* opposite sign of ixy, ixz and iyz", inertia_set("link2", of_other_axes)),
    (
        "talos_left_arm",
        "link 'arm_left_2_link': .* not positive definite",
        inertia_set("arm_left_2_link", lambda m: 1e3 * m - 999.0 * np.diag(np.diag(m))),
    ),
    (
        "ur5_robot",
        "link 'upper_arm_link': .* triangle inequality",
        inertia_set("upper_arm_link", lambda m: m * np.diag([1.0, 10.0, 1.0])),
    ),
    (
        "ur10_robot",
        "links 'shoulder_link', 'upper_arm_link',.* 'wrist_3_link': .* triangle inequality",
        *(inertia_set(f"{name}_link", lambda m: m * np.diag([9, 1, 1])) for name in UR_LINKS),
    ),
    ("panda", "weigh 16800 kg.* masses were given in g. Give", masses(1e3)),
    ("z1", "masses were given in g, and inertias in g mm.2", masses(1e3), inertias(1e9)),
    ("panda", "weigh 0.0168 kg.* masses were given in t", masses(1e-3)),
    ("panda", "link 'panda_link4'.* given in g. Give", masses(1e3, "panda_link4")),
    ("z1", "link 'link06'.* given in g, or", masses(1e3, "link06")),
    ("panda", "link 'panda_link5': an inertia but no mass", masses(0.0, "panda_link5")),
    ("panda", "'panda_joint3'.* given in mm", offsets(1e3)),
    ("panda", "'panda_joint3'.* 'panda_link3'.* given in mm", offsets(1e3), centers(1e3)),
    ("ur10_robot", "mm or cm", offsets(1e2), centers(1e2)),
    ("xarm7", "joint 'joint3' .* given in mm", offsets(1e3, "joint3")),
    ("ur5_robot", "link 'forearm_link' .* given in mm", centers(1e3, "forearm_link")),
    ("panda", "rpy> of joint 'panda_joint3' .* in degrees", angles(DEGREES, "panda_joint3")),
    ("ur3_robot", "rpy> of joints .* given in degrees", angles(DEGREES)),
    ("panda", "panda_joint1.* turns, as if given in degrees", positions(DEGREES, *ARM)),
    ("talos_left_arm", "given in degrees", positions(DEGREES)),
    ("ur5_joint_limited_robot", "upper of elbow_j.* degrees", positions(DEGREES, "elbow_joint")),
    ("panda", "<limit velocity> .* degrees/s", speeds(DEGREES, *ARM)),
    ("go1", "rpm", speeds(RPM)),
    ("ur5_robot", "of wrist_3_joint .* degrees/s", speeds(DEGREES, "wrist_3_joint")),
    ("panda", "<limit velocity> of panda_joint1, panda_joint2,.* is 0", speeds(0.0, *ARM)),
    ("panda", "<limit effort> of panda_joint1.* given in N mm", efforts(1e3, *ARM)),
    ("ur10_robot", "of elbow_joint .* given in N mm", efforts(1e3, "elbow_joint")),
    ("ur5_robot", "'shoulder_pan_joint', 'sh.* <limit effort> is 0", efforts(0.0, *DRIVES)),
    ("panda", "close to 0.* kN m", efforts(1e-3, *ARM)),
    ("xarm7", "of joint2 is close to 0: 0.01 Nm", efforts(2e-4, "joint2")),
    ("panda", "of panda_finger_joint1 go to 40 m, as if given in mm", positions(1e3, *FINGERS)),
    ("panda", "of panda_finger_joint1 is .* mm/s", speeds(1e3, *FINGERS)),
    ("xarm7", "of joint4 are the same", positions(0.0, "joint4")),
    ("panda", "<dynamic> in <joint>, perhaps 'dynamics' misspelled", misspelled),
]


@pytest.mark.parametrize(("robot", "words", "edits"), [(r, w, e) for r, w, *e in WARNED])
def test_mistake_is_warned_of_in_one_line(robot: str, words: str, edits: list[Edit]) -> None:
    root = ET.fromstring(text_of(robot))
    for edit in edits:
        edit(root)
    new = said_of(ET.tostring(root, encoding="unicode")) - said_of_robot(robot)
    assert len(new) == 1 and new.total() == 1, "\n".join(new) or "no word"
    (sentence,) = new
    assert re.match(f"robot_description: .*{words}", sentence), sentence


def in_units(matrix: np.ndarray, mass: float, inertia: float) -> np.ndarray:
    link = link_inertia_of("", matrix)
    return pseudo_inertia(mass * link.mass, link.center_of_mass, inertia * link.inertia)


@pytest.mark.parametrize(("mass", "inertia"), [*((1.0, 10.0**n) for n in (3, 6, 7, 9)), (1e3, 1.0)])
def test_other_unit_is_seen_on_every_robot(mass: float, inertia: float) -> None:
    words = "times what robots' links" if mass == 1.0 else "were given in g"
    missed, count = [], 0
    for path in example_robots():
        if path.stem == "ur3" or not load_quietly(path).nv:  # no name; nothing that moves
            continue
        found = read_description(path)
        others = {k: in_units(matrix, mass, inertia) for k, matrix in found.inertias.items()}
        model = quietly(RobotModel, replace(found, inertias=others))
        count += 1
        if not any(words in sentence for sentence in suspicions(model)):
            missed.append(path.stem)
    assert count > 60 and not missed


def test_locked_positions_outside_the_limits() -> None:
    xml, arm = text_of("panda"), ARM
    known = said_of(xml, joints=arm)

    def new(**positions: float) -> list[str]:
        return list((said_of(xml, joints=arm, locked_positions=positions) - known).elements())

    assert new(panda_finger_joint1=0.0401, panda_finger_joint2=-0.0002) == []
    (sentence,) = new(panda_finger_joint1=0.1, panda_finger_joint2=0.2)
    assert "panda_finger_joint1 at 0.1 (0 to 0.04), panda_finger_joint2 at 0.2" in sentence
    with pytest.raises(RobotModelError, match=r"'panda_finger_joint1' is 40 m.* given in mm"):
        new(panda_finger_joint1=40.0)
    with pytest.raises(RobotModelError, match=r"is 45 rad, far outside its limits -2.89.* degrees"):
        RobotModel.from_urdf_string(xml, arm[:6], {"panda_joint7": 45.0})
