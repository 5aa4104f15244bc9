"""A simulated arm, its controller and the sentinel, in one go.

ros2 launch rnea_control simulation.launch.py
ros2 launch rnea_control simulation.launch.py urdf:=my_arm.urdf parameters:=my_arm.yaml
"""

import os

from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("rnea_control")
    default_urdf = PathJoinSubstitution([share, "urdf", "seven_axis_arm.urdf"])
    default_parameters = PathJoinSubstitution([share, "config", "rnea_controller.yaml"])
    parameters = LaunchConfiguration("parameters")
    namespace = LaunchConfiguration("namespace")
    use_sim_time = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    arguments = [
        DeclareLaunchArgument(
            "urdf", default_value=default_urdf, description="URDF file of the arm"
        ),
        DeclareLaunchArgument(
            "parameters",
            default_value=default_parameters,
            description="YAML file with the parameters of all nodes",
        ),
        DeclareLaunchArgument("namespace", default_value="", description="namespace of all nodes"),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="false",
            description="whether the arm publishes /clock and the controller goes by it",
        ),
        DeclareLaunchArgument(
            "sentinel",
            default_value="true",
            description="whether rnea_sentinel guards the arm (docs/safety.md)",
        ),
        DeclareLaunchArgument(
            "fastdds_profile",
            default_value=PathJoinSubstitution([share, "config", "fastdds_real_time.xml"]),
            description="profile of Fast DDS, where the environment has none (docs/realtime.md)",
        ),
    ]
    # Fast DDS 3 reads the first of them, and 2 the second.
    newer = os.environ.get("ROS_DISTRO") not in ("humble", "jazzy")
    variable = "FASTDDS_DEFAULT_PROFILES_FILE" if newer else "FASTRTPS_DEFAULT_PROFILES_FILE"
    profile = SetEnvironmentVariable(
        variable,
        EnvironmentVariable(variable, default_value=LaunchConfiguration("fastdds_profile")),
    )
    arm = Node(
        package="rnea_control",
        executable="rnea_simulated_arm",
        namespace=namespace,
        output="screen",
        parameters=[
            parameters,
            {
                "urdf_file": ParameterValue(LaunchConfiguration("urdf"), value_type=str),
                "publish_clock": use_sim_time,
            },
        ],
    )
    controller = Node(
        package="rnea_control",
        executable="rnea_controller",
        namespace=namespace,
        output="screen",
        parameters=[parameters, {"use_sim_time": use_sim_time}],
    )
    sentinel = Node(
        package="rnea_control",
        executable="rnea_sentinel",
        namespace=namespace,
        output="screen",
        parameters=[parameters, {"use_sim_time": use_sim_time}],
        condition=IfCondition(LaunchConfiguration("sentinel")),
    )
    return LaunchDescription([*arguments, profile, arm, controller, sentinel])
