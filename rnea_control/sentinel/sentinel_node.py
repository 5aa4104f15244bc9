"""`SentinelNode`: the node around a `Guard`: parameters, services, its mode, and diagnostics."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from rcl_interfaces.msg import ParameterDescriptor, ParameterEvent
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterNotDeclaredException
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_control.control import Controller, ControllerSettings, Gains, Mode
from rnea_control.control.handover import Handover, HandoverTimes, Phase
from rnea_control.exceptions import ParameterError, RneaControlError, listed
from rnea_control.model import RobotModel
from rnea_control.parameters.parameter import Parameters, expand, values_in_force
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED_POSITION, SENTINEL
from rnea_control.ros.callbacks import GuardedNode
from rnea_control.ros.deferred_log import DeferredLog
from rnea_control.ros.description_topic import DescriptionTopic
from rnea_control.ros.diagnostics import report
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.fast_dds import fast_dds
from rnea_control.ros.node_clock import NodeClock
from rnea_control.ros.node_parameters import (
    HANDOVER,
    IN_FORCE,
    NodeParameters,
    handover_times,
    values_in_event,
)
from rnea_control.ros.parameter_files import section_of
from rnea_control.ros.qos import COMMANDS, LATCHED, STATES
from rnea_control.ros.raw_subscription import subscription
from rnea_control.ros.real_time import RealTime, RealTimeSettings
from rnea_control.sentinel.command_watch import CommandWatch
from rnea_control.sentinel.diagnostics import WAITING, finding, values_of
from rnea_control.sentinel.guard import Guard, GuardSettings, warm_up

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
# Between two messages on `~/mode` while nothing changes, [s].
HEARTBEAT, COMMANDING_HEARTBEAT = 0.1, 0.02
DIAGNOSTICS_PERIOD = 1.0
# The node whose parameters the sentinel takes where it has none of its own.
CONTROLLER = "rnea_controller"


class SentinelNode(GuardedNode):
    """The node `rnea_sentinel`; its parameters are in `parameters/table.py`.

    Attributes:
        guard: the guard of the arm, once there is a robot description.
        fault: why there is none.
        differs: why it lacks the values in force in the controller; empty if it has them.
    """

    def __init__(self, **node_arguments: object) -> None:
        super().__init__(
            "rnea_sentinel",
            automatically_declare_parameters_from_overrides=True,
            **node_arguments,
        )
        self.guard: Guard | None = None
        self.fault = WAITING
        self.differs = ""
        self._undo = ExitStack()
        self._time = NodeClock(self)
        self._publishing = threading.Lock()  # the guard's thread publishes changes at once
        self._own = set(self.get_parameters_by_prefix(""))  # what the sentinel's own section says
        self._take_parameters_of_controller()
        self._told: ParameterEvent | None = None  # what is in force in the controller
        self.parameters = NodeParameters(
            self,
            SENTINEL,
            in_use=lambda: self.guard is not None,
            remedy="start the sentinel again with it",
            prepare=self._prepared,
            apply=lambda given: self.guard.change(*given),
        )
        self._mode = self.create_publisher(TransitionEvent, "~/mode", LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_service(Trigger, "~/release", self._release)
        self.create_service(Trigger, "~/stand_down", self._stand_down)
        self._descriptions = DescriptionTopic(self, self._receive_description)
        self._applied = True  # the commands, as far as the controller knows
        self.create_subscription(
            TransitionEvent, f"{CONTROLLER}/mode", self._hear_controller, LATCHED
        )
        self.create_subscription(
            ParameterEvent, f"{CONTROLLER}/{IN_FORCE}", self._hear_parameters, LATCHED
        )
        self.create_timer(HEARTBEAT, self.publish_mode, clock=STEADY)
        self._fast = self.create_timer(COMMANDING_HEARTBEAT, self._fast_heartbeat, clock=STEADY)
        self._fast.cancel()
        self.create_timer(DIAGNOSTICS_PERIOD, self._once_a_second, clock=STEADY)
        if self.parameters["robot_description"]:
            self._build("")

    @property
    def label(self) -> str:
        """The name of the mode."""
        return Phase.idle.value if self.guard is None else self.guard.handover.phase.value

    @property
    def reason(self) -> str:
        """Why it is in this mode."""
        return self.fault or self.guard.handover.reason

    def publish_mode(self, before: str = "") -> None:
        """Publishes the present mode; `before` is the one before, if it has changed."""
        with self._publishing:
            label = self.label
            self._mode.publish(
                TransitionEvent(
                    timestamp=self._time.now().nanoseconds,
                    transition=Transition(label=self.reason),
                    start_state=State(label=before or label),
                    goal_state=State(label=label),
                )
            )

    def destroy_node(self) -> None:
        """Takes the node down; a guard that commands leaves the gravity torque."""
        self._undo.close()
        self.guard, self.fault = None, "the sentinel has ended"
        self.publish_mode()
        self._time.destroy()
        super().destroy_node()

    def _take_parameters_of_controller(self) -> None:
        """Declares the values of the controller's section of the same YAML file that the sentinel's
        own section lacks."""
        name = f"{self.get_namespace().rstrip('/')}/{CONTROLLER}"
        section = section_of(name, sys.argv)
        joints = section.get("joints", [])
        known = expand(SENTINEL, joints if isinstance(joints, list) else [])
        for key, value in section.items():
            wanted = key in known or key.startswith("locked_positions.")
            if wanted and not self.has_parameter(key):
                self.declare_parameter(key, value, ParameterDescriptor(dynamic_typing=True))

    def _hear_controller(self, event: TransitionEvent) -> None:
        self._heed(event.goal_state.label != Mode.WAITING.value)

    def _hear_parameters(self, event: ParameterEvent) -> None:
        self._told = event
        if self.guard is not None:
            self._follow_controller()

    def _follow_controller(self) -> None:
        """Takes over the values in force in the controller, except those of the robot and its
        limits that the sentinel's own section of the YAML file sets."""
        if self._told is None:
            return
        told, joints = values_in_event(self._told), self.parameters["joints"]
        try:
            if list(told["joints"]) != joints:
                raise ParameterError(f"its joints are {listed(told['joints'])}")
            own = self._own.difference(HANDOVER)
            self.parameters.take({name: told[name] for name in told.keys() - own})
        except (ParameterError, ParameterNotDeclaredException) as error:
            self.differs = (
                f"the sentinel cannot take over what is in force in {self._told.node}: {error}"
            )
            self.get_logger().error(self.differs)
            return
        self.differs = ""

    def _heed(self, applied: bool) -> None:
        self._applied = applied
        if self.guard is not None:
            self.guard.heed(applied)

    def _receive_description(self, description: str) -> None:
        if not self.parameters["robot_description"]:
            self._build(description)

    def _build(self, description: str) -> None:
        try:
            with ExitStack() as undo:
                self.guard = self._built(description, undo)
                self._undo = undo.pop_all()
        except RneaControlError as error:
            self.fault = str(error)
            self.get_logger().error(f"the sentinel does not guard the arm: {error}")
            return
        self.fault = ""
        self._descriptions.leave()
        self.guard.start(self.real_time)
        self.publish_mode()

    def _built(self, description: str, undo: ExitStack) -> Guard:
        parameters = self.parameters
        joints = parameters["joints"]
        parameters.add_joints(joints)
        self._follow_controller()
        locked = parameters.add_group("locked_positions", LOCKED_POSITION)
        self._robot = load_model(parameters, joints, locked, description)
        values = values_in_force(parameters, SENTINEL, joints)
        model, settings, times = self._prepared(parameters)
        controller = Controller(model, settings)
        topic = parameters["command_topic"]
        command = EffortCommand(self, topic, parameters["command_reliability"], model.nv)
        undo.callback(command.destroy)
        namespace = self.get_namespace().rstrip("/")
        both = (self.get_fully_qualified_name(), f"{namespace}/{CONTROLLER}")
        commands = (Float64MultiArray, topic, COMMANDS)
        words = "states and commands"
        heard = subscription(self, words, JointState, "joint_states", STATES, commands)
        undo.callback(heard.destroy)
        self.real_time = RealTime(RealTimeSettings.of(values))
        undo.callback(self.real_time.leave)
        self.real_time.enter_process()
        log = DeferredLog(self.get_logger())
        wake = self.create_guard_condition(log.flush)
        undo.callback(self.destroy_guard_condition, wake)
        log.wake = wake.trigger
        self._log = log
        guard = Guard(
            controller,
            command,
            heard,
            Handover(times),
            CommandWatch(
                model.joint_names,
                controller.effort_limit.copy(),
                both,
                lambda: heard.publishers_of(topic),
            ),
            GuardSettings.of(values),
            self._time,
            log,
            self._changed,
            wake,
        )
        guard.heed(self._applied)
        warm_up(controller)
        undo.callback(guard.stop)
        self.get_logger().info(
            f"guards {model.name!r}, {model.nv} joints, commands on {command.topic}: armed by the "
            f"first of them; real time: {self.real_time}"
        )
        middleware = fast_dds()
        if middleware is not None and middleware.shared_memory:
            self.get_logger().warning(
                "a controller that is killed or stopped can silence the sentinel for seconds: Fast "
                f"DDS shares memory ({middleware.shared_memory}). docs/realtime.md has the remedy: "
                "a profile such as config/fastdds_localhost.xml, in place of LOCALHOST"
            )
        return guard

    def _prepared(
        self, parameters: Parameters
    ) -> tuple[RobotModel, ControllerSettings, HandoverTimes]:
        """The values to put in force."""
        model = self._robot.copy()
        update_model(parameters, model)
        values = values_in_force(parameters, SENTINEL, model.joint_names)
        gains = Gains.uniform(model.nv, values["stiffness"], values["damping"])
        settings = ControllerSettings.of(values, gains=gains)
        simulated = self._time.ros_time_is_active
        times = handover_times(parameters, simulated)
        return model, settings, HandoverTimes.of_sentinel(*times, simulated)

    def _changed(self, before: str) -> None:
        """The guard's mode has changed; called in its thread."""
        self.publish_mode(before)
        text = f"{before} -> {self.label}: {self.reason}"
        calm = self.label in ("idle", "guarding") and not self.guard.handover.contested
        self._log.say("info" if calm else "error", self.label, text)
        if self.label == "commanding":
            self._fast.reset()

    def _fast_heartbeat(self) -> None:
        if self.label == "commanding":
            self.publish_mode()
        else:
            self._fast.cancel()

    def _release(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        refusal = self.fault or self.guard.release()
        response.success = not refusal
        response.message = refusal or "the sentinel commands nothing; the controller may begin"
        return response

    def _stand_down(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        refusal = self.fault or self.guard.stand_down()
        response.success = not refusal
        response.message = refusal or (
            "the sentinel is idle until it hears a command. A controller that stands by now takes "
            "the arm. Without one the torque stays frozen, which holds an arm only for moments: "
            "support it, or engage its brakes"
        )
        return response

    def _once_a_second(self) -> None:
        found = finding(self.guard, self.fault, self.differs, self.new_failure())
        values = {"callbacks failed": str(self.failures)}
        if self.guard is not None:
            values |= values_of(self.guard)
        if self.differs:
            values["differs"] = self.differs
        self._diagnostics.publish(report(self, "guard", found, values, self._time.now()))
        if self.count_publishers(f"{CONTROLLER}/mode") == 0:
            self._heed(True)  # who commands next may say nothing
        if self.guard is not None:
            self._log.flush()
            self.real_time.housekeeping()
