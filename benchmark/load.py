"""The loads of the loop benchmark, each a process beside the controller.

- goals: 1000 points by the action ten times a second, each goal replaced by the next;
  controller_state and torque_terms have a subscriber.
- chunks: sixteen positions on the topic fifty times a second, upsampled; with the same subscriber.
- long_trajectories: 100 000 points on the topic once a second.
- parameters: 10 000 at once, once a second, which the controller refuses.
- descriptions: 50 MB on robot_description, twice a second.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable

import rclpy
from benchmark_robots import PANDA_JOINTS, START
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CONTROLLER = "rnea_controller"
POINTS = 1000  # points of a goal
CHUNK = 16  # points of a chunk
LONG = 100_000  # points of a long trajectory
MANY = 10_000  # parameters of a request
LARGE = 50_000_000  # size of a robot description [bytes]
PERIOD = 0.1  # time between two goals [s]
CHUNK_PERIOD = 0.02  # time between two chunks [s]


def trajectory(points: int, period: float, fields: tuple[str, ...]) -> JointTrajectory:
    """A trajectory of `points` points at the start position, at rest."""
    message = JointTrajectory(joint_names=list(PANDA_JOINTS))
    values = {name: array("d", bytes(56)) for name in fields}
    values["positions"] = array("d", START)
    for i in range(1, points + 1):
        nanoseconds = round(1e9 * i * period)
        due = Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        message.points.append(JointTrajectoryPoint(time_from_start=due, **values))
    return message


def listen(node: Node) -> None:
    """Subscribes to the controller's state, so that it is published."""
    from control_msgs.msg import JointTrajectoryControllerState  # noqa: PLC0415

    for kind, topic in (
        (JointTrajectoryControllerState, "controller_state"),
        (JointState, "torque_terms"),
    ):
        node.create_subscription(kind, f"{CONTROLLER}/{topic}", lambda _: None, 1, raw=True)


def long_trajectories(node: Node) -> Callable[[], object]:
    data = serialize_message(trajectory(LONG, 0.001, ("velocities",)))
    publisher = node.create_publisher(JointTrajectory, f"{CONTROLLER}/joint_trajectory", 1)
    return lambda: publisher.publish(data)


def parameters(node: Node) -> Callable[[], object]:
    client = node.create_client(SetParameters, f"{CONTROLLER}/set_parameters")
    gain = Parameter("gains.panda_joint1.p", value=400.0).to_parameter_msg()
    request = SetParameters.Request(parameters=[gain] * MANY)
    return lambda: client.call_async(request)


def descriptions(node: Node) -> Callable[[], object]:
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, "robot_description", latched)
    data = serialize_message(String(data="x" * LARGE))
    return lambda: publisher.publish(data)


def goals(node: Node) -> Callable[[], object]:
    from control_msgs.action import FollowJointTrajectory  # noqa: PLC0415

    listen(node)
    client = ActionClient(node, FollowJointTrajectory, f"{CONTROLLER}/follow_joint_trajectory")
    goal = FollowJointTrajectory.Goal(
        trajectory=trajectory(POINTS, 0.01, ("velocities", "accelerations"))
    )
    return lambda: client.send_goal_async(goal)


def chunks(node: Node) -> Callable[[], object]:
    listen(node)
    data = serialize_message(trajectory(CHUNK, CHUNK_PERIOD, ()))
    publisher = node.create_publisher(JointTrajectory, f"{CONTROLLER}/joint_trajectory", 1)
    return lambda: publisher.publish(data)


LOADS = {
    "goals": (goals, PERIOD),
    "chunks": (chunks, CHUNK_PERIOD),
    "long_trajectories": (long_trajectories, 1.0),
    "parameters": (parameters, 1.0),
    "descriptions": (descriptions, 0.5),
}


def main() -> None:
    make, period = LOADS[sys.argv[1]]
    rclpy.init()
    node = rclpy.create_node("load")
    send = make(node)
    while rclpy.ok():
        send()
        due = time.monotonic() + period
        while (left := due - time.monotonic()) > 0.0:
            rclpy.spin_once(node, timeout_sec=left)


if __name__ == "__main__":
    main()
