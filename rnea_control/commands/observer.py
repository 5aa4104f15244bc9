"""`Observer`: gathers the evidence from a running system within a given time. It changes nothing:
it publishes nothing, calls only services that read, and does not subscribe to the commands, which
the controller would take for somebody who listens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from rnea_control.commands.configuration import checked_parameters, value_or_default
from rnea_control.commands.evidence import Endpoint, Evidence, LoadedController, Status, Topic
from rnea_control.commands.sources import ParameterQuestion, Question, StateRecorder, machine
from rnea_control.node.effort_controller import COMMANDS, ListControllers
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros.effort_command import UNKNOWN
from rnea_control.ros.parameter_files import section_of
from rnea_control.ros.rclpy_internals import RCLError

LATCHED = QoSProfile(
    depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
DESCRIPTION_PUBLISHER = "robot_state_publisher"
# What rclpy raises for names that ROS does not allow.
NOT_A_NAME = (NameValidationException, RCLError, ValueError)
# How long one look at the executor takes at most, [s].
LOOK = 0.05


@dataclass(frozen=True)
class Request:
    """What to look at.

    Attributes:
        namespace: of the arm.
        node: name of its controller.
        file: YAML file of the controller's parameters; empty for none.
        seconds: how long to look, [s].
    """

    namespace: str = ""
    node: str = "rnea_controller"
    file: str = ""
    seconds: float = 3.0


class Observer:
    """Looks at a running system.

    Args:
        request: what to look at.
        context: of rclpy; the default one if None.
    """

    def __init__(self, request: Request, context: Context | None = None) -> None:
        self._request = request
        self._node = _node("rnea_doctor", request.namespace, context)
        self._listener = _node("rnea_doctor_states", request.namespace, context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._controller = self._resolve(request.node)
        self._file_parameters, self._file_fault = _of_file(request.file, self._controller)
        self._questions: dict[str, ParameterQuestion] = {}
        self._parameters: dict[str, dict[str, Any] | None] = {}
        self._controllers_question: Question | None = None
        self._descriptions: list[str] = []
        self._diagnostics: dict[str, list[Status]] = {}
        self._clock_times, self._time = 0, None
        node = self._node
        node.create_subscription(String, "robot_description", self._hear_description, LATCHED)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._hear_diagnostics, 100)
        node.create_subscription(Clock, "/clock", self._hear_clock, NEWEST)
        self._recorder = StateRecorder(self._listener, "joint_states", lambda: self._time)
        if self._recorder.needs_executor:
            self._executor.add_node(self._listener)

    def observe(self, running: Callable[[], bool] = lambda: True) -> Evidence:
        """Looks for as long as the request says, or until `running` says no."""
        deadline = time.monotonic() + self._request.seconds
        ask_at = 0.0
        while running() and (now := time.monotonic()) < deadline:
            self._executor.spin_once(timeout_sec=LOOK)
            if now >= ask_at:  # messages may come much more often
                self._ask()
                ask_at = now + LOOK
        self._recorder.stop()
        node = self._node
        commands = self._resolve(self._setting("command_topic"))
        return Evidence(
            seconds=self._request.seconds,
            controller=self._controller,
            sentinel=self._resolve(SENTINEL),
            manager=self._manager,
            effort_controller=self._effort_controller,
            nodes=tuple(self._nodes()),
            states_topic=self._topic(self._listener.resolve_topic_name("joint_states")),
            commands_topic=self._topic(commands),
            description_topic=self._topic(node.resolve_topic_name("robot_description")),
            clock_topic=self._topic("/clock"),
            parameters=self._parameters,
            file=self._request.file,
            file_parameters=self._file_parameters,
            file_fault=self._file_fault,
            descriptions=tuple(self._descriptions),
            states=self._recorder.states(),
            clock_times=self._clock_times,
            has_manager_messages=ListControllers is not None,
            controllers=self._controllers(),
            diagnostics={name: tuple(said) for name, said in self._diagnostics.items()},
            machine=machine(),
        )

    def destroy(self) -> None:
        """Takes the nodes down."""
        self._recorder.stop()
        self._executor.shutdown()
        self._listener.destroy_node()
        self._node.destroy_node()

    def _setting(self, name: str) -> Any:
        """A parameter of the controller, as far as it is known by now."""
        values = self._parameters.get(self._controller) or self._file_parameters
        return value_or_default(checked_parameters(values)[0], name)

    @property
    def _manager(self) -> str:
        name = self._setting("controller_manager")
        return self._resolve(name) if name else ""

    @property
    def _effort_controller(self) -> str:
        topic = self._setting("command_topic")
        return self._resolve(topic).removesuffix(COMMANDS) if topic.endswith(COMMANDS) else ""

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

    def _topic(self, name: str) -> Topic:
        node = self._node
        own = {node.get_fully_qualified_name(), self._listener.get_fully_qualified_name()}
        ends = []
        for find in (node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic):
            try:
                found = [_endpoint(info) for info in find(name) if info.node_name != UNKNOWN]
            except NOT_A_NAME:
                return Topic(name)
            ends.append(tuple(one for one in found if one.node not in own))
        return Topic(name, *ends)

    def _ask(self) -> None:
        """Sends the questions whose nodes are there, and takes the answers that have come."""
        nodes = set(self._nodes())
        wanted = {self._controller, self._resolve(SENTINEL), self._manager}
        wanted |= {self._effort_controller, self._resolve(DESCRIPTION_PUBLISHER)}
        for name in wanted & nodes:
            question = self._questions.setdefault(name, ParameterQuestion(self._node, name))
            if self._parameters.get(name) is None:
                self._parameters[name] = question.answer()
        if self._controllers_question is None and ListControllers and self._manager in nodes:
            self._controllers_question = Question(
                self._node,
                ListControllers,
                f"{self._manager}/list_controllers",
                ListControllers.Request(),
            )
        self._controllers()

    def _controllers(self) -> tuple[LoadedController, ...] | None:
        question = self._controllers_question
        answer = None if question is None else question.answer()
        if answer is None:
            return None
        return tuple(
            LoadedController(each.name, each.type, each.state, tuple(each.claimed_interfaces))
            for each in answer.controller
        )

    def _hear_description(self, message: String) -> None:
        if message.data not in self._descriptions:
            self._descriptions.append(message.data)

    def _hear_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = "/" + status.name.partition(": ")[0]
            values = {item.key: item.value for item in status.values}
            said = Status(int.from_bytes(status.level, "little"), status.message, values)
            self._diagnostics.setdefault(name, []).append(said)

    def _hear_clock(self, message: Clock) -> None:
        self._clock_times += 1
        self._time = message.clock.sec * 1_000_000_000 + message.clock.nanosec


def _node(name: str, namespace: str, context: Context | None) -> Node:
    return Node(
        name,
        namespace=namespace,
        context=context,
        enable_rosout=False,
        start_parameter_services=False,
        parameter_overrides=[Parameter("start_type_description_service", value=False)],
    )


def _endpoint(info: Any) -> Endpoint:
    return Endpoint(
        f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability is ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability is DurabilityPolicy.TRANSIENT_LOCAL,
    )


def _of_file(path: str, node: str) -> tuple[dict[str, Any], str]:
    """The node's parameters in a YAML file, and why they could not be read."""
    if not path:
        return {}, ""
    try:
        return section_of(node, ["--params-file", path]), ""
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        return {}, f"{path} cannot be read: {problem}"
