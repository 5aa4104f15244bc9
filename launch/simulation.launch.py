"""A simulated arm, its controller and the sentinel, in one go.

ros2 launch rnea_control simulation.launch.py
ros2 launch rnea_control simulation.launch.py urdf:=my_arm.urdf parameters:=my_arm.yaml
"""

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("rnea_control")
    # Further arguments, such as sentinel and namespace, are those of arm.launch.py.
    arguments = [
        DeclareLaunchArgument(
            "urdf",
            default_value=PathJoinSubstitution([share, "urdf", "seven_axis_arm.urdf"]),
            description="URDF file of the arm",
        ),
        DeclareLaunchArgument(
            "parameters",
            default_value=PathJoinSubstitution([share, "config", "rnea_controller.yaml"]),
            description="YAML file with the parameters of all nodes",
        ),
        DeclareLaunchArgument(
            "use_sim_time",
            default_value="false",
            description="whether the arm publishes /clock and the controller goes by it",
        ),
    ]
    controller = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(PathJoinSubstitution([share, "launch", "arm.launch.py"])),
        launch_arguments={"parameters": LaunchConfiguration("parameters")}.items(),
    )
    arm = Node(
        package="rnea_control",
        executable="rnea_simulated_arm",
        namespace=LaunchConfiguration("namespace"),
        output="screen",
        parameters=[
            LaunchConfiguration("parameters"),
            {
                "urdf_file": ParameterValue(LaunchConfiguration("urdf"), value_type=str),
                "publish_clock": ParameterValue(
                    LaunchConfiguration("use_sim_time"), value_type=bool
                ),
            },
        ],
    )
    return LaunchDescription([*arguments, controller, arm])
