"""An arm in Gazebo, its controller and the sentinel, in one go: any URDF whose joints take efforts.

ros2 launch rnea_control gazebo.launch.py
ros2 launch rnea_control gazebo.launch.py urdf:=my_arm.urdf parameters:=my_arm.yaml

Needs Gazebo Harmonic or later with ros_gz_sim, ros_gz_bridge, gz_ros2_control and ros2_controllers:
docs/gazebo.md.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit, OnProcessIO, OnProcessStart
from launch.events.process import ProcessStarted
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from launch import Event, LaunchContext, LaunchDescription, LaunchDescriptionEntity
from rnea_control.simulation import gazebo
from rnea_control.simulation.gazebo_priorities import priority_below, raise_receivers, servers

LONGEST_START = "120"  # time limit for the start of Gazebo [s]
DENIED = (
    "Gazebo receives commands at the usual priority, as the system denied {}. On a busy computer "
    "torques may get old (docs/gazebo.md)"
)


SHARE = FindPackageShare("rnea_control")
# Default and meaning. Further arguments, such as sentinel, are those of arm.launch.py.
ARGUMENTS = {
    "urdf": (
        PathJoinSubstitution([SHARE, "urdf", "seven_axis_arm.urdf"]),
        "URDF file of the arm, without ros2_control's tags or with Gazebo's",
    ),
    "parameters": (
        PathJoinSubstitution([SHARE, "config", "rnea_controller.yaml"]),
        "YAML file with the parameters; its joints get effort interfaces",
    ),
    "start": (
        "{}",
        "start positions of joints, as in '{joint2: 0.3}', rad or m; by default near 0, within the "
        "limits, and with a gravity torque at some joint",
    ),
    "step": ("0.001", "step of the physics [s]"),
    "update_rate": ("", "update_rate of controller_manager [simulated Hz]; if empty, once a step"),
    "real_time_factor": ("1.0", "requested speed of simulated time"),
    "gui": ("true", "true: show Gazebo's window, which needs a display"),
    "activation_check": (
        "refuse",
        "off, warn or refuse: check of signs, order and units before feedback starts",
    ),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=meaning)
        for name, (default, meaning) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_everything)])


def _everything(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = context.launch_configurations
    step = float(given["step"])
    arm = gazebo.Arm.of_file(Path(given["parameters"]))
    text = Path(given["urdf"]).read_text(encoding="utf-8")
    urdf, classic = gazebo.without_classic_plugins(text)
    start = gazebo.start_positions(urdf, arm, yaml.safe_load(given["start"]) or {})
    folder = Path(tempfile.mkdtemp(prefix="rnea_gazebo_"))  # read for as long as Gazebo runs
    world, controllers = folder / "world.sdf", folder / "controllers.yaml"
    world.write_text(gazebo.world(step, float(given["real_time_factor"]), arm.gravity))
    rate = int(given["update_rate"] or round(1.0 / step))
    controllers.write_text(gazebo.controllers(arm, rate))
    description = gazebo.description(urdf, arm, start, controllers)
    controller = {name: given[name] for name in ("parameters", "activation_check")}
    controller["use_sim_time"] = "true"
    own = yaml.safe_load(given.get("overrides", "{}")) or {}
    controller["overrides"] = json.dumps({**arm.overrides, **own})
    priority = priority_below(int(own.get("thread_priority", arm.thread_priority)))
    shows = given["gui"].lower() == "true"
    bridge = Node(
        package="ros_gz_bridge",
        executable="parameter_bridge",
        arguments=["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"],
    )
    starters = [
        Node(
            package="ros_gz_sim",
            executable="create",
            arguments=["-topic", "robot_description", "-name", "arm"],
            output="screen",
        ),
        _spawner("joint_state_broadcaster"),
        # Inactive: Gazebo holds the joints meanwhile. The controller asks for its activation.
        _spawner(arm.effort_controller, "--inactive"),
    ]
    return [
        *(LogInfo(msg=f"gazebo.launch.py: {note}") for note in _notes(arm, start, classic, shows)),
        *_priorities(priority, bridge, starters),
        _included("rnea_control", "arm.launch.py", activate_effort_controller="true", **controller),
        _included("ros_gz_sim", "gz_sim.launch.py", gz_args=f"-r {'' if shows else '-s '}{world}"),
        bridge,
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[{"robot_description": description, "use_sim_time": True}],
        ),
        *starters,
    ]


def _priorities(
    priority: int, bridge: Node, starters: Sequence[Node]
) -> list[LaunchDescriptionEntity]:
    """Priorities for the bridge and the threads by which Gazebo's server receives commands. These
    exist once `starters` report that they have found the server, or have done their work."""
    denials: list[str] = []

    def note(denied: str) -> list[LogInfo]:
        if not denied or denials:
            return []
        denials.append(denied)
        return [LogInfo(msg=f"gazebo.launch.py: {DENIED.format(denied)}")]

    def on_bridge(event: ProcessStarted, _: LaunchContext) -> list[LogInfo]:
        return note(raise_receivers(event.pid, priority, with_main=True))

    def on_server(_: Event) -> list[LogInfo]:
        found = servers(os.getpid())
        return note("".join(raise_receivers(pid, priority, with_main=False) for pid in found))

    def on_exit(event: Event, _: LaunchContext) -> list[LogInfo]:
        return on_server(event)

    handlers = [OnProcessStart(target_action=bridge, on_start=on_bridge)]
    for each in starters:
        handlers.append(OnProcessExit(target_action=each, on_exit=on_exit))
        handlers.append(OnProcessIO(target_action=each, on_stdout=on_server, on_stderr=on_server))
    return [RegisterEventHandler(handler) for handler in handlers]


def _notes(
    arm: gazebo.Arm, start: Mapping[str, float], classic: Sequence[str], shows: bool
) -> list[str]:
    """Choices and changes that the launch file has made, a sentence each."""
    notes = ["the arm starts at " + ", ".join(f"{name} {at:.3g}" for name, at in start.items())]
    if arm.overridden:
        notes.append(arm.overridden)
    if classic:
        notes.append(f"left out plugins of Gazebo Classic in the URDF: {', '.join(classic)}")
    if shows and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        notes.append(
            "gui:=true needs a display, and neither DISPLAY nor WAYLAND_DISPLAY names one: give "
            "gui:=false for the server alone"
        )
    return notes


def _included(package: str, name: str, **arguments: str) -> IncludeLaunchDescription:
    path = PathJoinSubstitution([FindPackageShare(package), "launch", name])
    source = PythonLaunchDescriptionSource(path)
    return IncludeLaunchDescription(source, launch_arguments=arguments.items())


def _spawner(controller: str, *arguments: str) -> Node:
    return Node(
        package="controller_manager",
        executable="spawner",
        arguments=[controller, *arguments, "--controller-manager-timeout", LONGEST_START],
        output="screen",
    )
