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

SHARE = FindPackageShare("rnea_control")
# Default and meaning. Further arguments, such as sentinel and namespace, are those of
# arm.launch.py.
ARGUMENTS = {
    "urdf": (PathJoinSubstitution([SHARE, "urdf", "seven_axis_arm.urdf"]), "URDF file of the arm"),
    "parameters": (
        PathJoinSubstitution([SHARE, "config", "rnea_controller.yaml"]),
        "YAML file with the parameters of all nodes",
    ),
    "use_sim_time": ("false", "true: the arm publishes /clock, and all nodes use it"),
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
    passed_on = ("parameters", "activation_check")
    controller = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(PathJoinSubstitution([SHARE, "launch", "arm.launch.py"])),
        launch_arguments={name: LaunchConfiguration(name) for name in passed_on}.items(),
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
