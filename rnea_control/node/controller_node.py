"""`ControllerNode`: joint_states in, effort commands out, a trajectory topic beside.

The tick runs in the callback of joint_states. All time is that of the states' stamps, counted from
the first one, so that simulated and real time need no difference in code.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
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
from rnea_control.node.effort_command import EffortCommand
from rnea_control.node.joint_state_reader import JointStateError, JointStateReader
from rnea_control.node.parameters import LOCKED_POSITION, PARAMETERS, controller_settings
from rnea_control.node.statistics import LatencyStatistics
from rnea_control.node.trajectory_message import waypoints_from_message
from rnea_control.node.transitions import logged
from rnea_control.ros.node_parameters import NodeParameters

STATES = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
DESCRIPTION = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Real time, whatever /clock does.
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
# An arm slower than this stands still, [rad/s] or [m/s].
STILL = 0.05
# A trajectory that starts later than this has its stamp from another clock, as have states that
# seem to have come this late, [s].
FARTHEST_START = 3600.0
LONGEST_LATENCY = 1.0
# How often what is being waited for is said, and diagnostics are published, [s].
REMINDER_PERIOD = 5.0
DIAGNOSTICS_PERIOD = 1.0

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


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
            self,
            PARAMETERS,
            is_fixed=lambda: self.controller is not None,
            remedy="clean the node up, set it, and configure again (ros2 lifecycle set)",
            on_change=self._retune,
        )
        self._starting = True  # until it is configured, by autostart or by a lifecycle manager
        self.parameters.add_joints(self._value_or_none("joints") or ())
        self._subscriptions_of_tick: list[Subscription] = []
        self._halting = False
        self._stale = False
        # Stamp of the first state [ns], time of the last since then [s], and when that came by the
        # steady clock.
        self._origin = 0
        self.now: float | None = None
        self._received_at = 0.0
        self.create_subscription(
            String, "robot_description", self._receive_description, DESCRIPTION
        )
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(REMINDER_PERIOD, self._remind, clock=STEADY)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics, clock=STEADY)

    def autostart(self) -> None:
        """Configures and activates if `autostart` is set and the robot description is there."""
        try:
            if not (self._starting and self.parameters["autostart"]):
                return
            if not (self._description or self.parameters["robot_description"]):
                self.get_logger().info("waiting for the topic robot_description")
                return
        except ParameterError as error:
            self.fault = str(error)
            self.get_logger().error(f"not started: {error}")
            return
        if self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    # Lifecycle.

    @logged
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

    @logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.now = None
        self._halting = self._stale = False
        self.active = True
        self.get_logger().info("active: waiting for joint_states to hold the measured position")
        return SUCCESS

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        return SUCCESS

    @logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return SUCCESS

    @logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        self._release()
        return SUCCESS

    @logged
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
        self._command = EffortCommand(
            self, parameters["command_topic"], parameters["command_reliability"], model.nv
        )
        self._subscriptions_of_tick = [
            self.create_subscription(JointState, "joint_states", self._tick, STATES),
            self.create_subscription(
                JointTrajectory, "~/joint_trajectory", self._receive_trajectory, 1
            ),
        ]
        # Twice as often as a fault may last.
        self._watchdog = self.create_timer(0.5 * self.timeout, self._watch, clock=STEADY)
        self.get_logger().info(
            f"configured for {model.name!r}: {model.nv} joints, {model.total_mass:.3g} kg, "
            f"{settings.control_law.name}, commands to {self._command.topic}"
        )

    def _release(self) -> None:
        for subscription in self._subscriptions_of_tick:
            self.destroy_subscription(subscription)
        if self._subscriptions_of_tick:
            self.destroy_timer(self._watchdog)
            self._command.destroy()
        self._subscriptions_of_tick = []
        self.controller = None

    def _stop(self) -> None:
        """Leaves the torque that carries the arm: the hardware keeps the last command for ever."""
        if self.active and self.now is not None:
            speed = float(np.abs(self._reader.v).max())
            self._publish_holding_torque()
            self.get_logger().info("stopped: the last command carries the arm's weight")
            if speed > STILL:
                self.get_logger().warning(
                    f"the arm was still moving, at up to {speed:.2g} rad/s or m/s, and is not "
                    "braked "
                    "any more; stop the motion first"
                )
        self.active = False
        self.now = None
        self.fault = ""

    def halt(self) -> bool:
        """Begins to bring a moving arm to rest; whether it is under way to it."""
        moving = self.active and self.now is not None and self.controller.is_moving(self.now)
        if moving and not self._halting:
            self._halting = True
            self.controller.halt(self.now)
        return moving

    def _publish_holding_torque(self) -> None:
        try:
            self.controller.holding_torque(self._reader.q, self._command.torque)
        except ControllerError as error:
            self.get_logger().error(f"{error}; the last command stays in force")
            return
        self._command.publish()

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
        if gap < 0.0 or gap > self.timeout or self._stale:
            self._stale = False
            controller.hold(now, q, keep_integral=True)
            self.get_logger().error(
                f"joint_states are back, {gap:+.3f} s after the last in their own time: the motion "
                "was dropped, holding the measured position",
                throttle_duration_sec=1.0,
            )
        if now != self.now or self.ticks == 0:
            self._received_at = time.monotonic()
        self.now = now
        controller.step(now, q, self._reader.v, self._command.torque)
        self._command.publish()
        self.ticks += 1
        self.fault = ""
        latency = (self.get_clock().now().nanoseconds - stamp) * 1e-9
        if 0.0 <= latency < LONGEST_LATENCY:  # else the stamps are of another clock
            self.statistics.add(latency)

    def _watch(self) -> None:
        """Without states there is no feedback: leaves the torque that carries the arm, once."""
        if self.now is None or self._stale or self.state_age() <= self.timeout:
            return
        self._stale = True
        self._publish_holding_torque()
        self.get_logger().error(
            f"no usable joint_states, or none with a new stamp, for {self.state_age():.3g} s: the "
            "motion is dropped; the last "
            "command carries the arm's weight and stays in force"
        )

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
            if self._stale or self._halting:
                raise TrajectoryError(
                    "the controller is stopping"
                    if self._halting
                    else "there are no joint_states now"
                )
            waypoints = waypoints_from_message(message, self.controller.model.joint_names)
            stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            start = (stamp - self._origin) * 1e-9 if stamp else self.now
            if start - self.now > FARTHEST_START:
                raise TrajectoryError(
                    f"its stamp is {start - self.now:.0f} s ahead of that of joint_states; do "
                    "both go "
                    "by the same clock (use_sim_time)?"
                )
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
            waiting = self.fault or "still waiting for the topic robot_description"
            self.get_logger().info(waiting)
        elif self.active and self.now is None:
            self.get_logger().info("still waiting for joint_states")
        elif self.active and self._command.listeners() == 0:
            self.get_logger().warning(
                f"nobody listens to {self._command.topic}; is the effort controller active?"
            )

    def _publish_diagnostics(self) -> None:
        message = diagnostics(self)
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)

    def _value_or_none(self, name: str) -> object:
        try:
            return self.parameters[name]
        except ParameterError:
            return None  # said in words by configure
