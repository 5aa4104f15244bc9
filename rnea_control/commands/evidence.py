"""Observations of a running system as plain values; no judgment. Names of nodes and topics are
full names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rnea_control.client.configuration import Configuration, Values
from rnea_control.control.activation_check import Verdict
from rnea_control.ros.middleware import Transports

SIM_TIME = "use_sim_time"  # name of the parameter


@dataclass(frozen=True)
class Endpoint:
    """A publisher or a subscription."""

    node: str
    type: str  # message type, such as "std_msgs/msg/String"
    reliable: bool = True
    latched: bool = False  # durability TRANSIENT_LOCAL


@dataclass(frozen=True)
class Topic:
    """A topic with all its endpoints."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()


@dataclass(frozen=True)
class Stream:
    """A topic of targets that has a publisher."""

    topic: Topic
    type: str  # message type that the controller receives
    received: tuple[float, ...] = ()  # times of receipt of its targets by the steady clock [s]
    timeout: str = "stream.target_timeout"  # parameter: longest silence [s]; empty for none
    filtered: bool = True  # the targets are followed with `stream.bandwidth`
    of_impedance: bool = False  # taken only while `cartesian_impedance` is in force


@dataclass(frozen=True)
class State:
    """A message on joint_states: its times of receipt and its fields."""

    received: float  # time of receipt by the steady clock [s]
    clock: int  # time of receipt by the system clock [ns]
    simulated: int | None  # latest time on /clock at receipt [ns]; None without one
    stamp: int  # header.stamp [ns]
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...] = ()

    def of(self, joints: Sequence[str], quantity: str) -> list[float]:
        """Positions, velocities or efforts of `joints`, which the message must name; NaN if the
        message has none."""
        values = getattr(self, quantity)
        if len(values) != len(self.names):
            return [math.nan] * len(joints)
        by_name = dict(zip(self.names, values, strict=True))
        return [by_name[joint] for joint in joints]


@dataclass(frozen=True)
class LoadedController:
    """A controller that controller_manager has loaded."""

    name: str  # without namespace
    type: str  # type of the plugin
    state: str  # lifecycle state, such as "active"
    claimed: tuple[str, ...] = ()  # claimed command interfaces, such as "joint1/effort"


@dataclass(frozen=True)
class Status:
    """Status of a node on /diagnostics."""

    level: int  # 0 OK, 1 warning, 2 error, 3 stale
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """This computer, and the permissions of this process on it."""

    largest_priority: int  # largest allowed SCHED_FIFO priority; 0 if none is allowed
    may_lock_memory: bool
    real_time_kernel: bool  # PREEMPT_RT
    cpu_quota: float | None  # quota of the cgroup in CPUs; None without a quota
    # For each local ros2_control_node: real-time priorities of its threads, 0 for none.
    manager_priorities: tuple[tuple[int, ...], ...]
    transports: Transports | None  # transports of the middleware; None for an unknown middleware
    busy_cpus: tuple[BusyCpu, ...] = ()  # CPUs that real-time threads use up


class BusyCpu(NamedTuple):
    """A CPU that threads of SCHED_FIFO and SCHED_RR use up."""

    number: int
    share: float  # share of the observed time in which these threads ran
    busiest: str  # name and number of the thread that ran longest


@dataclass(frozen=True)
class Move:
    """Result of the request to move the arm.

    Attributes:
        refusal: why the arm was not moved; empty if it was.
        failure: why the check ended early; empty if it did not.
        last_command: the torque that stays in force, in words.
        moved_off: True if the arm moved further or faster than allowed.
        verdict: result of the wiring check; None without one.
        likely: likely mistake in the wiring; empty if none is likely.
        delay: delay from a state to the effect of its torque [s]; NaN if unknown.
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
    """All observations of a system; grows during the observation."""

    seconds: float  # length of the observation [s]
    controller: str  # name of the controller's node, running or not
    sentinel: str  # name of the sentinel's node, running or not
    machine: Machine
    manager: str = ""  # node of controller_manager; empty if the controller does not use one
    effort_controller: str = ""  # subscribes to the commands; empty if unknown
    nodes: tuple[str, ...] = ()  # running nodes; a name repeats if several nodes have it
    states_topic: Topic = Topic("/joint_states")
    commands_topic: Topic = Topic("")
    description_topic: Topic = Topic("/robot_description")
    clock_topic: Topic = Topic("/clock")
    streams: tuple[Stream, ...] = ()
    # Parameters by node; None for a node that did not answer. Absent nodes have no entry.
    parameters: dict[str, Values | None] = field(default_factory=dict)
    file: str = ""  # YAML file with the controller's parameters; empty without one
    file_parameters: Values = field(default_factory=dict)  # parameters of the controller in `file`
    file_fault: str = ""  # why `file` could not be read; empty if it was read
    descriptions: tuple[str, ...] = ()  # distinct messages on robot_description
    states: tuple[State, ...] = ()  # in the order of receipt
    clock_times: int = 0  # number of messages on /clock
    has_manager_messages: bool = True  # controller_manager_msgs is installed
    controllers: tuple[LoadedController, ...] | None = None  # None without an answer
    # Reports by node, the oldest first.
    diagnostics: dict[str, tuple[Status, ...]] = field(default_factory=dict)
    move: Move | None = None  # result of --move; None without it

    def parameter(self, node: str, name: str) -> Any:
        """A parameter of a running node; None if unknown or not set."""
        return (self.parameters.get(node) or {}).get(name)

    @cached_property
    def settings(self) -> Configuration:
        """Configuration of the running controller, else of the file. Read it after the
        observation."""
        values, where = self.parameters.get(self.controller), self.controller
        if values is None:
            values, where = self.file_parameters, self.file if self.file_parameters else ""
        return Configuration(values, where, next(iter(self.descriptions), ""))

    @cached_property
    def arm_states(self) -> list[State]:
        """The states that name at least one joint of the arm."""
        joints = set(self.settings.joints)
        return [state for state in self.states if joints & set(state.names)]

    @property
    def simulated(self) -> bool:
        """True if the controller uses the time of /clock."""
        return bool(self.settings.values.get(SIM_TIME))
