"""`ControllerNode`: joint_states in, effort commands out, a trajectory topic beside.

The tick runs in the callback of joint_states. All time is that of the states' stamps, counted from
the first one, so that simulated and real time need no difference in code.
"""

from __future__ import annotations

import time
import traceback
import warnings
from array import array
from collections.abc import Callable
from functools import wraps

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidTopicNameException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from rnea_control.control import Controller
from rnea_control.exceptions import (
    ControllerError,
    ParameterError,
    RneaControlError,
    TrajectoryError,
)
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.node.diagnostics import diagnostics
from rnea_control.node.joint_state_reader import JointStateError, JointStateReader
from rnea_control.node.parameters import LOCKED_POSITION, PARAMETERS, controller_settings
from rnea_control.node.statistics import LatencyStatistics
from rnea_control.node.trajectory_message import waypoints_from_message
from rnea_control.ros.node_parameters import NodeParameters

STATES = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
DESCRIPTION = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# How often what is being waited for is said, and diagnostics are published, [s].
REMINDER_PERIOD = 5.0
DIAGNOSTICS_PERIOD = 1.0

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


def _logged(transition: Callable) -> Callable:
    """Decorator: logs what a transition raises; rclpy goes into its error state without a word."""

    @wraps(transition)
    def logging_transition(node: ControllerNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().fatal(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return logging_transition


class ControllerNode(LifecycleNode):
    """The managed node `rnea_controller`; its parameters are in `node/parameters.py`."""

    def __init__(self, **node_arguments: object) -> None:
        super().__init__(
            "rnea_controller",
            automatically_declare_parameters_from_overrides=True,
            **node_arguments,
        )
        self.active = False
        self.controller: Controller | None = None
        self.statistics = LatencyStatistics()
        self.ticks = 0
        self.trajectories_received = 0
        self.fault = ""
        self._description = ""
        self.parameters = NodeParameters(
            self, PARAMETERS, is_active=lambda: self.active, on_change=self._retune
        )
        self._starting = True  # until the first configure, by autostart or by a lifecycle manager
        self.parameters.add_joints(self._value_or_none("joints") or ())
        self._entities: list = []
        # Stamp of the first state [ns], time of the last since then [s], and when that came by the
        # steady clock.
        self._origin = 0
        self.now: float | None = None
        self._received_at = 0.0
        self.create_subscription(
            String, "robot_description", self._receive_description, DESCRIPTION
        )
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(REMINDER_PERIOD, self._remind, clock=steady)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics, clock=steady)

    def autostart(self) -> None:
        """Configures and activates if `autostart` is set and the robot description is there."""
        if not (self._starting and self._value_or_none("autostart")):
            return
        if not (self._description or self._value_or_none("robot_description")):
            self.get_logger().info("waiting for the topic robot_description")
            return
        self._starting = False
        if self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    # Lifecycle.

    @_logged
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._configure()
        except RneaControlError as error:
            self.get_logger().error(f"not configured: {error}")
            self.fault = str(error)
            self._release()
            return FAILURE
        self._starting = False
        self.fault = ""
        return SUCCESS

    @_logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.now = None
        self.active = True
        self.get_logger().info("active: waiting for joint_states to hold the measured position")
        return SUCCESS

    @_logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        return SUCCESS

    @_logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return SUCCESS

    @_logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        self._release()
        return SUCCESS

    @_logged
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        self._release()
        return SUCCESS

    def _configure(self) -> None:
        parameters = self.parameters
        joints = parameters["joints"]
        if not joints:
            raise ParameterError("parameter 'joints' is empty; it must name the joints to control")
        parameters.add_joints(joints)
        locked = parameters.add_group("locked_positions", LOCKED_POSITION)
        for name in parameters.unknown():
            self.get_logger().warning(
                f"parameter {name!r} is not known and has no effect; is it misspelt?"
            )
        description = parameters["robot_description"] or self._description
        if not description:
            raise ParameterError(
                "there is no robot description yet: set the parameter 'robot_description', or "
                "start "
                "robot_state_publisher, which publishes the topic robot_description"
            )
        settings = controller_settings(parameters, joints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotModelWarning)  # logged below
            model = RobotModel.from_urdf_string(
                description,
                joints,
                {name: parameters[f"locked_positions.{name}"] for name in locked},
                parameters["gravity"],
            )
        for warning in model.warnings:
            self.get_logger().warning(warning)
        self.controller = Controller(model, settings)
        self._reader = JointStateReader(joints)
        self.timeout: float = parameters["joint_state_timeout"]
        # The message's array and `_torque` are one memory: what the controller writes is what is
        # published.
        self._command = Float64MultiArray(data=array("d", bytes(8 * model.nv)))
        self._torque = np.frombuffer(self._command.data)
        reliability = ReliabilityPolicy[parameters["command_reliability"].upper()]
        topic = parameters["command_topic"]
        try:
            self._command_publisher = self.create_publisher(
                Float64MultiArray, topic, QoSProfile(depth=1, reliability=reliability)
            )
        except InvalidTopicNameException as error:
            raise ParameterError(
                f"parameter 'command_topic' is {topic!r}; it must be a topic name ({error})"
            ) from error
        self._entities = [
            self._command_publisher,
            self.create_subscription(JointState, "joint_states", self._tick, STATES),
            self.create_subscription(
                JointTrajectory, "~/joint_trajectory", self._receive_trajectory, 1
            ),
        ]
        self.get_logger().info(
            f"configured for {model.name!r}: {model.nv} joints, {model.total_mass:.3g} kg, "
            f"{settings.control_law.name}, commands to {self._command_publisher.topic_name}"
        )

    def _release(self) -> None:
        for entity in self._entities:
            if entity is getattr(self, "_command_publisher", None):
                self.destroy_publisher(entity)
            else:
                self.destroy_subscription(entity)
        self._entities = []
        self.controller = None

    def _stop(self) -> None:
        """Leaves a torque that holds the arm: the hardware keeps the last command for ever."""
        if self.active and self.now is not None:
            self.controller.holding_torque(self._reader.q, self._torque)
            self._command_publisher.publish(self._command)
            self.get_logger().info("stopped: the last command holds the arm against gravity")
        self.active = False
        self.now = None

    # The tick.

    def _tick(self, message: JointState) -> None:
        if not self.active:
            return
        try:
            self._reader.read(message)
            self._answer(message)
        except (JointStateError, ControllerError) as error:
            self.fault = str(error)
            self.get_logger().error(
                f"{error}; the last command stays in force", throttle_duration_sec=1.0
            )

    def _answer(self, message: JointState) -> None:
        """Publishes the command for the state just read."""
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        if stamp == 0:  # some hardware leaves it empty
            stamp = self.get_clock().now().nanoseconds
        q = self._reader.q
        controller = self.controller
        if self.now is None:
            self._origin, self.now = stamp, 0.0
            controller.hold(0.0, q)
            self.get_logger().info("holding the measured position")
        now = (stamp - self._origin) * 1e-9
        gap = now - self.now
        if gap < 0.0 or gap > self.timeout:
            controller.hold(now, q)
            self.get_logger().error(
                f"joint_states {'went back' if gap < 0.0 else 'left a gap'} in time of "
                f"{abs(gap):.3f} s: "
                "the motion is dropped, holding the measured position"
            )
        self.now = now
        self._received_at = time.monotonic()
        controller.step(now, q, self._reader.v, self._torque)
        self._command_publisher.publish(self._command)
        self.ticks += 1
        self.fault = ""
        self.statistics.add((self.get_clock().now().nanoseconds - stamp) * 1e-9)

    def state_age(self) -> float:
        """Time since the last usable state came, by the steady clock, [s]."""
        return time.monotonic() - self._received_at

    # Everything beside the tick.

    def _receive_trajectory(self, message: JointTrajectory) -> None:
        self.trajectories_received += 1
        try:
            if not self.active or self.now is None:
                raise TrajectoryError(
                    "the controller is not active or has no joint_states yet; send it again later"
                )
            waypoints = waypoints_from_message(message, self.controller.model.joint_names)
            stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            start = (stamp - self._origin) * 1e-9 if stamp else self.now
            self.controller.follow(self.now, waypoints, start)
        except TrajectoryError as error:
            self.get_logger().error(f"trajectory refused, the motion goes on as it was: {error}")
            return
        self.get_logger().info(
            f"following {len(waypoints)} points from {start - self.now:+.3f} s on, "
            f"for {waypoints[-1].time:.3f} s"
        )

    def _receive_description(self, message: String) -> None:
        if self._description == message.data or self._value_or_none("robot_description"):
            return
        if self.controller is not None:
            self.get_logger().warning(
                "a new robot description came; it takes effect at the next configure"
            )
        self._description = message.data
        self.autostart()

    def _retune(self, names: set[str]) -> None:
        """Takes parameters that have changed into the running controller."""
        if self.controller is None:
            return
        model = self.controller.model
        try:
            self.controller.settings = controller_settings(self.parameters, model.joint_names)
            model.gravity = self.parameters["gravity"]
        except RneaControlError as error:
            self.get_logger().error(f"the tuning stays as it was: {error}")

    def _remind(self) -> None:
        if self._starting and self._value_or_none("autostart"):
            self.get_logger().info("still waiting for the topic robot_description")
        elif self.active and self.now is None:
            self.get_logger().info("still waiting for joint_states")
        elif self.active and self._command_publisher.get_subscription_count() == 0:
            self.get_logger().warning(
                f"nobody listens to {self._command_publisher.topic_name}; is the effort "
                "controller active?"
            )

    def _publish_diagnostics(self) -> None:
        if self.now is not None and self.state_age() > self.timeout:
            self.get_logger().error(
                f"no joint_states for {self.state_age():.3g} s; the last command stays in force"
            )
        message = diagnostics(self)
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _value_or_none(self, name: str) -> object:
        try:
            return self.parameters[name]
        except ParameterError:
            return None  # said in words by configure
