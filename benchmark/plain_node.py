"""The peer of the loop benchmark: the same job as a plain rclpy node with numpy and Pinocchio.

Computed torque along a trajectory, answered for every joint state. It has the same real-time set-up
as rnea_controller.
"""

from __future__ import annotations

import gc

import numpy as np
import pinocchio as pin
import rclpy
from benchmark_robots import PANDA_JOINTS, urdf_path
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rnea_control.ros.real_time import RealTime, RealTimeSettings

# The defaults of rnea_controller.
REAL_TIME = RealTimeSettings(50, lock_memory=True)


class PlainController(Node):
    def __init__(self) -> None:
        super().__init__("rnea_controller")
        self.declare_parameter("gains.panda_joint1.p", 400.0)
        model = pin.buildModelFromUrdf(str(urdf_path("panda")))
        fingers = [model.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
        self.model = pin.buildReducedModel(model, fingers, pin.neutral(model))
        self.data = self.model.createData()
        self.times = self.positions = None
        self.start = 0.0
        self.publisher = self.create_publisher(Float64MultiArray, "effort_controller/commands", 10)
        self.create_subscription(JointState, "joint_states", self.on_state, 10)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self.on_trajectory, 10)

    def on_state(self, message: JointState) -> None:
        indices = [message.name.index(name) for name in PANDA_JOINTS]
        q = np.array(message.position)[indices]
        v = np.array(message.velocity)[indices]
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return
        now = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        if self.positions is None:
            self.times, self.positions, self.start = np.zeros(1), q[None, :], now
        t = now - self.start
        desired = np.array([np.interp(t, self.times, column) for column in self.positions.T])
        a = 400.0 * (desired - q) - 40.0 * v
        tau = pin.rnea(self.model, self.data, q, v, a)
        tau = np.clip(tau, -self.model.effortLimit, self.model.effortLimit)
        self.publisher.publish(Float64MultiArray(data=tau.tolist()))

    def on_trajectory(self, message: JointTrajectory) -> None:
        order = [message.joint_names.index(name) for name in PANDA_JOINTS]
        self.times = np.array(
            [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        )
        self.positions = np.array([p.positions for p in message.points])[:, order]
        self.start = 1e-9 * self.get_clock().now().nanoseconds


def enter_real_time() -> RealTime:
    """Priorities and locked memory as rnea_controller has them, and no garbage collector."""
    real_time = RealTime(REAL_TIME)
    real_time.enter_process()
    real_time.enter_thread()
    gc.freeze()
    gc.disable()
    return real_time


if __name__ == "__main__":
    rclpy.init()
    node = PlainController()
    enter_real_time()
    rclpy.spin(node)
