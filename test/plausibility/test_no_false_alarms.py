"""What is said about real robots is true, and what is unusual but right is not mentioned."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from robots import example_robots, joint, link, load_quietly, robot

from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly
from rnea_control.plausibility import suspicions

NOT_URDF = "not of URDF; nothing that the dynamics need"
SAFETY = "the joints have that tag"
ZERO_LIMIT = "the file says so"
# All six numbers are 1e-6 (hatch: 0.001); no body has products as large as its moments.
ALL_THE_SAME = "link '(base|hatch)': the principal moments of inertia 0, 0, (3e-06|0.003)"
IGNORED = "unknown and ignored: "
PRINCIPAL = ".*: the principal moments"
UR5_ROBOTS = ("ur5_gripper", "ur5_joint_limited_robot", "ur5_robot")
UR5 = "0.034 kg m^2; 0.19 kg within the wrist's radius of 3.75 cm have 1.3e-4, as a cylinder"
PANDA = {
    IGNORED + "attribute 'D' of <dynamics>; attribute 'K' of <dynamics>": NOT_URDF,
    "panda_joint1, panda_joint2, panda_joint3, ": SAFETY,
}
NO_VELOCITY = {"<limit velocity> of joint1, joint2 is 0": ZERO_LIMIT}
NO_RANGE = {"<limit> lower and upper of joint1, joint2 are the same": ZERO_LIMIT}
NO_EFFORT = {"joints 'joint1', 'joint2': <limit effort> is 0": ZERO_LIMIT}
COMMAND_EFFORT = {IGNORED + "attribute 'command_effort' of <limit>; attribute 'current'": NOT_URDF}
COLLAPSE = {IGNORED + "attribute 'dont_collapse' of <joint>": NOT_URDF}
HUMANOID = {
    "links 'LARM_LINK2', 'LARM_LINK3', .* and 6 more: the inertia is about 650 times": "1 kg m^2 "
    "for 0.4 kg of forearm and wrist, as of a ring of 3 m"
}
ANTENNA = {
    "links 'base_antenna_left_link', 'base_antenna_right_link': the inertia is not positive "
    "definite": "ixy is larger than ixx and iyy"
}
TOOL = {
    "links 'arm_tool_link', 'wrist_ft_link', 'wrist_ft_tool_link': the inertia is 0": "0.1 kg each "
    "without an inertia"
}
KINEMATIC = IGNORED + "tag <kinematic> in <link>; tag <gravity> in <link>"
AT_ZERO = {"the centers of mass of all links that move are at 0 0 0": "those of all finger links"}
HEAD = "torso_lift_joint, head_1_joint, head_2_joint, "

# What is said, robot by robot: the start of the sentence, and why it is true.
SAID = {
    "alex_psyonic_hands": {
        f"links 'LeftPsyonicAbilityBaseLink', 'Left_thumb_base'{PRINCIPAL}": "2.7e-4 + 1.0e-3 < "
        "1.4e-3; a comment says that those of the thumbs are NOT correct",
        r"<mimic> names an unknown joint: Left_index_q2 \('index_q1'\), .* Right_": "they are "
        "Left_index_q1, ...",
    },
    "allegro_left_hand": {
        f"links 'link_11.0', 'link_7.0', 'link_3.0', 'link_15.0'{PRINCIPAL}": "8.2e-6 + "
        "2.8e-5 < 4.4e-5",
        **AT_ZERO,
    },
    "allegro_right_hand": {
        f"links 'link_3.0', 'link_7.0', 'link_11.0', 'link_15.0'{PRINCIPAL}": "the same",
        **AT_ZERO,
    },
    "anymal-kinova": {**COMMAND_EFFORT, ALL_THE_SAME: ""},
    "robots/anymal": {**COMMAND_EFFORT, ALL_THE_SAME: ""},
    "urdf/anymal": {
        IGNORED + "tag <self_filter> in <link>": NOT_URDF,
        f"links 'depth_camera_front_camera', .*right_camera'{PRINCIPAL}": "9e-6 + 7e-4 < 1.4e-3",
        ALL_THE_SAME: "",
    },
    **{name: {ALL_THE_SAME: ""} for name in ("b1-z1", "b1", "go1")},
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
    "double_pendulum": NO_VELOCITY | NO_RANGE | NO_EFFORT,
    "double_pendulum_continuous": NO_VELOCITY | NO_EFFORT,
    "double_pendulum_simple": NO_VELOCITY | NO_RANGE | NO_EFFORT,
    **dict.fromkeys(("g1_29dof_rev_1_0", "go2"), COLLAPSE),
    "hyq_no_sensors": {
        f"links 'base_link', 'lf_foot', .*'rh_foot'{PRINCIPAL} of inertia 0, 0, 3e-06": "the same",
        "lf_haa_joint, lf_hfe_joint, lf_kfe_joint, ": SAFETY,
    },
    "icub": {
        "links 'head', 'l_ankle_2', .* and 2 more: the inertia is 0": "0, or 1e-18 for rounding"
    },
    "icub_reduced": {"links 'head', 'l_ankle_2', .*'r_wrist_1': the inertia is 0": "the same"},
    "iris": {
        "<limit velocity> of iris__rotor_0_joint, ": ZERO_LIMIT,
        "joints 'iris__rotor_0_joint', .*'iris__rotor_3_joint': <limit effort> is 0": ZERO_LIMIT,
        "links 'iris__rotor_0', .*'iris__rotor_3': the inertia is about 520 times": "0.234 m of "
        "gyration for 5 g within 0.128 m",
    },
    **dict.fromkeys(("panda", "panda_collision"), PANDA),
    "pr2": {
        f"links 'sensor_mount_link', 'double_stereo_link'{PRINCIPAL}": "0.001 + 0.001 < 0.01",
        "torso_lift_joint, head_pan_joint, head_tilt_joint, ": SAFETY,
    },
    "quadruped": {
        "<limit> lower and upper of FL_KFE, FR_KFE, BL_KFE, BR_KFE are the same": "none is given",
        "links 'FL_contact', 'FR_contact', 'BL_contact', 'BR_contact': the inertia is 0": "10 g, a "
        "third of the lower leg, without an inertia",
    },
    "romeo": {
        "<limit velocity> of LHand, RHand is 0": ZERO_LIMIT,
        "links 'LFinger11Link', 'RFinger11Link', 'LFinger12Link', 'LFinger13Link', ": "all are 0",
        "joints 'LHand', 'RHand': <limit effort> is 0": ZERO_LIMIT,
    },
    "romeo_laas_small": {
        f"links 'LShoulderYaw_link', 'LElbowYaw_link'{PRINCIPAL}": "1.9e-4 + 1.2e-3 < 1.6e-3",
        "links 'body', .*'RHipPitch_link': the inertia is not positive definite": "ixz^2 > ixx izz",
        "links 'l_gripper', 'r_gripper' move but have no inertia": "they have no <inertial>",
    },
    "romeo_small": {
        f"links 'RShoulderYawLink', 'RElbowYawLink'{PRINCIPAL}": "6.6e-4 + 6.8e-4 < 6.5e-3"
    },
    "simple_humanoid": {IGNORED + "tag <collision_checking> in <link>": NOT_URDF, **HUMANOID},
    "simple_humanoid_classical": HUMANOID,
    "so101": {IGNORED + "tag <origin> in <link>": NOT_URDF},
    "tiago": {**ANTENNA, HEAD: SAFETY, **TOOL},
    "tiago_dual": {
        KINEMATIC: NOT_URDF,
        **ANTENNA,
        "suspension_right_joint, suspension_left_joint, torso_lift_joint, ": SAFETY,
        "caster_front_right_1_joint, caster_front_right_2_joint, ": "they have none",
    },
    "tiago_no_hand": {**ANTENNA, HEAD: SAFETY, **TOOL},
    "tiago_pro": {KINEMATIC + "; tag <surface> in <link>": NOT_URDF, HEAD: SAFETY},
    **{name: {"link 'wrist_3_link': the inertia is about 150 times": UR5} for name in UR5_ROBOTS},
}
# One is refused: its <robot> has no name.
ROBOTS = [path for path in example_robots() if path.stem != "ur3"]


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_all_that_is_said_about_a_real_robot_is_true(path: Path) -> None:
    said = [sentence.removeprefix(f"{path}: ") for sentence in suspicions(load_quietly(path))]
    names = (path.stem, f"{path.parts[-2]}/{path.stem}")
    expected = next((SAID[name] for name in names if name in SAID), {})
    assert len(said) == len(expected), said
    for sentence, start in zip(said, expected, strict=True):
        assert re.match(start, sentence), sentence


def arm(*links: str, base: str = link("base"), xyz=(0.0, 0.0, 0.3), **changes) -> str:
    """The base, and links that each joint carries the next of."""
    names = [re.search('name="(.*?)"', each)[1] for each in (base, *links)]
    ends = enumerate(itertools.pairwise(names))
    return robot(base, *links, *(joint(f"j{i}", *both, xyz=xyz, **changes) for i, both in ends))


def rod(name: str, mass: float, length: float) -> str:
    I = mass * length**2 / 12.0  # noqa: E741
    return link(name, mass, (length / 2.0, 0, 0), (1e-6 * mass, 0, 0, I, 0, I))


def ball(name: str, mass: float, radius: float) -> str:
    I = 0.4 * mass * radius**2  # noqa: E741
    return link(name, mass, inertia=(I, 0, 0, I, 0, I))


def limit(lower: float, upper: float, effort: float, velocity: float) -> str:
    return f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/>'


CROSS = '<link name="cross"/>'
UNUSUAL = {
    "frame without mass between two joints": arm(CROSS, link("arm")),
    "shoulder of two axes that meet": arm(
        CROSS, *(rod(name, 2.0, 0.3) for name in "abc"), xyz=(0, 0, 0.3)
    ).replace(
        '"j1" type="revolute"><origin xyz="0.0 0.0 0.3"', '"j1" type="revolute"><origin xyz="0 0 0"'
    ),
    "pole on a cart": robot(
        link("rail"),
        link("cart"),
        rod("pole", 0.1, 1.0),
        joint("slide", "rail", "cart", "prismatic", limit=limit(-2.4, 2.4, 100, 10)),
        joint("hinge", "cart", "pole", "continuous", limit=limit(0, 0, 10, 10)),
    ),
    "crane with booms of seven meters": arm(
        rod("boom", 250.0, 7.0),
        rod("jib", 100.0, 7.0),
        rod("hook", 30.0, 1.0),
        xyz=(7.0, 0, 0),
        limit=limit(-3, 3, 60e3, 1),
    ),
    "tube of carbon fibre": arm(rod("tube", 0.02, 1.5), xyz=(0, 0, 0), limit=limit(-3, 3, 5, 50)),
    "gripper of four grams": robot(
        ball("palm", 0.004, 0.01),
        *(rod(f"finger{i}", 2e-4, 0.01) for i in range(4)),
        *(
            joint(f"j{i}", "palm", f"finger{i}", xyz=(5e-3, 0, 0), limit=limit(0, 1.5, 1e-3, 20))
            for i in range(4)
        ),
    ),
    "strong motor on a test bench": arm(
        rod("arm", 0.2, 0.2), xyz=(0, 0, 0.1), limit=limit(-3, 3, 87, 3)
    ),
    "table that turns a heavy load about the vertical": robot(
        link("base"),
        link("table", 40.0, inertia=(3.0, 0, 0, 3.0, 0, 5.0)),
        link("load", 300.0, (0.8, 0, 0.5), (20.0, 0, 0, 20.0, 0, 20.0)),
        joint("pan", "base", "table", limit=limit(-3, 3, 20, 1)),
        joint("fixed", "table", "load", "fixed", xyz=(0.5, 0, 0)),
    ),
    "heavy pedestal": arm(
        *(rod(name, 2.0, 0.3) for name in "abc"),
        base=link("granite", 2000.0, inertia=(100.0, 0, 0, 100.0, 0, 100.0)),
        xyz=(0.3, 0, 0),
    ),
    "ten turns": arm(link("wrist"), limit=limit(-62.83, 62.83, 9, 9)),
    "no limit in a round number": arm(link("wrist"), limit=limit(-1e4, 1e4, 1000, 1000)),
    "fast ankle": arm(ball("foot", 1.0, 0.1), limit=limit(-1, 1, 20, 101)),
    "plate whose moments are printed with three digits": arm(
        link("a", 0.1, inertia=(1.21e-05, 0, 3.5e-07, 2.35e-05, 3.5e-07, 3.56e-05))
    ),
    "rail of twelve meters": arm(
        link("cart"), kind="prismatic", xyz=(0, 0, 0), limit=limit(0, 12.0, 800, 3)
    ),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_robot_is_not_warned_of(name: str) -> None:
    for floating_base in (False, True):
        model = RobotModel.from_urdf_string(UNUSUAL[name], floating_base=floating_base)
        assert suspicions(model) == ()


def test_masses_in_powers_of_ten_are_made_up_not_in_tonnes() -> None:
    links = [link(name, 1e-5, (0, 0, 0.05), (1e-5, 0, 0, 1e-5, 0, 1e-5)) for name in "abc"]
    sentences = "\n".join(suspicions(RobotModel.from_urdf_string(arm(*links))))
    assert re.search("weigh 3e-05 kg, .* as if masses were made up", sentences)


def test_one_warning_names_all_links_with_the_same_fault() -> None:
    bad = {"com": (0.1, 0, 0), "inertia": (0.1, 0, 0, 0.1, 0, 0.3)}
    urdf = arm(*(link(f"link{i}", **bad) for i in range(14)))
    (sentence,) = suspicions(quietly(RobotModel.from_urdf_string, urdf))
    assert re.search("links 'link0', 'link1', .* and 4 more: ", sentence)
