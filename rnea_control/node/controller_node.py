"""`ControllerNode`: the managed node around a `ControlLoop`: lifecycle, parameters and topics."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from rnea_control.control import ControllerSettings, Mode, own_law
from rnea_control.control.braking_check import Candidate
from rnea_control.control.feasibility import light_joints
from rnea_control.control.own_law import OwnLaw
from rnea_control.exceptions import ControllerError, ParameterError, RneaControlError
from rnea_control.loop.loop_records import LOG, LoopStatistics
from rnea_control.model import RobotModel
from rnea_control.node.configured import Configured
from rnea_control.node.control_loop import LONGEST_WAIT_FOR_REST, ControlLoop
from rnea_control.node.diagnostics import findings, values_of
from rnea_control.node.parameters import (
    OWN_LAW,
    PARAMETERS,
    InForce,
    in_force,
    own_rows,
    without_effect,
)
from rnea_control.node.trajectory_action import TrajectoryAction
from rnea_control.parameters.parameter import GivenParameters
from rnea_control.parameters.settings import load_model
from rnea_control.parameters.table import LOCKED_POSITION
from rnea_control.plausibility import suspicions
from rnea_control.ros.arm_node import STEADY, ArmNode
from rnea_control.ros.guarded_node import ERROR, OK, logged
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.parameter_files import missing_section

# Period of the log line about what the node waits for [s].
REMINDER_PERIOD = 5.0
# Period at which the loop is shown that the interpreter runs [s].
ATTENTION_PERIOD = 0.25
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ControllerNode(ArmNode, LifecycleNode):
    """The managed node `rnea_controller`; its parameters are in `node/parameters.py`.

    Attributes:
        configured: parts of the node while it is configured; otherwise None.
        action: server of the action, once it is served.
    """

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("rnea_controller", **node_arguments)
        self.configured: Configured | None = None
        self.action: TrajectoryAction | None = None
        self._recent = LoopStatistics()
        self._description = self._rival = ""
        self._starting = True  # until first configured, by autostart or a lifecycle manager
        self._awaits_sentinel = False  # autostart could not activate without it
        self._own_law, self._own_fault = self._named_law()
        of_law = own_rows(self._own_law).values() if self._own_law else ()
        self.parameters = NodeParameters(
            self,
            (*PARAMETERS, *of_law),
            in_use=lambda: self.configured is not None,
            remedy="clean the node up, set it, and configure again (ros2 lifecycle set)",
            prepare=self._prepare,
            apply=lambda it: self.configured.put_in_force(it),  # noqa: PLW0108 (None so far)
        )
        self.parameters.add_joints(self.value_or_none("joints") or ())
        self.create_timer(REMINDER_PERIOD, self._remind, clock=STEADY)
        self.create_timer(ATTENTION_PERIOD, self._attend, clock=STEADY)
        # Both timers are due together, as each wake of the executor costs CPU time.
        self.diagnostics_timer.reset()

    def _named_law(self) -> tuple[OwnLaw | None, str]:
        """The law of a user that the node was started with, and why it is refused. It is read here
        only: no message from outside may name code."""
        given = self.get_parameter_or(OWN_LAW.name).value or ""
        try:
            return (own_law.load(str(given)) if given else None), ""
        except ControllerError as error:
            return None, str(error)

    @property
    def loop(self) -> ControlLoop | None:
        """The control loop, while the node is configured."""
        return None if self.configured is None else self.configured.loop

    @property
    def active(self) -> bool:
        """True while states are answered."""
        return self.loop is not None and self.loop.running

    @property
    def needed_for(self) -> str:
        """Why the process must outlive its terminal; empty if it need not."""
        if not self.active or self.loop.supervisor.mode is Mode.WAITING:
            return ""
        return f"the controller has an arm (mode {self.loop.supervisor.mode.value})"

    def diagnostics(self, recent: LoopStatistics) -> DiagnosticArray:
        """Report for `/diagnostics`.

        Args:
            recent: the loop's measurements since the last report, to which the thresholds apply.
        """
        configured, failed = self.configured, self.new_failures()
        if configured is None:
            found = [(ERROR, self.fault) if self.fault else (OK, "not configured"), *failed]
            return self.status("control loop", found, {})
        found = findings(configured, failed, recent, self.parameters)
        values = values_of(configured, recent) | {"real time": str(self.real_time)}
        return self.status("control loop", found, values)

    # Start and end of the process.

    def begin(self) -> None:
        """Serves the action if control_msgs is installed, and starts if `autostart` is set."""
        if elsewhere := self._missing_section():
            self.get_logger().error(elsewhere)
        if find_spec("control_msgs") is not None:
            self.action = TrajectoryAction(self)
        self.autostart()

    def autostart(self) -> None:
        """Configures and activates if `autostart` is set and there is a robot description."""
        try:
            if not (self._starting and self.parameters["autostart"]):
                return
            if not (self._description or self.parameters["robot_description"]):
                self.get_logger().info("waiting for the topic robot_description")
                return
        except ParameterError as error:
            self.fault = error.with_code
            self.get_logger().error(f"not started: {self.fault}")
            return
        if self.trigger_configure() == SUCCESS:
            active = self.trigger_activate() == SUCCESS
            self.refusal = self._rival  # beside a rival, both would answer every request
            needs_sentinel = self.parameters["require_sentinel"]
            self._awaits_sentinel = needs_sentinel and not active and not self._rival
            if self._awaits_sentinel:
                self.get_logger().info("activates automatically once rnea_sentinel runs")

    def end(self, spin: Callable[[], None], going_on: Callable[..., bool]) -> None:
        """Brings the arm to rest, after holding it for `hold_on_shutdown`."""
        self._hold_on(spin, going_on)
        deadline = time.monotonic() + LONGEST_WAIT_FOR_REST
        while self.active and time.monotonic() < deadline:
            has_goals = self.action is not None and self.action.goals
            if not (self.loop.halt("the controller ends") or has_goals):
                break
            spin()

    def _hold_on(self, spin: Callable[[], None], going_on: Callable[..., bool]) -> None:
        seconds = self.parameters["hold_on_shutdown"]
        if seconds == 0.0 or not self.active:
            return
        self.get_logger().info(
            "shutting down: the controller holds the arm"
            + (f" for {seconds:g} s," if seconds > 0.0 else "")
            + " until the commands have no subscriber, or a second signal"
        )
        deadline = time.monotonic() + (seconds if seconds > 0.0 else math.inf)
        while (
            self.active
            and self.loop.supervisor.listening
            and time.monotonic() < deadline
            and going_on(2)
        ):
            self.loop.halt("the controller ends")  # again, should the resting arm be caught
            spin()

    # Lifecycle.

    @logged
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._configure()
        except RneaControlError as error:
            self.fault = error.with_code
            self.get_logger().error(f"not configured: {self.fault}")
            return FAILURE
        self._starting = False
        self.fault = ""
        return SUCCESS

    @logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._rival = self.presence.rival()
        if obstacle := self._rival or self.configured.activate():
            self.get_logger().error(f"not activated: {obstacle}")
            return FAILURE
        self._awaits_sentinel = False
        self._recent = LoopStatistics()
        return SUCCESS

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.configured.deactivate("the controller was deactivated")
        return SUCCESS

    @logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._awaits_sentinel = False
        self._release()
        return SUCCESS

    on_shutdown = on_error = on_cleanup

    def _configure(self) -> None:
        parameters = self.parameters
        if not (joints := self.value_or_none("joints")):
            if elsewhere := self._missing_section():
                raise ParameterError(f"no parameter is set: {elsewhere}")
            joints = parameters["joints"]
            raise ParameterError("parameter 'joints' is empty; it must name the joints to control")
        parameters.add_joints(joints)
        if not (self._description or parameters["robot_description"]):
            self._description = self.latest_description()
        self._robot = self._load_model(joints)
        published = "" if parameters["robot_description"] else self._description
        if self._own_fault:
            raise ParameterError(self._own_fault)
        given = in_force(parameters, self._robot, published, self._own_law)
        self._warn_of_missing_rotors(given.model, given.controller)
        self.configured = Configured(self, given, self.action)
        self.leave_descriptions()
        model, settings = given.model, given.controller
        self.get_logger().info(
            f"configured for {model.name!r}: {model.nv} joints, {model.total_mass:.3g} kg, "
            f"{settings.control_law.name}, commands to {self.configured.command.topic}"
        )

    def _missing_section(self) -> str:
        """Message that the YAML files of the command line are for other nodes; empty if not."""
        return missing_section(self.get_fully_qualified_name(), sys.argv)

    def _load_model(self, joints: list[str]) -> RobotModel:
        locked = self.parameters.add_group("locked_positions", LOCKED_POSITION)
        for severity, sentence in without_effect(self.parameters.unknown(), joints):
            LOG[severity](self.get_logger(), sentence)
        model = load_model(self.parameters, joints, locked, self._description)
        for warning in suspicions(model):
            self.get_logger().warning(warning)
        return model

    def _warn_of_missing_rotors(self, model: RobotModel, settings: ControllerSettings) -> None:
        q = np.clip(model.neutral(), model.lower, model.upper)
        light = light_joints(model, q, settings.feedback_inertia)
        if light and settings.control_law.feeds_back_acceleration:
            self.get_logger().warning(
                f"the model has little inertia at {', '.join(light)} and no armature: feedback is "
                "weak where the rotor has more. Give armature.<joint>, the rotor's inertia times "
                "the gear ratio squared, which rnea_tune measures, or feedback_inertia.<joint>"
            )

    def _release(self) -> None:
        if self.configured is None:
            return
        self.configured.release()
        self.configured = None
        self._description = ""  # the description may change until the next configure
        self.hear_descriptions()

    def destroy_node(self) -> None:
        """Stops a running loop, and destroys the node."""
        if self.active:
            self.trigger_deactivate()
        self._release()
        if self.action is not None:
            self.action.destroy()
        super().destroy_node()

    # Beside the loop.

    def receive_description(self, description: str) -> None:
        """Starts with this description if it differs from the last one."""
        if description != self._description:
            self._description = description
            self.autostart()

    def _prepare(self, values: GivenParameters) -> InForce:
        """Settings that a change of parameters would put in force.

        Raises:
            RneaControlError: no controller can have these settings, or hold or brake the arm with
                them.
        """
        self.loop.attend()  # many changes at once are no hang of the interpreter
        given = in_force(values, self._robot, own=self._own_law)
        loop, check = self.loop, self.loop.braking_check()

        def allows(tried: GivenParameters) -> bool:
            loop.attend()
            other = in_force(tried, self._robot, own=self._own_law)
            held = not loop.call(lambda it: it.objection(other.model, other.controller))
            return held and check.allows(Candidate(other.model, other.controller))

        objection = loop.call(lambda it: it.objection(given.model, given.controller))
        if objection.startswith(("gains.", "control_law", "task.")):
            raise ParameterError(objection)  # the message has what is allowed
        objection = objection or check.objection(Candidate(given.model, given.controller))
        if objection:
            raise ParameterError(self.parameters.allowed(values, allows) + objection)
        return given

    def _remind(self) -> None:
        if self._starting and self.value_or_none("autostart"):
            if self.fault:
                self.get_logger().error(f"still not configured: {self.fault}")
            else:
                self.get_logger().info("still waiting for the topic robot_description")
        elif self.configured is not None:
            self.configured.remind()

    def publish_diagnostics(self) -> None:
        """Does the periodic work of the node, and publishes the report of the last second if there
        are subscribers."""
        if self.configured is not None:
            self.configured.chores.do()
            if self._awaits_sentinel and self.configured.sentinel.is_there():
                self.trigger_activate()
        statistics = LoopStatistics() if self.loop is None else self.loop.arm_loop.statistics.copy()
        before, self._recent = self._recent, statistics
        if self.reports.get_subscription_count():
            self.publish_or_log(self.reports, self.diagnostics(statistics.since(before)))

    def _attend(self) -> None:
        if self.configured is not None:
            self.configured.loop.attend()
            self.configured.trajectories.look_for_delay()
