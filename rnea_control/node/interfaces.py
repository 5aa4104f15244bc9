"""Topics, services and the action of the controller: each is a row, and the rows are created in one
loop.

`python -m rnea_control.node.interfaces` prints the table of `docs/interfaces.md`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rnea_control.control import Supervisor
from rnea_control.loop import other_inputs
from rnea_control.node import planner_topics, tip_topics, trajectory_state
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import MODE as SENTINEL_MODE
from rnea_control.node.state_topics import Fill, StateTopics, external_torques, torque_terms
from rnea_control.node.trajectory_input import TrajectoryInput
from rnea_control.ros.arm_node import DESCRIPTION
from rnea_control.ros.conventions import LATCHED, NEWEST, SINGLE
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.node_parameters import IN_FORCE
from rnea_control.ros.presence import TOPIC as PROCESS

STATE_RATE = "at `state_publish_rate`"
EMERGENCY_STOP, MODE, PARAMETERS_IN_FORCE = "~/emergency_stop", "~/mode", f"~/{IN_FORCE}"
# One subscription for each QoS that a publisher of the emergency stop may have: a message that
# waited for the controller, a message that is repeated until it arrives, a message sent once.
STOPS = tuple(
    QoSProfile(depth=10, reliability=reliability, durability=durability)
    for reliability, durability in (
        (ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL),
        (ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE),
        (ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE),
    )
)
COMMANDS_QOS = "`command_reliability`, depth 1"


class Owner(Protocol):
    """Configured controller, as far as the callbacks of the rows use it."""

    loop: ControlLoop
    state_topics: StateTopics
    trajectories: TrajectoryInput

    def resume(self) -> str: ...

    def reset_fault(self) -> str: ...


def type_of(name: str) -> type:
    """Message, service or action type of a name like `std_msgs/msg/Bool`.

    Raises:
        LookupError: it is not installed.
    """
    package, kind, what = name.split("/")
    try:
        return getattr(import_module(f"{package}.{kind}"), what)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != package:
            raise  # a defect of the package
        raise LookupError(f"{package} is not installed") from missing
    except AttributeError as missing:
        raise LookupError(f"{package} has no {what}") from missing


@dataclass(frozen=True)
class Package:
    """Message package that may be missing."""

    name: str
    version: str  # needed version, in words
    sign: str  # type that only this version has
    is_expected: bool = True  # False if the node does not warn where it is missing

    @property
    def is_installed(self) -> bool:
        """True if the needed version is installed."""
        try:
            type_of(self.sign)
        except LookupError:
            return False
        return True


# The ROS 2 wheels lack control_msgs; Humble's version has other messages.
CONTROL_MSGS = Package("control_msgs", "of Jazzy or newer", "control_msgs/msg/SpeedScalingFactor")

# Only a planner's gains need them.
PLANNER_MSGS = Package(
    *("linear_feedback_controller_msgs", "", "linear_feedback_controller_msgs/msg/Control"),
    is_expected=False,
)


@dataclass(frozen=True)
class Interface:
    """One row: an interface that another file creates, as the sentinel has it too, or as a
    parameter decides about it."""

    name: str  # within the node's namespace; ~ is the node's name
    type: str  # name of the type in ROS
    meaning: str  # in Markdown
    qos: QoSProfile | str | int = ""  # an integer is the depth; "" for services
    direction: str = field(default="", kw_only=True)
    rate: str = field(default="", kw_only=True)
    needs: Package | None = field(default=None, kw_only=True)

    @property
    def message_type(self) -> type:
        """The class of `type`."""
        return type_of(self.type)


class Created(Interface, ABC):
    """An interface that `opened` creates."""

    @abstractmethod
    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        """Creates the interface, and returns it; `undo` destroys it."""


@dataclass(frozen=True)
class LoopInput(Interface):
    """Topic that the control loop receives by itself; the first row has the states."""

    profiles: tuple[QoSProfile, ...] = field(kw_only=True)  # one subscription each
    kind: int = field(default=0, kw_only=True)  # see other_inputs.py
    direction: str = field(default="in", kw_only=True)


@dataclass(frozen=True)
class Publisher(Created):
    """Topic whose messages the configured controller publishes by `opened(...)[name]`."""

    direction: str = field(default="out", kw_only=True)

    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        return node.until(undo, "publisher", self.message_type, self.name, self.qos)


@dataclass(frozen=True)
class StateTopic(Publisher):
    """Topic that is filled with the controller's state at `state_publish_rate`, while it has a
    subscriber."""

    qos: int = 1
    fill: Fill = field(kw_only=True)
    rate: str = field(default=STATE_RATE, kw_only=True)

    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        publisher = super().open(node, owner, undo)
        owner.state_topics.add(publisher, self.fill(self.message_type(), owner.loop))
        return publisher


@dataclass(frozen=True)
class Subscription(Created):
    """Topic that the node's executor receives."""

    receive: Callable[[Owner, Any], None] = field(kw_only=True)
    raw: bool = field(default=False, kw_only=True)  # True if `receive` takes the bytes
    direction: str = field(default="in", kw_only=True)

    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        def receive(message: Any) -> None:
            self.receive(owner, message)

        topic = self.message_type, self.name, receive, self.qos
        return node.until(undo, "subscription", *topic, raw=self.raw)


@dataclass(frozen=True)
class Service(Created):
    """Service with a function that fills the response to a request."""

    answer: Callable[[Owner, Any, Any], Any] = field(kw_only=True)
    direction: str = field(default="service", kw_only=True)

    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        def answer(request: Any, response: Any) -> Any:
            return self.answer(owner, request, response)

        return node.until(undo, "service", self.message_type, self.name, answer)


@dataclass(frozen=True)
class OperatorRequest(Created):
    """Service of type Trigger; `request` returns a status message or raises ControllerError."""

    type: str = field(default="std_srvs/srv/Trigger", kw_only=True)
    meaning: str = field(kw_only=True)
    request: Callable[[Owner], str] = field(kw_only=True)
    direction: str = field(default="service", kw_only=True)

    def open(self, node: GuardedNode, owner: Owner, undo: ExitStack) -> Any:
        service = node.offer(self.name, lambda: self.request(owner))
        undo.callback(node.destroy_service, service)
        return service


# fmt: off
INTERFACES: tuple[Interface, ...] = (
    LoopInput("joint_states", "sensor_msgs/msg/JointState",
        "position and velocity, in any joint order; other joints may be present", NEWEST,
        profiles=(NEWEST,)),
    Interface(DESCRIPTION, "std_msgs/msg/String",
        "URDF of the robot; the parameter of that name has precedence", LATCHED, direction="in"),
    Subscription("~/joint_trajectory", "trajectory_msgs/msg/JointTrajectory",
        "a trajectory, or a message of a stream of trajectories ([servo.md](servo.md))", 1,
        raw=True, receive=lambda it, message: it.trajectories.receive(message)),
    LoopInput("target_joint", "sensor_msgs/msg/JointState",
        "a stream of joint targets by name: positions, also velocities and efforts "
        "([streams.md](streams.md))", NEWEST, profiles=(NEWEST,), kind=other_inputs.TARGET_JOINT),
    LoopInput("~/commands", "std_msgs/msg/Float64MultiArray",
        "a stream of positions, in the order of `joints`", NEWEST, profiles=(NEWEST,),
        kind=other_inputs.POSITIONS),
    LoopInput("~/delta_joint_cmds", "control_msgs/msg/JointJog",
        "a stream of velocities or steps of joints, as for moveit_servo", NEWEST,
        profiles=(NEWEST,), kind=other_inputs.JOG, needs=CONTROL_MSGS),
    LoopInput("target_pose", "geometry_msgs/msg/PoseStamped",
        "a stream of target poses of `task.tip`, in the frame of the root link or any other link "
        "([task_space.md](task_space.md))", NEWEST, profiles=(NEWEST,),
        kind=other_inputs.TARGET_POSE),
    LoopInput("~/delta_twist_cmds", "geometry_msgs/msg/TwistStamped",
        "a stream of velocities of `task.tip`, as for moveit_servo", NEWEST, profiles=(NEWEST,),
        kind=other_inputs.TWIST),
    LoopInput("target_stiffness", "std_msgs/msg/Float64MultiArray",
        "stiffness of `task.tip` while it follows poses: 6 numbers, or a matrix of 36", SINGLE,
        profiles=(SINGLE,), kind=other_inputs.TARGET_STIFFNESS),
    LoopInput("target_wrench", "geometry_msgs/msg/WrenchStamped",
        "force and moment that `task.tip` exerts beside, while it follows poses", NEWEST,
        profiles=(NEWEST,), kind=other_inputs.TARGET_WRENCH),
    LoopInput("control", "linear_feedback_controller_msgs/msg/Control",
        "a planner's gains, with torque and state "
        "([streams.md](streams.md#a-planners-gains))", NEWEST, profiles=(NEWEST,),
        kind=other_inputs.CONTROL, needs=PLANNER_MSGS),
    LoopInput(EMERGENCY_STOP, "std_msgs/msg/Bool",
        "true brakes and holds, until the same publisher sends false "
        "([safety.md](safety.md#modes))", "any", profiles=STOPS, kind=other_inputs.STOP),
    Subscription("~/speed_scaling_input", "control_msgs/msg/SpeedScalingFactor",
        # As joint_trajectory_controller: a factor from before the controller's start is valid.
        "factor of the trajectories' speed, 0 to 1", LATCHED, needs=CONTROL_MSGS,
        receive=lambda it, message: trajectory_state.scale(it.loop, message)),
    LoopInput(SENTINEL_MODE[1], "lifecycle_msgs/msg/TransitionEvent",
        "mode of the sentinel ([handover.md](handover.md))", LATCHED,
        rate="ten times a second", profiles=(LATCHED,), kind=other_inputs.MODE),
    Interface("effort_controller/commands", "std_msgs/msg/Float64MultiArray",
        "one torque for each joint, in the order of `joints`; `command_topic` has the name",
        COMMANDS_QOS, direction="out", rate="one for each state"),
    StateTopic("~/controller_state", "control_msgs/msg/JointTrajectoryControllerState",
        "desired and measured state, errors and torques ([trajectories.md](trajectories.md#state))",
        needs=CONTROL_MSGS, fill=trajectory_state.controller_state),
    StateTopic("~/torque_terms", "sensor_msgs/msg/JointState",
        "terms of each torque, gravity to disturbance ([trajectories.md](trajectories.md#state))",
        fill=torque_terms),
    StateTopic("~/external_torques", "sensor_msgs/msg/JointState",
        "external torque of each joint in `effort`, from the arm's momentum "
        "([safety.md](safety.md#an-arm-that-does-not-obey))", fill=external_torques),
    StateTopic("current_pose", "geometry_msgs/msg/PoseStamped",
        "measured pose of `task.tip`, in the root link's frame ([task_space.md](task_space.md))",
        fill=tip_topics.current_pose),
    StateTopic("current_twist", "geometry_msgs/msg/TwistStamped",
        "measured velocity of `task.tip`, in axes of the root link's frame",
        fill=tip_topics.current_twist),
    StateTopic("sensor", "linear_feedback_controller_msgs/msg/Sensor",
        "measured positions and velocities, and commanded efforts, for planners of gains",
        needs=PLANNER_MSGS, fill=planner_topics.sensor),
    Publisher(MODE, "lifecycle_msgs/msg/TransitionEvent",
        "the [mode](safety.md#modes) and the reason of its change", LATCHED),
    Publisher(PARAMETERS_IN_FORCE, "rcl_interfaces/msg/ParameterEvent",
        "parameters that the sentinel adopts", LATCHED),
    Interface(PROCESS, "diagnostic_msgs/msg/DiagnosticStatus",
        "`starting` or `started`, with process and computer in `hardware_id`; prevents "
        "[a second start](handover.md#a-second-start) under the same name", LATCHED,
        direction="out"),
    Interface("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray",
        "state of the controller, with histograms of the loop's timing", 10, direction="out",
        rate="once a second"),
    Interface("~/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory",
        "follows a trajectory, and reports its end ([trajectories.md](trajectories.md))",
        direction="action", rate="feedback at `action_monitor_rate`", needs=CONTROL_MSGS),
    Service("~/query_state", "control_msgs/srv/QueryTrajectoryState",
        "desired state at a time", needs=CONTROL_MSGS,
        answer=lambda it, *both: trajectory_state.answer_query(it.loop, *both)),
    OperatorRequest("~/hold", meaning="ends the motion: the arm brakes and holds",
        request=lambda it: it.loop.call(Supervisor.hold)),
    OperatorRequest("~/gravity_compensation",
        meaning="hand guiding: gravity torque and damping",
        request=lambda it: it.loop.call(Supervisor.guide)),
    OperatorRequest("~/resume",
        meaning="ends hand guiding and a released emergency stop, or requests the arm from the "
        "sentinel ([safety.md](safety.md#modes))",
        request=lambda it: it.resume()),
    OperatorRequest("~/reset_fault", meaning="ends a fault whose cause has ended",
        request=lambda it: it.reset_fault()),
)
# fmt: on


def opened(node: GuardedNode, owner: Owner, undo: ExitStack) -> dict[str, Any]:
    """Creates all interfaces whose packages are installed; returns them by the names of the rows.

    Args:
        undo: destroys them.
    """
    rows = (row for row in INTERFACES if isinstance(row, Created))
    available = (row for row in rows if row.needs is None or row.needs.is_installed)
    return {row.name: row.open(node, owner, undo) for row in available}


def lacking() -> str:
    """Sentence about the interfaces that lack a package; empty without any."""
    names: dict[Package, list[str]] = {}
    for row in INTERFACES:
        needs = row.needs if isinstance(row, Created | LoopInput) else None
        if needs and needs.is_expected and not needs.is_installed:
            names.setdefault(needs, []).append(row.name)
    return "; ".join(
        f"{package.name} {package.version} is not installed, so the controller lacks "
        + ", ".join(each)
        for package, each in names.items()
    )


def loop_inputs() -> tuple[list[tuple[type, str, QoSProfile]], tuple[int, ...]]:
    """Type, name and QoS of each subscription of the control loop, joint states first; and the
    kinds of the other subscriptions."""
    rows = [row for row in INTERFACES if isinstance(row, LoopInput)]
    rows = [row for row in rows if row.needs is None or row.needs.is_installed]
    every = [(row, qos) for row in rows for qos in row.profiles]
    topics = [(row.message_type, row.name, qos) for row, qos in every]
    return topics, tuple(row.kind for row, _ in every[1:])


def qos_words(qos: QoSProfile | str | int) -> str:
    """QoS of a topic as a cell of the documentation."""
    if isinstance(qos, str):
        return qos
    profile = QoSProfile(depth=qos) if isinstance(qos, int) else qos
    if profile == LATCHED:
        return "latched"
    best = profile.reliability is ReliabilityPolicy.BEST_EFFORT
    return f"{'best effort' if best else 'reliable'}, depth {profile.depth}"


def markdown() -> Iterator[str]:
    """Lines of the table of the documentation."""
    yield "| | name | type | meaning | QoS, rate |"
    yield "| --- | --- | --- | --- | --- |"
    for row in INTERFACES:
        package, _, kind = row.type.split("/")
        note = f" [^{row.needs.name}]" if row.needs else ""
        delivery = "; ".join(filter(None, (qos_words(row.qos), row.rate)))
        cells = row.direction, f"`{row.name}`", f"{package}/{kind}{note}", row.meaning, delivery
        yield f"| {' | '.join(cells)} |".replace("  |", " |")


if __name__ == "__main__":
    print(*markdown(), sep="\n")
