"""What was observed of a running system, as plain values: no ROS, no judgment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rnea_control.ros.fast_dds import FastDds

# Of the parameters of one node, by full name.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """A publisher or a subscription.

    Attributes:
        node: full name of its node.
        type: of its messages, such as "std_msgs/msg/String".
        reliable: whether its reliability is RELIABLE.
        latched: whether its durability is TRANSIENT_LOCAL.
    """

    node: str
    type: str
    reliable: bool = True
    latched: bool = False


@dataclass(frozen=True)
class Topic:
    """A topic, by its full name, with all its endpoints."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()


@dataclass(frozen=True)
class State:
    """A message on joint_states.

    Attributes:
        received: when it came, by the steady clock, [s].
        clock: the same by the system's clock, [ns].
        simulated: the last time on /clock then, [ns]; None without one.
        stamp: of its header, [ns].
        names, position, velocity, effort: its fields.
    """

    received: float
    clock: int
    simulated: int | None
    stamp: int
    names: tuple[str, ...]
    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...] = ()


@dataclass(frozen=True)
class LoadedController:
    """A controller that controller_manager has loaded.

    Attributes:
        name: without a namespace.
        type: of its plugin.
        state: of its lifecycle, such as "active".
        claimed: the command interfaces that it holds, such as "joint1/effort".
    """

    name: str
    type: str
    state: str
    claimed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """What a node has said of itself on /diagnostics.

    Attributes:
        level: 0 fine, 1 warning, 2 error, 3 stale.
        message: in words.
        values: by key.
    """

    level: int
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """This computer, and what this process may do on it.

    Attributes:
        largest_priority: the highest SCHED_FIFO priority allowed; 0 for none.
        may_lock_memory: whether all memory may be locked.
        real_time_kernel: whether the kernel has PREEMPT_RT.
        cpu_quota: of the cgroup, in CPUs; None without one.
        manager_priorities: for each controller_manager that runs here as ros2_control_node the
            real-time priorities of its threads, 0 for none.
        fast_dds: what the environment tells Fast DDS; None if the middleware is another.
    """

    largest_priority: int
    may_lock_memory: bool
    real_time_kernel: bool
    cpu_quota: float | None
    manager_priorities: tuple[tuple[int, ...], ...]
    fast_dds: FastDds | None


@dataclass(frozen=True)
class Evidence:
    """All that was observed.

    Attributes:
        seconds: for how long.
        controller, sentinel, manager: full names of the nodes, whether they are there or not;
            `manager` is empty if the controller is not to ask one.
        effort_controller: full name of the controller of ros2_control that takes the commands;
            empty if the topic of the commands does not tell it.
        nodes: full names of all nodes, each as often as it is there.
        states_topic, commands_topic, description_topic, clock_topic: their endpoints.
        parameters: of nodes by full name, None for a node that did not answer; nodes that are not
            there are missing.
        file: the YAML file of the controller's parameters; empty if none was given.
        file_parameters: what it says for the controller.
        file_fault: why it could not be read; empty if it could.
        descriptions: the texts that came on robot_description, each once.
        states: on joint_states, in the order that they came.
        clock_times: how many messages came on /clock.
        has_manager_messages: whether controller_manager_msgs is installed.
        controllers: of controller_manager; None if it did not answer.
        diagnostics: of nodes by full name, oldest first.
        machine: see there.
    """

    seconds: float
    controller: str
    sentinel: str
    manager: str
    effort_controller: str
    nodes: tuple[str, ...]
    states_topic: Topic
    commands_topic: Topic
    description_topic: Topic
    clock_topic: Topic
    parameters: Mapping[str, Values | None]
    file: str
    file_parameters: Values
    file_fault: str
    descriptions: tuple[str, ...]
    states: tuple[State, ...]
    clock_times: int
    has_manager_messages: bool
    controllers: tuple[LoadedController, ...] | None
    diagnostics: Mapping[str, tuple[Status, ...]]
    machine: Machine

    def parameter(self, node: str, name: str) -> Any:
        """A parameter of a running node; None if it is not known, or not set."""
        return (self.parameters.get(node) or {}).get(name)
