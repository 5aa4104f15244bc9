"""`Observer`: gathers the evidence from a running system within a given time. It changes nothing:
it publishes nothing to others, calls only services that read, and does not subscribe to the
commands, which the controller would take for somebody who listens.

Nobody waits for the answer of a service: it is looked at now and then. States are recorded with
the times at which they came, in a thread of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.client import Client
from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rnea_control.commands import evidence
from rnea_control.commands.machine_checks import this_machine
from rnea_control.commands.message_recorder import LATCHED, MessageRecorder
from rnea_control.commands.options import parameters_in
from rnea_control.exceptions import ParameterError
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros.conventions import NEWEST, QUIET
from rnea_control.ros.effort_controller import COMMANDS, ListControllers
from rnea_control.ros.publishers import UNKNOWN
from rnea_control.ros.rclpy_internals import RCLError

DESCRIPTION_PUBLISHER = "robot_state_publisher"
# What rclpy raises for names that ROS does not allow.
NOT_A_NAME = (NameValidationException, RCLError, ValueError)
# How long one look at the executor takes at most, [s].
LOOK = 0.05


class Observer:
    """Looks at a running system for some seconds.

    Args:
        namespace: of the arm.
        node: name of the controller's node.
        file: YAML file of the controller's parameters; empty for none.
        seconds: how long to look.
        machine: this computer; looked at here by default.
        name: of the node that looks.
    """

    def __init__(
        self,
        namespace: str,
        node: str,
        file: str,
        seconds: float,
        machine: evidence.Machine | None = None,
        name: str = "rnea_doctor",
    ) -> None:
        self._node = Node(name, namespace=namespace, **QUIET)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._controller = self._resolve(node)
        self._clients: dict[str, Client] = {}  # by service
        self._answers: dict[str, Future] = {}
        self._time: int | None = None
        self._states = MessageRecorder(self._node, JointState, "joint_states", self._times)
        names = self._controller, self._resolve(SENTINEL)
        self._seen = seen = evidence.Evidence(seconds, *names, machine or this_machine(), file=file)
        seen.has_manager_messages = ListControllers is not None
        try:
            seen.file_parameters = parameters_in(file, self._controller) if file else {}
        except ParameterError as problem:
            seen.file_fault = str(problem)
        subscribe = self._node.create_subscription
        subscribe(String, "robot_description", self._hear_description, LATCHED)
        subscribe(DiagnosticArray, "/diagnostics", self._hear_diagnostics, 100)
        subscribe(Clock, "/clock", self._hear_clock, NEWEST)

    def observe(self, running: Callable[[], bool] = lambda: True) -> evidence.Evidence:
        """Looks for as long as it was told to, or until `running` says no."""
        seen, ask_at = self._seen, 0.0
        deadline = time.monotonic() + seen.seconds
        while running() and (now := time.monotonic()) < deadline:
            self._executor.spin_once(timeout_sec=LOOK)
            if now >= ask_at:  # messages may come much more often
                self._ask()
                ask_at = now + LOOK
        self._states.stop()
        seen.states = tuple(_state(*each) for each in self._states.messages)
        seen.manager, seen.effort_controller, commands = self._ros2_control()
        seen.nodes = tuple(self._nodes())
        seen.commands_topic = self._topic(commands)
        seen.states_topic = self._topic(self._states.topic)
        seen.description_topic = self._topic(self._resolve("robot_description"))
        seen.clock_topic = self._topic("/clock")
        return seen

    @property
    def knows_arm(self) -> bool:
        """Whether controller, robot description and joint states have been seen."""
        seen = self._seen
        values = seen.parameters.get(seen.controller)
        described = values and (seen.descriptions or values.get("robot_description"))
        return bool(described and self._states.messages)

    def destroy(self) -> None:
        """Takes the nodes down."""
        self._states.stop()
        self._executor.shutdown()
        self._node.destroy_node()

    def _ros2_control(self) -> tuple[str, str, str]:
        """The full names of controller_manager, of the effort controller and of the topic of its
        commands, by what is known of the controller's parameters by now; empty for none."""
        running = self._seen.parameters.get(self._controller)
        known = evidence.Configuration(running or self._seen.file_parameters)
        manager, topic = known.get("controller_manager"), self._resolve(known.get("command_topic"))
        return self._resolve(manager) if manager else "", self._effort_controller(topic), topic

    def _effort_controller(self, topic: str) -> str:
        """The full name of the controller that subscribes to the commands, or of the one that the
        topic's name tells; empty for none."""
        of_topic = topic.removesuffix(COMMANDS) if topic.endswith(COMMANDS) else ""
        loaded = {each.name for each in self._seen.controllers or ()}
        try:
            infos = self._node.get_subscriptions_info_by_topic(topic)
        except NOT_A_NAME:
            return of_topic
        found = sorted(
            f"{info.node_namespace.rstrip('/')}/{info.node_name}"
            for info in infos
            if info.node_name in loaded
        )
        return of_topic if not found or of_topic in found else found[0]

    def _resolve(self, name: str) -> str:
        """The full name of a topic or a node; the same name if it is none that ROS allows."""
        if name.startswith("~"):
            return f"{self._controller}{name[1:]}"
        try:
            return self._node.resolve_topic_name(name)
        except NOT_A_NAME:
            return name

    def _nodes(self) -> list[str]:
        names = self._node.get_node_names_and_namespaces()
        return [f"{namespace.rstrip('/')}/{name}" for name, namespace in names]

    def _topic(self, name: str) -> evidence.Topic:
        node = self._node
        own = {node.get_fully_qualified_name(), self._states.name}
        ends = []
        for find in (node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic):
            try:
                found = [_endpoint(info) for info in find(name) if info.node_name != UNKNOWN]
            except NOT_A_NAME:
                return evidence.Topic(name)
            ends.append(tuple(one for one in found if one.node not in own))
        return evidence.Topic(name, *ends)

    def _ask(self) -> None:
        """Asks the nodes that are there, and takes the answers that have come."""
        nodes = set(self._nodes())
        manager, effort_controller, _ = self._ros2_control()
        wanted = {self._controller, self._seen.sentinel, manager}
        wanted |= {effort_controller, self._resolve(DESCRIPTION_PUBLISHER)}
        for name in wanted & nodes:
            if self._seen.parameters.get(name) is None:
                self._seen.parameters[name] = self._parameters_of(name)
        if ListControllers and manager in nodes:
            answer = self._answer(ListControllers, f"{manager}/list_controllers")
            if answer is not None:
                self._seen.controllers = tuple(map(_loaded, answer.controller))

    def _parameters_of(self, node: str) -> evidence.Values | None:
        """The values by full name, None for those that are not set; None while there are none."""
        listed = self._answer(ListParameters, f"{node}/list_parameters")
        if listed is None:
            return None
        names = list(listed.result.names)
        answer = self._answer(GetParameters, f"{node}/get_parameters", names=names)
        if answer is None:
            return None
        return dict(zip(names, map(parameter_value_to_python, answer.values), strict=False))

    def _answer(self, kind: Any, service: str, **request: Any) -> Any:
        """The response of a service, which is asked once, when it is there; None while there is
        none."""
        if service not in self._clients:
            self._clients[service] = self._node.create_client(kind, service)
        client = self._clients[service]
        if service not in self._answers and client.service_is_ready():
            self._answers[service] = client.call_async(kind.Request(**request))
        return self._answers[service].result() if service in self._answers else None

    def _hear_description(self, message: String) -> None:
        if message.data not in self._seen.descriptions:
            self._seen.descriptions += (message.data,)

    def _hear_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = "/" + status.name.partition(": ")[0]
            values = {item.key: item.value for item in status.values}
            said = evidence.Status(int.from_bytes(status.level, "little"), status.message, values)
            self._seen.diagnostics[name] = (*self._seen.diagnostics.get(name, ()), said)

    def _hear_clock(self, message: Clock) -> None:
        self._seen.clock_times += 1
        self._time = message.clock.sec * 1_000_000_000 + message.clock.nanosec

    def _times(self) -> tuple[float, int, int | None]:
        """By the steady clock, [s], the system's, [ns], and the last message on /clock, [ns]."""
        return time.monotonic(), time.time_ns(), self._time


def _state(times: tuple[float, int, int | None], content: bytes) -> evidence.State:
    message = deserialize_message(content, JointState)
    values = (message.name, message.position, message.velocity, message.effort)
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return evidence.State(*times, stamp, *map(tuple, values))


def _loaded(told: Any) -> evidence.LoadedController:
    return evidence.LoadedController(
        told.name, told.type, told.state, tuple(told.claimed_interfaces)
    )


def _endpoint(info: Any) -> evidence.Endpoint:
    return evidence.Endpoint(
        f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability is ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL,
    )
