"""The loads of the loop benchmark, each a process beside the controller.

- trajectories: 1000 points on the topic, and a parameter, ten times a second.
- goals: 1000 points by the action ten times a second, each goal replaced by the next one; somebody
  listens to controller_state.
- chunks: sixteen positions on the topic fifty times a second, upsampled; somebody listens to
  controller_state.
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
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

CONTROLLER = "rnea_controller"
POINTS, CHUNK = 1000, 16
PERIOD, CHUNK_PERIOD = 0.1, 0.02


def trajectory(points: int, period: float, fields: tuple[str, ...]) -> JointTrajectory:
    """So many points at rest where the arm is."""
    message = JointTrajectory(joint_names=list(PANDA_JOINTS))
    values = {name: array("d", bytes(56)) for name in fields}
    values["positions"] = array("d", START)
    for i in range(1, points + 1):
        nanoseconds = round(1e9 * i * period)
        due = Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        message.points.append(JointTrajectoryPoint(time_from_start=due, **values))
    return message


def listen(node: Node) -> None:
    """Has the controller publish its state."""
    from control_msgs.msg import JointTrajectoryControllerState  # noqa: PLC0415

    node.create_subscription(
        JointTrajectoryControllerState,
        f"{CONTROLLER}/controller_state",
        lambda _: None,
        1,
        raw=True,
    )


def trajectories(node: Node) -> Callable[[], object]:
    data = serialize_message(trajectory(POINTS, 0.01, ("velocities", "accelerations")))
    publisher = node.create_publisher(JointTrajectory, f"{CONTROLLER}/joint_trajectory", 1)
    client = node.create_client(SetParameters, f"{CONTROLLER}/set_parameters")
    gain = Parameter("gains.panda_joint1.p", value=400.0).to_parameter_msg()

    def send() -> None:
        publisher.publish(data)
        client.call_async(SetParameters.Request(parameters=[gain]))

    return send


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
    "trajectories": (trajectories, PERIOD),
    "goals": (goals, PERIOD),
    "chunks": (chunks, CHUNK_PERIOD),
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
