"""A controller in this process: its node with a peer that speaks for the robot over real DDS, or
its control loop alone."""

from __future__ import annotations

import time
from array import array
from unittest.mock import patch

import numpy as np
import rclpy
from dds import JOINTS, MODEL_ALONE, UNBOUNDED, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import ROSClock
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rnea_control.control import Controller, ControllerSettings
from rnea_control.dynamics import Workspace, gravity
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.loop.loop_records import LoopStatistics
from rnea_control.model import RobotModel
from rnea_control.node import control_loop, sentinel_link
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.controller_node import ControllerNode
from rnea_control.node.python_ticks import LoopSettings
from rnea_control.ros import presence
from rnea_control.ros.conventions import LATCHED

# No sentinel is there, and nobody waits until one must have been discovered.
sentinel_link.DISCOVERY = 0.0
presence.longest_discovery = lambda: 0.0

COMMANDS = "effort_controller/commands"
# The watchdog goes by real time, of which a busy machine may take a lot.
GOOD = {
    "joint_state_timeout": 20.0,
    "joint_state_gap": 20.0,
    "dead_time": 0.0,
    **MODEL_ALONE,
    # The torques of the control law itself: these tests jump from state to state.
    "activation.blend_time": 0.0,
    "activation.max_velocity": 100.0,
    **{f"torque_rate_limits.{joint}": 1e9 for joint in JOINTS},
    **{f"max_position_errors.{joint}": 0.0 for joint in JOINTS},
    **UNBOUNDED,
    "activation.check": "off",
    # They concern the whole process, which is the tests' own here.
    "thread_priority": 0,
    "lock_memory": False,
    "joints": JOINTS,
    "robot_description": two_link_arm(),
    **{f"gains.{joint}.p": 100 for joint in JOINTS},
    **{f"gains.{joint}.d": 20.0 for joint in JOINTS},
}
Q = np.array([0.3, -0.4])
MODEL = RobotModel.from_urdf_string(two_link_arm())


def gravity_torque(q: np.ndarray) -> np.ndarray:
    return gravity(MODEL, Workspace(MODEL), q, np.zeros(2))


GRAVITY = gravity_torque(Q)
LEASE = 0.5
LOST = 3.0  # time after which a state that was not answered is sent again [s]


def joint_state(nanoseconds: int, q=Q, v=(0.0, 0.0), names=JOINTS) -> JointState:
    message = JointState(name=list(names), position=array("d", q), velocity=array("d", v))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
    return message


class Recorder:
    """A command that keeps what is published."""

    def __init__(self) -> None:
        self.torque = np.zeros(2)
        self.sent: list[np.ndarray] = []

    def publish(self) -> None:
        self.sent.append(self.torque.copy())


class LoopBench:
    """A control loop of its own: bytes in, torques out, no middleware."""

    def __init__(
        self, settings: ControllerSettings, clock: object = None, last_command: str = "gravity"
    ) -> None:
        self.command = Recorder()
        self.loop = ControlLoop(
            Controller(RobotModel.from_urdf_string(two_link_arm()), settings),
            self.command,
            Handover(HandoverTimes.of_controller(LEASE, 1.5 * LEASE)),
            LoopSettings(1.0, 1.0, last_command=last_command),
            get_logger("test"),
            clock or ROSClock(),
        )

    def tick(self, nanoseconds: int, q=Q) -> bool:
        """Answers a state so long after the stamp 1000 s."""
        return self.loop.ticks.tick(serialize_message(joint_state(1000 * 10**9 + nanoseconds, q)))


class Bench:
    """A controller node and a peer that speaks for the robot, in one executor."""

    def __init__(
        self,
        start: bool = True,
        namespace: str = "",
        topic: str = COMMANDS,
        **parameters: object,
    ) -> None:
        parameters = {"command_topic": topic} | parameters
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = ControllerNode(parameter_overrides=overrides, namespace=namespace)
        self.peer = rclpy.create_node("peer", namespace=namespace)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)
        self.commands: list[np.ndarray] = []
        self.changed: dict[str, object] = {}  # parameters by `set`, with the values before
        self.states = self.peer.create_publisher(JointState, "joint_states", LATCHED)
        trajectories = "rnea_controller/joint_trajectory"
        self.trajectories = self.peer.create_publisher(JointTrajectory, trajectories, 10)
        self.topic = topic
        self.peer.create_subscription(Float64MultiArray, self.topic, self._command, 10)
        self.time = 1000.0
        if start:
            self.node.autostart()
            assert self.node.active, self.node.fault
            self.await_matches()

    def await_matches(self) -> None:
        """Waits until node and peer know of each other, both ways."""
        loop = self.node.loop.arm_loop
        sides = {
            "publishers of states": loop.heard.publishers,
            "subscribers of states": self.states.get_subscription_count,
            "subscribers of trajectories": self.trajectories.get_subscription_count,
            "listeners to commands": loop.command.listeners,
            "subscribers of commands": lambda: self.node.count_subscribers(self.topic),
        }
        wait_for(
            lambda: all(side() for side in sides.values()),
            self.spin,
            lambda: {name: side() for name, side in sides.items()},
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
        return joint_state(round(self.time * 1e9), q, v, names)

    def set(self, **parameters: object) -> str:
        """Sets parameters until `reset`, in whose names __ stands for a dot; why they are refused,
        if they are."""
        values = {name.replace("__", "."): value for name, value in parameters.items()}
        before = {name: self.node.get_parameter(name).value for name in values}
        result = self._take(values)
        if not result.successful:
            return result.reason
        self.changed = before | self.changed
        return ""

    def _take(self, values: dict[str, object]) -> SetParametersResult:
        messages = [Parameter(name, value=value) for name, value in values.items()]
        return self.node.set_parameters_atomically(messages)

    def reset(self) -> None:
        """Deactivates and activates the node, with the parameters that it had at first."""
        with patch.object(control_loop, "LONGEST_WAIT_FOR_REST", 0.0):
            self.node.trigger_deactivate()
        assert self._take(self.changed).successful
        self.changed.clear()
        for publisher in super(ControllerNode, self.node).publishers:
            if publisher.topic_name == self.node.loop.arm_loop.command.topic:
                publisher.wait_for_all_acked()
        for _ in range(50):  # commands on their way
            self.executor.spin_once(timeout_sec=0.0)
        self.commands.clear()
        self.node.trigger_activate()

    @property
    def values(self) -> dict[str, str]:
        """What diagnostics say."""
        return {item.key: item.value for item in self.status.values}

    @property
    def status(self) -> DiagnosticStatus:
        return self.node.diagnostics(LoopStatistics()).status[0]

    def drain(self) -> None:
        """Waits until no command is on its way, after states that were published without waiting
        for an answer: else each answer is taken for that to the next state, which then comes while
        the loop still takes the one before, and Fast DDS drops it."""
        count = -1
        while count != len(self.commands):
            count = len(self.commands)
            for _ in range(10):
                self.spin()

    def answer(self, *arguments, **keywords) -> np.ndarray:
        """The command that answers a state. It is sent again if the loop does not take it, as one
        that was away for longer than its lease first observes whether the sentinel commands."""
        loop = self.node.loop
        count, ticks = len(self.commands), loop.arm_loop.statistics.ticks
        self.state(*arguments, **keywords)

        def seen() -> str:
            counts = loop.arm_loop.statistics.ticks - ticks, len(self.commands) - count
            torques = self.commands[-1:], loop.arm_loop.command.torque
            mode = loop.supervisor.mode, loop.supervisor.reason
            own, shared = loop.arm_loop.handover.lease, loop.arm_loop.shared
            kept = shared.unpublished, shared.answer, own.phase, own.was_away, own.alone
            taken = {
                "refused": loop.ticks.refused,
                "look": shared.look,
                "missed": loop.arm_loop.states.missed,
                "number": loop.arm_loop.states.arrays.intake[0]["next_number"],
                "stamp": shared.stamp,
                "sent": self.time,
                "runs": shared.runs,
                "counts": str(loop.arm_loop.statistics),
                "waits": loop.arm_loop.heard.poll() if not shared.runs else "",
                "publishers": loop.arm_loop.heard.publishers(),
            }
            return (
                f"for the command: (ticks, commands) {counts}, torques {torques}, mode {mode}, "
                f"(unpublished, answer, phase, was away, alone) {kept}; {taken}"
            )

        lost = time.monotonic() + LOST

        def ticked() -> bool:
            nonlocal lost
            if time.monotonic() > lost:
                self.state(*arguments, **keywords)
                lost += LOST
            return loop.arm_loop.statistics.ticks > ticks

        wait_for(ticked, self.spin, seen)
        wait_for(lambda: len(self.commands) > count, self.spin, seen)
        wait_for(
            lambda: np.array_equal(self.commands[-1], loop.arm_loop.command.torque),
            self.spin,
            seen,
        )
        return self.commands[-1]

    def refusal(self, *arguments, **keywords) -> str:
        """Why the node refuses a state, which it does not answer."""
        loop = self.node.loop
        ticks, loop.ticks.refused = loop.arm_loop.statistics.ticks, ""
        self.state(*arguments, **keywords)
        wait_for(lambda: loop.ticks.refused, self.spin)
        assert loop.arm_loop.statistics.ticks == ticks
        return loop.ticks.refused

    def send(self, message: JointTrajectory) -> bool:
        """Sends a trajectory; whether the controller follows it."""
        configured = self.node.configured
        before, seen = configured.loop.controller.trajectory, configured.trajectories.received
        self.trajectories.publish(message)
        wait_for(lambda: configured.trajectories.received > seen, self.spin)
        return configured.loop.controller.trajectory is not before

    def destroy(self) -> None:
        """The arm may be moving, and nobody brings it to rest."""
        self.executor.shutdown()
        with patch.object(control_loop, "LONGEST_WAIT_FOR_REST", 0.0):
            self.node.destroy_node()
        self.peer.destroy_node()
