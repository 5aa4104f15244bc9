"""Each broken URDF gets its own clear error: where, what, and how to mend it."""

from __future__ import annotations

import re

import pytest
from robots import joint, link, robot

from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel, RobotModelError

BASE, ARM, TIP = link("base"), link("arm"), link("c")
JOINT = joint("j", "base", "arm")
LIMIT = '<limit lower="-3" upper="3" effort="100" velocity="10"/>'
AXIS = 'axis xyz="0.0 0.0 1.0"'


def with_joint(**changes) -> str:
    return robot(BASE, ARM, joint("j", "base", "arm", **changes))


def limited(limits: str) -> str:
    return with_joint(limit=f"<limit {limits}/>")


def replaced(old: str, new: str) -> str:
    urdf = robot(BASE, ARM, JOINT)
    assert old in urdf
    return urdf.replace(old, new, 1)


NO_PARENT = '<joint name="j" type="fixed"><child link="base"/></joint>'

# The URDF, and words that the message must hold.
BROKEN = [
    ("hello", "not well-formed XML"),
    ("<robot name='a'><link", "not well-formed XML"),
    ("<robot><link name='a'/></robot>", "<robot> has no attribute 'name'"),
    ("<robot name='r'/>", "no links"),
    ("<robot name='r'><link/></robot>", "link None: <link> has no attribute 'name'"),
    ("<robot name='r'><link name=' '/></robot>", "attribute 'name' is empty"),
    (robot(BASE, BASE), "more than one link is named 'base'"),
    (robot(BASE, ARM, TIP, JOINT, joint("j", "arm", "c")), "more than one joint is named 'j'"),
    (robot(ARM, JOINT), "joint 'j': its parent link 'base' is not in the file"),
    (robot(BASE, JOINT), "joint 'j': its child link 'arm' is not in the file"),
    (robot(BASE, ARM, TIP, joint("a", "base", "c"), joint("b", "arm", "c")), "joints, 'a' and 'b'"),
    (robot(BASE, ARM), "exactly one root link .* found: arm, base"),
    (robot(BASE, ARM, JOINT, joint("k", "arm", "base")), "j, k form a closed loop, .* no root"),
    (robot(TIP, BASE, ARM, JOINT, joint("k", "arm", "base")), "loop apart from the root 'c'"),
    (robot(BASE, NO_PARENT), "'j': <joint> has no <parent>"),
    (replaced('type="revolute"', ""), "'j': <joint> has no attribute 'type'"),
    (replaced("<joint ", "<Joint ").replace("</joint>", "</Joint>"), "<Joint> .* write joint"),
    (replaced("<inertial>", "<Inertial>").replace("</i", "</I", 1), "<Inertial> .* write inertial"),
    (with_joint(kind="ball"), "'j': type is 'ball'; allowed are revolute"),
    (with_joint(extra='<mimic joint="j"/>'), "'j': mimics itself"),
    (with_joint(extra='<mimic multiplier="2"/>'), "'j': <mimic>: .* no attribute 'joint'"),
    (with_joint(axis=(0, 0, 0)), "'j': <axis xyz> .* must not be zero"),
    (replaced(AXIS, 'axis xyz="0 1"'), "'j': <axis>: xyz is '0 1'; .* 3 finite numbers"),
    (replaced(AXIS, 'axis xyz="up"'), "'j': <axis>: xyz is 'up'"),
    (replaced(AXIS, "axis"), "'j': <axis>: <axis> has no attribute 'xyz'"),
    (with_joint(limit=""), "'j': a revolute joint needs a <limit>"),
    (limited('velocity="1" lower="0" upper="1"'), "'j': <limit>: .* no attribute 'effort'"),
    (limited('lower="1" upper="-1" effort="1" velocity="1"'), "'j': .* lower 1 is above upper -1;"),
    (limited('lower="-1" upper="1" effort="-5" velocity="1"'), "'j': .* effort> is -5; .* Give"),
    (limited('lower="-1" upper="1" effort="5" velocity="-2"'), "'j': <limit velocity> is -2; "),
    (limited('lower="nan" upper="1" effort="5" velocity="2"'), "'j': .* lower is 'nan'; .* finite"),
    (
        limited('lower="0" upper="${pi}" effort="5" velocity="2"'),
        "upper is .* unexpanded xacro .* line 1",
    ),
    (limited('lower="0" upper="1" effort="$(arg e)" velocity="2"'), "effort is .* unexpanded xa"),
    (with_joint(extra=LIMIT), "'j': <limit> is given more than once"),
    (with_joint(extra='<dynamics damping="-1"/>'), "'j': <dynamics damping> is -1"),
    (replaced('rpy="0.0 0.0 0.0"/><par', 'rpy="0 0 left"/><par'), "'j': .* rpy is '0 0 left'"),
    (robot(link("base", mass=-2.0)), "'base': <mass value> is -2 kg; it must not be negative"),
    (robot(link("base", mass=float("nan"))), "'base': .* <mass>: value is 'nan'; .* finite"),
    (robot(link("base", inertia=(float("inf"), 0, 0, 1, 0, 1))), "<inertia>: ixx is 'inf'"),
    (robot(link("base", inertia=(1e308, 0, 0, 1e308, 0, 1e308))), r"'base': .* ixx .* 1e\+20"),
    (replaced('value="1.0"', 'value="2_0"'), "'base': .* <mass>: value is '2_0'"),
    (replaced('value="1.0"', ""), "'base': .* <mass> has no attribute 'value'"),
    (replaced('<mass value="1.0"/>', ""), "'base': .* <inertial> has no <mass>"),
    (replaced('<mass value="1.0"/>', 2 * '<mass value="1.0"/>'), "<mass> is given more than once"),
    (replaced('iyz="0"', ""), "'base': .* <inertia> has no attribute 'iyz'"),
]


def test_each_broken_urdf_gets_an_error_of_its_own() -> None:
    messages, codes = set(), set()
    for urdf, words in BROKEN:
        with pytest.raises(RobotModelError) as caught:
            RobotModel.from_urdf_string(urdf)
        message = str(caught.value)
        assert message.startswith("robot_description: ") and "\n" not in message
        assert re.search(words, message), message
        messages.add(message)
        codes.add(caught.value.code)
    assert len(messages) == len(BROKEN)
    assert codes == {"urdf-file", "urdf-element", "kinematic-tree", "joint"}


def test_wrong_arguments() -> None:
    urdf = robot(BASE, ARM, TIP, JOINT, joint("f", "arm", "c", "fixed"))
    for arguments, words in (
        ({"joints": ["k"]}, "no joint 'k'.*it has j"),
        ({"joints": ["f"]}, "'f'.*'fixed'.*cannot move"),
        ({"joints": "j"}, "`joints` is 'j'.*a list of joint names"),
        ({"joints": 3, "floating_base": True}, "`joints` is 3.*a list of"),
        ({"joints": ["j", "j"]}, "twice"),
        ({"locked_positions": 3}, "`locked_positions` is 3; it must map"),
        ({"locked_positions": {"k": 1.0}}, "'k'.*no joint"),
        ({"locked_positions": {"j": 1.0}}, "'j'.*in `joints`"),
        ({"joints": [], "locked_positions": {"j": float("nan")}}, "'j' is nan.*finite"),
        ({"gravity": (0, 1)}, "gravity.*three finite numbers"),
        ({"gravity": (0, 0, float("inf"))}, "gravity.*three finite numbers"),
    ):
        with pytest.raises(RneaControlError, match=words):
            RobotModel.from_urdf_string(urdf, **arguments)
