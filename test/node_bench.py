"""A controller node in this process, and a peer that speaks for the robot, over real DDS."""

from __future__ import annotations

from array import array
from unittest.mock import patch

import numpy as np
import rclpy
from dds import wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.node import controller_node
from rnea_control.node.controller_node import ControllerNode
from rnea_control.node.statistics import LoopStatistics

JOINTS = ["shoulder", "elbow"]
COMMANDS = "effort_controller/commands"
# The watchdog goes by real time, of which a busy machine may take a lot.
GOOD = {
    "joint_state_timeout": 20.0,
    "joint_state_gap": 20.0,
    "dead_time": 0.0,
    # The torques of the control law itself: these tests jump from state to state.
    "activation.blend_time": 0.0,
    "activation.max_velocity": 100.0,
    **{f"torque_rate_limits.{joint}": 1e9 for joint in ("shoulder", "elbow")},
    **{f"max_position_errors.{joint}": 0.0 for joint in ("shoulder", "elbow")},
    # They concern the whole process, which is the tests' own here.
    "thread_priority": 0,
    "lock_memory": False,
    "freeze_garbage_collector": False,
    "joints": JOINTS,
    "robot_description": two_link_arm(),
    **{
        f"gains.{joint}.{gain}": value
        for joint in JOINTS
        for gain, value in (("p", 100), ("d", 20.0))
    },
}
Q = np.array([0.3, -0.4])
MODEL = RobotModel.from_urdf_string(two_link_arm())


def gravity_torque(q: np.ndarray) -> np.ndarray:
    return gravity(MODEL, Workspace(MODEL), q, np.zeros(2))


GRAVITY = gravity_torque(Q)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Bench:
    """A controller node and a peer that speaks for the robot, in one executor."""

    def __init__(
        self, start: bool = True, namespace: str = "", topic: str = COMMANDS, **parameters: object
    ) -> None:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = ControllerNode(parameter_overrides=overrides, namespace=namespace)
        self.peer = rclpy.create_node("peer", namespace=namespace)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)
        self.commands: list[np.ndarray] = []
        self.states = self.peer.create_publisher(JointState, "joint_states", LATCHED)
        self.trajectories = self.peer.create_publisher(
            JointTrajectory, "rnea_controller/joint_trajectory", 10
        )
        self.topic = topic
        self.peer.create_subscription(Float64MultiArray, self.topic, self._command, 10)
        self.time = 1000.0
        if start:
            self.node.autostart()
            assert self.node.active, self.node.fault
            self.await_matches()

    def await_matches(self) -> None:
        """Waits until node and peer know of each other, both ways."""
        wait_for(
            lambda: (
                self.node.publishers()
                and self.states.get_subscription_count()
                and self.trajectories.get_subscription_count()
                and self.node.loop.command.listeners()
                and self.node.count_subscribers(self.topic)
            ),
            self.spin,
        )

    def _command(self, message: Float64MultiArray) -> None:
        self.commands.append(np.array(message.data))

    def spin(self) -> None:
        self.executor.spin_once(timeout_sec=0.02)

    def state(self, *arguments, **keywords) -> None:
        """Publishes one state; see `message`."""
        self.states.publish(self.message(*arguments, **keywords))

    def message(self, q=Q, v=(0.0, 0.0), names=JOINTS, stamp: float | None = None) -> JointState:
        """A state, 1 ms after the last."""
        self.time = self.time + 0.001 if stamp is None else stamp
        message = JointState(name=list(names))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(
            round(self.time * 1e9), 10**9
        )
        message.position, message.velocity = array("d", q), array("d", v)
        return message

    @property
    def values(self) -> dict[str, str]:
        """What diagnostics say."""
        return {item.key: item.value for item in self.status.values}

    @property
    def status(self) -> DiagnosticStatus:
        return self.node.diagnostics(LoopStatistics()).status[0]

    def answer(self, *arguments, **keywords) -> np.ndarray:
        """The command that answers a state."""
        loop = self.node.loop
        count, ticks = len(self.commands), loop.statistics.ticks
        self.state(*arguments, **keywords)
        wait_for(lambda: loop.statistics.ticks > ticks, self.spin)
        wait_for(
            lambda: (
                len(self.commands) > count
                and np.array_equal(self.commands[-1], loop.command.torque)
            ),
            self.spin,
        )
        return self.commands[-1]

    def refusal(self, *arguments, **keywords) -> str:
        """Why the node refuses a state, which it does not answer."""
        loop = self.node.loop
        ticks, loop.refused = loop.statistics.ticks, ""
        self.state(*arguments, **keywords)
        wait_for(lambda: loop.refused, self.spin)
        assert loop.statistics.ticks == ticks
        return loop.refused

    def send(self, message: JointTrajectory) -> bool:
        """Sends a trajectory; whether the controller follows it."""
        before, seen = self.node.loop.controller.trajectory, self.node.trajectories.received
        self.trajectories.publish(message)
        wait_for(lambda: self.node.trajectories.received > seen, self.spin)
        return self.node.loop.controller.trajectory is not before

    def destroy(self) -> None:
        """The arm may be moving, and nobody brings it to rest."""
        self.executor.shutdown()
        with patch.object(controller_node, "LONGEST_HALT", 0.0):
            self.node.destroy_node()
        self.peer.destroy_node()
