"""`ControllerNode`: the managed node around a `ControlLoop`: lifecycle, parameters and topics."""

from __future__ import annotations

import warnings
from contextlib import ExitStack

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rnea_control.control import Controller, ControllerSettings
from rnea_control.exceptions import ParameterError, RneaControlError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.diagnostics import diagnostics
from rnea_control.node.effort_command import EffortCommand
from rnea_control.node.parameters import LOCKED_POSITION, PARAMETERS
from rnea_control.node.real_time import RealTime
from rnea_control.node.settings import controller_settings, real_time_settings, tune_model
from rnea_control.node.state_feed import state_feed
from rnea_control.node.statistics import LoopStatistics
from rnea_control.node.transitions import logged
from rnea_control.node.warm_up import rehearse
from rnea_control.ros.node_parameters import NodeParameters

DESCRIPTION = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Real time, whatever /clock does.
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
# How often what is being waited for is said, and diagnostics are published, [s].
REMINDER_PERIOD = 5.0
DIAGNOSTICS_PERIOD = 1.0

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ControllerNode(LifecycleNode):
    """The managed node `rnea_controller`; its parameters are in `node/parameters.py`.

    Attributes:
        loop: the control loop, while the node is configured.
        fault: why it is not, if that was tried.
    """

    def __init__(self, **node_arguments: object) -> None:
        super().__init__(
            "rnea_controller",
            automatically_declare_parameters_from_overrides=True,
            **node_arguments,
        )
        self.loop: ControlLoop | None = None
        self.fault = ""
        self._recent = LoopStatistics()
        self._description = ""
        self._starting = True  # until it is configured, by autostart or by a lifecycle manager
        self.parameters = NodeParameters(
            self,
            PARAMETERS,
            is_fixed=lambda: self.loop is not None,
            remedy="clean the node up, set it, and configure again (ros2 lifecycle set)",
            on_change=self._retune,
        )
        self.parameters.add_joints(self._value_or_none("joints") or ())
        self.create_subscription(
            String, "robot_description", self._receive_description, DESCRIPTION
        )
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(REMINDER_PERIOD, self._remind, clock=STEADY)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics, clock=STEADY)

    @property
    def active(self) -> bool:
        """Whether states are answered."""
        return self.loop is not None and self.loop.running

    def publishers(self) -> int:
        """How many publishers of joint states there are."""
        return 0 if self.loop is None else self._feed.publishers()

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
            return FAILURE
        self._starting = False
        self.fault = ""
        return SUCCESS

    @logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.loop.publishers = self.publishers()
        self.loop.start()
        self._recent = LoopStatistics()
        self._feed.start()
        self.get_logger().info(f"real time: {self.real_time}")
        if self.real_time.denied:
            self.get_logger().warning(
                f"real time: denied {', '.join(self.real_time.denied)}; docs/realtime.md says how "
                "to allow it, or set these parameters to 0, [-1], false and -1"
            )
        self.get_logger().info("active: waiting for joint_states to hold the measured position")
        return SUCCESS

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._feed.stop()
        self.loop.stop()
        return SUCCESS

    @logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return SUCCESS

    @logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return SUCCESS

    @logged
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return SUCCESS

    def _configure(self) -> None:
        parameters = self.parameters
        joints = parameters["joints"]
        if not joints:
            raise ParameterError("parameter 'joints' is empty; it must name the joints to control")
        parameters.add_joints(joints)
        model = self._load_model(joints)
        parameters.check()
        settings = controller_settings(parameters, joints)
        with ExitStack() as undo:
            loop = self._build_loop(model, settings, undo)
            self._undo = undo.pop_all()
        self.loop = loop
        self.get_logger().info(
            f"configured for {model.name!r}: {model.nv} joints, {model.total_mass:.3g} kg, "
            f"{settings.control_law.name}, commands to {self._command.topic}"
        )

    def _build_loop(
        self, model: RobotModel, settings: ControllerSettings, undo: ExitStack
    ) -> ControlLoop:
        """The loop and all around it; `undo` takes it down again, what feeds it first."""
        parameters = self.parameters
        controller = Controller(model, settings)
        tune_model(parameters, model)
        command = EffortCommand(
            self, parameters["command_topic"], parameters["command_reliability"], model.nv
        )
        undo.callback(command.destroy)
        self._command = command
        loop = ControlLoop(
            controller,
            command,
            parameters["joint_state_timeout"],
            self.get_logger(),
            self.get_clock(),
        )
        self.real_time = RealTime(real_time_settings(parameters))
        undo.callback(self.real_time.leave)
        self.real_time.enter_process()
        undo.callback(loop.stop)
        trajectories = self.create_subscription(
            JointTrajectory, "~/joint_trajectory", loop.follow, 1, raw=True
        )
        undo.callback(self.destroy_subscription, trajectories)
        log_guard = self.create_guard_condition(loop.look_about)
        undo.callback(self.destroy_guard_condition, log_guard)
        loop.log.wake = log_guard.trigger
        self._feed = state_feed(self, loop, self.real_time)
        undo.callback(self._feed.destroy)
        rehearse(loop)
        return loop

    def _load_model(self, joints: list[str]) -> RobotModel:
        parameters = self.parameters
        locked = parameters.add_group("locked_positions", LOCKED_POSITION)
        for name in parameters.unknown():
            self.get_logger().warning(
                f"parameter {name!r} is not known and has no effect; is it misspelt?"
            )
        description = parameters["robot_description"] or self._description
        if not description:
            raise ParameterError(
                "there is no robot description yet: set the parameter 'robot_description', or "
                "start robot_state_publisher, which publishes the topic robot_description"
            )
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
        return model

    def _release(self) -> None:
        if self.loop is None:
            return
        self._undo.close()
        self.loop = None

    def destroy_node(self) -> None:
        """Takes the node down, a running loop first."""
        self._release()
        super().destroy_node()

    # Everything beside the loop.

    def _receive_description(self, message: String) -> None:
        if self._description == message.data or self._value_or_none("robot_description"):
            return
        if self.loop is not None:
            self.get_logger().warning(
                "a new robot description came; it takes effect at the next configure"
            )
        self._description = message.data
        self.autostart()

    def _retune(self, names: set[str]) -> None:
        """Takes parameters that have changed into the running controller."""
        if self.loop is None:
            return
        controller = self.loop.controller
        try:
            joints = controller.model.joint_names
            tune_model(self.parameters, controller.model)
            controller.settings = controller_settings(self.parameters, joints)
        except RneaControlError as error:
            self.get_logger().error(f"the tuning stays as it was: {error}")

    def _remind(self) -> None:
        if self._starting and self._value_or_none("autostart"):
            self.get_logger().info(self.fault or "still waiting for the topic robot_description")
        elif self.active and self.loop.now is None:
            self.get_logger().info(
                f"still waiting for joint_states, of which there are {self.publishers()} publishers"
            )
        elif self.active and self._command.listeners() == 0:
            self.get_logger().warning(
                f"nobody listens to {self._command.topic}; is the effort controller active?"
            )

    def _publish_diagnostics(self) -> None:
        if self.loop is not None:
            self.loop.publishers = self.publishers()
        message = diagnostics(self, self._since_last())
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)
        if self.loop is not None:
            self.loop.look_about()
            self.real_time.collect_garbage()

    def _since_last(self) -> LoopStatistics:
        """What the loop measured since this was asked last."""
        if self.loop is None:
            return LoopStatistics()
        statistics = self.loop.statistics.copy()
        recent, self._recent = statistics.since(self._recent), statistics
        return recent

    def _value_or_none(self, name: str) -> object:
        try:
            return self.parameters[name]
        except ParameterError:
            return None  # said in words by configure
