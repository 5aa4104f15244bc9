"""Two arms of one robot under one controller_manager, each with a controller and a sentinel.

    ros2 launch rnea_control two_arms.launch.py parameters:=my_arms.yaml

The robot's own launch file starts controller_manager, one joint_state_broadcaster, one
robot_state_publisher, and a ForwardCommandController on effort interfaces for each arm. The YAML
file has a section for each namespace: config/two_arms.yaml.
"""

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

SHARE = FindPackageShare("rnea_control")
# Default and meaning. Further arguments, such as sentinel, are those of arm.launch.py.
ARGUMENTS = {
    "namespaces": ("left right", "namespaces of the arms, separated by spaces"),
    "parameters": (
        PathJoinSubstitution([SHARE, "config", "two_arms.yaml"]),
        "YAML file with the parameters, with a section for each namespace",
    ),
    "joint_states": ("/joint_states", "topic of the joint states of all arms"),
    "robot_description_topic": ("/robot_description", "topic of the URDF of all arms"),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=meaning)
        for name, (default, meaning) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_arms)])


def _arms(context: LaunchContext) -> list[IncludeLaunchDescription]:
    given = context.launch_configurations
    shared = {name: given[name] for name in ARGUMENTS if name != "namespaces"}
    path = PathJoinSubstitution([SHARE, "launch", "arm.launch.py"])
    return [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(path),
            launch_arguments={**shared, "namespace": namespace}.items(),
        )
        for namespace in given["namespaces"].split()
    ]
