"""`ControllerNode`: the managed node around a `ControlLoop`: lifecycle, parameters and topics."""

from __future__ import annotations

import time
from contextlib import ExitStack

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterEvent
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from rnea_control.control import Controller, ControllerSettings, SupervisionSettings
from rnea_control.control.feasibility import light_joints
from rnea_control.control.handover import Handover, HandoverTimes, Phase
from rnea_control.exceptions import ParameterError, RneaControlError
from rnea_control.model import RobotModel
from rnea_control.node.control_loop import STILL, ControlLoop, LoopSettings
from rnea_control.node.diagnostics import NO_CLOCK, NodeReport, diagnostics
from rnea_control.node.effort_controller import EffortController
from rnea_control.node.model_watch import ModelWatch
from rnea_control.node.operation import Operation
from rnea_control.node.parameters import PARAMETERS, InForce, in_force, meaningless
from rnea_control.node.sentinel_link import SENTINEL, SentinelLink
from rnea_control.node.state_feed import StateFeed
from rnea_control.node.trajectory_interface import TrajectoryInterface
from rnea_control.node.warm_up import warm_up
from rnea_control.parameters.parameter import Parameters
from rnea_control.parameters.robot import load_model
from rnea_control.parameters.table import LOCKED_POSITION
from rnea_control.ros.callbacks import GuardedNode, logged
from rnea_control.ros.description_topic import DescriptionTopic
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.loop_statistics import LoopStatistics
from rnea_control.ros.node_clock import NodeClock
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.qos import LATCHED
from rnea_control.ros.real_time import RealTime, RealTimeSettings
from rnea_control.ros.shared_parameters import TOPIC, handover_times, parameters_in_force

# For timers that must run when /clock stands still.
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
# How often the node logs what it waits for, and publishes diagnostics, [s].
REMINDER_PERIOD = 5.0
DIAGNOSTICS_PERIOD = 1.0
# How often the loop is shown that the interpreter runs, [s].
ATTENTION_PERIOD = 0.25
# How long the controller waits for a moving arm to come to rest before it ends, [s]: longer than a
# stop takes, also in a simulation at half the speed, and shorter than a launch file waits.
LONGEST_HALT = 3.0
# Between looks at whether it has, [s].
HALT_POLL = 0.005

LAST_WORDS = {
    "guarded": "stopped. rnea_sentinel holds the arm from now on, unless it is ended as well",
    "gravity": "stopped. The last command, the gravity torque, stays in force and balances the arm "
    "like a pencil on its tip: without brakes or friction it drifts away within seconds. Engage "
    "the brakes, or deactivate the effort controller",
    "zero": "stopped. The last command is zero torque: without brakes the arm falls",
}

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ControllerNode(GuardedNode, LifecycleNode):
    """The managed node `rnea_controller`; its parameters are in `node/parameters.py`.

    Attributes:
        loop: the control loop, while the node is configured.
        trajectories: the topics, services and the action for them.
        fault: why it is not configured, if that failed.
    """

    def __init__(self, **node_arguments: object) -> None:
        super().__init__(
            "rnea_controller",
            automatically_declare_parameters_from_overrides=True,
            **node_arguments,
        )
        self.loop: ControlLoop | None = None
        self.fault = ""
        self._born = time.monotonic()
        self._time = NodeClock(self)
        self._recent = LoopStatistics()
        self._description = ""
        self._starting = True  # until first configured, by autostart or a lifecycle manager
        self.parameters = NodeParameters(
            self,
            PARAMETERS,
            in_use=lambda: self.loop is not None,
            remedy="clean the node up, set it, and configure again (ros2 lifecycle set)",
            prepare=self._prepare,
            apply=self._put_in_force,
        )
        self.parameters.add_joints(self._value_or_none("joints") or ())
        self.trajectories = TrajectoryInterface(self, self.parameters)
        self._descriptions = DescriptionTopic(self, self._receive_description)
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(REMINDER_PERIOD, self._remind, clock=STEADY)
        self.create_timer(DIAGNOSTICS_PERIOD, self.publish_diagnostics, clock=STEADY)
        self.create_timer(ATTENTION_PERIOD, self._attend, clock=STEADY)

    @property
    def active(self) -> bool:
        """Whether states are answered."""
        return self.loop is not None and self.loop.running

    @property
    def listening(self) -> bool:
        """Whether somebody takes the commands."""
        return self.loop is not None and self.loop.supervisor.listening

    def publishers(self) -> int:
        """How many publishers of joint states there are."""
        return 0 if self.loop is None else self._feed.publishers()

    def diagnostics(self, recent: LoopStatistics) -> DiagnosticArray:
        """The report for `/diagnostics`; its thresholds apply to `recent`."""
        report = NodeReport(
            self.get_fully_qualified_name(),
            self.loop,
            self.fault,
            self.publishers(),
            "" if self.loop is None else self._rivals(),
            "" if self.loop is None else self._sentinel.label,
            self.loop is not None and self._sentinel.gone,
            "" if self.loop is None else str(self._effort_controller),
            () if self.loop is None else self._model_watch.findings,
            self.trajectories.received,
            "" if self.loop is None else str(self.real_time),
            lambda name: self.parameters[f"diagnostics.{name}"],
            recent,
            self.failures,
            self.new_failure(),
        )
        message = diagnostics(report)
        message.header.stamp = self._time.now().to_msg()
        return message

    def autostart(self) -> None:
        """Configures and activates if `autostart` is set and there is a robot description."""
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
        self._look_for_listeners()
        if self.parameters["require_sentinel"] and not self._sentinel.await_it():
            self.get_logger().error(
                "not activated: require_sentinel is true, and no rnea_sentinel is heard"
            )
            return FAILURE
        self._effort_controller.begin()
        self.loop.start(self._sentinel.label)
        self._sentinel.look()
        self._recent = LoopStatistics()
        self._feed.start()
        self.get_logger().info(f"real time: {self.real_time}")
        if self.real_time.denied:
            self.get_logger().warning(
                f"real time: the system denies {', '.join(self.real_time.denied)}; "
                "docs/realtime.md says how to allow it. To run without it, set the parameters to "
                "0, [-1], false and -1"
            )
        self.get_logger().info("active: waiting for joint_states to hold the measured position")
        return SUCCESS

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._deactivate("the controller was deactivated")
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
        if not (self._description or parameters["robot_description"]):
            self._description = self._descriptions.latest()
        self._robot = self._load_model(joints)
        given = in_force(parameters, self._robot)
        with ExitStack() as undo:
            loop = self._build_loop(given, undo)
            self._undo = undo.pop_all()
        self.loop = loop
        self._descriptions.leave()
        model, settings = given.model, given.controller
        self.get_logger().info(
            f"configured for {model.name!r}: {model.nv} joints, {model.total_mass:.3g} kg, "
            f"{settings.control_law.name}, commands to {self._command.topic}"
        )

    def _build_loop(self, given: InForce, undo: ExitStack) -> ControlLoop:
        """The loop and all around it; `undo` takes it down again, in reverse order."""
        parameters, model, settings = self.parameters, given.model, given.controller
        controller = Controller(model, settings)
        self._warn_of_missing_rotors(model, settings)
        command = EffortCommand(
            self,
            parameters["command_topic"],
            parameters["command_reliability"],
            model.nv,
            self._look_for_listeners,
        )
        undo.callback(command.destroy)
        self._command = command
        self._effort_controller = EffortController(
            self,
            parameters["command_topic"],
            parameters["controller_manager"],
            self._look_for_listeners,
            undo,
        )
        self._sentinel = SentinelLink(self, command.topic, undo, self._born)
        simulated = self._time.ros_time_is_active
        times = handover_times(parameters, simulated)
        loop = ControlLoop(
            controller,
            command,
            Handover(HandoverTimes.of_controller(*times, simulated)),
            LoopSettings(
                SupervisionSettings.of(given.values, simulated=simulated),
                parameters["measured_effort_is_trusted"],
                parameters["last_command"] == "gravity",
                parameters["interpreter_timeout"],
            ),
            self.get_logger(),
            self._time,
            given.observer,
        )
        self.real_time = RealTime(RealTimeSettings.of(given.values))
        undo.callback(self.real_time.leave)
        self.real_time.enter_process()
        undo.callback(self.trajectories.disconnect)
        self.trajectories.connect(loop, given.input)
        self._in_force = self.create_publisher(ParameterEvent, f"~/{TOPIC}", LATCHED)
        undo.callback(self.destroy_publisher, self._in_force)
        self._tell_sentinel()
        log_guard = self.create_guard_condition(self._tell)
        undo.callback(self.destroy_guard_condition, log_guard)
        loop.log.wake = log_guard.trigger
        self._feed = StateFeed(self, loop, self.real_time, command, log_guard)
        undo.callback(self._feed.destroy)
        self._operation = Operation(self, loop, self._sentinel, self._feed, undo)
        self._model_watch = ModelWatch(
            loop,
            parameters["measured_effort_is_trusted"],
            parameters["payload.link"] or None,
            self.get_logger(),
        )
        undo.callback(self._operation.publish_changes)
        undo.callback(self._deactivate, "the controller was cleaned up or shut down")
        warm_up(loop)
        self._sentinel.loop = loop
        return loop

    def _load_model(self, joints: list[str]) -> RobotModel:
        locked = self.parameters.add_group("locked_positions", LOCKED_POSITION)
        for name in self.parameters.unknown():
            if reason := meaningless(name):
                self.get_logger().info(
                    f"parameter {name!r} of joint_trajectory_controller has no effect: {reason}"
                )
                continue
            self.get_logger().warning(
                f"parameter {name!r} is not known and has no effect; is it misspelt?"
            )
        model = load_model(self.parameters, joints, locked, self._description)
        for warning in model.warnings:
            self.get_logger().warning(warning)
        return model

    def _warn_of_missing_rotors(self, model: RobotModel, settings: ControllerSettings) -> None:
        q = np.clip(model.neutral(), model.lower, model.upper)
        light = light_joints(model, q, settings.feedback_inertia)
        if light and settings.control_law.feeds_back_acceleration:
            self.get_logger().warning(
                f"the model has little inertia at {', '.join(light)} and no armature: feedback is "
                "weak where the rotor has more. Give armature.<joint>, the rotor's inertia times "
                "the gear ratio squared, or feedback_inertia.<joint> if that is not known"
            )

    def _deactivate(self, reason: str) -> None:
        """Brings a moving arm to rest, ends with the last command, and logs the effect of that."""
        loop, deadline = self.loop, time.monotonic() + LONGEST_HALT
        if loop is None or not loop.running:
            return
        while loop.halt(reason) and time.monotonic() < deadline:
            time.sleep(HALT_POLL)
        self._feed.stop()
        if loop.stop(reason):
            guarded = self._sentinel.label == Phase.guarding.value
            words = LAST_WORDS["guarded" if guarded else self.parameters["last_command"]]
            self.get_logger().info(words)
            if loop.speed > STILL and not guarded:
                self.get_logger().warning(
                    f"the arm was still moving, at up to {loop.speed:.2g} rad/s or m/s, and "
                    "nothing brakes it now; bring it to rest before you deactivate the controller"
                )

    def _release(self) -> None:
        if self.loop is None:
            return
        self._undo.close()
        self.loop = None
        self._description = ""  # there may be another one by the next configure
        self._descriptions.listen()

    def destroy_node(self) -> None:
        """Takes the node down, a running loop first."""
        self._release()
        self.trajectories.destroy()
        self._time.destroy()
        super().destroy_node()

    # Beside the loop.

    def _receive_description(self, description: str) -> None:
        if self._description == description or self._value_or_none("robot_description"):
            return
        self._description = description
        self.autostart()

    def _prepare(self, values: Parameters) -> InForce:
        """The settings that a change of parameters would put in force.

        Raises:
            RneaControlError: no controller can take it, or hold the arm with it.
        """
        given = in_force(values, self._robot)
        objection = self.loop.call(lambda it: it.objection(given.model, given.controller))
        if objection:
            raise ParameterError(objection)
        return given

    def _put_in_force(self, given: InForce) -> None:
        """Brings changed parameters into the running controller."""
        self.loop.change(given.model, given.controller, given.observer)
        self.trajectories.input.settings = given.input
        self._tell_sentinel()

    def _tell_sentinel(self) -> None:
        """Publishes what is in force."""
        name, parameters = self.get_fully_qualified_name(), self.parameters
        joints, simulated = parameters["joints"], self._time.ros_time_is_active
        self._in_force.publish(parameters_in_force(name, parameters, joints, simulated))

    def _remind(self) -> None:
        if self._starting and self._value_or_none("autostart"):
            if self.fault:
                self.get_logger().error(f"still not configured: {self.fault}")
            else:
                self.get_logger().info("still waiting for the topic robot_description")
        elif self.active and self.loop.without_clock:
            self.get_logger().error(f"{NO_CLOCK}; is the bridge of the clock running?")
        elif self.active and self.loop.now is None:
            self.get_logger().info(
                f"still waiting for joint_states, which has {self.publishers()} publisher(s)"
            )
        elif self.active and not self._effort_controller.takes_commands:
            remedy = "; activate it, or set activate_effort_controller"
            if self._effort_controller.was_active:
                remedy = "; it was active before, and whoever has deactivated it must activate it"
            elif self.parameters["activate_effort_controller"]:
                remedy = ", and is activated as soon as the controller commands a gravity torque"
            self.get_logger().warning(
                f"nobody takes the commands: {self._effort_controller}{remedy}"
            )
        elif self.active and self._command.listeners() == 0:
            self.get_logger().warning(
                f"{self._command.topic} has no subscription; is the effort controller active?"
            )

    def _look_for_listeners(self) -> None:
        """Begins anew when somebody begins to take the commands."""
        if self.loop is None:
            return
        supervisor, topic = self.loop.supervisor, self._command.topic
        subscribed = self._command.listeners(without=(SENTINEL, self._sentinel.asking)) > 0
        if not subscribed:
            words = f"for a subscription to {topic}"
        elif not self._effort_controller.takes_commands:
            words = f"as {self._effort_controller} and takes no commands"
        else:
            if not supervisor.listening:
                words = f"for joint_states, as somebody takes {topic} now"
                self.loop.hear_listeners(True, words)
            return
        self.loop.hear_listeners(False, words)

    def _rivals(self) -> str:
        """Who else publishes states or commands, where only one may."""
        own, feed = self._command, self._feed
        if self.count_publishers(own.topic) <= 1 and self.count_publishers(feed.topic) <= 1:
            return ""  # the usual case: asking for names takes longer
        others = (name for name in own.publishers() if not name.endswith(f"/{SENTINEL}"))
        commanders = {self.get_fully_qualified_name(), *others}  # its own may not be discovered
        for topic, names in ((own.topic, commanders), (feed.topic, feed.publisher_names())):
            if len(names) > 1:
                return (
                    f"{topic} is published by {' and '.join(sorted(names))}; only one of them may: "
                    "stop the other"
                )
        return ""

    def _tell(self) -> None:
        """Logs and publishes the news of the loop."""
        self.loop.attend()
        self.loop.housekeeping()
        self._operation.publish_changes()
        streaming = self.active and self.loop.supervisor.streaming
        if streaming and self.parameters["activate_effort_controller"]:
            self._effort_controller.activate()

    def publish_diagnostics(self) -> None:
        """Publishes the report of the last second, and does the loop's work beside the ticks."""
        if self.loop is not None:
            self._effort_controller.look()
            self._look_for_listeners()
            self._sentinel.look()
            self._model_watch.look(self.parameters["model_check.bound"])
        self._diagnostics_publisher.publish(self.diagnostics(self._since_last()))
        if self.loop is not None:
            self._tell()
            self.trajectories.housekeeping()
            self.real_time.housekeeping()

    def _attend(self) -> None:
        if self.loop is not None:
            self.loop.attend()

    def _since_last(self) -> LoopStatistics:
        """The loop's measurements since the last call."""
        if self.loop is None:
            return LoopStatistics()
        statistics = self.loop.statistics.copy()
        recent, self._recent = statistics.since(self._recent), statistics
        return recent

    def _value_or_none(self, name: str) -> object:
        try:
            return self.parameters[name]
        except ParameterError:
            return None  # configure logs why
