"""Each kind of finding: evidence that gives it, and evidence that gives nothing."""

from __future__ import annotations

import copy
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dds import wait_for

from rnea_control.commands.checks import CODES, findings, markdown
from rnea_control.commands.command_checks import COMMAND_TYPE, DEPRECATED, FORWARD
from rnea_control.commands.controller_checks import COUNTED
from rnea_control.commands.evidence import (
    BusyCpu,
    Endpoint,
    Evidence,
    LoadedController,
    Machine,
    Move,
    State,
    Status,
    Stream,
    Topic,
)
from rnea_control.commands.finding import LEVELS, Finding
from rnea_control.commands.machine_checks import busy_cpus, cpu_quota, priorities_of
from rnea_control.control.activation_check import Verdict
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.ros.middleware import Transports
from rnea_control.ros.real_time import largest_priority

ROOT = Path(__file__).parents[2]
URDF = (ROOT / "urdf" / "seven_axis_arm.urdf").read_text()
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
    **{f"gains.{joint}.p": 400 for joint in JOINTS},
    **{f"gains.{joint}.d": 40 for joint in JOINTS},
    **{f"armature.{joint}": 0.1 for joint in JOINTS},
}
REPORT = {
    **dict.fromkeys(COUNTED, "0"),
    **{"mode": "holding", "reason": "the goal is reached", "ticks": "60000"},
    **{"states missed": "3", "states late": "5", "effort limit at work": "never"},
    "real time": "SCHED_FIFO priority 50, 130 MB locked in memory; kernel with PREEMPT_RT",
}
PROFILE = "<rtps><useBuiltinTransports>false</useBuiltinTransports></rtps>"


def holding_torque(turned: tuple = (), **payload: object) -> np.ndarray:
    """The torques that hold the arm where it rests, in another gravity or with a load."""
    arm = copy.deepcopy(MODEL)
    if turned:
        arm.gravity = turned
    if payload:
        arm.set_payload(arm.child_links[-1], **payload)
    return gravity(arm, Workspace(arm), READY, np.zeros(arm.nv))


def states(rate=1000.0, change=lambda i, state: state, effort=None, names=JOINTS) -> tuple:
    """A hundred of them, half a millisecond old; `change` gets each with its number."""
    size = len(names)
    torque = holding_torque() if effort is None else effort
    numbers = tuple(READY[:size]), (0.0,) * size, tuple(torque[:size])

    def state(i: int) -> State:
        t = i * round(SECOND / rate)
        return State(1e-9 * t, NOW + t, None, NOW + t - SECOND // 2000, names, *numbers)

    return tuple(change(i, state(i)) for i in range(100))


def loaded(**changes: object) -> tuple[LoadedController, ...]:
    """The controllers of ros2_control; `changes` are of the effort controller."""
    claimed = tuple(f"{joint}/effort" for joint in JOINTS)
    own = LoadedController("effort_controller", FORWARD, "active", claimed)
    kind = "joint_state_broadcaster/JointStateBroadcaster"
    return LoadedController(kind.split("/", maxsplit=1)[0], kind, "active"), replace(own, **changes)


HEALTHY = Evidence(
    seconds=3.0,
    controller=CONTROLLER,
    sentinel=SENTINEL,
    manager=MANAGER,
    effort_controller=EFFORT,
    nodes=(CONTROLLER, SENTINEL, MANAGER, EFFORT, BROADCASTER, DESCRIBER),
    states_topic=Topic(
        "/joint_states",
        (Endpoint(BROADCASTER, "sensor_msgs/msg/JointState", latched=True),),
        (Endpoint(CONTROLLER, "sensor_msgs/msg/JointState"),),
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
        98, True, True, None, ((40, 50, 40), (50, 40)), Transports("/profile.xml", PROFILE)
    ),
)


def changed(**changes: object) -> Evidence:
    return replace(HEALTHY, **changes)


def set_to(node: str = CONTROLLER, **parameters: object) -> Evidence:
    """With other parameters of a node; `__` stands for a dot, None takes one away."""
    values = dict(HEALTHY.parameters[node] or {})
    for name, value in parameters.items():
        values[name.replace("__", ".")] = value
    values = {name: value for name, value in values.items() if value is not None}
    return changed(parameters={**HEALTHY.parameters, node: values})


def without(*nodes: str) -> Evidence:
    left = {
        what: {name: value for name, value in getattr(HEALTHY, what).items() if name not in nodes}
        for what in ("parameters", "diagnostics")
    }
    return changed(nodes=tuple(name for name in HEALTHY.nodes if name not in nodes), **left)


def reporting(level: int = 0, message: str = "in control", **values: str) -> Evidence:
    """With another report of the controller; `_` stands for a space in the keys."""
    own = {key.replace("_", " "): value for key, value in values.items()}
    said = (Status(level, message, {**REPORT, **own}),) * 3
    return changed(diagnostics={**HEALTHY.diagnostics, CONTROLLER: said})


def computer(**changes: object) -> Evidence:
    return replace(without(CONTROLLER), machine=replace(HEALTHY.machine, **changes))


OTHER = Endpoint("/other", "sensor_msgs/msg/JointState")
RIVAL = LoadedController("arm_controller", "jtc", "active", ("joint2/position",))


def of_topics(publishers: tuple = (), subscriptions: tuple = ()) -> Evidence:
    topic = HEALTHY.commands_topic
    ends = publishers or topic.publishers, subscriptions or topic.subscriptions
    return changed(commands_topic=Topic(topic.name, *ends))


def described(old: str, new: str) -> Evidence:
    return changed(descriptions=(URDF.replace(old, new),))


def heard(**fields: object) -> Evidence:
    """With other states: values, or functions of the number of a state and what it is."""

    def change(number: int, one: State) -> State:
        return replace(one, **{k: v(number, one) if callable(v) else v for k, v in fields.items()})

    return changed(states=states(change=change))


def late(seconds: Callable[[int], float]) -> Evidence:
    late = {"received": lambda number, one: one.received + seconds(number)}
    return heard(clock=lambda number, one: one.clock + round(1e9 * seconds(number)), **late)


def felt(effort: np.ndarray, **of_controller: object) -> Evidence:
    return changed(states=states(effort=effort), controllers=loaded(**of_controller))


def run_by(**of_controller: object) -> Evidence:
    return felt(holding_torque(), **of_controller)


def told(node: str, *said: Status) -> Evidence:
    return changed(diagnostics={**HEALTHY.diagnostics, node: said})


def silent(node: str) -> Evidence:
    return changed(parameters={**HEALTHY.parameters, node: None})


def moved(
    words: str = "", wrong: bool = False, verified: int = 7, told: bool = False, **what: object
) -> Evidence:
    """The arm was moved, and some of its joints answered as the model says."""
    joints = np.arange(7) < verified
    verdict = Verdict(wrong, words, None, joints, told=told)
    return changed(move=Move(**{"verdict": verdict, **what}))


def simulated(clock: bool, use: bool) -> Evidence:
    def time(number: int, one: State) -> int:
        return number * SECOND // 1000

    own = {node: {**values, "use_sim_time": use} for node, values in HEALTHY.parameters.items()}
    return replace(
        heard(stamp=time, simulated=time if clock else None),
        parameters=own,
        clock_times=100 if clock else 0,
        clock_topic=Topic("/clock", (Endpoint("/simulator", "rosgraph_msgs/msg/Clock"),)),
    )


SENDER = Endpoint("/joystick", "sensor_msgs/msg/JointState")


def streaming(
    rate: float, states_rate: float = 1000.0, count: int = 50, **parameters: object
) -> Evidence:
    """With a stream of targets at `rate` [Hz], and states at `states_rate` [Hz]."""
    topic = Topic("/target_joint", (SENDER,), (Endpoint(CONTROLLER, SENDER.type),))
    sent = Stream(topic, SENDER.type, tuple(np.arange(count) / rate))
    evidence = set_to(**parameters)
    manager = {**evidence.parameters[MANAGER], "update_rate": round(states_rate)}
    return replace(
        evidence,
        streams=(sent,),
        states=states(states_rate),
        parameters={**evidence.parameters, MANAGER: manager},
    )


def of_streams(*counts: int, **publishers: Endpoint) -> Evidence:
    """With topics of targets, and reports with these counts of targets of another publisher."""
    said = (
        Status(0, "", {**REPORT, "stream targets of another publisher": str(count)})
        for count in counts
    )
    heard = (Endpoint(CONTROLLER, SENDER.type),)
    streams = tuple(
        Stream(Topic(f"/{name}", (each,), heard), SENDER.type) for name, each in publishers.items()
    )
    return replace(told(CONTROLLER, *said), streams=streams)


PLANNER = Endpoint("/planner", "linear_feedback_controller_msgs/msg/Control")
SETTER = Endpoint("/teleoperation", "std_msgs/msg/Float64MultiArray")


def planning(rate: float, heard: bool = True, **parameters: object) -> Evidence:
    """With a planner's gains at `rate` [Hz]."""
    ends = (Endpoint(CONTROLLER, PLANNER.type),) * heard
    topic = Topic("/control", (PLANNER,), ends)
    times = tuple(np.arange(50) / rate)
    sent = Stream(topic, PLANNER.type, times, "control_timeout", filtered=False)
    return replace(set_to(**parameters), streams=(sent,))


def setting(rate: float, timeout: str = "", **parameters: object) -> Evidence:
    """With a stiffness, or a wrench that has a timeout, at `rate` [Hz]."""
    topic = Topic("/target_stiffness", (SETTER,), (Endpoint(CONTROLLER, SETTER.type),))
    sent = Stream(topic, SETTER.type, tuple(np.arange(50) / rate), timeout, False, True)
    return replace(set_to(**parameters), streams=(sent,))


NO_ARMATURE = {f"armature.{joint}": 0.0 for joint in JOINTS}
LOAD = {"mass": 2.0, "center_of_mass": (0.05, 0.0, 0.1)}
LIMITED = '<safety_controller k_velocity="1" k_position="1"/></joint>'
GUARD = HEALTHY.commands_topic.subscriptions[1:]
OTHER_FILE = changed(file="my.yaml", file_parameters={**PARAMETERS, "gains.joint1.p": 100.0})
NOT_LATCHED = changed(description_topic=Topic("/robot_description", (Endpoint("/d", "s"),)))
HEAVIER, WEAKER = URDF.replace('"5"', '"5.5"'), URDF.replace('effort="60"', 'effort="50"')
ASLEEP = changed(states=(), controllers=(replace(loaded()[0], state="inactive"), loaded()[1]))
# controller_manager after the graph has forgotten it, and before.
DEAD = replace(
    without(MANAGER, EFFORT, BROADCASTER),
    **{"states": (), "states_topic": Topic("/joint_states"), "controllers": None},
    commands_topic=of_topics((), GUARD).commands_topic,
)
HUNG = changed(
    states=(),
    controllers=None,
    parameters={**HEALTHY.parameters, **dict.fromkeys((MANAGER, EFFORT))},
)
RIVALS = changed(states_topic=Topic("/joint_states", (*HEALTHY.states_topic.publishers, OTHER)))
OLD = heard(stamp=lambda i, one: one.stamp - 5 * SECOND)
FALLING = changed(states=states(change=lambda i, one: states()[7] if i == 50 else one))
CLAIMED = changed(controllers=(*loaded(state="inactive", claimed=()), RIVAL))
JTC = Endpoint("/jtc", "trajectory_msgs/msg/JointTrajectory")
REQUIRED = replace(set_to(require_sentinel=True), nodes=without(SENTINEL).nodes)
UNRELIABLE, RELIABLE = Endpoint(CONTROLLER, COMMAND_TYPE, False), Endpoint("/hw", COMMAND_TYPE)
PUSHED = "joint2 is pushed by 60 Nm that no command explains"
LOST = Move(failure="no joint_states", last_command="The last command is zero torque")
SIGN = "the torque of joint2 has the wrong sign"
CASES: list[tuple[str, Evidence, str]] = [
    ("parameters-missing", without(CONTROLLER), "/rnea_controller is not there, and no file"),
    ("parameters-missing", changed(file_fault="my.yaml cannot be read"), "my.yaml cannot be read"),
    ("parameter-wrong", set_to(effort_limit_scale=2.0), "effort_limit_scale"),
    ("parameter-wrong", set_to(**{"gains.joint3.p": None}), "gains.joint3.p"),
    ("parameter-wrong", set_to(joint_state_gap=0.2), "joint_state_timeout"),
    ("parameter-wrong", set_to(feedback_inertia__joint3=-2.0), "feedback_inertia.joint3"),
    ("parameter-unknown", set_to(contol_law="pd"), "contol_law"),
    ("parameter-of-other-joint", set_to(gains__finger__p=1.0), "`joints` lacks finger"),
    ("parameters-differ", OTHER_FILE, "gains.joint1.p (400 runs, 100.0 in the file)"),
    ("model-refused", set_to(joints=["joint1", "wrist"]), "wrist"),
    ("model-refused", changed(descriptions=("<robot",)), "robot_description"),
    ("description-missing", replace(without(DESCRIBER), descriptions=()), "no message"),
    ("description-not-latched", NOT_LATCHED, "/d"),
    ("descriptions-differ", set_to(DESCRIBER, robot_description=HEAVIER), "inertias of links"),
    ("descriptions-differ", set_to(SENTINEL, robot_description=WEAKER), "effort limits"),
    ("model-suspicious", described("</joint>", LIMITED), "safety_controller"),
    ("effort-limit-zero", described('effort="60"', 'effort="0"'), "joint5"),
    ("states-missing", changed(states=(), states_topic=Topic("/joint_states")), "no node"),
    ("states-missing", ASLEEP, "joint_state_broadcaster is inactive"),
    ("states-lack-joints", changed(states=states(names=JOINTS[:6])), "joint7 missing"),
    ("states-lack-joints", changed(states=states(names=("gripper",))), "it has gripper"),
    ("states-name-twice", changed(states=states(names=(*JOINTS, "joint1"))), "joint1 twice"),
    ("states-incomplete", heard(velocity=()), "0 velocity values for 7 names"),
    ("states-incomplete", heard(velocity=(*[0.0] * 6, np.nan)), "velocity of joint7 is not finite"),
    ("states-second-publisher", RIVALS, "/joint_state_broadcaster, /other"),
    ("rate-too-low", changed(states=states(40.0)), "40 Hz"),
    ("rate-low", changed(states=states(100.0)), "100 Hz"),
    ("rate-differs", changed(states=states(800.0)), "update_rate 1000"),
    ("states-pause", late(lambda i: 0.05 * (i >= 50)), "longest pause was 51 ms, by the stamps 1"),
    ("states-jitter", late(lambda i: 0.012 * (i % 2)), "12 ms"),
    ("states-old", heard(stamp=lambda i, one: one.stamp - SECOND // 50), "20.5 ms old at receipt"),
    ("clock-missing", simulated(clock=False, use=True), "1 publisher(s)"),
    ("clock-unused", simulated(clock=True, use=False), "use_sim_time is false"),
    ("sim-time-differs", set_to(MANAGER, use_sim_time=True), "true for /controller_manager"),
    ("stamps-zero", heard(stamp=0), "all 100"),
    ("stamps-stand-still", heard(stamp=NOW), "are the same"),
    ("stamps-go-back", FALLING, "1 of 100 stamps go back"),
    ("stamps-of-another-clock", OLD, "5 s behind this computer's clock"),
    ("manager-gone", DEAD, "/controller_manager is not there, and nothing came on /joint_states"),
    ("manager-gone", HUNG, "/controller_manager has answered nothing in 3 s, and nothing came"),
    ("manager-absent", without(MANAGER), "/controller_manager is not there"),
    ("manager-silent", changed(controllers=None), "has not answered"),
    ("manager-messages", changed(has_manager_messages=False, controllers=None), "cannot be asked"),
    ("effort-controller-missing", changed(controllers=loaded()[:1]), "it has joint_state_broad"),
    ("effort-controller-unconfigured", run_by(state="unconfigured"), EFFORT),
    ("effort-controller-inactive", run_by(state="inactive"), EFFORT),
    ("effort-controller-type", run_by(type="position_controllers/Some"), "position_controllers"),
    ("effort-controller-deprecated", run_by(type=DEPRECATED), DEPRECATED),
    ("interface-not-effort", set_to(EFFORT, interface_name="position"), "'position'"),
    ("joints-differ", set_to(EFFORT, joints=list(JOINTS[:6])), "has joint1"),
    ("joints-order", set_to(EFFORT, joints=list(JOINTS[::-1])), "has joint7, joint6"),
    ("interfaces-claimed", CLAIMED, "arm_controller is active and holds joint2/position"),
    ("commands-unheard", of_topics((), GUARD), "/effort_controller/commands has no subscription"),
    ("commands-type", of_topics((), (JTC,)), "/jtc (trajectory_msgs"),
    ("commands-qos", of_topics((UNRELIABLE,), (RELIABLE,)), "/hw"),
    ("commands-second-publisher", of_topics((Endpoint("/teleop", COMMAND_TYPE),)), "/teleop"),
    ("velocity-limits-enforced", set_to(MANAGER, enforce_command_limits=True), "velocity_limit"),
    ("node-twice", changed(nodes=(*HEALTHY.nodes, CONTROLLER)), "2 times"),
    ("node-silent", silent(EFFORT), EFFORT),
    ("controller-absent", without(CONTROLLER), "not there"),
    ("controller-silent", changed(diagnostics={}), "no /diagnostics in 3 s"),
    ("controller-silent", silent(CONTROLLER), "has not answered for its parameters"),
    ("controller-inactive", reporting(message="not active"), "is not active"),
    ("controller-waiting", reporting(1, "waiting for joint_states", mode="waiting"), "waiting for"),
    ("controller-warns", reporting(1, "waited 0.033 s for joint_states"), "(3 of 3 reports)"),
    ("controller-fails", reporting(2, "a collision", mode="fault"), "a collision"),
    ("sentinel-absent", without(SENTINEL), "/rnea_sentinel is not there"),
    ("sentinel-required", REQUIRED, "/rnea_sentinel is not there"),
    ("handover-differs", set_to(command_timeout=0.02), "command_timeout (0.02 for the"),
    ("sentinel-differs", set_to(SENTINEL, gravity=[0.0, 0.0, 9.81]), "-9.81] for the controller"),
    ("sentinel-fails", told(SENTINEL, Status(2, "holds the arm")), "holds the arm"),
    ("arm-moves", heard(velocity=(0.5,) * 7), "0.5 rad/s"),
    ("effort-unknown", heard(effort=()), "no finite effort"),
    ("gravity-unseen", felt(np.zeros(7), state="inactive"), "joint2"),
    ("gravity-not-held", felt(np.zeros(7)), "joint2"),
    ("gravity-measured", set_to(hardware_compensates_gravity=True), "joint2"),
    ("gravity-opposite", felt(-holding_torque()), "opposite"),
    ("gravity-direction", felt(holding_torque((0.0, 4.905, -8.4957))), "4.90, -8.50] in the"),
    ("gravity-strength", set_to(gravity=[0.0, 0.0, -1.0]), "1 m/s^2"),
    ("payload", felt(holding_torque(**LOAD)), "+2 kg on flange_link, center of mass [0.0"),
    ("payload-at-origin", set_to(payload__mass=0.001), "0.001 kg"),
    ("gravity-differs", felt(3.0 * holding_torque()), "joints are 3 times the torques"),
    ("rotor-inertia", set_to(**NO_ARMATURE), "joint7 ("),
    ("move-refused", changed(move=Move(refusal="stdin is not a terminal")), "stdin is not"),
    ("move-ended", changed(move=LOST), "no joint_states. The last command is zero torque"),
    ("arm-moved-off", moved(PUSHED, verified=0, moved_off=True), "joint2 is pushed"),
    ("arm-moved-off", moved(PUSHED, True, 0, moved_off=True), "joint2 is pushed"),
    ("arm-moved-off", moved(moved_off=True), "left its place"),
    ("wires-wrong", moved(PUSHED, True, 0, moved_off=True, likely=SIGN), f"{SIGN} (seen: joint2"),
    ("wires-wrong", moved("joint2 did not answer", True, 0), "joint2 did not answer"),
    ("wires-wrong", moved("the velocity is zero", True, 0, True, moved_off=True), "is zero"),
    ("wires-doubtful", moved("joint7 did not answer", verified=6), "joint7 did not answer"),
    ("wires-unknown", moved("no joint answers to 25 %", verified=0), "no joint answers to 25 %"),
    (
        "wires-right",
        moved(delay=0.0021),
        "7 joints responded as the model predicts; torques act 2 ",
    ),
    ("wires-right", moved(delay=0.0004), "less than 1 ms"),
    ("wires-right", moved(), "as the model predicts"),
    ("gave-way", reporting(gave_way="2", gave_way_last="joint2 was off"), "last as joint2 was off"),
    ("limits-at-work", reporting(effort_limit_at_work="joint4 0.310 s"), "joint4 0.310 s"),
    ("states-refused", reporting(states_refused="4"), "states refused: 4"),
    ("state-gaps", reporting(gaps_in_states="1"), "0 of them in the 3 s"),
    (
        "stream-type",
        of_streams(0, target_joint=Endpoint("/policy", COMMAND_TYPE)),
        "/target_joint: /policy (std_msgs/msg/Float64MultiArray); targets are sensor_msgs",
    ),
    (
        "stream-second-publisher",
        of_streams(3, 5, target_joint=SENDER, commands=Endpoint("/servo", SENDER.type)),
        "has refused 2 targets of another publisher than the first; publishers of targets: "
        "/joystick, /servo",
    ),
    ("stream-unheard", planning(100.0, heard=False), "/control: /planner publishes"),
    (
        "stream-no-impedance",
        setting(1.0, task__control_law="task_computed_torque"),
        "control_law is computed_torque, and task.control_law is task_computed_torque",
    ),
    ("stream-too-slow", planning(30.0), "every 0.0333 s, and control_timeout is 0.05 s"),
    ("stream-too-slow", setting(15.0, "stream.target_timeout"), "stream.target_timeout is 0.1 s"),
    ("stream-too-fast", planning(2000.0), "/control has 2000 Hz, and /joint_states has 1000 Hz"),
    ("stream-too-fast", streaming(600.0, 500.0), "600 Hz, and /joint_states has 500 Hz"),
    ("stream-too-slow", streaming(1.0, count=3), "a target every 1 s, and stream.target_timeout"),
    (
        "stream-too-slow",
        streaming(15.0),
        "every 0.0667 s, and stream.target_timeout is 0.1 s",
    ),
    ("stream-bandwidth", streaming(50.0, stream__bandwidth=150.0), "at 50 Hz at most 100 rad/s"),
    (
        "stream-bandwidth",
        streaming(500.0, 500.0, stream__bandwidth=400.0),
        "with states at 500 Hz at most 250 rad/s",
    ),
    ("states-missed", reporting(states_missed="6000"), "9.1 % of the states"),
    ("states-late", reporting(states_late="6000"), "10 % of the states"),
    ("trajectories-dropped", reporting(trajectories_dropped="1"), "dropped: 1"),
    ("model-differs", reporting(model_1="joint2: model 20 Nm, held with 30 Nm: masses?"), "30 Nm"),
    ("report-unknown", told(CONTROLLER, Status(0, "", {"mode": "hold"})), "lacks ticks"),
    ("real-time-priority", computer(largest_priority=0), "largest priority is 0"),
    ("real-time-priority", reporting(real_time="nothing in force; kernel: PREEMPT_RT"), "reports:"),
    ("memory-lock", computer(may_lock_memory=False), "memlock"),
    ("kernel", computer(real_time_kernel=False), "this computer"),
    ("cpu-quota", computer(cpu_quota=1.5), "1.5 CPUs"),
    ("manager-priority", computer(manager_priorities=((50, 0, 0),)), "2 of its threads have none"),
    (
        "real-time-throttling",
        computer(busy_cpus=(BusyCpu(1, 0.97, "camera (7)"),)),
        "CPU 1: 0.97 of its time in 0.5 s, most of it thread camera (7)",
    ),
    ("manager-priority", computer(manager_priorities=((50, 50, 49),)), "2 of its threads have up"),
    ("dds-profile", computer(transports=Transports()), "no profile"),
    ("dds-profile-unreadable", computer(transports=Transports("/profile.xml")), "/profile.xml"),
    ("dds-local-only", computer(transports=Transports(local_only="HOST=1")), "HOST=1"),
    ("dds-local-only", computer(transports=Transports("/p", local_only="HOST=1")), "HOST=1"),
]
# What else a fault brings with it, rightly.
FOLLOW = {
    "parameters-missing": {"controller-absent"},
    "controller-absent": {"parameters-missing"},
    "controller-silent": {"parameters-missing"},
    # by a joint that is nowhere
    "model-refused": {f"parameter-{what}" for what in ("wrong", "of-other-joint")}
    | {"states-lack-joints", "joints-differ", "sentinel-differs"},
    "effort-limit-zero": {"descriptions-differ"},
    "rate-too-low": {"rate-differs"},
    "rate-low": {"rate-differs"},
    "states-pause": {"states-old"},
    "states-jitter": {"states-old"},
    "interfaces-claimed": {"effort-controller-inactive"},
    "gravity-unseen": {"effort-controller-inactive"},
    "gravity-strength": {"gravity-differs"},
    "real-time-priority": {"memory-lock"},
    "dds-local-only": {"dds-profile-unreadable"},
}


def codes(found: list[Finding]) -> set[str]:
    return {finding.code for finding in found}


# States of the arm, and of another device that tells no time.
OTHERS = tuple(replace(one, stamp=0) for one in states(names=("gripper",)))
MIXED = tuple(one for both in zip(states(), OTHERS, strict=True) for one in both)
FIRMWARE = replace(set_to(hardware_compensates_gravity=True), states=felt(np.zeros(7)).states)


def test_healthy_system_gives_nothing() -> None:
    for evidence in (
        HEALTHY,
        simulated(clock=True, use=True),
        changed(file="my.yaml", file_parameters=PARAMETERS),
        FIRMWARE,
        changed(states=MIXED),
        heard(velocity=lambda number, one: (0.1 * (-1.0) ** number,) * 7),  # noise
        without(BROADCASTER),  # it is elsewhere
        streaming(50.0),
        streaming(1000.0),
        streaming(20.0, count=2),  # too few tell no period
        streaming(100.0, 500.0, stream__bandwidth=60.0),
        of_streams(3, 3, target_joint=SENDER, commands=SENDER),  # one of them is silent
        planning(100.0, stream__bandwidth=400.0),  # no filter
        setting(0.5),  # it holds until the next one
        setting(
            50.0,
            "stream.target_timeout",
            task__control_law="task_computed_torque",
            control_law="cartesian_impedance",
        ),
    ):
        assert findings(evidence) == []


@pytest.mark.parametrize(("code", "evidence", "words"), CASES, ids=[case[0] for case in CASES])
def test_fault_is_found(code: str, evidence: Evidence, words: str) -> None:
    found = findings(evidence)
    said = [finding.what for finding in found if finding.code == code]
    assert any(words in what for what in said), [str(finding) for finding in found]
    expected = {code} | FOLLOW.get(code, set())
    if evidence.machine is not HEALTHY.machine:
        expected |= {"parameters-missing", "controller-absent"}
    assert codes(found) <= expected, [str(finding) for finding in found]


def test_every_kind_has_a_case_and_a_name_of_its_own_and_is_documented() -> None:
    names = [code.name for code in CODES]
    assert len(set(names)) == len(names)
    assert {code for code, _, _ in CASES} == set(names)
    assert markdown(CODES) in (ROOT / "docs" / "doctor.md").read_text()


def test_worst_comes_first_and_each_is_one_line() -> None:
    evidence = set_to(contol_law="pd", joints=["a\nb"])
    found = findings(replace(evidence, controllers=loaded(state="inactive")))
    levels = [LEVELS.index(finding.level) for finding in found]
    assert levels == sorted(levels) and set(levels) == {0, 1, 2}
    assert all("\n" not in str(finding) for finding in found)


def test_parameters_of_a_file_serve_before_the_controller_runs() -> None:
    of_file = {"file": "my.yaml", "file_parameters": {**PARAMETERS, "gain": 1}}
    found = findings(replace(without(CONTROLLER, SENTINEL), **of_file))
    assert codes(found) == {"controller-absent", "parameter-unknown"}
    assert any("my.yaml: gain" in finding.what for finding in found)


def test_remedy_has_the_names() -> None:
    remedies = {finding.code: finding.remedy for finding in findings(CLAIMED)}
    command = "ros2 control switch_controllers --deactivate arm_controller --activate effort_contro"
    assert command in remedies["interfaces-claimed"]
    assert "--activate effort_controller`" in remedies["effort-controller-inactive"]


def test_dead_controller_manager_is_the_first_error() -> None:
    """Also where the controller, which hears no states, is an error too."""
    blind = Status(2, "no joint_states with a new stamp for 0.1 s", {**REPORT, "mode": "blind"})
    for evidence in (DEAD, HUNG):
        said = {**evidence.diagnostics, CONTROLLER: (blind,) * 3}
        found = findings(replace(evidence, diagnostics=said))
        assert [each.code for each in found] == ["manager-gone", "controller-fails"]


def test_counts_while_watched() -> None:
    reports = (Status(0, "in control", {**REPORT, **new}) for new in ({}, {"gaps in states": "3"}))
    (found,) = findings(told(CONTROLLER, *reports))
    assert "gaps in states: 3 since activation, 3 of them in the 3 s" in found.what


def test_cpu_quota_of_all_groups(tmp_path: Path) -> None:
    groups, own = tmp_path / "groups", tmp_path / "cgroup"
    (groups / "a" / "b").mkdir(parents=True)
    own.write_text("1:cpu:/ignored\n0::/a/b\n")
    assert cpu_quota(own, groups) is None
    quotas = ("cpu.max", "max 100000\n", None), ("a/b/cpu.max", "150000 100000\n", 1.5)
    quotas += ("a/cpu.max", "50000 100000\n", 0.5), ("a/b/cpu.max", "max 100000\n", 0.5)
    for name, text, quota in quotas:
        (groups / name).write_text(text)
        assert cpu_quota(own, groups) == quota


@pytest.mark.skipif(largest_priority() < 1, reason="no real-time priority is allowed")
def test_cpu_that_a_real_time_thread_uses_up() -> None:
    busy = "exec -a busy_thread bash -c 'while true; do :; done'"
    with subprocess.Popen(["bash", "-c", busy]) as process:
        try:
            os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(1))
            os.sched_setaffinity(process.pid, [max(os.sched_getaffinity(0))])
            wait_for(lambda: str(process.pid) in "".join(cpu.busiest for cpu in busy_cpus()))
        finally:
            process.kill()


def test_priorities_of_a_running_program() -> None:
    command = ["bash", "-c", "exec -a /somewhere/a_program_of_mine sleep 60"]
    with subprocess.Popen(command) as process:
        try:
            wait_for(lambda: priorities_of("a_program_of_mine"))
            assert priorities_of("a_program_of_mine") == ((0,),)
            if largest_priority() >= 7:
                os.sched_setscheduler(process.pid, os.SCHED_RR, os.sched_param(7))
                assert priorities_of("a_program_of_mine") == ((7,),)
        finally:
            process.kill()
    assert priorities_of("a_program_of_mine") == ()
