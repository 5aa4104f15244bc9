"""What was observed of a running system, as plain values, and the controller's configuration by
it; no judgment. Names of nodes and topics are full ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rnea_control.control.activation_check import Verdict
from rnea_control.exceptions import ParameterError, RneaControlError
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED, LOCKED_POSITION
from rnea_control.ros.middleware import Transports

# Of the parameters of one node, by full name.
Values = Mapping[str, Any]
SIM_TIME = "use_sim_time"


@dataclass(frozen=True)
class Endpoint:
    """A publisher or a subscription."""

    node: str
    type: str  # of its messages, such as "std_msgs/msg/String"
    reliable: bool = True
    latched: bool = False  # whether its durability is TRANSIENT_LOCAL


@dataclass(frozen=True)
class Topic:
    """A topic with all its endpoints."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()


@dataclass(frozen=True)
class State:
    """A message on joint_states: when it came, and its fields."""

    received: float  # by the steady clock, [s]
    clock: int  # by the system's clock, [ns]
    simulated: int | None  # the last time on /clock then, [ns]; None without one
    stamp: int  # [ns]
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...] = ()

    def of(self, joints: Sequence[str], quantity: str) -> list[float]:
        """Its positions, velocities or efforts of `joints`, which it names; NaN if it has none."""
        values = getattr(self, quantity)
        if len(values) != len(self.names):
            return [math.nan] * len(joints)
        by_name = dict(zip(self.names, values, strict=True))
        return [by_name[joint] for joint in joints]


@dataclass(frozen=True)
class LoadedController:
    """A controller that controller_manager has loaded."""

    name: str  # without a namespace
    type: str  # of its plugin
    state: str  # of its lifecycle, such as "active"
    claimed: tuple[str, ...] = ()  # command interfaces that it holds, such as "joint1/effort"


@dataclass(frozen=True)
class Status:
    """What a node has said of itself on /diagnostics."""

    level: int  # 0 fine, 1 warning, 2 error, 3 stale
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """This computer, and what this process may do on it."""

    largest_priority: int  # SCHED_FIFO; 0 where none is allowed
    may_lock_memory: bool
    real_time_kernel: bool  # PREEMPT_RT
    cpu_quota: float | None  # of the cgroup, in CPUs; None without one
    # For each ros2_control_node that runs here the real-time priorities of its threads, 0 for none.
    manager_priorities: tuple[tuple[int, ...], ...]
    transports: Transports | None  # of the middleware; None for one that is not known
    busy_cpus: tuple[BusyCpu, ...] = ()  # those that real-time threads use up


class BusyCpu(NamedTuple):
    """A CPU that threads of SCHED_FIFO and SCHED_RR use up."""

    number: int
    share: float  # of the time watched, that these threads ran
    busiest: str  # the name and number of the thread that ran longest


@dataclass(frozen=True)
class Move:
    """The result of the request to move the arm.

    Attributes:
        refusal: why it was not moved; empty if it was.
        failure: why that ended early; empty if it did not.
        last_command: the torque that stays in force, in words.
        moved_off: whether the arm went further or faster than it may.
        verdict: of the check of the wires; None without one.
        likely: the mistake that is likely behind it; empty if none is.
        delay: after which torques act, [s]; NaN where it is not known.
    """

    refusal: str = ""
    failure: str = ""
    last_command: str = ""
    moved_off: bool = False
    verdict: Verdict | None = None
    likely: str = ""
    delay: float = math.nan


@dataclass
class Evidence:
    """All that was observed; it grows while the system is watched."""

    seconds: float  # for how long
    controller: str  # names of nodes, whether they are there or not
    sentinel: str
    machine: Machine
    manager: str = ""  # empty if the controller is not to ask one
    effort_controller: str = ""  # takes the commands; empty if their topic does not tell it
    nodes: tuple[str, ...] = ()  # each as often as it is there
    states_topic: Topic = Topic("/joint_states")
    commands_topic: Topic = Topic("")
    description_topic: Topic = Topic("/robot_description")
    clock_topic: Topic = Topic("/clock")
    # By node, None for one that did not answer; nodes that are not there are missing.
    parameters: dict[str, Values | None] = field(default_factory=dict)
    file: str = ""  # YAML of the controller's parameters; empty if none was given
    file_parameters: Values = field(default_factory=dict)  # what it says for the controller
    file_fault: str = ""  # why it could not be read; empty if it could
    descriptions: tuple[str, ...] = ()  # that came on robot_description, each once
    states: tuple[State, ...] = ()  # in the order that they came
    clock_times: int = 0  # how many messages came on /clock
    has_manager_messages: bool = True  # whether controller_manager_msgs is installed
    controllers: tuple[LoadedController, ...] | None = None  # None if nobody answered
    # By node, the oldest first.
    diagnostics: dict[str, tuple[Status, ...]] = field(default_factory=dict)
    move: Move | None = None  # if that was asked for

    def parameter(self, node: str, name: str) -> Any:
        """A parameter of a running node; None if it is not known, or not set."""
        return (self.parameters.get(node) or {}).get(name)

    @cached_property
    def settings(self) -> Configuration:
        """Those of the running controller, else of the file, once all is observed."""
        values, where = self.parameters.get(self.controller), self.controller
        if values is None:
            values, where = self.file_parameters, self.file if self.file_parameters else ""
        return Configuration(values, where, next(iter(self.descriptions), ""))

    @cached_property
    def arm_states(self) -> list[State]:
        """The states with one of the arm's joints."""
        joints = set(self.settings.joints)
        return [state for state in self.states if joints & set(state.names)]

    @property
    def simulated(self) -> bool:
        """Whether the controller's time is that of /clock."""
        return bool(self.settings.values.get(SIM_TIME))


class Configuration(GivenParameters):
    """The controller's parameters, checked by its table, and the robot that they make.

    Args:
        values: by full name.
        where: what they are from, for messages; empty if they are not known.
        published: the URDF on the topic robot_description; empty without one.

    Attributes:
        joints: those to control; empty if they are not known.
        description: the URDF that the controller takes; empty without one.
    """

    def __init__(self, values: Values, where: str = "", published: str = "") -> None:
        super().__init__(values, expand(PARAMETERS, ()))
        self.where = where
        self.joints = tuple(self.get("joints") or ())
        locked = [name for name in values if name.startswith(LOCKED)]
        self._known = expand(PARAMETERS, self.joints) | dict.fromkeys(locked, LOCKED_POSITION)
        self._locked = [name.removeprefix(LOCKED) for name in locked]
        self.description: str = self.get("robot_description") or published

    def get(self, name: str) -> Any:
        """A parameter, or its default if its value is not allowed."""
        try:
            return self[name]
        except ParameterError:
            return self._known[name].default

    @cached_property
    def robot(self) -> RobotModel | RneaControlError | None:
        """The robot, or why there is none; None if there is nothing to make it of."""
        if not (self.description and self.joints):
            return None
        try:
            model = load_model(self, list(self.joints), self._locked, self.description)
            update_model(self, model)
        except RneaControlError as fault:
            return fault
        return model

    @property
    def model(self) -> RobotModel | None:
        """The robot, if there is one."""
        return self.robot if isinstance(self.robot, RobotModel) else None
