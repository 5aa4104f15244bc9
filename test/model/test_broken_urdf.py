"""Each broken URDF gets its own clear error: where, what, and how to mend it."""

from __future__ import annotations

import pytest
from robots import joint, link, robot

from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel, RobotModelError

BASE, ARM = link("base"), link("arm")
JOINT = joint("j", "base", "arm")
LIMIT = '<limit lower="-3" upper="3" effort="100" velocity="10"/>'


def with_joint(**changes) -> str:
    return robot(BASE, ARM, joint("j", "base", "arm", **changes))


# What is wrong: the URDF, and words that the message must hold.
BROKEN = {
    "empty": ("", ["empty"]),
    "white space": ("  \n", ["empty"]),
    "no XML": ("hello", ["not well-formed XML"]),
    "cut off": ("<robot name='a'><link", ["not well-formed XML"]),
    "unknown encoding": (b"<?xml version='1.0' encoding='nonsense'?><robot/>", ["XML", "nonsense"]),
    "SDF": ("<sdf version='1.7'/>", ["<sdf>", "<robot"]),
    "xacro": (
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arm/></robot>',
        ["xacro", "expand"],
    ),
    "no robot name": ("<robot><link name='a'/></robot>", ["robot", "'name'"]),
    "no link": ("<robot name='r'/>", ["no links"]),
    "link without name": ("<robot name='r'><link/></robot>", ["link", "'name'"]),
    "empty name": ("<robot name='r'><link name=' '/></robot>", ["'name'", "empty"]),
    "link name twice": (robot(BASE, BASE), ["'base'", "more than one link"]),
    "joint name twice": (
        robot(BASE, ARM, link("c"), JOINT, joint("j", "arm", "c")),
        ["'j'", "more than one joint"],
    ),
    "parent not there": (robot(ARM, JOINT), ["'j'", "parent", "'base'", "not in the file"]),
    "child not there": (robot(BASE, JOINT), ["'j'", "child", "'arm'", "not in the file"]),
    "two parents": (
        robot(BASE, ARM, link("c"), joint("a", "base", "c"), joint("b", "arm", "c")),
        ["'c'", "'a'", "'b'", "child of two joints"],
    ),
    "two roots": (robot(BASE, ARM), ["exactly one root", "arm, base"]),
    "closed loop": (
        robot(BASE, ARM, JOINT, joint("k", "arm", "base")),
        ["root", "closed loop"],
    ),
    "loop beside the tree": (
        robot(link("root"), BASE, ARM, JOINT, joint("k", "arm", "base")),
        ["j, k", "closed loop", "'root'"],
    ),
    "joint without parent": (
        robot(BASE, '<joint name="j" type="fixed"><child link="base"/></joint>'),
        ["'j'", "<parent>"],
    ),
    "joint without type": (
        robot(BASE, ARM, JOINT.replace('type="revolute"', "")),
        ["'j'", "'type'"],
    ),
    "unknown type": (with_joint(kind="ball"), ["'j'", "'ball'", "revolute"]),
    "mimic of itself": (with_joint(extra='<mimic joint="j"/>'), ["'j'", "mimics itself"]),
    "zero axis": (with_joint(axis=(0, 0, 0)), ["'j'", "axis", "zero"]),
    "axis of two": (
        robot(BASE, ARM, JOINT.replace('axis xyz="0.0 0.0 1.0"', 'axis xyz="0 1"')),
        ["'j'", "axis", "'0 1'", "3 finite numbers"],
    ),
    "axis in words": (
        robot(BASE, ARM, JOINT.replace('axis xyz="0.0 0.0 1.0"', 'axis xyz="up"')),
        ["'j'", "axis", "'up'"],
    ),
    "axis without xyz": (
        robot(BASE, ARM, JOINT.replace('axis xyz="0.0 0.0 1.0"', "axis")),
        ["'j'", "axis", "'xyz'"],
    ),
    "no limit": (with_joint(limit=""), ["'j'", "<limit>", "revolute"]),
    "limit without effort": (
        with_joint(limit='<limit velocity="1" lower="0" upper="1"/>'),
        ["'j'", "limit", "'effort'"],
    ),
    "limits reversed": (
        with_joint(limit='<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
        ["'j'", "lower 1", "upper -1"],
    ),
    "negative effort": (
        with_joint(limit='<limit lower="-1" upper="1" effort="-5" velocity="1"/>'),
        ["'j'", "effort", "-5"],
    ),
    "negative velocity": (
        with_joint(limit='<limit lower="-1" upper="1" effort="5" velocity="-2"/>'),
        ["'j'", "velocity", "-2"],
    ),
    "NaN limit": (
        with_joint(limit='<limit lower="nan" upper="1" effort="5" velocity="2"/>'),
        ["'j'", "lower", "'nan'", "finite"],
    ),
    "limit twice": (with_joint(extra=LIMIT), ["'j'", "<limit>", "more than once"]),
    "negative damping": (
        with_joint(extra='<dynamics damping="-1"/>'),
        ["'j'", "damping", "-1"],
    ),
    "origin in words": (
        robot(BASE, ARM, JOINT.replace('rpy="0.0 0.0 0.0"', 'rpy="0 0 left"')),
        ["'j'", "origin", "rpy", "'0 0 left'"],
    ),
    "negative mass": (robot(link("base", mass=-2.0)), ["'base'", "-2", "negative"]),
    "NaN mass": (robot(link("base", mass=float("nan"))), ["'base'", "mass", "'nan'", "finite"]),
    "infinite inertia": (
        robot(link("base", inertia=(float("inf"), 0, 0, 1, 0, 1))),
        ["'base'", "inertia", "ixx", "'inf'"],
    ),
    "overflowing inertia": (
        robot(link("base", inertia=(1e308, 0, 0, 1e308, 0, 1e308))),
        ["'base'", "ixx", "1e+20"],
    ),
    "underscore in a number": (
        robot(BASE.replace('value="1.0"', 'value="2_0"')),
        ["'base'", "mass", "'2_0'"],
    ),
    "mass without value": (
        robot(BASE.replace('value="1.0"', "")),
        ["'base'", "<mass>", "'value'"],
    ),
    "inertial without mass": (
        robot(BASE.replace('<mass value="1.0"/>', "")),
        ["'base'", "<mass>"],
    ),
    "inertia without iyz": (robot(BASE.replace('iyz="0"', "")), ["'base'", "'iyz'"]),
    "mimic without joint": (with_joint(extra='<mimic multiplier="2"/>'), ["'j'", "'joint'"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_urdf_gets_its_own_error(name: str) -> None:
    urdf, words = BROKEN[name]
    with pytest.raises(RobotModelError) as caught:
        RobotModel.from_urdf_string(urdf)
    message = str(caught.value)
    assert message.startswith("robot_description: ")
    for word in words:
        assert word in message, message


def test_no_two_faults_share_a_message() -> None:
    messages = {}
    for name, (urdf, _) in BROKEN.items():
        with pytest.raises(RobotModelError) as caught:
            RobotModel.from_urdf_string(urdf)
        messages.setdefault(str(caught.value), []).append(name)
    shared = [names for names in messages.values() if len(names) > 1]
    assert shared == [["empty", "white space"]]


def test_errors_name_the_file(tmp_path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text(robot(link("base", mass=-1.0)))
    with pytest.raises(RobotModelError, match=r"broken\.urdf: link 'base'"):
        RobotModel.from_urdf_file(path)
    with pytest.raises(RobotModelError, match=r"missing\.urdf: cannot be read: No such file"):
        RobotModel.from_urdf_file(tmp_path / "missing.urdf")


WRONG_ARGUMENTS = {
    "unknown joint": ({"joints": ["k"]}, "no joint 'k'.*it has j"),
    "fixed joint": ({"joints": ["f"]}, "'f'.*'fixed'.*cannot move"),
    "one name for joints": ({"joints": "j"}, "`joints` is 'j'.*a list of joint names"),
    "number for joints": ({"joints": 3, "floating_base": True}, "`joints` is 3.*a list of"),
    "joint twice": ({"joints": ["j", "j"]}, "twice"),
    "unknown locked": ({"locked_positions": {"k": 1.0}}, "'k'.*no joint"),
    "locked and controlled": ({"locked_positions": {"j": 1.0}}, "'j'.*in `joints`"),
    "locked at NaN": (
        {"joints": [], "locked_positions": {"j": float("nan")}},
        "'j' is nan.*finite",
    ),
    "gravity of two": ({"gravity": (0, 1)}, "gravity.*three finite numbers"),
    "infinite gravity": ({"gravity": (0, 0, float("inf"))}, "gravity.*three finite numbers"),
}


def test_no_text() -> None:
    with pytest.raises(RobotModelError, match="is a NoneType; it must be str or bytes"):
        RobotModel.from_urdf_string(None)


@pytest.mark.parametrize("name", WRONG_ARGUMENTS)
def test_wrong_arguments(name: str) -> None:
    arguments, words = WRONG_ARGUMENTS[name]
    urdf = robot(BASE, ARM, link("tool"), JOINT, joint("f", "arm", "tool", "fixed"))
    with pytest.raises(RneaControlError, match=words):
        RobotModel.from_urdf_string(urdf, **arguments)
