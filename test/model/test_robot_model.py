"""What a URDF becomes: order, limits, defaults, merged links, notes; and rotations."""

from __future__ import annotations

import math

import numpy as np
import planar_arm
import pytest
from robots import example_robot, joint, link, load_quietly, robot, two_link_arm

from rnea_control.dynamics import Workspace, forward_kinematics, friction, gravity, rnea
from rnea_control.exceptions import JointError
from rnea_control.model import (
    Joint,
    Mimic,
    RobotModel,
    RobotModelError,
    RobotModelWarning,
    pseudo_inertia,
    rigid_body,
)
from rnea_control.model.robot_description import description_from_joints


@pytest.fixture
def arm() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def torques(model: RobotModel, q, v, a) -> np.ndarray:
    vectors = [np.array(x, dtype=np.float64) for x in (q, v, a)]
    return rnea(model, Workspace(model), *vectors, np.zeros(model.nv))


def test_attributes(arm: RobotModel) -> None:
    assert (arm.name, arm.root_link, arm.nq, arm.nv) == ("two_link_arm", "base", 2, 2)
    assert arm.joint_names == ("shoulder", "elbow") and arm.child_links == ("upper", "lower")
    assert arm.joint_types == ("revolute", "revolute")
    limits = [arm.lower, arm.upper, arm.effort_limit, arm.velocity_limit]
    np.testing.assert_array_equal(limits, [[-3.0] * 2, [3.0] * 2, [100.0] * 2, [10.0] * 2])
    assert arm.total_mass == pytest.approx(4.5)
    assert arm.notes == ()
    # They cannot be changed by accident.
    for name in ("effort_limit", "gravity", "armature", "damping", "friction", "torque_offset"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(arm, name)[0] = 5.0
    before, arm.damping = arm.damping, [5.0, 6.0]
    assert arm.damping.tolist() == [5.0, 6.0] and before.tolist() == [0.0, 0.0]


def test_joints_pick_and_order(arm: RobotModel) -> None:
    reversed_ = RobotModel.from_urdf_string(two_link_arm(), ["elbow", "shoulder"])
    q, v, a = np.random.default_rng(1).standard_normal((3, 2))
    tau = torques(arm, q, v, a)
    np.testing.assert_allclose(torques(reversed_, q[::-1], v[::-1], a[::-1]), tau[::-1], rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "position"), [("revolute", 0.0), ("revolute", 0.7), ("prismatic", 0.7)]
)
def test_locked_joint_is_merged_inertia_and_all(kind: str, position: float) -> None:
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


def test_axis_and_origin_have_the_defaults_of_urdf_and_any_length() -> None:
    bare = '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>'
    axes = (1, 0, 0), (7, 0, 0)
    written = [joint("j", "base", "arm", "continuous", axis, limit="") for axis in axes]
    body = link("arm", 2.0, (0.1, 0.2, 0.3))
    load = RobotModel.from_urdf_string
    default, *others = (load(robot(link("base"), body, each)) for each in (bare, *written))
    for other in others:
        np.testing.assert_allclose(other.bodies, default.bodies, rtol=1e-15)
    assert default.effort_limit[0] == default.velocity_limit[0] == default.upper[0] == math.inf


def test_gravity_can_be_set(arm: RobotModel) -> None:
    q = np.array([0.3, 0.4])
    upright = planar_arm.gravity_torque(q)
    for z in (-9.81, 9.81, 0.0):
        arm.gravity = (0.0, 0.0, z)
        found = gravity(arm, Workspace(arm), q, np.zeros(2))
        np.testing.assert_allclose(found, -z / 9.81 * upright, rtol=1e-13)


def test_random_positions_are_within_the_limits_and_repeat() -> None:
    model = load_quietly(example_robot("panda"), floating_base=True)
    np.testing.assert_array_equal(model.neutral()[:7], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    rng = np.random.default_rng(0)
    for _ in range(50):
        q = model.random(rng)
        assert (model.lower <= q).all() and (q <= model.upper).all()
        assert math.isclose(float(np.linalg.norm(q[3:7])), 1.0)
    np.testing.assert_array_equal(*(model.random(np.random.default_rng(1)) for _ in range(2)))


def test_broken_shapes_and_foreign_tags_do_not_matter(arm, capfd) -> None:
    rubbish = (
        "<visual><geometry/></visual><collision><geometry><mesh/></geometry></collision>"
        '<visual><material name="m"><color rgba="1 2"/></material></visual>'
    )
    foreign = (
        '<transmission name="t"/><transmission><joint/></transmission><material/>'
        '<gazebo reference="nobody"><x/><sensor:camera name="${c}"/><xacro:if/></gazebo>'
        '<sensor name="s"/><custom_tag/><custom_tag/>'
        '<ros2_control name="a" type="system"><y/></ros2_control><xacro:arg name="x" default="2"/>'
        '<link name="tool"/><joint name="f" type="fixed"><parent link="lower"/><child link="tool"/>'
        '<axis xzy="0 0 1"/></joint>'
    )
    urdf = two_link_arm().replace("</inertial></link>", f"</inertial>{rubbish}</link>")
    with pytest.warns(RobotModelWarning) as caught:
        model = RobotModel.from_urdf_string(urdf.replace("</robot>", f"{foreign}</robot>"))
    unknown = (
        "tag <custom_tag> in <robot>; tag <xacro:arg> in <robot>, line 1, left over from xacro"
    )
    said = [f"robot_description: unknown and ignored: {unknown}"]
    assert [str(w.message) for w in caught] == said == list(model.notes)
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(model.bodies, arm.bodies)


def test_double_hyphens_in_comments_are_read_as_urdfdom_does(arm: RobotModel) -> None:
    comments = "<!-- a -- b\n--\n><!--- -->", "<!----- ---->"
    kept = '<custom_tag><![CDATA[<!-- a -- b -->]]></custom_tag>\n<link mass="${m}"/>'
    urdf = two_link_arm().replace("</robot>", "\n".join([*comments, "</robot>"]))
    with pytest.warns(RobotModelWarning, match="a comment holds '--', .* xacro and others refuse"):
        model = RobotModel.from_urdf_string(urdf)
    np.testing.assert_array_equal(model.bodies, arm.bodies)
    broken = urdf.replace("</robot>", f"{kept}</robot>")
    with pytest.raises(RobotModelError, match=r"of <link> in line 6; expand it first"):
        RobotModel.from_urdf_string(broken)


def test_rotor_inertias_of_other_programs_name_their_parameters(arm: RobotModel) -> None:
    drake = (
        '<transmission name="t"><joint name="elbow"/><actuator name="a"><drake:rotor_inertia '
        'value="1e-4"/><drake:gear_ratio value="100"/></actuator></transmission></robot>'
    )
    dynamics = '</limit><dynamics damping="0" armature="0.2"/>'
    urdf = two_link_arm().replace("</robot>", drake)
    urdf = urdf.replace('velocity="10"/>', f'velocity="10">{dynamics}', 1)
    with pytest.warns(RobotModelWarning) as caught:
        model = RobotModel.from_urdf_string(urdf)
    (words,) = map(str, (warning.message for warning in caught))
    assert "are not read; set the parameters" in words
    assert words.endswith("armature.shoulder 0.2, armature.elbow 1")
    np.testing.assert_array_equal(model.armature, arm.armature)


@pytest.mark.parametrize("character", ["&#10;", "&#13;", "&#9;", "&#x85;", "&#x202e;", "&#x7f;"])
@pytest.mark.parametrize("name", ["two_link_arm", "upper", "elbow"])
def test_names_without_a_line_of_their_own_are_refused(name: str, character: str) -> None:
    urdf = two_link_arm().replace(f'"{name}"', f'"{name}{character}[FATAL] x"')
    with pytest.raises(RobotModelError, match="line breaks or control characters") as caught:
        RobotModel.from_urdf_string(urdf)
    assert str(caught.value).isprintable()


def test_messages_stay_short_whatever_a_urdf_holds() -> None:
    long, urdf = "9" * 100_000, two_link_arm()
    for refused in ('"1.5"', '"upper"', '"elbow"'):
        with pytest.raises(RobotModelError) as caught:
            RobotModel.from_urdf_string(urdf.replace(refused, f'"{long}&#10;"'))
        assert len(str(caught.value)) < 500
    tags = "".join(f"<x{n}/>" for n in range(1000))
    attributes = f'<axis a{long}="1" '
    urdf = urdf.replace("</robot>", f"<x{long}/>{tags}</robot>").replace("<axis ", attributes, 1)
    with pytest.warns(RobotModelWarning) as warned:
        RobotModel.from_urdf_string(urdf)
    assert sum(len(str(each.message)) for each in warned) < 2000


def test_inertial_that_other_tools_lose_is_warned_of() -> None:
    urdf = robot(link("base"), link("arm"), joint("j", "base", "arm"))
    broken = urdf.replace('iyz="0"', 'iyz="0\n"')
    with pytest.warns(RobotModelWarning, match="links 'base', 'arm': white space") as caught:
        RobotModel.from_urdf_string(broken)
    assert len(caught) == 1
    assert RobotModel.from_urdf_string(urdf.replace('iyz="0"', 'iyz=" 0"')).notes == ()


def test_mimic_follows_what_its_leader_really_does() -> None:
    follows = {"b": Mimic("a", 2.0), "c": Mimic("b", 3.0, 0.1)}
    chain = zip("abc", ("w", "l1", "l2"), ("l1", "l2", "l3"), strict=True)
    joints = [Joint(n, "revolute", *links, mimic=follows.get(n)) for n, *links in chain]
    inertias = dict.fromkeys(("l1", "l2", "l3"), np.eye(4))
    description = description_from_joints("chain", joints, inertias)
    for chosen, locked, q, c in (
        (None, {}, [0.5], 3.1),
        (["a", "b"], {}, [0.5, 0.1], 0.4),
        (["b"], {}, [0.1], 0.4),
        (["b"], {"a": 0.2}, [0.1], 0.4),
        (["a"], {"b": 0.1}, [0.15], 0.4),
        ([], {"a": 0.5}, [], 3.1),
    ):
        model = RobotModel(description, chosen, locked)
        poses = np.zeros((4, 4, 4))
        forward_kinematics(model, Workspace(model), np.array(q, dtype=float), poses)
        l2, l3 = (poses[model.link_names.index(link)][:3, :3] for link in ("l2", "l3"))
        turned = l2.T @ l3  # about x
        assert math.atan2(turned[2, 1], turned[1, 1]) == pytest.approx(c)


@pytest.mark.parametrize("ratio", [2.0, -0.5])
def test_leader_feels_the_friction_of_its_followers(ratio: float) -> None:
    follows = {"damping": 2.0, "friction": 1.0, "mimic": Mimic("a", ratio)}
    leader = Joint("a", "revolute", "w", "l1", damping=3.0, friction=0.5)
    joints = [leader, Joint("b", "revolute", "l1", "l2", **follows)]
    model = RobotModel.from_joints("pair", joints, dict.fromkeys(("l1", "l2"), np.eye(4)))
    # The power that both lose, at a rate of a so high that both slide.
    rate = 4.0
    lost = (3.0 * rate + 0.5) * rate + (2.0 * abs(ratio) * rate + 1.0) * abs(ratio) * rate
    tau = friction(model, Workspace(model), np.array([rate]), np.zeros(1))
    assert tau[0] * rate == pytest.approx(lost)


def test_negative_mass_made_in_python_is_warned_of() -> None:
    """In a URDF it is an error. What else no body can be: plausibility/test_planted_mistakes.py."""
    joints = [Joint("a", "revolute", "w", "arm"), Joint("b", "fixed", "arm", "hand")]
    good, bad = (pseudo_inertia(mass, np.zeros(3), np.eye(3)) for mass in (100.0, -1.0))
    for link_name in ("hand", "w"):
        with pytest.warns(RobotModelWarning, match=f"link '{link_name}'.*mass is -1 kg"):
            RobotModel.from_joints("arm", joints, {"arm": good, link_name: bad})


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[2J"])
def test_joint_without_a_printable_name_is_refused(name: str) -> None:
    for names in ((name, "base", "arm"), ("j", name, "arm"), ("j", "base", name)):
        with pytest.raises(RobotModelError, match="a name without line breaks") as caught:
            Joint(names[0], "revolute", *names[1:])
        assert str(caught.value).isprintable()
    with pytest.raises(RobotModelError, match="a name without line breaks"):
        RobotModel.from_joints(name, [Joint("j", "revolute", "base", "arm")], {})


def test_bad_joint_is_refused() -> None:
    for changes, words in (
        ({"rotation": np.ones((3, 3))}, "rotation is .* not a rotation matrix"),
        ({"rotation": np.diag([1, 1, -1])}, "rotation is .* not a rotation matrix"),
        ({"translation": [math.nan, 0, 0]}, "translation is .* finite numbers"),
        ({"translation": [1.0]}, "translation is .* shape"),
        ({"axis": "z"}, "axis is z"),
        ({"pitch": math.nan}, "pitch is nan"),
        ({"armature": -1.0}, "armature is -1"),
        ({"armature": math.inf}, "armature is inf; it must be finite"),
        ({"lower": 1.0, "upper": -1.0}, "lower 1 is above upper -1"),
        ({"mimic": Mimic("k", math.inf)}, "multiplier is inf"),
        ({"type": "magic"}, "its type is 'magic'"),
    ):
        arguments = {"name": "j", "type": "helical", "parent": "w", "child": "l", **changes}
        with pytest.raises(JointError, match=words):
            Joint(**arguments)


def test_bad_payload_is_refused(arm: RobotModel) -> None:
    before = arm.bodies.copy()
    for name, payload, words in (
        ("lower", ("x",), "the payload has mass 'x', .* they must be finite numbers"),
        ("lower", (1.0, None), "center of mass None .* they must be finite numbers"),
        ("lower", (-1.0,), r"mass -1\.0, .* the mass not negative"),
        ("lower", (1.0, [0.0, 0.0]), r"center of mass \[0\.0, 0\.0\] .* of shapes \(\), \(3,\)"),
        ("lower", (1.0, np.zeros(3), np.eye(2)), r"inertia \[\[1\.0, 0\.0\], .* and \(3, 3\)"),
        ("lower", (0.0, np.zeros(3), np.eye(3)), "no mass but an inertia"),
        ("lower", (1.0, np.zeros(3), np.eye(3) + np.eye(3, k=1)), "is not symmetric"),
        ("lower", (1.0, np.zeros(3), -np.eye(3)), "belongs to no real body"),
        ("hand", (1.0,), r"link is 'hand'; .* has base, upper, lower"),
    ):
        with pytest.raises(RobotModelError, match=words):
            arm.set_payload(name, *payload)
        np.testing.assert_array_equal(arm.bodies, before)


def test_payloads_of_links_of_one_body_add_up() -> None:
    """As links with them as their inertials would; the next one on a link replaces the last."""
    place = {"xyz": (0.5, 0.2, 0.0), "rpy": (0.3, 0.0, 0.7)}
    chain = joint("j", "base", "arm", axis=(0, 1, 0)), joint("f", "arm", "tool", "fixed", **place)
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
    types = ("spherical", "w", "a"), ("cylindrical", "a", "b"), ("revolute", "b", "c")
    joints = [Joint(f"{kind} joint", kind, *links) for kind, *links in types]
    body = pseudo_inertia(1.0, np.array([0.1, 0.2, 0.3]), np.eye(3))
    model = RobotModel.from_joints("arm", joints, dict.fromkeys("abc", body))
    q, rest = model.random(np.random.default_rng(0)), np.zeros(model.nv)
    plain = np.array([torques(model, q, rest, e) for e in np.eye(model.nv)])
    model.armature = rotors = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    geared = np.array([torques(model, q, rest, e) for e in np.eye(model.nv)])
    np.testing.assert_allclose(geared - plain, np.diag(rotors), rtol=0.0, atol=1e-12)


RNG = np.random.default_rng(5)


def is_rotation(R: np.ndarray) -> bool:
    return np.allclose(R @ R.T, np.eye(3), atol=1e-14) and np.linalg.det(R) > 0


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), *RNG.standard_normal((3, 3))])
def test_rotation_to_z_turns_z_into_the_axis(axis: np.ndarray) -> None:
    axis = axis / np.linalg.norm(axis)
    R = rigid_body.rotation_to_z(axis)
    assert is_rotation(R)
    np.testing.assert_allclose(R @ [0, 0, 1], axis, atol=1e-15)
    if np.count_nonzero(axis) == 1:
        assert set(np.abs(R).ravel()) == {0.0, 1.0}


@pytest.mark.parametrize(
    "rpy", [*RNG.uniform(-1.5, 1.5, (3, 3)), (0.3, np.pi / 2, 0.4), (0.3, -np.pi / 2, 0.4)]
)
def test_rpy_is_about_fixed_axes_roll_first_and_back(rpy) -> None:
    R = rigid_body.rotation_from_rpy(np.array(rpy))
    roll, pitch, yaw = map(rigid_body.rotation_about_axis, np.eye(3), rpy)
    np.testing.assert_allclose(R, yaw @ pitch @ roll, atol=1e-15)
    assert is_rotation(R)
    again = rigid_body.rotation_from_rpy(rigid_body.rpy_from_rotation(R))
    np.testing.assert_allclose(again, R, atol=1e-15)
