"""What an arm gets for Gazebo."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from robots import PANDA_JOINTS, example_robot, two_link_arm

from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.model import RobotModel
from rnea_control.simulation import gazebo

ROOT = Path(__file__).parents[2]
URDF = (ROOT / "urdf" / "seven_axis_arm.urdf").read_text()
PARAMETERS = ROOT / "config" / "rnea_controller.yaml"
JOINTS = [f"joint{number}" for number in range(1, 8)]


def test_shipped_arm_gets_what_gz_ros2_control_reads() -> None:
    joints, name = gazebo.parameters_of(PARAMETERS)
    assert (joints, name) == (JOINTS, "effort_controller")
    start = gazebo.start_positions(URDF, joints, {"joint2": 0.3})
    text = gazebo.description(URDF, start, "/tmp/c.yaml")
    assert gazebo.description(text, start, "/tmp/other.yaml") == text  # what is there stays
    for end in ("</robot >", "</robot>\n<!-- </robot> -->"):
        odd = URDF.replace("</robot>", end)
        assert gazebo.description(odd, start, "/tmp/c.yaml") == text.replace("</robot>", end)
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
        gazebo.description(foreign, {}, "/tmp/c.yaml")
    with pytest.raises(RobotModelError, match="the URDF: this is not well-formed XML"):
        gazebo.description("<robot>", {}, "/tmp/c.yaml")


def test_joints_start_within_their_limits() -> None:
    urdf, joints = example_robot("panda").read_text(), list(PANDA_JOINTS)
    start = gazebo.start_positions(urdf, joints, {"panda_joint1": 0.5})
    assert start["panda_joint1"] == 0.5 and start["panda_joint2"] == 0.0
    assert -2.5 < start["panda_joint4"] < -0.5  # 0 is outside
    with pytest.raises(ParameterError, match="'elbow' is not among those to control"):
        gazebo.start_positions(urdf, joints, {"elbow": 0.5})
    with pytest.raises(RobotModelError, match="no joint 'elbow'"):
        gazebo.start_positions(urdf, ["elbow"], {})
    assert set(gazebo.start_positions(two_link_arm(), ["shoulder"], {})) == {"shoulder"}


def test_a_transmission_of_a_joint_is_not_the_joint() -> None:
    """Both are called <joint>, and only one has limits."""
    tag = "<transmission name='t'><joint name='joint4'/></transmission>"
    limit = '<limit lower="-2.0" upper="2.0" effort="100" velocity="2.5"/>'
    assert limit in URDF
    bent = URDF.replace(limit, limit.replace("-2.0", "1.0")).replace("</robot>", f"{tag}</robot>")
    assert gazebo.start_positions(bent, JOINTS, {})["joint4"] == pytest.approx(1.2)


def test_controllers_and_world() -> None:
    content = yaml.safe_load(gazebo.controllers(["a", "b"], "torques", 500))
    manager = content["controller_manager"]["ros__parameters"]
    assert manager["update_rate"] == 500
    assert manager["torques"]["type"] == "forward_command_controller/ForwardCommandController"
    forwarded = {"joints": ["a", "b"], "interface_name": "effort"}
    assert content["torques"]["ros__parameters"] == forwarded
    physics = ElementTree.fromstring(gazebo.world(0.002, 0.3)).find("world/physics")
    assert physics.findtext("max_step_size") == "0.002"
    assert physics.findtext("real_time_factor") == "0.3"
    with pytest.raises(ParameterError, match="both must be above 0"):
        gazebo.world(0.0, 1.0)


def test_parameters_name_the_joints_and_the_effort_controller(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    parameters = "{joints: [a], command_topic: /arm/torques/commands}"
    path.write_text(f"rnea_controller:\n  ros__parameters: {parameters}\n")
    assert gazebo.parameters_of(path) == (["a"], "torques")
    path.write_text("rnea_controller:\n  ros__parameters: {control_law: pd}\n")
    with pytest.raises(ParameterError, match="no joints of rnea_controller"):
        gazebo.parameters_of(path)


def test_everything_is_printed(monkeypatch, capsys) -> None:
    arm = str(ROOT / "urdf" / "seven_axis_arm.urdf")
    monkeypatch.setattr("sys.argv", ["gazebo", arm, str(PARAMETERS)])
    gazebo.main()
    printed = capsys.readouterr().out
    for words in ("<ros2_control", "forward_command_controller", "max_step_size"):
        assert words in printed
