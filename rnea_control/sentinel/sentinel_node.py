"""`SentinelNode`: the node around a `Guard`: parameters, services, its mode, and diagnostics."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.msg import ParameterDescriptor, ParameterEvent
from rclpy.exceptions import ParameterNotDeclaredException
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.control import Controller, ControllerSettings, Gains, Mode
from rnea_control.control.belief import MOVING
from rnea_control.control.braking_check import Candidate
from rnea_control.exceptions import ControllerError, ParameterError, RneaControlError, plain
from rnea_control.loop.handover import ARMING, Handover, HandoverTimes, Phase
from rnea_control.loop.native_loop import COMMAND
from rnea_control.model import RobotModel
from rnea_control.parameters.parameter import (
    GivenParameters,
    Parameters,
    expand,
    values_in_force,
)
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED_POSITION, SENTINEL
from rnea_control.ros.arm_node import STEADY, ArmNode
from rnea_control.ros.attributed_subscription import AttributedSubscription
from rnea_control.ros.conventions import COMMANDS, LATCHED, NEWEST, mode_event
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.effort_controller import EffortController
from rnea_control.ros.guarded_node import ERROR, OK, WARN, Finding
from rnea_control.ros.middleware import shared_memory_found
from rnea_control.ros.node_parameters import (
    HANDOVER,
    IN_FORCE,
    NodeParameters,
    handover_times,
    values_in_event,
)
from rnea_control.ros.parameter_files import missing_section, section_of
from rnea_control.ros.presence import FROM_SEVERAL
from rnea_control.ros.publishers import participant
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rclpy_internals import RCLError
from rnea_control.ros.retry import Chores
from rnea_control.sentinel.command_watch import CommandWatch
from rnea_control.sentinel.guard import Guard, GuardSettings
from rnea_control.sentinel.statements import Statements

HEARTBEAT = 0.1  # time between two messages on `~/mode` while nothing changes [s]
COMMANDING_HEARTBEAT = 0.02  # the same while the sentinel commands the arm [s]
# Longest time that an arm braked by the sentinel takes to come to rest before the process ends [s].
LONGEST_BRAKING = 3.0
# Labels of a sentinel that has nothing to report.
CALM = (Phase.idle.value, ARMING, Phase.guarding.value)
POWERLESS = Mode.POWERLESS.value  # the label of a sentinel that has let go of the arm
# Reason for the missing guard at first.
WAITING = "waiting for the topic robot_description"
# Node whose parameters the sentinel takes where its own section has none.
CONTROLLER = "rnea_controller"


class SentinelNode(ArmNode):
    """The node `rnea_sentinel`; its parameters are in `parameters/table.py`.

    Attributes:
        guard: guard of the arm, once there is a robot description.
        differs: why it lacks the values in force in the controller; empty if it has them.
    """

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("rnea_sentinel", **node_arguments)
        self.guard: Guard | None = None
        self.fault = WAITING
        self.differs = ""
        self._undo, self._hearing = ExitStack(), ExitStack()
        work = {
            "the look for a controller": self._look_for_controller,
            "telling what the guard has found": self._look_after_guard,
            "the priority of new threads": self._raise_new_threads,
        }
        self._chores = Chores(work, self.note_failure)
        self._publishing = threading.Lock()  # the guard's thread publishes changes at once
        self._controller = f"{self.get_namespace().rstrip('/')}/{CONTROLLER}"
        self._own = set(self.get_parameters_by_prefix(""))  # set by the sentinel's own section
        self._take_parameters_of_controller()
        self._statements = Statements()
        self._taken: ParameterEvent | None = None  # the last message that was taken over
        self.parameters = NodeParameters(
            self,
            SENTINEL,
            in_use=lambda: self.guard is not None,
            remedy="start the sentinel again with it",
            prepare=self._judged,
            apply=lambda given: self.guard.change(*given),
        )
        self._mode = self.create_publisher(TransitionEvent, "~/mode", LATCHED)
        self.offer("~/release", lambda: self._ask(Guard.release))
        self.offer("~/give_back", lambda: self._ask(Guard.give_back))
        self.offer("~/stand_down", lambda: self._ask(Guard.stand_down))
        modes, in_force = f"{CONTROLLER}/mode", f"{CONTROLLER}/{IN_FORCE}"
        for heard in (
            (TransitionEvent, modes, FROM_SEVERAL, self._hear_controller),
            (ParameterEvent, in_force, FROM_SEVERAL, self._hear_parameters),
        ):
            self._controllers = AttributedSubscription(self, *heard, self._hearing)
        self._heartbeat = self.create_timer(HEARTBEAT, self.publish_mode, clock=STEADY)

    def begin(self) -> None:
        """Begins to guard if the parameter has a description; otherwise the first one on the topic
        begins it. Refuses to start beside a living sentinel of the same name."""
        self.refusal = self.presence.rival()
        if not self.refusal and self.parameters["robot_description"]:
            self.receive_description("")

    def end(self, spin: Callable[[], None], going_on: Callable[..., bool]) -> None:
        """Waits until an arm that the sentinel brakes has come to rest."""
        deadline = time.monotonic() + LONGEST_BRAKING
        while self._holds and self.guard.loop.speed > MOVING and time.monotonic() < deadline:
            spin()
        if self._holds:
            self.get_logger().error(
                "the sentinel ends while it holds the arm: its last command is the gravity "
                "torque, which the hardware keeps. If no controller stands by, nothing holds "
                "the arm: a frozen torque does so only for moments. Support it, or engage its "
                "brakes"
            )

    @property
    def label(self) -> str:
        """The name of the mode."""
        if self.guard is None:
            return Phase.idle.value
        if self.guard.let_go and self.guard.holds:
            return POWERLESS
        return self.guard.handover.label

    @property
    def needed_for(self) -> str:
        """Why the process must outlive its terminal; empty if it need not."""
        label = self.label
        return "" if label == Phase.idle.value else f"the sentinel guards an arm ({label})"

    @property
    def reason(self) -> str:
        """Why it is in this mode."""
        return self.fault or self.guard.let_go or self.guard.handover.reason

    def publish_mode(self, before: str = "") -> None:
        """Publishes the present mode; `before` is the label of the old mode if it has changed."""
        with self._publishing:
            label = self.label
            states = State(label=before or label), State(label=label)
            try:
                self._mode.publish(mode_event(self.now(), *states, self.reason))
            except RCLError as error:
                words = f"~/mode was not published: {error}; the next heartbeat tries again"
                if self.guard is None:
                    self.note_failure(words)
                else:  # this may be its thread, which logs by its queue alone
                    self.guard.loop.log.say("error", "mode", words)

    def destroy_node(self) -> None:
        """Takes the node down; a guard that commands leaves the gravity torque."""
        self._undo.close()
        self._hearing.close()
        self.guard, self.fault = None, "the sentinel has ended"
        if not self.refusal:  # with a refusal, another process publishes its mode on this topic
            self.publish_mode()
        super().destroy_node()

    def _take_parameters_of_controller(self) -> None:
        """Declares the parameters that the controller's section of the YAML file sets, and the
        sentinel's own section does not."""
        section = section_of(self._controller, sys.argv)
        own = self.get_fully_qualified_name()
        if not section and missing_section(own, sys.argv):
            self.get_logger().error(missing_section(self._controller, sys.argv))
        joints = section.get("joints", [])
        known = expand(SENTINEL, joints if isinstance(joints, list) else [])
        for key, value in section.items():
            wanted = key in known or key.startswith("locked_positions.")
            if wanted and not self.has_parameter(key):
                self.declare_parameter(key, value, ParameterDescriptor(dynamic_typing=True))

    def _hear_controller(self, event: TransitionEvent, gid: bytes | None) -> None:
        reason = event.transition.label
        self._statements.note_mode(self._participant(gid), event.goal_state.label, reason)
        self._heed()

    def _hear_parameters(self, event: ParameterEvent, gid: bytes | None) -> None:
        self._statements.note_parameters(self._participant(gid), event)
        self._follow_controller()

    def _participant(self, gid: bytes | None) -> bytes | None:
        known = gid is not None and self._controllers.names_participants
        return participant(gid) if known else None

    def _follow_controller(self) -> None:
        """Takes over the values in force in the controller that commands, except those of
        the robot and its limits that the sentinel's own section of the YAML file sets."""
        event = self._statements.current.parameters
        if event is None or event is self._taken or self.guard is None:
            return
        if self._statements.commander is None and self.guard.holds:
            return  # the message may be of a controller that does not have the arm
        try:
            self._take_over(values_in_event(event, self.parameters["joints"]))
        except (ParameterError, ParameterNotDeclaredException) as error:
            words = (
                f"the sentinel cannot take over what is in force in {plain(event.node)}: {error}"
            )
            if words != self.differs:
                self.get_logger().error(words)
            self.differs = words
        else:
            self._taken, self.differs = event, ""

    def _take_over(self, values: dict[str, Any]) -> None:
        """Applies the controller's values. The hand-over times do not change while the controller
        commands.

        Raises:
            ParameterError: the values are refused.
        """
        times = {name: values[name] for name in HANDOVER}
        present = handover_times(self.parameters, self.clock.ros_time_is_active)
        if self.guard.armed and present != handover_times(times, False):
            there = ", ".join(f"{name} is {value:g} s" for name, value in times.items())
            here = ", ".join(f"{value:g} s" for value in present)
            raise ParameterError(
                f"{there} there, and {here} in the sentinel, and the arm is commanded: deactivate "
                "the controller, and activate it again"
            )
        own = self._own.difference(HANDOVER)
        self.parameters.take({name: values[name] for name in values.keys() - own})

    def _heed(self) -> None:
        if self.guard is not None:
            self.guard.heed()

    def _attend(self) -> None:
        """Processes news of the guard: a message in its log, or another commanding controller."""
        if self.guard is not None:
            self.guard.attend()
            self._follow_controller()

    def receive_description(self, description: str) -> None:
        """Begins to guard the arm of a robot description; empty to use the parameter's."""
        try:
            with ExitStack() as undo:
                self.guard = self._built(description, undo)
                self._undo = undo.pop_all()
        except RneaControlError as error:
            self.fault = error.with_code
            self.get_logger().error(f"the sentinel does not guard the arm: {self.fault}")
            return
        self.fault = ""
        self.leave_descriptions()
        self.guard.loop.begin("sentinel", self.real_time)
        self.publish_mode()

    def _built(self, description: str, undo: ExitStack) -> Guard:
        parameters = self.parameters
        joints = parameters["joints"]
        parameters.add_joints(joints)
        locked = parameters.add_group("locked_positions", LOCKED_POSITION)
        self._robot = load_model(parameters, joints, locked, description)
        values = values_in_force(parameters, SENTINEL, joints)
        model, settings, times = self._prepared(parameters)
        controller = Controller(model, settings)
        topic = parameters["command_topic"]
        command = EffortCommand(self, topic, parameters["command_reliability"], model.nv)
        undo.callback(command.destroy)
        commands = Float64MultiArray, topic, COMMANDS
        heard = RawSubscription(self, JointState, "joint_states", NEWEST, commands)
        undo.callback(heard.destroy)
        self.enter_real_time(values, undo)
        limit = controller.effort_limit.copy()
        own = command.gid if heard.names_publishers else None
        names, publishers = model.joint_names, partial(heard.publishers_of, topic)
        watch = CommandWatch(names, limit, own, self._controller, publishers)
        guard = Guard(
            controller,
            command,
            Handover(times),
            watch,
            GuardSettings.of(values),
            self.clock,
            self.get_logger(),
            self._changed,
            self._statements,
        )
        wake = self.until(undo, "guard_condition", self._attend)
        manager = parameters["controller_manager"]
        taker = EffortController(self, topic, model.joint_names, manager, lambda: None, undo)
        self._effort_controller = taker
        guard.loop.hear(heard, wake, (COMMAND,), own)
        guard.warm_up()
        undo.callback(guard.stop)
        self.get_logger().info(
            f"guards {model.name!r}, {model.nv} joints, commands on {command.topic}: armed by the "
            f"first of them; real time: {self.real_time}"
        )
        if shared := shared_memory_found():
            self.get_logger().warning(
                "a controller that is killed or stopped can silence the sentinel for seconds: "
                + shared
            )
        return guard

    def _prepared(
        self, parameters: Parameters
    ) -> tuple[RobotModel, ControllerSettings, HandoverTimes]:
        """Model, settings and hand-over times of these parameters."""
        model = self._robot.copy()
        update_model(parameters, model)
        values = values_in_force(parameters, SENTINEL, model.joint_names)
        gains = Gains.uniform(model.nv, values["stiffness"], values["damping"])
        settings = ControllerSettings.of(values, gains=gains)
        simulated = self.clock.ros_time_is_active
        times = handover_times(parameters, simulated)
        return model, settings, HandoverTimes.of_sentinel(*times, simulated)

    def _judged(
        self, parameters: GivenParameters
    ) -> tuple[RobotModel, ControllerSettings, HandoverTimes]:
        """Model, settings and hand-over times to apply while the sentinel guards.

        Raises:
            ParameterError: the arm could not be braked with them.
        """
        model, settings, times = self._prepared(parameters)
        check = self.guard.braking_check()
        if objection := check.objection(Candidate(model, settings)):

            def allows(tried: GivenParameters) -> bool:
                return check.allows(Candidate(*self._prepared(tried)[:2]))

            raise ParameterError(self.parameters.allowed(parameters, allows) + objection)
        return model, settings, times

    def _changed(self, before: str) -> None:
        """Publishes and logs a change of the guard's mode; called in its thread."""
        self.publish_mode(before)
        text = f"{before} -> {self.label}: {self.reason}"
        calm = self.label in CALM and not self.guard.handover.contested
        self.guard.loop.log.say("info" if calm else "error", self.label, text)
        period = COMMANDING_HEARTBEAT if self.label == "commanding" else HEARTBEAT
        self._heartbeat.timer_period_ns = 1e9 * period
        self._heartbeat.reset()

    @property
    def _holds(self) -> bool:
        return self.guard is not None and self.guard.holds

    def _ask(self, request: Callable[[Guard], str]) -> str:
        if self.guard is None:
            raise ControllerError(self.fault)
        return request(self.guard)

    def publish_diagnostics(self) -> None:
        """Publishes the report for /diagnostics, and does the periodic work of the node."""
        guard, values = self.guard, {}
        if guard is not None:
            values = {
                "mode": self.label,
                "reason": self.reason,
                "takeovers": str(guard.takeovers),
                "given back after a pause": str(guard.give_backs.count),
                "commands sent": str(guard.commands_sent),
                "commands not published": str(guard.loop.unpublished),
                "ticks without the interpreter": str(guard.loop.shared.ticks),
                "states refused": str(guard.refused_states),
                "fastest joint": f"{guard.loop.speed:.3g}",
            }
        if self.differs:
            values["differs"] = self.differs
        differs = [(ERROR, self.differs)] if self.differs else []
        found = [self._finding(), *differs, *self.new_failures()]
        self.publish_or_log(self.reports, self.status("guard", found, values))
        self._chores.do()

    def _look_for_controller(self) -> None:
        if self.count_publishers(f"{CONTROLLER}/mode") == 0:
            self._statements.forget_modes()
            self._heed()

    def _look_after_guard(self) -> None:
        if self.guard is not None:
            self._attend()
            self._take_power_off()

    def _raise_new_threads(self) -> None:
        if self.guard is not None:
            self.real_time.housekeeping()

    def _take_power_off(self) -> None:
        """Deactivates the effort controller once the sentinel has let go of the arm."""
        if self.label != POWERLESS or not self._effort_controller.takes_commands:
            return
        if not self._effort_controller.deactivate():
            self.get_logger().error(
                "the sentinel has let go of the arm, and there is no controller_manager to "
                "deactivate the effort controller: engage the brakes, cut the power"
            )

    def _finding(self) -> Finding:
        if self.guard is None:
            return (WARN if self.fault == WAITING else ERROR), self.fault
        if self.guard.loop.failure:
            return ERROR, self.guard.loop.failure
        if self.guard.let_go:
            return ERROR, self.guard.let_go
        handover, given = self.guard.handover, self.guard.give_backs
        if given.kept and self.guard.holds:
            return ERROR, f"the sentinel keeps the arm: {given.words}"
        if handover.phase is Phase.guarding and (times := given.within_period(time.monotonic())):
            return WARN, f"gave the arm back after pauses of the controller: {times} in a minute"
        if handover.contested:
            return ERROR, f"wrong commands do not stop: {handover.reason}"
        return {
            Phase.idle: (OK, "not armed: no command was received"),
            Phase.guarding: (OK, self.label),
            Phase.revoking: (ERROR, f"taking the arm: {handover.reason}"),
            Phase.commanding: (ERROR, f"the sentinel holds the arm: {handover.reason}"),
        }[handover.phase]
