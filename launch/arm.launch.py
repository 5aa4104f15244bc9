"""The controller and its sentinel beside a robot that ros2_control already runs, real or in Gazebo.

    ros2 launch rnea_control arm.launch.py parameters:=my_arm.yaml

The robot's own launch file starts controller_manager, joint_state_broadcaster,
robot_state_publisher and a ForwardCommandController on effort interfaces.
"""

from pathlib import Path

import yaml
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription
from rnea_control.ros import middleware

PROFILE = [FindPackageShare("rnea_control"), "config", "fastdds_real_time.xml"]
# Default and meaning; an argument without a default is required.
ARGUMENTS = {
    "parameters": (None, "YAML file with the parameters"),
    "namespace": ("", "namespace of the robot's topics"),
    "joint_states": ("joint_states", "topic of the joint states, such as franka/joint_states"),
    "robot_description": (
        "",
        "text of the URDF; if empty, that of the YAML file, else of the topic",
    ),
    "robot_description_topic": (
        "robot_description",
        "topic of the URDF, such as /robot_description for an arm in a namespace",
    ),
    "use_sim_time": ("", "true for a robot in Gazebo; if empty, the value of the YAML file"),
    "activate_effort_controller": (
        "",
        "true: the controller requests the activation of the effort controller once it commands "
        "the gravity torque; if empty, the value of the YAML file",
    ),
    "activation_check": (
        "",
        "off, warn or refuse: check of signs, order and units before feedback starts; if empty, "
        "the value of the YAML file",
    ),
    "overrides": (
        "{}",
        "parameters by full name, which override the YAML file's: '{payload.mass: 1.2}'",
    ),
    "sentinel": ("true", "true: rnea_sentinel guards the arm (docs/safety.md)"),
    "fastdds_profile": (
        PathJoinSubstitution(PROFILE),
        f"profile of {middleware.NAME}, used if the environment has none (docs/middleware.md)",
    ),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=meaning)
        for name, (default, meaning) in ARGUMENTS.items()
    ]
    variable = middleware.profile_variable()
    profile = SetEnvironmentVariable(
        variable,
        EnvironmentVariable(variable, default_value=LaunchConfiguration("fastdds_profile")),
    )
    return LaunchDescription([*arguments, profile, OpaqueFunction(function=_nodes)])


def _nodes(context: LaunchContext) -> list[Node]:
    given = context.launch_configurations
    if not Path(given["parameters"]).is_file():
        raise FileNotFoundError(f"parameters:={given['parameters']}: there is no such file")
    overrides: dict[str, object] = dict(yaml.safe_load(given["overrides"]) or {})
    if given["robot_description"]:
        overrides["robot_description"] = given["robot_description"]
    for name in ("use_sim_time", "activate_effort_controller"):
        if given[name]:
            overrides[name] = given[name].lower() == "true"
    if given["activation_check"]:
        overrides["activation.check"] = given["activation_check"]
    shared = {
        "package": "rnea_control",
        "namespace": given["namespace"],
        "output": "screen",
        "parameters": [given["parameters"], overrides],
        "remappings": [
            ("joint_states", given["joint_states"]),
            ("robot_description", given["robot_description_topic"]),
        ],
    }
    # Others may wait for its activation: OnStateTransition(goal_state="active").
    nodes = [LifecycleNode(executable="rnea_controller", name="rnea_controller", **shared)]
    if given["sentinel"].lower() == "true":
        nodes.append(Node(executable="rnea_sentinel", **shared))
    return nodes
