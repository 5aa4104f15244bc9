"""The load of the loop benchmark: 1000-point trajectories, and parameters, ten times a second."""

from __future__ import annotations

import time
from array import array

import rclpy
from benchmark_robots import PANDA_JOINTS, START
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

POINTS = 1000
PERIOD = 0.1


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("load")
    zeros = array("d", [0.0] * 7)
    message = JointTrajectory(joint_names=list(PANDA_JOINTS))
    for i in range(1, POINTS + 1):
        time_from_start = Duration(sec=i // 100, nanosec=i % 100 * 10_000_000)
        message.points.append(
            JointTrajectoryPoint(
                positions=array("d", START),
                velocities=zeros,
                accelerations=zeros,
                time_from_start=time_from_start,
            )
        )
    data = serialize_message(message)
    publisher = node.create_publisher(JointTrajectory, "rnea_controller/joint_trajectory", 1)
    client = node.create_client(SetParameters, "rnea_controller/set_parameters")
    gain = Parameter("gains.panda_joint1.p", value=400.0).to_parameter_msg()
    while rclpy.ok():
        publisher.publish(data)
        client.call_async(SetParameters.Request(parameters=[gain]))
        due = time.monotonic() + PERIOD
        while (left := due - time.monotonic()) > 0.0:
            rclpy.spin_once(node, timeout_sec=left)


if __name__ == "__main__":
    main()
