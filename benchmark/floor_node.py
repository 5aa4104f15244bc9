"""The floor of the loop benchmark: answers every joint state with the same bytes.

It decodes, computes and encodes nothing: the remaining time is that of rclpy's wait set, of the
middleware, and of waking threads.
"""

from __future__ import annotations

import rclpy
from plain_node import enter_real_time
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.ros.raw_subscription import RawSubscription

STATES = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("rnea_controller")
    publisher = node.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
    states = RawSubscription(node, JointState, "joint_states", STATES)
    command = serialize_message(Float64MultiArray(data=[0.0] * 7))
    enter_real_time()
    while rclpy.ok():
        if states.take(0.1) is not None:
            publisher.publish(command)


if __name__ == "__main__":
    main()
