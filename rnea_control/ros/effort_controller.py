"""`EffortController`: state of ros2_control's controller that takes the commands, and whether it
takes them for the right joints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from builtin_interfaces.msg import Duration
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.task import Future

from rnea_control.exceptions import listed, plain, quoted
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode

try:  # the ROS 2 wheels lack controller_manager_msgs
    from controller_manager_msgs.srv import (
        ListControllers,
        ListHardwareInterfaces,
        SwitchController,
    )
except ModuleNotFoundError as missing:
    if missing.name != "controller_manager_msgs":
        raise
    ListControllers = SwitchController = None
try:
    from controller_manager_msgs.msg import ControllerManagerActivity
except ImportError:  # Humble has none
    ControllerManagerActivity = None

# The end of the command topic of a ForwardCommandController, after its name.
# End of the command topic of a ForwardCommandController, after its name.
COMMANDS = "/commands"
ACTIVE, NOT_LOADED = "active", "not loaded"
# Parameters of the effort controller that name the joints and the interface of its commands.
JOINTS, INTERFACE, EFFORT = "joints", "interface_name", "effort"
# Timeout of controller_manager for a switch of controllers [s].
SWITCH_TIME = 3
# Timeout of a request to controller_manager [s].
LONGEST_ANSWER = 5.0
# Timeout for an active effort controller to report its joints; short, as an arm may be falling [s].
LONGEST_SILENCE = 0.3
NAMELESS_LOOKS = 3  # number of looks before a warning that no controller subscribes to the commands
LONGEST_REASON = 500  # characters of an answer that are repeated


class EffortController:
    """State of the controller that takes the commands, as reported by controller_manager.

    An inactive ForwardCommandController subscribes to its commands too, and drops them: only
    controller_manager knows its state. controller_manager publishes the state on Jazzy and newer;
    otherwise `list_controllers` is called once a second.

    The effort controller is the controller whose node subscribes to the commands in the graph.
    While no such node is known, the name of the topic, `NAME/commands`, gives its name.

    Args:
        node: node of the controller.
        command_topic: the parameter, as the user has set it.
        joints: joint names in the order of the commands.
        manager: name of controller_manager; empty to send it no requests.
        on_change: called in the executor when `state` has changed.
        undo: closes the subscription and the clients.

    Attributes:
        name: name of the effort controller; empty while it is unknown.
        state: its lifecycle state, or "not loaded"; empty while it is unknown.
        refusal: why it could not be activated; empty if it could, or if no activation was
            requested.
        manager_gone: True if controller_manager was present and has ended.
    """

    def __init__(
        self,
        node: GuardedNode,
        command_topic: str,
        joints: Sequence[str],
        manager: str,
        on_change: Callable[[], None],
        undo: ExitStack,
    ) -> None:
        prefix = command_topic.removesuffix(COMMANDS) if command_topic.endswith(COMMANDS) else ""
        self.name = prefix.rpartition("/")[2]
        self.state = self.refusal = self._of_parameters = self._of_hardware = ""
        self._joints = list(joints)
        self._node, self._manager, self._on_change = node, manager, on_change
        self._pending: Future | None = None
        self._asked_at = 0.0
        self._loaded_at = -math.inf  # when it was found to be loaded
        self._has_told = True  # it has reported its joints, or no request is possible
        self.was_active = self.manager_gone = False
        self._list: Client | None = None  # None without a controller_manager to send requests to
        self._states: Mapping[str, str] | None = None  # state by controller, if they are known
        self._parameters: Client | None = None  # client for the effort controller's parameters
        self._nameless = 0  # number of looks without a known name
        if not manager:
            return
        if ListControllers is None:
            node.get_logger().info(
                "controller_manager_msgs is not installed: an inactive effort controller is not "
                "told from an active one"
            )
            return
        self._topic = node.resolve_topic_name(f"{manager}/activity")
        self._commands = node.resolve_topic_name(command_topic)
        if ControllerManagerActivity is not None:
            heard = ControllerManagerActivity, self._topic, self._hear, LATCHED
            node.until(undo, "subscription", *heard)
        self._list = node.until(undo, "client", ListControllers, f"{manager}/list_controllers")
        self._switch = node.until(undo, "client", SwitchController, f"{manager}/switch_controller")
        undo.callback(self._ask_parameters_of, "")
        self._ask_parameters_of(prefix)
        hardware = ListHardwareInterfaces, f"{manager}/list_hardware_interfaces"
        self._hardware = node.until(undo, "client", *hardware)

    def __str__(self) -> str:
        if self.manager_gone:
            return f"{self._manager}, and {self.name} with it, has ended"
        state = f"{self.name or 'the effort controller'} is {self.state or 'not known'}"
        return f"{state}, and cannot be activated: {self.refusal}" if self.refusal else state

    @property
    def takes_commands(self) -> bool:
        """True if the commands may be applied: the effort controller is active, or its state is
        unknown."""
        return self.state in ("", ACTIVE)

    @property
    def objection(self) -> str:
        """Why commands of `joints` do not become their torques; empty if they do, as far as the
        effort controller and the hardware have reported."""
        return self._of_parameters or self._of_hardware

    @property
    def has_told(self) -> bool:
        """True if it has reported the joints of its commands, or if its time for that is over."""
        return self._has_told or time.monotonic() - self._loaded_at > LONGEST_SILENCE

    def look(self) -> None:
        """Once a second: checks that controller_manager is present, and requests the joints."""
        if self.find():
            self._on_change()
        self._warn_nameless()
        if not self._has_told:
            self.ask_joints()
        if self._list is None or self._waits or self._node.count_publishers(self._topic):
            return
        if self._list.service_is_ready():
            self._ask(self._list.call_async(ListControllers.Request()), self._take_list)
        else:
            self.manager_gone = self.manager_gone or bool(self.state)
            self._take(None)

    def begin(self) -> None:
        """Called when the node is activated: allows `activate` to send requests again."""
        self.was_active = self.state == ACTIVE

    def activate(self) -> None:
        """Requests the activation of an inactive effort controller; `state` shows the result.

        A deactivation after it was active is taken as intended: no request is sent then, until
        controller_manager has loaded it anew.
        """
        if self.was_active or self.state != "inactive" or self._waits:
            return
        if not self._switch.service_is_ready():
            return
        request = SwitchController.Request(
            activate_controllers=[self.name],
            strictness=SwitchController.Request.STRICT,
            activate_asap=True,
            timeout=Duration(sec=SWITCH_TIME),
        )
        self._ask(self._switch.call_async(request), self._take_switch)

    def deactivate(self) -> bool:
        """Requests its deactivation, unless it is known to be inactive; returns True if the request
        was possible. Call again until `takes_commands` is false."""
        if self._list is None or not self.name or not self._switch.service_is_ready():
            return False
        if self.state in ("", ACTIVE) and not self._waits:
            request = SwitchController.Request(
                deactivate_controllers=[self.name],
                strictness=SwitchController.Request.STRICT,
                activate_asap=True,
                timeout=Duration(sec=SWITCH_TIME),
            )
            self._ask(self._switch.call_async(request), self._take_deactivation)
        return True

    def ask_joints(self) -> None:
        """Requests the joints and the interface of its commands, and the interfaces of the
        hardware; see `objection`."""
        if self._list is None:
            return
        if self._parameters is not None and self._parameters.service_is_ready():
            names = GetParameters.Request(names=[JOINTS, INTERFACE])
            future = self._parameters.call_async(names)
            future.add_done_callback(lambda done: self._take_joints(done.result()))
        if self._hardware.service_is_ready():
            future = self._hardware.call_async(ListHardwareInterfaces.Request())
            future.add_done_callback(lambda done: self._take_hardware(done.result()))

    @property
    def _waits(self) -> bool:
        """True while an answer is pending, and not timed out."""
        return self._pending is not None and time.monotonic() - self._asked_at < LONGEST_ANSWER

    def _ask(self, future: Future, take: Callable[[object], None]) -> None:
        self._pending, self._asked_at = future, time.monotonic()

        def answer(future: Future) -> None:
            if self._pending is future:
                self._pending = None
                take(future.result())

        future.add_done_callback(answer)

    def _hear(self, activity: ControllerManagerActivity) -> None:
        self._take({each.name: each.state.label for each in activity.controllers})

    def _take_list(self, answer: ListControllers.Response) -> None:
        self._take({each.name: each.state for each in answer.controller})

    def _take_switch(self, answer: SwitchController.Response) -> None:
        reason = _reason_of(answer)
        refusal = "" if answer.ok else reason or "it gives no reason"
        if refusal and refusal != self.refusal:
            self._node.get_logger().warning(
                f"{self._manager} does not activate {self.name}: {refusal}; asked again every "
                "second"
            )
        self.refusal = refusal

    def _take_deactivation(self, answer: SwitchController.Response) -> None:
        if not answer.ok:
            reason = _reason_of(answer) or "it gives no reason"
            self._node.get_logger().error(
                f"{self._manager} does not deactivate {self.name}: {reason}; asked again"
            )

    def _take_joints(self, answer: GetParameters.Response | None) -> None:
        if answer is None or len(answer.values) < 2:
            return
        self._has_told = True
        self._object(self._mismatch(*answer.values), self._of_hardware)

    def _take_hardware(self, answer: ListHardwareInterfaces.Response | None) -> None:
        """Objects to joints that the hardware commands, but not by torques."""
        kinds: dict[str, list[str]] = {}
        for each in [] if answer is None else answer.command_interfaces:
            joint, _, kind = each.name.rpartition("/")
            kinds.setdefault(joint, []).append(kind)
        wrong = [joint for joint in self._joints if EFFORT not in kinds.get(joint, [EFFORT])]
        objection = ""
        if wrong:
            kinds_of_first = listed(sorted(kinds[wrong[0]]))
            objection = (
                f"the hardware takes no effort for {listed(wrong)}, only {kinds_of_first}: give "
                "its <ros2_control> tag an effort command interface"
            )
        self._object(self._of_parameters, objection)

    def _object(self, of_parameters: str, of_hardware: str) -> None:
        before = self.objection
        self._of_parameters, self._of_hardware = of_parameters, of_hardware
        if self.objection and self.objection != before:
            self._node.get_logger().error(self.objection)
        self._on_change()

    def _mismatch(self, joints: ParameterValue, interface: ParameterValue) -> str:
        """Why commands of `joints` are not for these joints and this interface; empty if they are,
        or if the effort controller does not report it."""
        if interface.type == ParameterType.PARAMETER_STRING:
            name = interface.string_value
            if name not in ("", EFFORT):
                return f"{self.name} commands {quoted(name)}, not 'effort': set its interface_name"
        theirs = list(joints.string_array_value)
        if joints.type != ParameterType.PARAMETER_STRING_ARRAY or theirs in ([], self._joints):
            return ""
        what = "other joints" if sorted(theirs) != sorted(self._joints) else "another order"
        return (
            f"{self.name} has {what}: its `joints` are {listed(theirs)}, and those of "
            f"{self._node.get_name()} are {listed(self._joints)}; give both the same"
        )

    def _take(self, states: Mapping[str, str] | None) -> None:
        """Takes the states of all controllers; None if controller_manager does not answer."""
        self._states = states
        self.manager_gone = self.manager_gone and states is None
        if self.find():
            self._on_change()

    def find(self) -> bool:
        """Determines again the effort controller and its state; returns True if the state has
        changed. Call when subscriptions to the commands have come or gone."""
        if self._list is None:
            return False
        if self._states is None:
            state = ""
        elif self._find_name(self._states):
            state = plain(self._states.get(self.name, NOT_LOADED))
        else:
            state = ""
        if state == self.state:
            return False
        self.state = state
        if state == ACTIVE:
            self.was_active, self.refusal = True, ""
        elif state in ("", NOT_LOADED):
            self.was_active = False
        if self.manager_gone:
            self._node.get_logger().error(
                f"{self._manager} has ended, and {self.name} with it; the end of its log has the "
                "reason"
            )
        else:
            self._node.get_logger().info(f"{self.name} is {state or 'not known any more'}")
        if state in ("", NOT_LOADED):
            self._of_parameters, self._of_hardware, self._has_told = "", "", True
        else:
            self._has_told, self._loaded_at = False, time.monotonic()
            self.ask_joints()
        return True

    def _warn_nameless(self) -> None:
        """Warns once if no controller has subscribed to the commands for some looks."""
        nameless = self._states is not None and not self.name
        self._nameless += nameless
        if nameless and self._nameless == NAMELESS_LOOKS:
            self._node.get_logger().warning(
                f"no controller of {self._manager} is known to subscribe to {self._commands}, so "
                "that no effort controller is activated. Set command_topic to the topic of an "
                "effort controller, such as effort_controller/commands, or controller_manager to "
                '"" if there is none'
            )

    def _find_name(self, states: Mapping[str, str]) -> str:
        """The name of the controller whose node subscribes to the commands, which becomes `name`.
        Among several controllers, the present one is kept, or an active one is preferred."""
        infos = self._node.get_subscriptions_info_by_topic(self._commands)
        nodes = {info.node_name: info for info in infos if info.node_name in states}
        if not nodes or self.name in nodes:
            return self.name
        name = min(nodes, key=lambda each: (states[each] != ACTIVE, each))
        self._node.get_logger().info(
            f"{plain(name)} of {self._manager} applies the commands: it subscribes to "
            f"{self._commands}"
        )
        self.name = name
        self._ask_parameters_of(f"{nodes[name].node_namespace.rstrip('/')}/{name}")
        return name

    def _ask_parameters_of(self, node: str) -> None:
        """Selects the node that is asked for its joints from now on; none if `node` is empty."""
        if self._parameters is not None:
            self._node.destroy_client(self._parameters)
        service = f"{node}/get_parameters"
        self._parameters = self._node.create_client(GetParameters, service) if node else None


def _reason_of(answer: SwitchController.Response) -> str:
    """Why controller_manager does not switch; empty where it gives no reason, as Humble's."""
    return plain(getattr(answer, "message", ""), LONGEST_REASON)
