"""What Gazebo needs beside an arm's URDF: ros2_control's tags in it, its controllers, a world.

    python -m rnea_control.simulation.gazebo my_arm.urdf my_arm.yaml

prints all three, to be put into files of one's own. `gazebo.launch.py` makes them at each start.

The names are those of Gazebo Harmonic and later, which ROS 2 has from Jazzy on.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml

from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml
from rnea_control.parameters.settings import quietly
from rnea_control.ros.parameter_files import section_of

NODE = "/rnea_controller"
HARDWARE = "gz_ros2_control/GazeboSimSystem"
PLUGIN = "gz_ros2_control::GazeboSimROS2ControlPlugin"
# A joint starts in the middle part of its range, as near to 0 as that allows.
MIDDLE = 0.6
# The root's end tag, and what may stand behind it.
_END = re.compile(r"</([\w.-]+:)?robot\s*>(\s|<!--.*?-->|<\?.*?\?>)*\Z", re.DOTALL)

JOINT = """\
    <joint name="{name}">
      <command_interface name="effort"/>
      <state_interface name="position">
        <param name="initial_value">{start:g}</param>
      </state_interface>
      <state_interface name="velocity"/>
      <state_interface name="effort"/>
    </joint>
"""
ROS2_CONTROL = """\
  <ros2_control name="gazebo" type="system">
    <hardware>
      <plugin>{hardware}</plugin>
    </hardware>
{joints}  </ros2_control>
"""
GAZEBO = """\
  <gazebo>
    <plugin filename="gz_ros2_control-system" name="{plugin}">
      <parameters>{controllers}</parameters>
    </plugin>
  </gazebo>
"""
FIXED = """\
  <link name="world"/>
  <joint name="world_to_{root}" type="fixed">
    <parent link="world"/>
    <child link="{root}"/>
  </joint>
"""
WORLD = """\
<?xml version="1.0"?>
<sdf version="1.9">
  <world name="default">
    <physics name="physics" type="ignored">
      <max_step_size>{step:g}</max_step_size>
      <real_time_factor>{factor:g}</real_time_factor>
    </physics>
    <gravity>0 0 -9.81</gravity>
    <plugin filename="gz-sim-physics-system" name="gz::sim::systems::Physics"/>
    <plugin filename="gz-sim-user-commands-system" name="gz::sim::systems::UserCommands"/>
    <plugin filename="gz-sim-scene-broadcaster-system" name="gz::sim::systems::SceneBroadcaster"/>
    <light name="sun" type="directional">
      <direction>-0.5 0.1 -0.9</direction>
    </light>
  </world>
</sdf>
"""


def parameters_of(path: Path) -> tuple[list[str], str]:
    """The joints, and the name of the effort controller, of a YAML file for `rnea_controller`.

    Raises:
        ParameterError: it names no joints.
    """
    section = section_of(NODE, ["--params-file", str(path)])
    joints = section.get("joints")
    if not isinstance(joints, list) or not joints:
        raise ParameterError(f"{path}: no joints of {NODE.strip('/')}; name those to control")
    topic = str(section.get("command_topic", ""))
    name = topic.rpartition("/")[0].rpartition("/")[2]
    return [str(joint) for joint in joints], name or "effort_controller"


def start_positions(
    urdf: str, joints: Sequence[str], given: Mapping[str, float]
) -> dict[str, float]:
    """Where each joint starts, [rad] or [m]: as given, else well within its limits.

    Raises:
        RobotModelError: the URDF is not that of a robot with these joints.
        ParameterError: a position of another joint is given.
    """
    for name in given:
        if name not in joints:
            raise ParameterError(
                f"joint {name!r} is not among those to control: {', '.join(joints)}"
            )
    model = quietly(RobotModel.from_urdf_string, urdf, joints)
    with np.errstate(invalid="ignore"):  # joints without limits
        middle = 0.5 * (model.lower + model.upper)
        reach = 0.5 * MIDDLE * (model.upper - model.lower)
        usual = np.nan_to_num(np.clip(0.0, middle - reach, middle + reach))
    return dict(zip(joints, usual.tolist(), strict=True)) | dict(given)


def description(urdf: str, start: Mapping[str, float], controllers: Path | str) -> str:
    """A URDF's text, without xacro, with a base fixed to the world, ros2_control's tags and its
    plugin for Gazebo, where it has none of its own.

    Args:
        start: the position of each joint that gets an effort interface, [rad] or [m].
        controllers: the file with ros2_control's parameters.

    Raises:
        RobotModelError: it is no URDF.
        ParameterError: its <ros2_control> is for other hardware.
    """
    root = description_from_urdf(urdf, "the URDF").root
    added = FIXED.format(root=root) if root != "world" else ""
    robot = parse_xml(urdf)
    hardware = [str(one.text).strip() for one in robot.findall("ros2_control/hardware/plugin")]
    foreign = [name for name in hardware if name != HARDWARE]
    if foreign:
        raise ParameterError(
            f"the URDF's <ros2_control> is for {foreign[0]}, not for Gazebo: give a URDF without "
            f"it, or one made for {HARDWARE}"
        )
    if not hardware:
        joints = "".join(JOINT.format(name=name, start=value) for name, value in start.items())
        added += ROS2_CONTROL.format(hardware=HARDWARE, joints=joints)
    if all(plugin.get("name") != PLUGIN for plugin in robot.findall("gazebo/plugin")):
        added += GAZEBO.format(plugin=PLUGIN, controllers=controllers)
    end = _END.search(urdf)
    assert end is not None  # it is well-formed and has links
    return urdf[: end.start()] + added + urdf[end.start() :]


def controllers(joints: Sequence[str], name: str, update_rate: int) -> str:
    """ros2_control's parameters, YAML: `update_rate` in simulated Hz."""
    broadcaster = {"type": "joint_state_broadcaster/JointStateBroadcaster"}
    effort = {"type": "forward_command_controller/ForwardCommandController"}
    manager = {"update_rate": update_rate, "joint_state_broadcaster": broadcaster, name: effort}
    parameters = {"joints": list(joints), "interface_name": "effort"}
    content = {
        "controller_manager": {"ros__parameters": manager},
        name: {"ros__parameters": parameters},
    }
    text: str = yaml.safe_dump(content, sort_keys=False)
    return text


def world(step: float, real_time_factor: float) -> str:
    """An empty world, SDF, with a step of the physics, [s], and how fast simulated time is to pass;
    ParameterError if one of them is not above 0."""
    if not (step > 0.0 and real_time_factor > 0.0):
        raise ParameterError(
            f"a step of {step} s and a real-time factor of {real_time_factor}: both must be above 0"
        )
    return WORLD.format(step=step, factor=real_time_factor)


def main() -> None:
    """Prints what Gazebo needs for a URDF and the controller's YAML file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("urdf", type=Path)
    parser.add_argument("parameters", type=Path)
    given = parser.parse_args()
    joints, name = parameters_of(given.parameters)
    text = given.urdf.read_text(encoding="utf-8")
    print("# The URDF:\n")
    print(description(text, start_positions(text, joints, {}), "CONTROLLERS.yaml"))
    print("\n# CONTROLLERS.yaml:\n")
    print(controllers(joints, name, 1000))
    print("# The world:\n")
    print(world(0.001, 1.0))


if __name__ == "__main__":
    main()
