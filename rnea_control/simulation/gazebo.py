"""Files for an arm in Gazebo: the URDF with ros2_control's tags, the controllers, a world.

    python -m rnea_control.simulation.gazebo my_arm.urdf my_arm.yaml

prints all three, to copy into your own files. `gazebo.launch.py` makes them at each start.

The names are those of Gazebo Harmonic and later, which ROS 2 has from Jazzy on.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml

from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel
from rnea_control.model.joint_selection import JointSelection, select_joints
from rnea_control.model.joints import Joint
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.model.urdf_text import parse_xml
from rnea_control.parameters.settings import quietly
from rnea_control.parameters.table import LOCKED, LOCKED_POSITION, ROWS
from rnea_control.ros.parameter_files import section_of
from rnea_control.simulation import beyond_the_urdf

NODE = "/rnea_controller"
HARDWARE = "gz_ros2_control/GazeboSimSystem"
PLUGIN = "gz_ros2_control::GazeboSimROS2ControlPlugin"
MIDDLE = 0.6  # middle fraction of a joint's range in which it starts, as near to 0 as possible
BEND = 0.4  # turn of all joints from there, towards their upper limits [rad]
# End tag of the root, and white space and comments after it.
_END = re.compile(r"</([\w.-]+:)?robot\s*>(\s|<!--.*?-->|<\?.*?\?>)*\Z", re.DOTALL)

# Element of a plugin, with its start tag in a group; or a comment or CDATA section.
_PLUGIN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>"
    r"|(<plugin\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*?)(?:/>|>.*?</plugin\s*>)",
    re.DOTALL,
)
_FILENAME = re.compile(r"""\bfilename\s*=\s*["']([^"']*)["']""")

JOINT = """\
    <joint name="{name}"{mimic}>
{command}      <state_interface name="position">
        <param name="initial_value">{start:g}</param>
      </state_interface>
      <state_interface name="velocity"/>
      <state_interface name="effort"/>
    </joint>
"""
COMMAND = '      <command_interface name="{interface}"/>\n'
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
    <gravity>{gravity}</gravity>
    <plugin filename="gz-sim-physics-system" name="gz::sim::systems::Physics"/>
    <plugin filename="gz-sim-user-commands-system" name="gz::sim::systems::UserCommands"/>
    <plugin filename="gz-sim-scene-broadcaster-system" name="gz::sim::systems::SceneBroadcaster"/>
    <light name="sun" type="directional">
      <direction>-0.5 0.1 -0.9</direction>
    </light>
  </world>
</sdf>
"""


@dataclass(frozen=True)
class Arm:
    """The controller's parameters that Gazebo needs.

    Attributes:
        joints: joints to control.
        effort_controller: name of the effort controller.
        locked_positions: positions of other joints that could move, [rad] or [m].
        gravity: acceleration of gravity in the frame of the URDF's root link, [m/s^2].
        overrides: values that replace parameters of hardware that Gazebo's arm lacks.
        overridden: sentence about the overrides; empty if there are none.
        thread_priority: SCHED_FIFO priority of the controller's loop; 0 for none.
    """

    joints: tuple[str, ...]
    effort_controller: str = "effort_controller"
    locked_positions: Mapping[str, float] = field(default_factory=dict)
    gravity: tuple[float, ...] = tuple(ROWS["gravity"].default)
    overrides: Mapping[str, object] = field(default_factory=dict)
    overridden: str = ""
    thread_priority: int = ROWS["thread_priority"].default

    @classmethod
    def of_file(cls, path: Path) -> Arm:
        """Reads the arm from a YAML file for `rnea_controller`.

        Raises:
            ParameterError: no joints, or a wrong value.
        """
        section = section_of(NODE, ["--params-file", str(path)])
        joints = section.get("joints")
        if not isinstance(joints, list) or not joints:
            raise ParameterError(f"{path}: no joints of {NODE.strip('/')}; name those to control")
        names = tuple(str(joint) for joint in joints)
        topic = str(section.get("command_topic", ""))
        controller = topic.rpartition("/")[0].rpartition("/")[2]
        row, thread = ROWS["gravity"], ROWS["thread_priority"]
        overrides = beyond_the_urdf.overrides(section, names)
        return cls(
            names,
            controller or cls.effort_controller,
            {
                name.removeprefix(LOCKED): float(LOCKED_POSITION.check(name, value))
                for name, value in section.items()
                if name.startswith(LOCKED)
            },
            tuple(row.check(row.name, section.get(row.name, row.default))),
            overrides,
            beyond_the_urdf.words(section, overrides, "Gazebo"),
            thread.check(thread.name, section.get(thread.name, thread.default)),
        )


def start_positions(urdf: str, arm: Arm, given: Mapping[str, float]) -> dict[str, float]:
    """Start position of each controlled joint, [rad] or [m]: as given, else well within its limits
    and bent. Holding an upright arm proves nothing, as its gravity torques are 0; and small torques
    move the light links of a stretched arm far.

    Raises:
        RobotModelError: the URDF is not of a robot with these joints.
        ParameterError: a position for another joint is given.
    """
    for name in given:
        if name not in arm.joints:
            raise ParameterError(
                f"joint {name!r} is not among those to control: {', '.join(arm.joints)}"
            )
    model = quietly(
        RobotModel.from_urdf_string, urdf, arm.joints, arm.locked_positions, arm.gravity
    )
    with np.errstate(invalid="ignore"):  # joints without limits
        middle = 0.5 * (model.lower + model.upper)
        reach = 0.5 * MIDDLE * (model.upper - model.lower)
        usual = np.nan_to_num(np.clip(0.0, middle - reach, middle + reach))
        bent = usual + BEND * np.array([kind != "prismatic" for kind in model.joint_types])
        start = np.fmax(np.fmin(bent, middle + reach), middle - reach)
    return dict(zip(arm.joints, start.tolist(), strict=True)) | dict(given)


def without_classic_plugins(urdf: str) -> tuple[str, list[str]]:
    """Removes the plugins of Gazebo Classic from a URDF's text, as Gazebo reports an error for each
    that it cannot load; returns the text, and the files of the plugins."""
    left_out = []

    def kept(found: re.Match[str]) -> str:
        name = _FILENAME.search(found[1] or "")
        if name is None or not _is_classic(name[1]):
            return found[0]
        left_out.append(name[1])
        return ""

    return _PLUGIN.sub(kept, urdf), left_out


def _is_classic(filename: str) -> bool:
    """True for a plugin of Gazebo Classic; Gazebo's own plugins are named gz or ignition."""
    name = filename.rpartition("/")[2].lower()
    return "gazebo" in name and not any(word in name for word in ("gz", "ignition", "ign_"))


def description(urdf: str, arm: Arm, start: Mapping[str, float], controllers: Path | str) -> str:
    """Adds to a URDF's text, without xacro, what it lacks for Gazebo: a base fixed to the world,
    ros2_control's tags and ros2_control's plugin.

    Joints that can move and are not controlled get an interface too, by which Gazebo holds them at
    the positions at which the controller assumes them locked. Without an interface they would slide
    freely.

    Args:
        urdf: text of the URDF.
        arm: the arm; its joints get effort interfaces.
        start: start position of each of these joints, [rad] or [m].
        controllers: file with ros2_control's parameters.

    Raises:
        RobotModelError: the text is not a URDF.
        ParameterError: its <ros2_control> is for other hardware.
    """
    tree = description_from_urdf(urdf, "the URDF")
    added = FIXED.format(root=tree.root) if tree.root != "world" else ""
    robot = parse_xml(urdf)
    hardware = [str(one.text).strip() for one in robot.findall("ros2_control/hardware/plugin")]
    foreign = [name for name in hardware if name != HARDWARE]
    if foreign:
        raise ParameterError(
            f"the URDF's <ros2_control> is for {foreign[0]}, not for Gazebo: give a URDF without "
            f"it, or one made for {HARDWARE}"
        )
    if not hardware:
        selection = select_joints(tree.joints, arm.joints, arm.locked_positions)
        movable = (joint for joint in tree.joints if joint.nq == 1)
        joints = "".join(_interfaces(joint, selection, start) for joint in movable)
        added += ROS2_CONTROL.format(hardware=HARDWARE, joints=joints)
    if all(plugin.get("name") != PLUGIN for plugin in robot.findall("gazebo/plugin")):
        added += GAZEBO.format(plugin=PLUGIN, controllers=controllers)
    end = _END.search(urdf)
    assert end is not None  # the text is well-formed and has links
    return urdf[: end.start()] + added + urdf[end.start() :]


def _interfaces(joint: Joint, selection: JointSelection, start: Mapping[str, float]) -> str:
    """Tag of a joint in <ros2_control>. The joint is commanded by efforts, or mimics a joint that
    is, or is held by Gazebo, which holds a joint with an unclaimed velocity interface."""
    at = selection.coordinates.get(joint.name)
    follows = at is not None and not at.leads
    # A joint that the controller locks or commands mimics no other joint.
    mimic = ' mimic="false"' if joint.mimic is not None and not follows else ""
    if at is None:
        command, position = COMMAND.format(interface="velocity"), selection.locked.get(joint.name)
    elif at.leads:
        command, position = COMMAND.format(interface="effort"), start[joint.name]
    else:
        others = selection.coordinates.items()
        leader = next(name for name, other in others if other.leads and other.q == at.q)
        command, position = "", at.ratio * start[leader] + at.offset
    return JOINT.format(name=joint.name, mimic=mimic, command=command, start=position or 0.0)


def controllers(arm: Arm, update_rate: int) -> str:
    """ros2_control's parameters in YAML; `update_rate` in simulated Hz."""
    name = arm.effort_controller
    broadcaster = {"type": "joint_state_broadcaster/JointStateBroadcaster"}
    effort = {"type": "forward_command_controller/ForwardCommandController"}
    manager = {"update_rate": update_rate, "joint_state_broadcaster": broadcaster, name: effort}
    parameters = {"joints": list(arm.joints), "interface_name": "effort"}
    content = {
        "controller_manager": {"ros__parameters": manager},
        name: {"ros__parameters": parameters},
    }
    text: str = yaml.safe_dump(content, sort_keys=False)
    return text


def world(step: float, real_time_factor: float, gravity: Sequence[float]) -> str:
    """An empty world in SDF. Raises ParameterError for a step or factor that is not positive.

    Args:
        step: time step of the physics, [s].
        real_time_factor: simulated time over real time.
        gravity: acceleration of gravity in the world's frame, which is the root link's, shape (3,),
            [m/s^2].
    """
    if not (step > 0.0 and real_time_factor > 0.0):
        raise ParameterError(
            f"a step of {step} s and a real-time factor of {real_time_factor}: both must be above 0"
        )
    down = " ".join(f"{each:g}" for each in gravity)
    return WORLD.format(step=step, factor=real_time_factor, gravity=down)


def main() -> None:
    """Prints the files for Gazebo, from a URDF and the controller's YAML file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("urdf", type=Path)
    parser.add_argument("parameters", type=Path)
    given = parser.parse_args()
    arm = Arm.of_file(given.parameters)
    text, _ = without_classic_plugins(given.urdf.read_text(encoding="utf-8"))
    print("# The URDF:\n")
    print(description(text, arm, start_positions(text, arm, {}), "CONTROLLERS.yaml"))
    print("\n# CONTROLLERS.yaml:\n")
    print(controllers(arm, 1000))
    print("# The world:\n")
    print(world(0.001, 1.0, arm.gravity))


if __name__ == "__main__":
    main()
