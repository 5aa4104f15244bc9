"""A joystick moves a joint: the first axis of `joy` is its velocity, as targets of a joint stream.

ros2 run joy joy_node, and: python joystick.py joint4
"""

import sys

import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState, Joy

FASTEST = 0.5  # velocity at full deflection [rad/s]
PERIOD = 0.02  # time between two targets [s]


class Joystick(Node):
    def __init__(self, joint: str) -> None:
        super().__init__("joystick")
        self.joint, self.velocity, self.target = joint, 0.0, None
        self.targets = self.create_publisher(JointState, "target_joint", 1)
        self.create_subscription(JointState, "joint_states", self.see, qos_profile_sensor_data)
        self.create_subscription(Joy, "joy", self.steer, 1)
        self.create_timer(PERIOD, self.send)

    def see(self, state: JointState) -> None:
        if self.velocity == 0.0 and self.joint in state.name:  # the next motion begins at the arm
            self.target = state.position[state.name.index(self.joint)]

    def steer(self, joy: Joy) -> None:
        self.velocity = FASTEST * joy.axes[0] if joy.axes else 0.0

    def send(self) -> None:
        if self.velocity == 0.0 or self.target is None:  # the arm comes to rest
            return
        self.target += self.velocity * PERIOD
        message = JointState(name=[self.joint], position=[self.target], velocity=[self.velocity])
        message.header.stamp = self.get_clock().now().to_msg()
        self.targets.publish(message)


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(Joystick(sys.argv[1]))
