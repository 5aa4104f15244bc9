"""What is said about real robots is true, and what is unusual but right is not mentioned."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import pytest
from robots import example_robots, joint, link, load_quietly, robot

from rnea_control.model import RobotModel, RobotModelWarning

NOT_URDF = "not of URDF; nothing that the dynamics need"
SAFETY = "the joints have that tag"
ZERO_LIMIT = "the file says so"
ALL_THE_SAME = (
    "all six numbers are 1e-6 (hatch: 0.001); no body has products as large as its moments"
)

UR5_ROBOTS = ("ur5_gripper", "ur5_joint_limited_robot", "ur5_robot")
UR5 = "0.034 kg m^2; 0.19 kg within the wrist's radius of 3.75 cm have 1.3e-4, as a cylinder"

# What is said, robot by robot: the start of the sentence, and why it is true.
SAID = {
    "alex_psyonic_hands": {
        "links 'LeftPsyonicAbilityBaseLink', 'Left_thumb_base', 'RightPsyonicAbilityBaseLink', "
        "'Right_thumb_base': the principal moments": "2.7e-4 + 1.0e-3 < "
        "1.4e-3; a comment says that those of the thumbs are NOT correct",
        "what is mimicked is no joint: Left_index_q2 ('index_q1'), Left_middle_q2 ('middle_q1'), "
        "Left_ring_q2 ('ring_q1'), Left_pinky_q2 ('pinky_q1'), Right_index_q2 ": "the joints are "
        "Left_index_q1, ...",
    },
    "allegro_left_hand": {
        "links 'link_11.0', 'link_7.0', 'link_3.0', 'link_15.0': the principal moments": "8.2e-6 + "
        "2.8e-5 < 4.4e-5"
    },
    "allegro_right_hand": {
        "links 'link_3.0', 'link_7.0', 'link_11.0', 'link_15.0': the principal moments": "the same"
    },
    "anymal-kinova": {
        "unknown and ignored: attribute 'command_effort' of <limit>; attribute 'current'": NOT_URDF,
        "link 'base': the principal moments of inertia 0, 0, 3e-06": ALL_THE_SAME,
    },
    "robots/anymal": {
        "unknown and ignored: attribute 'command_effort' of <limit>; attribute 'current'": NOT_URDF,
        "link 'base': the principal moments of inertia 0, 0, 3e-06": ALL_THE_SAME,
    },
    "urdf/anymal": {
        "unknown and ignored: tag <self_filter> in <link>": NOT_URDF,
        "links 'depth_camera_front_camera', 'depth_camera_rear_camera', "
        "'depth_camera_left_camera', 'depth_camera_right_camera': the principal moments": "9e-6 + "
        "7e-4 < 1.4e-3",
        "link 'hatch': the principal moments of inertia 0, 0, 0.003": ALL_THE_SAME,
    },
    "b1-z1": {"link 'base': the principal moments of inertia 0, 0, 3e-06": ALL_THE_SAME},
    "b1": {"link 'base': the principal moments of inertia 0, 0, 3e-06": ALL_THE_SAME},
    "baxter": {
        "links 'left_gripper_base_link', 'right_gripper_base_link': 0.3 kg with a radius": "3e-8 "
        "kg m^2; a ball of tungsten has 2.9e-5",
        "<limit effort> of head_pan is up to 50000 Nm": "its arms have 50 Nm",
    },
    "bolt": {"links 'FL_FOOT', 'FR_FOOT': an inertia but no mass": "8.4e-7 kg m^2, 0 kg"},
    "centauro": {
        "<limit> lower and upper of j_wheel_1, j_wheel_2, j_wheel_3, j_wheel_4": "revolute, and "
        'a comment says "actually continuous"'
    },
    "double_pendulum": {
        "<limit velocity> of joint1, joint2 is 0": ZERO_LIMIT,
        "<limit> lower and upper of joint1, joint2 are the same": ZERO_LIMIT,
        "joints 'joint1', 'joint2': <limit effort> is 0": ZERO_LIMIT,
    },
    "double_pendulum_continuous": {
        "<limit velocity> of joint1, joint2 is 0": ZERO_LIMIT,
        "joints 'joint1', 'joint2': <limit effort> is 0": ZERO_LIMIT,
    },
    "double_pendulum_simple": {
        "<limit velocity> of joint1, joint2 is 0": ZERO_LIMIT,
        "<limit> lower and upper of joint1, joint2 are the same": ZERO_LIMIT,
        "joints 'joint1', 'joint2': <limit effort> is 0": ZERO_LIMIT,
    },
    "g1_29dof_rev_1_0": {
        "unknown and ignored: attribute 'dont_collapse' of <joint>": NOT_URDF,
    },
    "go1": {"link 'base': the principal moments of inertia 0, 0, 3e-06": ALL_THE_SAME},
    "go2": {"unknown and ignored: attribute 'dont_collapse' of <joint>": NOT_URDF},
    "hyq_no_sensors": {
        "links 'base_link', 'lf_foot', 'rf_foot', 'lh_foot', 'rh_foot': the principal "
        "moments of inertia 0, 0, 3e-06": ALL_THE_SAME,
        "lf_haa_joint, lf_hfe_joint, lf_kfe_joint, ": SAFETY,
    },
    "icub": {
        "links 'head', 'l_ankle_2', 'l_wrist_1', 'neck_1', 'neck_2', 'r_ankle_1', 'r_ankle_2', "
        "'r_hip_1', 'r_hip_2', 'r_lower_leg' and 2 more: the inertia is 0": "the numbers are 0, or "
        "1e-18 for rounding"
    },
    "icub_reduced": {
        "links 'head', 'l_ankle_2', 'l_wrist_1', 'r_ankle_1', 'r_ankle_2', 'r_hip_1', 'r_hip_2', "
        "'r_lower_leg', 'r_upper_leg', 'r_wrist_1': the inertia is 0": "the same"
    },
    "iris": {
        "<limit velocity> of iris__rotor_0_joint, ": ZERO_LIMIT,
        "joints 'iris__rotor_0_joint', 'iris__rotor_1_joint', 'iris__rotor_2_joint', "
        "'iris__rotor_3_joint': <limit effort> is 0": ZERO_LIMIT,
        "links 'iris__rotor_0', 'iris__rotor_1', 'iris__rotor_2', 'iris__rotor_3': the inertia is "
        "about 520 times": "5 g within 0.128 m cannot have a radius of gyration of 0.234 m",
    },
    "panda": {
        "unknown and ignored: attribute 'D' of <dynamics>; attribute 'K' of <dynamics>": NOT_URDF,
        "panda_joint1, panda_joint2, panda_joint3, ": SAFETY,
    },
    "panda_collision": {
        "unknown and ignored: attribute 'D' of <dynamics>; attribute 'K' of <dynamics>": NOT_URDF,
        "panda_joint1, panda_joint2, panda_joint3, ": SAFETY,
    },
    "pr2": {
        "links 'sensor_mount_link', 'double_stereo_link': the principal moments": "0.001 + 0.001 < "
        "0.01",
        "torso_lift_joint, head_pan_joint, head_tilt_joint, ": SAFETY,
    },
    "quadruped": {
        "<limit> lower and upper of FL_KFE, FR_KFE, BL_KFE, BR_KFE are the same": "none is given",
        "links 'FL_contact', 'FR_contact', 'BL_contact', 'BR_contact': the inertia is 0": "10 g, a "
        "third of the lower leg, without an inertia",
    },
    "romeo": {
        "<limit velocity> of LHand, RHand is 0": ZERO_LIMIT,
        "links 'LFinger11Link', 'RFinger11Link', 'LFinger12Link', 'LFinger13Link', ": "all numbers "
        "of the fingers are 0",
        "joints 'LHand', 'RHand': <limit effort> is 0": ZERO_LIMIT,
    },
    "romeo_laas_small": {
        "links 'LShoulderYaw_link', 'LElbowYaw_link': the principal moments": "1.9e-4 + 1.2e-3 < "
        "1.6e-3",
        "links 'body', 'LHipPitch_link', 'RHipPitch_link': the inertia is not positive "
        "definite": "ixz^2 > ixx izz",
        "links 'l_gripper', 'r_gripper' move but have no inertia": "they have no <inertial>",
    },
    "romeo_small": {
        "links 'RShoulderYawLink', 'RElbowYawLink': the principal moments": "6.6e-4 + 6.8e-4 < "
        "6.5e-3"
    },
    "simple_humanoid": {
        "unknown and ignored: tag <collision_checking> in <link>": NOT_URDF,
        "links 'LARM_LINK2', 'LARM_LINK3', 'LARM_LINK4', 'LARM_LINK5', 'LARM_LINK6', 'l_wrist', "
        "'RARM_LINK2', 'RARM_LINK3', 'RARM_LINK4', 'RARM_LINK5' and 6 more: the inertia is about "
        "650 times": "1 kg m^2 for 0.4 kg of forearm and wrist, as of a ring of 3 m",
    },
    "simple_humanoid_classical": {
        "links 'LARM_LINK2', 'LARM_LINK3', 'LARM_LINK4', 'LARM_LINK5', 'LARM_LINK6', 'l_wrist', "
        "'RARM_LINK2', 'RARM_LINK3', 'RARM_LINK4', 'RARM_LINK5' and 6 more: the inertia is about "
        "650 times": "the same",
    },
    "so101": {"unknown and ignored: tag <origin> in <link>": NOT_URDF},
    "tiago": {
        "links 'base_antenna_left_link', 'base_antenna_right_link': the inertia is not positive "
        "definite": "ixy is larger than ixx and iyy",
        "torso_lift_joint, head_1_joint, head_2_joint, ": SAFETY,
        "links 'arm_tool_link', 'wrist_ft_link', 'wrist_ft_tool_link': the inertia is 0": "0.1 kg "
        "each without an inertia",
    },
    "tiago_dual": {
        "unknown and ignored: tag <kinematic> in <link>; tag <gravity> in <link>": NOT_URDF,
        "links 'base_antenna_left_link', 'base_antenna_right_link': the inertia is not positive "
        "definite": "as tiago",
        "suspension_right_joint, suspension_left_joint, torso_lift_joint, ": SAFETY,
        "caster_front_right_1_joint, caster_front_right_2_joint, ": "they have none",
    },
    "tiago_no_hand": {
        "links 'base_antenna_left_link', 'base_antenna_right_link': the inertia is not positive "
        "definite": "as tiago",
        "torso_lift_joint, head_1_joint, head_2_joint, ": SAFETY,
        "links 'arm_tool_link', 'wrist_ft_link', 'wrist_ft_tool_link': the inertia is 0": "same",
    },
    "tiago_pro": {
        "unknown and ignored: tag <kinematic> in <link>; tag <gravity> in <link>; tag <surface> in "
        "<link>": NOT_URDF,
        "torso_lift_joint, head_1_joint, head_2_joint, ": SAFETY,
    },
    **{name: {"link 'wrist_3_link': the inertia is about 150 times": UR5} for name in UR5_ROBOTS},
}
UNNAMED = "urdf/ur3"  # refused: its <robot> has no name


@pytest.mark.parametrize("path", example_robots(), ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_all_that_is_said_about_a_real_robot_is_true(path: Path) -> None:
    if str(path.with_suffix("")).endswith(UNNAMED):
        pytest.skip("its <robot> has no name")
    said = [sentence.removeprefix(f"{path}: ") for sentence in load_quietly(path).warnings]
    names = (path.stem, f"{path.parts[-2]}/{path.stem}")
    expected = next((SAID[name] for name in names if name in SAID), {})
    assert len(said) == len(expected), said
    for sentence, start in zip(said, expected, strict=True):
        assert sentence.startswith(start), sentence


def test_frame_without_mass_between_two_joints_is_no_fault() -> None:
    """As in a universal joint made of two revolute ones."""
    quiet(robot(link("base"), '<link name="cross"/>', link("arm"), *chain("base", "cross", "arm")))


def chain(*links: str, xyz=(0.0, 0.0, 0.3), **changes) -> list[str]:
    return [
        joint(f"j{i}", parent, child, xyz=xyz, **changes)
        for i, (parent, child) in enumerate(itertools.pairwise(links))
    ]


def quiet(urdf: str, **arguments) -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RobotModelWarning)
        return RobotModel.from_urdf_string(urdf, **arguments)


def rod(name: str, mass: float, length: float) -> str:
    """A thin rod along x, from the link's origin."""
    I = mass * length**2 / 12.0  # noqa: E741
    return link(name, mass, (length / 2.0, 0, 0), (1e-6 * mass, 0, 0, I, 0, I))


def ball(name: str, mass: float, radius: float) -> str:
    I = 0.4 * mass * radius**2  # noqa: E741
    return link(name, mass, inertia=(I, 0, 0, I, 0, I))


def limit(lower: float, upper: float, effort: float, velocity: float) -> str:
    return f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/>'


UNUSUAL = {
    "pole on a cart": robot(
        link("rail"),
        link("cart"),
        rod("pole", 0.1, 1.0),
        joint("slide", "rail", "cart", "prismatic", limit=limit(-2.4, 2.4, 100, 10)),
        joint("hinge", "cart", "pole", "continuous", limit=""),
    ).replace('"hinge" type="continuous">', '"hinge" type="continuous">' + limit(0, 0, 10, 10)),
    "crane with booms of seven metres": robot(
        link("base"),
        rod("boom", 250.0, 7.0),
        rod("jib", 100.0, 7.0),
        rod("hook", 30.0, 1.0),
        *chain("base", "boom", "jib", "hook", xyz=(7.0, 0, 0), limit=limit(-3, 3, 60e3, 1)),
    ),
    "flywheel of tungsten": robot(
        link("base"),
        ball("wheel", 4.0, 0.0368),
        joint("j", "base", "wheel", limit=limit(-3, 3, 5, 50)),
    ),
    "tube of carbon fibre": robot(
        link("base"),
        rod("tube", 0.02, 1.5),
        joint("j", "base", "tube", limit=limit(-3, 3, 5, 50)),
    ),
    "gripper of four grams": robot(
        ball("palm", 0.004, 0.01),
        *(rod(f"finger{i}", 2e-4, 0.01) for i in range(4)),
        *(
            joint(f"j{i}", "palm", f"finger{i}", xyz=(5e-3, 0, 0), limit=limit(0, 1.5, 1e-3, 20))
            for i in range(4)
        ),
    ),
    "strong motor on a test bench": robot(
        link("base"),
        rod("arm", 0.2, 0.2),
        joint("j", "base", "arm", xyz=(0, 0, 0.1), limit=limit(-3, 3, 87, 3)),
    ),
    "table that turns a heavy load about the vertical": robot(
        link("base"),
        link("table", 40.0, inertia=(3.0, 0, 0, 3.0, 0, 5.0)),
        link("load", 300.0, (0.8, 0, 0.5), (20.0, 0, 0, 20.0, 0, 20.0)),
        joint("pan", "base", "table", limit=limit(-3, 3, 20, 1)),
        joint("fixed", "table", "load", "fixed", xyz=(0.5, 0, 0)),
    ),
    "heavy pedestal": robot(
        link("granite", 2000.0, inertia=(100.0, 0, 0, 100.0, 0, 100.0)),
        *(rod(name, 2.0, 0.3) for name in "abc"),
        *chain("granite", *"abc", xyz=(0.3, 0, 0)),
    ),
    "heavy base on wheels": robot(
        link("base", 70.0, inertia=(2.0, 0, 0, 2.0, 0, 3.0)),
        *(ball(name, 1.0, 0.06) for name in ("left", "right")),
        *(
            joint(name, "base", name, "continuous", xyz=(0.2, 0, 0), limit=limit(0, 0, 9, 17))
            for name in ("left", "right")
        ),
    ),
    "ten turns": robot(
        link("base"), link("wrist"), *chain("base", "wrist", limit=limit(-62.83, 62.83, 9, 9))
    ),
    "no limit in a round number": robot(
        link("base"), link("wrist"), *chain("base", "wrist", limit=limit(-1e4, 1e4, 1000, 1000))
    ),
    "rail of twelve metres": robot(
        link("base"),
        link("cart"),
        joint("j", "base", "cart", "prismatic", limit=limit(0, 12.0, 800, 3)),
    ),
    "inertia that is only known about the axis": robot(
        link("base"),
        link("arm", 2.0, (0, 0, 0.1), (0.01, 0.001, 0, 0.01, 0.002, 0.012)),
        *chain("base", "arm"),
    ),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_robot_is_not_warned_of(name: str) -> None:
    quiet(UNUSUAL[name])
    quiet(UNUSUAL[name], floating_base=True)


def test_one_warning_names_all_links_with_the_same_fault() -> None:
    names = [f"link{i}" for i in range(14)]
    bad = (0.1, 0, 0, 0.1, 0, 0.3)
    urdf = robot(link("base"), *(link(name, inertia=bad) for name in names), *chain("base", *names))
    with pytest.warns(RobotModelWarning, match="links 'link0', 'link1', .* and 4 more: ") as caught:
        RobotModel.from_urdf_string(urdf)
    assert len(caught) == 1
