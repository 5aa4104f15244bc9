"""The controller beside a robot that ros2_control already runs, real or in Gazebo.

    ros2 launch rnea_control arm.launch.py parameters:=my_arm.yaml

The robot's own launch file starts controller_manager, joint_state_broadcaster,
robot_state_publisher and a ForwardCommandController on effort interfaces.
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("parameters", description="YAML file with the parameters"),
        DeclareLaunchArgument(
            "namespace", default_value="", description="namespace of the robot's topics"
        ),
        DeclareLaunchArgument(
            "robot_description",
            default_value="",
            description="URDF text; if empty, the topic robot_description is waited for",
        ),
        DeclareLaunchArgument(
            "use_sim_time", default_value="false", description="true for a robot in Gazebo"
        ),
    ]
    overrides = {
        "robot_description": ParameterValue(
            LaunchConfiguration("robot_description"), value_type=str
        ),
        "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
    }
    controller = Node(
        package="rnea_control",
        executable="rnea_controller",
        namespace=LaunchConfiguration("namespace"),
        output="screen",
        parameters=[LaunchConfiguration("parameters"), overrides],
    )
    return LaunchDescription([*arguments, controller])
