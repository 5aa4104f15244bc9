"""What a URDF becomes: order, limits, defaults, merged links, warnings."""

from __future__ import annotations

import math
import warnings

import numpy as np
import planar_arm
import pytest
from robots import joint, link, robot, two_link_arm

from rnea_control.dynamics import Workspace, forward_kinematics, friction, gravity, rnea
from rnea_control.model import (
    Joint,
    Mimic,
    RobotModel,
    RobotModelError,
    RobotModelWarning,
    pseudo_inertia,
)
from rnea_control.model.robot_description import description_from_joints


def torques(model: RobotModel, q, v, a) -> np.ndarray:
    vectors = [np.array(x, dtype=np.float64) for x in (q, v, a)]
    return rnea(model, Workspace(model), *vectors, np.zeros(model.nv))


def test_attributes() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    assert model.name == "two_link_arm"
    assert model.joint_names == ("shoulder", "elbow")
    assert model.child_links == ("upper", "lower")
    assert model.root_link == "base"
    assert model.nq == model.nv == 2
    assert model.joint_types == ("revolute", "revolute")
    np.testing.assert_array_equal(model.lower, [-3, -3])
    np.testing.assert_array_equal(model.upper, [3, 3])
    np.testing.assert_array_equal(model.effort_limit, [100, 100])
    np.testing.assert_array_equal(model.velocity_limit, [10, 10])
    assert model.total_mass == pytest.approx(4.5)
    assert model.warnings == ()


def test_attributes_cannot_be_changed_by_accident() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    with pytest.raises(ValueError, match="read-only"):
        model.effort_limit[0] = 1.0
    for name in ("gravity", "armature", "damping", "friction", "torque_offset"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, name)[0] = 5.0
    before = model.damping
    model.damping = [5.0, 6.0]
    assert model.damping.tolist() == [5.0, 6.0] and before.tolist() == [0.0, 0.0]


def test_joints_pick_and_order() -> None:
    urdf = two_link_arm()
    straight = RobotModel.from_urdf_string(urdf)
    reversed_ = RobotModel.from_urdf_string(urdf, ["elbow", "shoulder"])
    q, v, a = np.random.default_rng(1).standard_normal((3, 2))
    tau = torques(straight, q, v, a)
    np.testing.assert_allclose(torques(reversed_, q[::-1], v[::-1], a[::-1]), tau[::-1], rtol=1e-14)


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
@pytest.mark.parametrize("position", [0.0, 0.7])
def test_locked_joint_is_merged_inertia_and_all(kind: str, position: float) -> None:
    """A locked joint is a joint that keeps still."""
    urdf = robot(
        link("base"),
        link("a", 1.2, (0.1, 0.2, 0.3), (0.3, 0.01, 0.02, 0.2, 0.03, 0.4)),
        link("b", 2.3, (-0.2, 0.1, 0.2), (0.2, 0.02, 0.01, 0.3, 0.01, 0.3), (0.3, 0.2, 0.1)),
        link("c", 0.7, (0.3, -0.1, 0.1), (0.1, 0.0, 0.01, 0.1, 0.02, 0.1)),
        joint("j1", "base", "a", axis=(0, 1, 0), rpy=(0.3, 0.2, 0.1)),
        joint("j2", "a", "b", kind, (0.6, 0.0, 0.8), (0.1, 0.2, 0.3), (0.5, -0.3, 0.2)),
        joint("j3", "b", "c", axis=(1, 0, 0), xyz=(0.2, 0.0, 0.1)),
    )
    free = RobotModel.from_urdf_string(urdf)
    locked = RobotModel.from_urdf_string(urdf, ["j1", "j3"], {"j2": position})
    assert locked.merged_joints == ("j2",)
    assert locked.total_mass == pytest.approx(free.total_mass)
    expected = torques(free, [0.4, position, -0.5], [1.0, 0.0, 2.0], [3.0, 0.0, -1.0])
    tau = torques(locked, [0.4, -0.5], [1.0, 2.0], [3.0, -1.0])
    np.testing.assert_allclose(tau, expected[[0, 2]], rtol=1e-12)


def test_missing_axis_and_origin_have_the_defaults_of_urdf() -> None:
    bare = '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>'
    body = link("arm", 2.0, (0.1, 0.2, 0.3))
    model = RobotModel.from_urdf_string(robot(link("base"), body, bare))
    given = RobotModel.from_urdf_string(
        robot(link("base"), body, joint("j", "base", "arm", "continuous", (1, 0, 0), limit=""))
    )
    arguments = [0.3], [1.0], [2.0]
    np.testing.assert_array_equal(torques(model, *arguments), torques(given, *arguments))
    assert model.effort_limit[0] == model.velocity_limit[0] == model.upper[0] == math.inf


def test_axis_need_not_be_of_unit_length() -> None:
    arguments = [0.3], [1.0], [2.0]
    tau = []
    for axis in ((0, 1, 1), (0, 10, 10)):
        urdf = robot(
            link("base"), link("arm", 2.0, (0.1, 0.2, 0.3)), joint("j", "base", "arm", axis=axis)
        )
        tau.append(torques(RobotModel.from_urdf_string(urdf), *arguments))
    np.testing.assert_allclose(tau[0], tau[1], rtol=1e-15)


def test_gravity_can_be_set() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    ws, q, tau = Workspace(model), np.array([0.3, 0.4]), np.zeros(2)
    upright = planar_arm.gravity_torque(q)
    np.testing.assert_allclose(gravity(model, ws, q, tau), upright, rtol=1e-13)
    model.gravity = (0.0, 0.0, 9.81)
    np.testing.assert_allclose(gravity(model, ws, q, tau), -upright, rtol=1e-13)
    model.gravity = np.zeros(3)
    np.testing.assert_array_equal(gravity(model, ws, q, tau), [0.0, 0.0])


def test_broken_shapes_and_foreign_tags_do_not_matter(capfd: pytest.CaptureFixture) -> None:
    rubbish = (
        "<visual><geometry/></visual><collision><geometry><mesh/></geometry></collision>"
        '<visual><material name="m"><color rgba="1 2"/></material></visual>'
    )
    foreign = (
        '<transmission name="t"/><transmission><joint/></transmission><material/>'
        '<gazebo reference="nobody"><x/></gazebo>'
        '<ros2_control name="a" type="system"><y/></ros2_control>'
        '<sensor name="s"/><custom_tag/><custom_tag/>'
    )
    urdf = two_link_arm().replace("</inertial></link>", f"</inertial>{rubbish}</link>")
    urdf = urdf.replace("</robot>", f"{foreign}</robot>")
    with pytest.warns(RobotModelWarning) as caught:
        model = RobotModel.from_urdf_string(urdf)
    assert [str(w.message) for w in caught] == [
        "robot_description: unknown and ignored: tag <custom_tag> in <robot>"
    ]
    assert len(model.warnings) == 1
    assert capfd.readouterr() == ("", "")
    plain = RobotModel.from_urdf_string(two_link_arm())
    np.testing.assert_array_equal(model.bodies, plain.bodies)


def test_encoding_declaration_in_text_and_bytes() -> None:
    urdf = '<?xml version="1.0" encoding="UTF-8"?>' + two_link_arm("bras_à_deux_axes")
    assert RobotModel.from_urdf_string(urdf).name == "bras_à_deux_axes"
    assert RobotModel.from_urdf_string(urdf.encode()).name == "bras_à_deux_axes"


SUSPICIOUS = {
    "phantom inertia": (link("arm", 0.0), "link 'arm': an inertia but no mass"),
    "not positive definite": (
        link("arm", inertia=(1.0, 0.0, 0.0, 1.0, 0.0, -0.1)),
        "link 'arm': the inertia is not positive definite: its smallest principal moment is -0.1",
    ),
    "triangle inequality": (
        link("arm", inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 2.5)),
        "link 'arm': .* break the triangle inequality by 0.5",
    ),
    "no inertia": ('<link name="arm"/>', "link 'arm' moves with joint 'j' but has no inertia"),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_suspicious_link_is_warned_of_once(name: str) -> None:
    body, words = SUSPICIOUS[name]
    with pytest.warns(RobotModelWarning, match=words) as caught:
        RobotModel.from_urdf_string(robot(link("base"), body, joint("j", "base", "arm")))
    assert len(caught) == 1


SUSPICIOUS_JOINTS = {
    "zero effort": (
        {"limit": '<limit lower="-1" upper="1" effort="0" velocity="1"/>'},
        "joint 'j': <limit effort> is 0",
    ),
    "no velocity": (
        {"limit": '<limit lower="-1" upper="1" effort="1" velocity="0"/>'},
        "<limit velocity> of j is 0",
    ),
    "no range": (
        {"limit": '<limit effort="1" velocity="1"/>'},
        "lower and upper of j are the same",
    ),
    "no limit": ({"kind": "continuous", "limit": ""}, "j have no <limit>"),
    "safety controller": (
        {"extra": '<safety_controller k_velocity="1"/>'},
        "j have a <safety_controller>",
    ),
}


@pytest.mark.parametrize("name", SUSPICIOUS_JOINTS)
def test_suspicious_joint_is_warned_of_once(name: str) -> None:
    changes, words = SUSPICIOUS_JOINTS[name]
    urdf = robot(link("base"), link("arm"), joint("j", "base", "arm", **changes))
    with pytest.warns(RobotModelWarning, match=words) as caught:
        RobotModel.from_urdf_string(urdf)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a locked joint is nobody's concern
        RobotModel.from_urdf_string(urdf, joints=[])


def test_joint_that_cannot_be_controlled_may_be_locked() -> None:
    urdf = robot(
        link("base"),
        link("a"),
        link("b"),
        joint("floating", "base", "a", "floating", limit=""),
        joint("j", "a", "b"),
    )
    model = RobotModel.from_urdf_string(urdf, ["j"])
    assert model.merged_joints == ("floating",)


def chain_of_mimics() -> list[Joint]:
    z = (0, 0, 1)
    return [
        Joint("a", "revolute", "w", "l1", axis=z),
        Joint("b", "revolute", "l1", "l2", axis=z, mimic=Mimic("a", 2.0)),
        Joint("c", "revolute", "l2", "l3", axis=z, mimic=Mimic("b", 3.0, 0.1)),
    ]


@pytest.mark.parametrize(
    ("chosen", "locked", "q", "c"),
    [
        (None, {}, [0.5], 3.1),
        (["a", "b"], {}, [0.5, 0.1], 0.4),
        (["b"], {}, [0.1], 0.4),
        (["b"], {"a": 0.2}, [0.1], 0.4),
        (["a"], {"b": 0.1}, [0.15], 0.4),
        ([], {"a": 0.5}, [], 3.1),
    ],
)
def test_mimic_follows_what_its_leader_really_does(chosen, locked, q, c) -> None:
    inertias = dict.fromkeys(("l1", "l2", "l3"), np.eye(4))
    description = description_from_joints("chain", chain_of_mimics(), inertias)
    model = RobotModel(description, chosen, locked)
    poses = np.zeros((4, 4, 4))
    forward_kinematics(model, Workspace(model), np.array(q, dtype=float), poses)
    l2, l3 = (poses[model.link_names.index(link)][:3, :3] for link in ("l2", "l3"))
    turned = l2.T @ l3
    assert math.atan2(turned[1, 0], turned[0, 0]) == pytest.approx(c)


@pytest.mark.parametrize("ratio", [2.0, -0.5])
def test_leader_feels_the_friction_of_its_followers(ratio: float) -> None:
    z = (0, 0, 1)
    joints = [
        Joint("a", "revolute", "w", "l1", axis=z, damping=3.0, friction=0.5),
        Joint(
            "b", "revolute", "l1", "l2", axis=z, damping=2.0, friction=1.0, mimic=Mimic("a", ratio)
        ),
    ]
    inertias = dict.fromkeys(("l1", "l2"), np.eye(4))
    model = RobotModel(description_from_joints("pair", joints, inertias))
    # The power that both lose, at a rate of a so high that both slide.
    rate = 4.0
    lost = (3.0 * rate + 0.5) * rate + (2.0 * abs(ratio) * rate + 1.0) * abs(ratio) * rate
    tau = friction(model, Workspace(model), np.array([rate]), np.zeros(1))
    assert tau[0] * rate == pytest.approx(lost)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_friction_of_no_certain_direction_is_warned_of(kind: str) -> None:
    extra = '<dynamics damping="2" friction="1"/>'
    urdf = robot(link("base"), link("a"), joint("j", "base", "a", kind, limit="", extra=extra))
    with pytest.warns(RobotModelWarning, match="<dynamics> and <limit> of j are not used"):
        RobotModel.from_urdf_string(urdf)


def test_link_made_in_python_that_no_body_can_be_is_warned_of() -> None:
    joints = [Joint("a", "revolute", "w", "arm"), Joint("b", "fixed", "arm", "hand")]
    good = pseudo_inertia(100.0, np.zeros(3), np.eye(3))
    bad = {
        "mass is -1 kg": pseudo_inertia(-1.0, np.zeros(3), np.eye(3)),
        "an inertia but no mass": pseudo_inertia(0.0, np.zeros(3), np.eye(3)),
        "not positive definite": pseudo_inertia(1.0, np.ones(3), -np.eye(3)),
        "triangle inequality": pseudo_inertia(1.0, np.ones(3), np.diag([1.0, 1.0, 3.0])),
    }
    for words, inertia in bad.items():
        for link_name in ("hand", "w"):
            with pytest.warns(RobotModelWarning, match=f"link '{link_name}'.*{words}"):
                RobotModel.from_joints("arm", joints, {"arm": good, link_name: inertia})


BAD_JOINTS = {
    "rotation": ({"rotation": np.ones((3, 3))}, "rotation is .* not a rotation matrix"),
    "mirror": ({"rotation": np.diag([1, 1, -1])}, "rotation is .* not a rotation matrix"),
    "translation": ({"translation": [math.nan, 0, 0]}, "translation is .* finite numbers"),
    "short translation": ({"translation": [1.0]}, "translation is .* shape"),
    "axis in words": ({"axis": "z"}, "axis is z"),
    "pitch": ({"pitch": math.nan}, "pitch is nan"),
    "armature": ({"armature": -1.0}, "armature is -1"),
    "endless armature": ({"armature": math.inf}, "armature is inf; it must be finite"),
    "limits": ({"lower": 1.0, "upper": -1.0}, "lower 1.0 is above upper -1.0"),
    "ratio": ({"mimic": Mimic("k", math.inf)}, "multiplier is inf"),
    "type": ({"type": "magic"}, "its type is 'magic'"),
}


@pytest.mark.parametrize("name", BAD_JOINTS)
def test_bad_joint_is_refused(name: str) -> None:
    changes, words = BAD_JOINTS[name]
    arguments = {"name": "j", "type": "helical", "parent": "w", "child": "l", **changes}
    with pytest.raises(RobotModelError, match=words):
        Joint(**arguments)


BAD_PAYLOADS = {
    "mass in words": (("x",), "the payload has mass 'x', .* they must be numbers"),
    "centre in words": ((1.0, "abc"), "centre of mass 'abc' .* they must be numbers"),
    "no centre": ((1.0, None), "centre of mass None .* they must be numbers"),
    "negative mass": ((-1.0,), r"mass -1\.0 kg, .* the mass not negative"),
    "NaN mass": ((math.nan,), "mass nan kg, .* all must be finite"),
    "short centre": ((1.0, [0.0, 0.0]), r"centre of mass has shape \(2,\) .* must be \(3,\)"),
    "small inertia": ((1.0, np.zeros(3), np.eye(2)), r"its inertia \(2, 2\); .* and \(3, 3\)"),
    "no mass": ((0.0, np.zeros(3), np.eye(3)), "no mass but an inertia"),
    "not symmetric": ((1.0, np.zeros(3), np.eye(3) + np.eye(3, k=1)), "is not symmetric"),
    "negative inertia": ((1.0, np.zeros(3), -np.eye(3)), "belongs to no real body"),
    "broken triangle": ((1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0])), "belongs to no real body"),
}


@pytest.mark.parametrize("name", BAD_PAYLOADS)
def test_bad_payload_is_refused(name: str) -> None:
    payload, words = BAD_PAYLOADS[name]
    model = RobotModel.from_urdf_string(two_link_arm())
    before = model.bodies.copy()
    with pytest.raises(RobotModelError, match=words):
        model.set_payload("lower", *payload)
    np.testing.assert_array_equal(model.bodies, before)


def test_payloads_of_links_of_one_body_add_up() -> None:
    """As links with them as their inertials would; the next one on a link replaces the last."""
    chain = [
        joint("j", "base", "arm", axis=(0, 1, 0)),
        joint("f", "arm", "tool", "fixed", xyz=(0.5, 0.2, 0.0), rpy=(0.3, 0.0, 0.7)),
    ]
    empty = robot(link("base"), link("arm"), '<link name="tool"/>', *chain)
    tool = link("tool", 2.0, (0.1, 0.0, 0.3), (0.02, 0.0, 0.0, 0.03, 0.0, 0.04))
    full = robot(link("base"), link("arm"), tool, *chain)
    model, expected = RobotModel.from_urdf_string(empty), RobotModel.from_urdf_string(full)
    model.set_payload("tool", 7.0)
    model.set_payload("arm", 3.0, (0.0, 0.0, 1.0))
    model.set_payload("tool", 2.0, (0.1, 0.0, 0.3), np.diag([0.02, 0.03, 0.04]))
    expected.set_payload("arm", 3.0, (0.0, 0.0, 1.0))
    np.testing.assert_allclose(model.bodies[1:], expected.bodies[1:], rtol=1e-14, atol=1e-15)
    assert model.total_mass == pytest.approx(7.0)


def test_armature_of_each_freedom_stands_in_its_own_row() -> None:
    """The torque for an acceleration of 1 of one freedom alone, with and without rotors."""
    joints = [
        Joint("ball", "spherical", "w", "a"),
        Joint("cylinder", "cylindrical", "a", "b"),
        Joint("hinge", "revolute", "b", "c"),
    ]
    body = pseudo_inertia(1.0, np.array([0.1, 0.2, 0.3]), np.eye(3))
    model = RobotModel.from_joints("arm", joints, dict.fromkeys("abc", body))
    q, rest = model.random(np.random.default_rng(0)), np.zeros(model.nv)
    plain = np.array([torques(model, q, rest, e) for e in np.eye(model.nv)])
    model.armature = rotors = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    geared = np.array([torques(model, q, rest, e) for e in np.eye(model.nv)])
    np.testing.assert_allclose(geared - plain, np.diag(rotors), rtol=0.0, atol=1e-12)


def test_payload_on_an_unknown_link_is_refused() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    with pytest.raises(RobotModelError, match=r"link is 'hand'; .* has base, upper, lower"):
        model.set_payload("hand", 1.0)
