"""Evidence of a system with which nothing is wrong, and changes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rnea_control.commands.command_checks import COMMAND_TYPE, FORWARD
from rnea_control.commands.evidence import (
    Endpoint,
    Evidence,
    LoadedController,
    Machine,
    State,
    Status,
    Topic,
)
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.ros.fast_dds import FastDds

URDF = (Path(__file__).parents[2] / "urdf" / "seven_axis_arm.urdf").read_text()
MODEL = RobotModel.from_urdf_string(URDF)
JOINTS = MODEL.joint_names
READY = np.array([0.3, -0.8, 0.2, -1.5, 0.4, 1.2, 0.8])
CONTROLLER, SENTINEL, MANAGER = "/rnea_controller", "/rnea_sentinel", "/controller_manager"
EFFORT, BROADCASTER = "/effort_controller", "/joint_state_broadcaster"
DESCRIBER = "/robot_state_publisher"
SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND

PARAMETERS = {
    "joints": list(JOINTS),
    "use_sim_time": False,
    "gravity": [0.0, 0.0, -9.81],
    "model_check.bound": 0.02,
    "velocity_limit_scale": 1.0,
    **{
        f"gains.{joint}.{name}": value
        for joint in JOINTS
        for name, value in (("p", 400), ("d", 40))
    },
    **{f"armature.{joint}": 0.1 for joint in JOINTS},
}
REPORT = {
    "mode": "holding",
    "reason": "the goal is reached",
    "ticks": "60000",
    "states refused": "0",
    "gaps in states": "0",
    "states missed": "3",
    "states late": "5",
    "trajectories dropped": "0",
    "gave way": "0",
    "effort limit at work": "never",
    "real time": "SCHED_FIFO priority 50, 130 MB locked in memory; kernel with PREEMPT_RT",
}
PROFILE = "<rtps><useBuiltinTransports>false</useBuiltinTransports></rtps>"


def holding_torque(model: RobotModel = MODEL) -> np.ndarray:
    """The gravity torque where the arm rests."""
    return gravity(model, Workspace(model), READY, np.zeros(model.nv))


def states(
    rate: float = 1000.0,
    change: Callable[[int, State], State] = lambda number, state: state,
    effort: np.ndarray | None = None,
    names: tuple[str, ...] = JOINTS,
) -> tuple[State, ...]:
    """A hundred of them, half a millisecond old; `change` gets each with its number."""
    period, size = round(SECOND / rate), len(names)
    torque = holding_torque() if effort is None else effort
    made = [
        State(
            received=1e-9 * i * period,
            clock=NOW + i * period,
            simulated=None,
            stamp=NOW + i * period - SECOND // 2000,
            names=names,
            position=tuple(READY[:size]),
            velocity=(0.0,) * size,
            effort=tuple(torque[:size]),
        )
        for i in range(100)
    ]
    return tuple(change(i, state) for i, state in enumerate(made))


def state(number: int = 0) -> State:
    """One of them."""
    return states()[number]


def loaded(**changes: object) -> tuple[LoadedController, ...]:
    """The controllers of ros2_control; `changes` are of the effort controller."""
    claimed = tuple(f"{joint}/effort" for joint in JOINTS)
    own = LoadedController("effort_controller", FORWARD, "active", claimed)
    broadcaster = LoadedController(
        "joint_state_broadcaster", "joint_state_broadcaster/JointStateBroadcaster", "active"
    )
    return broadcaster, replace(own, **changes)


HEALTHY = Evidence(
    seconds=3.0,
    controller=CONTROLLER,
    sentinel=SENTINEL,
    manager=MANAGER,
    effort_controller=EFFORT,
    nodes=(CONTROLLER, SENTINEL, MANAGER, EFFORT, BROADCASTER, DESCRIBER),
    states_topic=Topic(
        "/joint_states", (Endpoint(BROADCASTER, "sensor_msgs/msg/JointState", latched=True),)
    ),
    commands_topic=Topic(
        "/effort_controller/commands",
        (Endpoint(CONTROLLER, COMMAND_TYPE), Endpoint(SENTINEL, COMMAND_TYPE)),
        (
            Endpoint(EFFORT, COMMAND_TYPE, reliable=False),
            Endpoint("/_rnea_sentinel_effort_controller_commands", COMMAND_TYPE, reliable=False),
        ),
    ),
    description_topic=Topic(
        "/robot_description", (Endpoint(DESCRIBER, "std_msgs/msg/String", latched=True),)
    ),
    clock_topic=Topic("/clock"),
    parameters={
        CONTROLLER: PARAMETERS,
        SENTINEL: {"joints": list(JOINTS), "use_sim_time": False, "command_timeout": 0.015},
        MANAGER: {"update_rate": 1000, "enforce_command_limits": False, "use_sim_time": False},
        EFFORT: {"joints": list(JOINTS), "interface_name": "effort"},
        DESCRIBER: {"robot_description": URDF},
    },
    file="",
    file_parameters={},
    file_fault="",
    descriptions=(URDF,),
    states=states(),
    clock_times=0,
    has_manager_messages=True,
    controllers=loaded(),
    diagnostics={
        CONTROLLER: (Status(0, "in control", REPORT),) * 3,
        SENTINEL: (Status(0, "guarding", {"mode": "guarding"}),) * 3,
    },
    machine=Machine(
        98, True, True, None, ((40, 50, 40), (50, 40)), FastDds("/profile.xml", PROFILE)
    ),
)


def changed(**changes: object) -> Evidence:
    """The healthy system, with other evidence."""
    return replace(HEALTHY, **changes)


def set_to(node: str = CONTROLLER, **parameters: object) -> Evidence:
    """With other parameters of a node; `__` stands for a dot, None takes one away."""
    values = dict(HEALTHY.parameters[node] or {})
    for name, value in parameters.items():
        values[name.replace("__", ".")] = value
    values = {name: value for name, value in values.items() if value is not None}
    return changed(parameters={**HEALTHY.parameters, node: values})


def without(*nodes: str) -> Evidence:
    """With nodes that are not there."""
    return changed(
        nodes=tuple(name for name in HEALTHY.nodes if name not in nodes),
        parameters={n: v for n, v in HEALTHY.parameters.items() if n not in nodes},
        diagnostics={n: v for n, v in HEALTHY.diagnostics.items() if n not in nodes},
    )


def reporting(level: int = 0, message: str = "in control", **values: str) -> Evidence:
    """With another report of the controller; `_` stands for a space in the keys."""
    own = {key.replace("_", " "): value for key, value in values.items()}
    said = (Status(level, message, {**REPORT, **own}),) * 3
    return changed(diagnostics={**HEALTHY.diagnostics, CONTROLLER: said})


def computer(**changes: object) -> Evidence:
    """On another computer, with a controller that says nothing of it."""
    return replace(without(CONTROLLER), machine=replace(HEALTHY.machine, **changes))
