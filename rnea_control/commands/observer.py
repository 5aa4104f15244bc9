"""`Observer`: gathers the evidence from a running system within a given time.

It changes nothing: it publishes no message to other nodes, calls only services that read, and does
not subscribe to the commands, because the controller would count the subscription as an effort
controller. Service calls do not block: their answers are polled. A separate thread records the
states with their times of receipt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
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

from rnea_control.client.configuration import Configuration
from rnea_control.client.message_recorder import LATCHED, MessageRecorder
from rnea_control.commands import evidence
from rnea_control.commands.machine_checks import this_machine
from rnea_control.commands.options import parameters_in
from rnea_control.exceptions import ParameterError
from rnea_control.loop import other_inputs
from rnea_control.node.interfaces import INTERFACES, LoopInput, type_of
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros.conventions import NEWEST, QUIET
from rnea_control.ros.effort_controller import COMMANDS, ListControllers
from rnea_control.ros.publishers import UNKNOWN
from rnea_control.ros.rclpy_internals import RCLError

DESCRIPTION_PUBLISHER = "robot_state_publisher"
# Exceptions of rclpy for names that ROS does not allow.
NOT_A_NAME = (NameValidationException, RCLError, ValueError)
# Topics of targets by their names.
TARGETS = {
    each.name: each
    for each in INTERFACES
    if isinstance(each, LoopInput) and each.kind >= other_inputs.TARGET_JOINT
}
# Parameters of the longest silence of the kinds that have no `stream.target_timeout`.
TIMEOUTS = {other_inputs.CONTROL: "control_timeout", other_inputs.TARGET_STIFFNESS: ""}
OF_IMPEDANCE = other_inputs.TARGET_STIFFNESS, other_inputs.TARGET_WRENCH
LOOK = 0.05  # longest time of one spin, and period of requests [s]


class Observer:
    """Observes a running system for some seconds.

    Args:
        namespace: namespace of the arm.
        node: name of the controller's node.
        file: YAML file with the controller's parameters; empty for none.
        seconds: time of the observation [s].
        machine: properties of this computer; by default determined here.
    """

    def __init__(
        self,
        namespace: str,
        node: str,
        file: str,
        seconds: float,
        machine: evidence.Machine | None = None,
    ) -> None:
        self._node = Node("rnea_doctor", namespace=namespace, **QUIET)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._controller = self._resolve(node)
        self._clients: dict[str, Client] = {}  # by service
        self._answers: dict[str, Future] = {}
        self._time: int | None = None
        self._states = MessageRecorder(self._node, JointState, "joint_states", self._times)
        self._targets: dict[str, MessageRecorder] = {}  # by the name of the topic
        names = self._controller, self._resolve(SENTINEL)
        self._seen = seen = evidence.Evidence(seconds, *names, machine or this_machine(), file=file)
        seen.has_manager_messages = ListControllers is not None
        try:
            seen.file_parameters = parameters_in(file, self._controller) if file else {}
        except ParameterError as problem:
            seen.file_fault = str(problem)
        subscribe = self._node.create_subscription
        subscribe(String, "robot_description", self._note_description, LATCHED)
        subscribe(DiagnosticArray, "/diagnostics", self._note_diagnostics, 100)
        subscribe(Clock, "/clock", self._note_clock, NEWEST)

    def observe(self, running: Callable[[], bool] = lambda: True) -> evidence.Evidence:
        """Observes for the time given, or until `running` returns False."""
        seen, ask_at = self._seen, 0.0
        deadline = time.monotonic() + seen.seconds
        while running() and (now := time.monotonic()) < deadline:
            self._executor.spin_once(timeout_sec=LOOK)
            if now >= ask_at:  # not after every message
                self._request()
                self._record_targets()
                ask_at = now + LOOK
        self._stop()
        seen.states = tuple(_state(*each) for each in self._states.messages)
        seen.manager, seen.effort_controller, commands = self._ros2_control()
        seen.nodes = tuple(self._nodes())
        seen.commands_topic = self._topic(commands)
        seen.states_topic = self._topic(self._states.topic)
        seen.description_topic = self._topic(self._resolve("robot_description"))
        seen.clock_topic = self._topic("/clock")
        topics = {name: self._topic(self._resolve(name)) for name in TARGETS}
        seen.streams = tuple(
            _stream(TARGETS[name], topic, self._received(name))
            for name, topic in topics.items()
            if topic.publishers
        )
        return seen

    def destroy(self) -> None:
        """Destroys the nodes."""
        self._stop()
        self._executor.shutdown()
        self._node.destroy_node()

    def _stop(self) -> None:
        """Ends the recordings."""
        for each in (self._states, *self._targets.values()):
            each.stop()

    def _record_targets(self) -> None:
        """Records the topics of targets that have a publisher of the right type by now."""
        for name, row in TARGETS.items():
            topic, kind = self._resolve(name), row.type
            if name in self._targets:
                continue
            with suppress(*NOT_A_NAME, LookupError):  # the message package is not installed
                publishers = self._node.get_publishers_info_by_topic(topic)
                if any(one.topic_type == kind for one in publishers):
                    recorder = MessageRecorder(self._node, type_of(kind), topic, _monotonic)
                    self._targets[name] = recorder

    def _received(self, name: str) -> tuple[float, ...]:
        """Times of receipt of the targets on a topic [s]."""
        recorder = self._targets.get(name)
        return () if recorder is None else tuple(at for at, _ in recorder.messages)

    def _ros2_control(self) -> tuple[str, str, str]:
        """Full names of controller_manager, of the effort controller and of the command topic, from
        the parameters of the controller received by now; empty for none."""
        running = self._seen.parameters.get(self._controller)
        known = Configuration(running or self._seen.file_parameters)
        manager, topic = known.get("controller_manager"), self._resolve(known.get("command_topic"))
        return self._resolve(manager) if manager else "", self._effort_controller(topic), topic

    def _effort_controller(self, topic: str) -> str:
        """Full name of the controller that subscribes to the commands, else the name in the topic's
        name; empty for none."""
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
        """Full name of a topic or a node; the name unchanged if ROS does not allow it."""
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
        recorders = self._states, *self._targets.values()
        own = {node.get_fully_qualified_name(), *(each.name for each in recorders)}
        ends = []
        for find in (node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic):
            try:
                found = [_endpoint(info) for info in find(name) if info.node_name != UNKNOWN]
            except NOT_A_NAME:
                return evidence.Topic(name)
            ends.append(tuple(one for one in found if one.node not in own))
        return evidence.Topic(name, *ends)

    def _request(self) -> None:
        """Sends requests to the nodes that run, and stores the answers received."""
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
        """Parameters by full name, None for those not set; None before the answer."""
        listed = self._answer(ListParameters, f"{node}/list_parameters")
        if listed is None:
            return None
        names = list(listed.result.names)
        answer = self._answer(GetParameters, f"{node}/get_parameters", names=names)
        if answer is None:
            return None
        return dict(zip(names, map(parameter_value_to_python, answer.values), strict=False))

    def _answer(self, kind: Any, service: str, **request: Any) -> Any:
        """Response of a service, requested once when the service is ready; None before."""
        if service not in self._clients:
            self._clients[service] = self._node.create_client(kind, service)
        client = self._clients[service]
        if service not in self._answers and client.service_is_ready():
            self._answers[service] = client.call_async(kind.Request(**request))
        return self._answers[service].result() if service in self._answers else None

    def _note_description(self, message: String) -> None:
        if message.data not in self._seen.descriptions:
            self._seen.descriptions += (message.data,)

    def _note_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = "/" + status.name.partition(": ")[0]
            values = {item.key: item.value for item in status.values}
            new = evidence.Status(int.from_bytes(status.level, "little"), status.message, values)
            self._seen.diagnostics[name] = (*self._seen.diagnostics.get(name, ()), new)

    def _note_clock(self, message: Clock) -> None:
        self._seen.clock_times += 1
        self._time = message.clock.sec * 1_000_000_000 + message.clock.nanosec

    def _times(self, waited: int) -> tuple[float, int, int | None]:
        """Times by the steady clock [s], the system clock [ns] and the latest /clock [ns]."""
        return time.monotonic(), time.time_ns(), self._time


def _monotonic(waited: int) -> float:
    return time.monotonic()


def _state(times: tuple[float, int, int | None], content: bytes) -> evidence.State:
    message = deserialize_message(content, JointState)
    values = (message.name, message.position, message.velocity, message.effort)
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return evidence.State(*times, stamp, *map(tuple, values))


def _stream(row: LoopInput, topic: evidence.Topic, received: tuple[float, ...]) -> evidence.Stream:
    of_impedance = row.kind in OF_IMPEDANCE
    timeout = TIMEOUTS.get(row.kind, "stream.target_timeout")
    filtered = not of_impedance and row.kind != other_inputs.CONTROL
    return evidence.Stream(topic, row.type, received, timeout, filtered, of_impedance)


def _loaded(state: Any) -> evidence.LoadedController:
    claimed = tuple(state.claimed_interfaces)
    return evidence.LoadedController(state.name, state.type, state.state, claimed)


def _endpoint(info: Any) -> evidence.Endpoint:
    return evidence.Endpoint(
        f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability is ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL,
    )
