"""What an arm gets for Gazebo."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from robots import PANDA_JOINTS, example_robot, two_link_arm

from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly
from rnea_control.ros.parameter_files import section_of
from rnea_control.simulation import gazebo

ROOT = Path(__file__).parents[2]
URDF = (ROOT / "urdf" / "seven_axis_arm.urdf").read_text()
PARAMETERS = ROOT / "config" / "rnea_controller.yaml"
JOINTS = tuple(f"joint{number}" for number in range(1, 8))
UR_JOINTS = (
    *("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"),
    *(f"wrist_{number}_joint" for number in (1, 2, 3)),
)
ARM, PANDA = gazebo.Arm(JOINTS), gazebo.Arm(PANDA_JOINTS)


def test_shipped_arm_gets_what_gz_ros2_control_reads() -> None:
    assert gazebo.Arm.of_file(PARAMETERS) == ARM
    start = gazebo.start_positions(URDF, ARM, {"joint2": 0.3})
    text = gazebo.description(URDF, ARM, start, "/tmp/c.yaml")
    assert gazebo.description(text, ARM, start, "/tmp/other.yaml") == text  # what is there stays
    for end in ("</robot >", "</robot>\n<!-- </robot> -->"):
        odd = URDF.replace("</robot>", end)
        assert gazebo.description(odd, ARM, start, "/tmp/c.yaml") == text.replace("</robot>", end)
    robot = ElementTree.fromstring(text)
    assert {
        joint.get("name"): [one.get("name") for one in joint if "interface" in one.tag]
        for joint in robot.findall("ros2_control/joint")
    } == {key: ["effort", "position", "velocity", "effort"] for key in JOINTS}
    assert robot.findtext("ros2_control/joint[2]/state_interface/param") == "0.3"
    assert robot.findtext("ros2_control/hardware/plugin") == gazebo.HARDWARE
    assert robot.findtext("gazebo/plugin/parameters") == "/tmp/c.yaml"
    fixed = robot.find("joint[@name='world_to_base_link']")
    assert fixed is not None and fixed.find("child").get("link") == "base_link"
    model, same = (RobotModel.from_urdf_string(each, JOINTS) for each in (URDF, text))
    assert model.nv == same.nv and model.total_mass == same.total_mass


def test_tags_of_other_hardware_are_refused() -> None:
    tags = "<ros2_control name='a' type='system'><hardware><plugin>franka/X</plugin></hardware>"
    foreign = URDF.replace("</robot>", f"{tags}</ros2_control></robot>")
    with pytest.raises(ParameterError, match="is for franka/X, not for Gazebo"):
        gazebo.description(foreign, ARM, {}, "/tmp/c.yaml")
    with pytest.raises(RobotModelError, match="the URDF: this is not well-formed XML"):
        gazebo.description("<robot>", ARM, {}, "/tmp/c.yaml")


def test_joints_start_within_their_limits() -> None:
    urdf = example_robot("panda").read_text()
    start = gazebo.start_positions(urdf, PANDA, {"panda_joint1": 0.5})
    assert start["panda_joint1"] == 0.5 and start["panda_joint2"] == pytest.approx(0.4)
    assert -2.5 < start["panda_joint4"] < -0.5  # 0 is outside
    with pytest.raises(ParameterError, match="'elbow' is not among those to control"):
        gazebo.start_positions(urdf, PANDA, {"elbow": 0.5})
    with pytest.raises(RobotModelError, match="no joint 'elbow'"):
        gazebo.start_positions(urdf, gazebo.Arm(("elbow",)), {})
    shoulder = gazebo.Arm(("shoulder",))
    assert set(gazebo.start_positions(two_link_arm(), shoulder, {})) == {"shoulder"}


@pytest.mark.parametrize(
    ("urdf", "arm"),
    [
        (lambda: URDF, ARM),
        (lambda: example_robot("panda").read_text(), PANDA),
        (lambda: example_robot("ur5_robot").read_text(), gazebo.Arm(UR_JOINTS)),
    ],
    ids=["seven_axis_arm", "panda", "ur5"],
)
def test_start_loads_a_joint(urdf, arm: gazebo.Arm) -> None:
    """An arm that stands upright is held by any torque near 0, and by a model without mass."""
    start = gazebo.start_positions(urdf(), arm, {})
    model = quietly(RobotModel.from_urdf_string, urdf(), arm.joints)
    q = np.array([start[name] for name in model.joint_names])
    assert (q > model.lower).all() and (q < model.upper).all()
    torque = gravity(model, Workspace(model), q, np.zeros(model.nv))
    assert (np.abs(torque) / model.effort_limit).max() > 0.05


def interfaces(urdf: str, arm: gazebo.Arm) -> dict[str, tuple[list[str], str | None, float]]:
    """Of each joint in <ros2_control>: command interfaces, attribute mimic, initial position."""
    text = gazebo.description(urdf, arm, gazebo.start_positions(urdf, arm, {}), "/tmp/c.yaml")
    return {
        joint.get("name"): (
            [one.get("name") for one in joint.findall("command_interface")],
            joint.get("mimic"),
            float(joint.findtext("state_interface/param")),
        )
        for joint in ElementTree.fromstring(text).findall("ros2_control/joint")
    }


def test_joints_that_are_not_controlled_are_held_where_the_controller_locks_them() -> None:
    """Without an interface the Panda's fingers would slide freely."""
    urdf = example_robot("panda").read_text()
    fingers = "panda_finger_joint1", "panda_finger_joint2"
    found = interfaces(urdf, PANDA)
    assert list(found) == [*PANDA_JOINTS, *fingers]
    assert all(found[name][0] == ["effort"] for name in PANDA_JOINTS)
    assert [found[name][::2] for name in fingers] == [(["velocity"], 0.0)] * 2
    locked = gazebo.Arm(PANDA_JOINTS, locked_positions=dict.fromkeys(fingers, 0.02))
    assert [interfaces(urdf, locked)[name][2] for name in fingers] == [0.02, 0.02]


def test_joint_that_mimics_follows_a_controlled_one_and_is_held_beside_a_locked_one() -> None:
    mimics = example_robot("panda").read_text()
    axis = mimics.index("</joint>", mimics.index('<joint name="panda_finger_joint2"'))
    tag = '<mimic joint="panda_finger_joint1" multiplier="2" offset="0.01"/>'
    mimics = re.sub(r"<mimic[^>]*/>", "", mimics[axis - 600 : axis])
    urdf = example_robot("panda").read_text()
    urdf = urdf[: axis - 600] + mimics + tag + urdf[axis:]
    locked = gazebo.Arm(PANDA_JOINTS, locked_positions={"panda_finger_joint1": 0.01})
    held = interfaces(urdf, locked)["panda_finger_joint2"]
    assert held == (["velocity"], "false", pytest.approx(0.03))
    controlled = gazebo.Arm((*PANDA_JOINTS, "panda_finger_joint1"))
    start = interfaces(urdf, controlled)
    leader, follower = start["panda_finger_joint1"], start["panda_finger_joint2"]
    assert leader[0] == ["effort"]
    assert follower == ([], None, pytest.approx(2.0 * leader[2] + 0.01))


def test_plugins_of_gazebo_classic_are_left_out() -> None:
    urdf = example_robot("ur5_robot").read_text()
    text, left_out = gazebo.without_classic_plugins(urdf)
    assert left_out == ["libgazebo_ros_control.so"]
    assert ElementTree.fromstring(text).find(".//plugin") is None
    assert "libgazebo_ros_power_monitor.so" in text  # in a comment, which stays
    kept = (
        '<plugin filename="gz_ros2_control-system" name="a"><x/></plugin>'
        "<plugin name='b' filename='libignition-gazebo-imu-system.so'/>"
        '<plugin filename="libmine.so" name="c"/><hardware><plugin>my/Gazebo</plugin></hardware>'
    )
    classic = "<plugin name='>' filename=\"/opt/libgazebo_ros_imu.so\"/>\n"
    both = f"<gazebo>{classic}{kept}{classic}</gazebo>"
    text, left_out = gazebo.without_classic_plugins(both)
    assert text == f"<gazebo>\n{kept}\n</gazebo>"
    assert left_out == ["/opt/libgazebo_ros_imu.so"] * 2


def test_what_describes_hardware_beyond_the_urdf_is_overridden(tmp_path: Path) -> None:
    """Gazebo's arm has no firmware that carries it, and no rotors."""
    arm = gazebo.Arm.of_file(ROOT / "config" / "robots" / "ur_e_series.yaml")
    rotors = {f"armature.{name}": 0.0 for name in UR_JOINTS}
    assert arm.overrides == {"hardware_compensates_gravity": False, **rotors}
    assert "hardware_compensates_gravity: true -> false" in arm.overridden
    assert "armature: 6 values -> as the URDF says" in arm.overridden
    path = tmp_path / "arm.yaml"
    parameters = (
        "{joints: [a, b], payload: {mass: 2.0}, friction: {a: {coulomb: 1.0}}, armature: {b: 0.0}, "
        "feedback_inertia: {a: 0.1}, control_law: pd, gravity: [0.0, 0.0, 9.81], "
        "locked_positions: {c: 1}}"
    )
    path.write_text(f"rnea_controller:\n  ros__parameters: {parameters}\n")
    arm = gazebo.Arm.of_file(path)
    assert arm.overrides == {
        "payload.mass": 0.0,
        "friction.a.coulomb": -1.0,  # that of the URDF
        "feedback_inertia.a": -1.0,
    }
    assert "payload.mass: 2.0 -> 0.0" in arm.overridden
    assert arm.gravity == (0.0, 0.0, 9.81) and arm.locked_positions == {"c": 1.0}


@pytest.mark.parametrize("path", sorted((ROOT / "config" / "robots").glob("*.yaml")), ids=str)
def test_every_shipped_file_is_without_firmware_in_gazebo(path: Path) -> None:
    arm = gazebo.Arm.of_file(path)
    section = section_of("/rnea_controller", ["--params-file", str(path)])
    in_force = {**section, **arm.overrides}
    assert not in_force.get("hardware_compensates_gravity", False)
    assert not any(value for name, value in in_force.items() if name.startswith("armature."))
    assert bool(arm.overridden) == bool(arm.overrides)


def test_a_transmission_of_a_joint_is_not_the_joint() -> None:
    """Both are called <joint>, and only one has limits."""
    tag = "<transmission name='t'><joint name='joint4'/></transmission>"
    limit = '<limit lower="-2.0" upper="2.0" effort="100" velocity="2.5"/>'
    assert limit in URDF
    bent = URDF.replace(limit, limit.replace("-2.0", "1.0")).replace("</robot>", f"{tag}</robot>")
    assert gazebo.start_positions(bent, ARM, {})["joint4"] == pytest.approx(1.6)


def test_controllers_and_world() -> None:
    content = yaml.safe_load(gazebo.controllers(gazebo.Arm(("a", "b"), "torques"), 500))
    manager = content["controller_manager"]["ros__parameters"]
    assert manager["update_rate"] == 500
    assert manager["torques"]["type"] == "forward_command_controller/ForwardCommandController"
    forwarded = {"joints": ["a", "b"], "interface_name": "effort"}
    assert content["torques"]["ros__parameters"] == forwarded
    world = ElementTree.fromstring(gazebo.world(0.002, 0.3, (0.0, 0.0, 9.81)))
    assert world.findtext("world/gravity") == "0 0 9.81"  # an arm that hangs from the ceiling
    physics = world.find("world/physics")
    assert physics.findtext("max_step_size") == "0.002"
    assert physics.findtext("real_time_factor") == "0.3"
    with pytest.raises(ParameterError, match="both must be above 0"):
        gazebo.world(0.0, 1.0, (0.0, 0.0, -9.81))


def test_parameters_name_the_joints_and_the_effort_controller(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    parameters = "{joints: [a], command_topic: /arm/torques/commands}"
    path.write_text(f"rnea_controller:\n  ros__parameters: {parameters}\n")
    assert gazebo.Arm.of_file(path) == gazebo.Arm(("a",), "torques")
    path.write_text("rnea_controller:\n  ros__parameters: {control_law: pd}\n")
    with pytest.raises(ParameterError, match="no joints of rnea_controller"):
        gazebo.Arm.of_file(path)


def test_everything_is_printed(monkeypatch, capsys) -> None:
    arm = str(ROOT / "urdf" / "seven_axis_arm.urdf")
    monkeypatch.setattr("sys.argv", ["gazebo", arm, str(PARAMETERS)])
    gazebo.main()
    printed = capsys.readouterr().out
    for words in ("<ros2_control", "forward_command_controller", "max_step_size"):
        assert words in printed
