"""The controller and its sentinel beside a robot that ros2_control already runs, real or in Gazebo.

    ros2 launch rnea_control arm.launch.py parameters:=my_arm.yaml

The robot's own launch file starts controller_manager, joint_state_broadcaster,
robot_state_publisher and a ForwardCommandController on effort interfaces.
"""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("parameters", description="YAML file with the parameters"),
        DeclareLaunchArgument(
            "namespace", default_value="", description="namespace of the robot's topics"
        ),
        DeclareLaunchArgument(
            "robot_description",
            default_value="",
            description="URDF text; if empty, the YAML's, else the topic robot_description",
        ),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="",
            description="true for a robot in Gazebo; if empty, what the YAML says",
        ),
        DeclareLaunchArgument(
            "sentinel",
            default_value="true",
            description="whether rnea_sentinel guards the arm (docs/safety.md)",
        ),
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=_nodes)])


def _nodes(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    overrides = {}
    if given["robot_description"]:
        overrides["robot_description"] = given["robot_description"]
    if given["use_sim_time"]:
        overrides["use_sim_time"] = given["use_sim_time"].lower() == "true"
    executables = ["rnea_controller"]
    if given["sentinel"].lower() == "true":
        executables.append("rnea_sentinel")
    return [
        Node(
            package="rnea_control",
            executable=executable,
            namespace=given["namespace"],
            output="screen",
            parameters=[given["parameters"], overrides],
        )
        for executable in executables
    ]
