"""Each kind of finding: evidence that gives it, and evidence that gives nothing."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dds import wait_for
from healthy import (
    BROADCASTER,
    CONTROLLER,
    EFFORT,
    HEALTHY,
    JOINTS,
    MANAGER,
    MODEL,
    NOW,
    PARAMETERS,
    READY,
    REPORT,
    SECOND,
    SENTINEL,
    URDF,
    changed,
    computer,
    holding_torque,
    loaded,
    reporting,
    set_to,
    state,
    states,
    without,
)

from rnea_control.commands.checks import CODES, findings
from rnea_control.commands.command_checks import COMMAND_TYPE, DEPRECATED
from rnea_control.commands.evidence import Endpoint, Evidence, LoadedController, Status, Topic
from rnea_control.commands.finding import Finding, Level
from rnea_control.commands.machine import cpu_quota, priorities_of
from rnea_control.ros.fast_dds import FastDds
from rnea_control.ros.real_time import largest_priority

DOCUMENT = Path(__file__).parents[2] / "docs" / "doctor.md"
OTHER = Endpoint("/other", "sensor_msgs/msg/JointState")
TURNED = tuple(reversed(JOINTS))


def real_arm(**payload: object) -> np.ndarray:
    """The torques that hold the arm with a load."""
    arm = copy.deepcopy(MODEL)
    arm.set_payload(MODEL.child_links[-1], **payload)
    return holding_torque(arm)


def turned_arm(x: float, y: float, z: float) -> np.ndarray:
    """The torques that hold the arm in another direction of gravity."""
    arm = copy.deepcopy(MODEL)
    arm.gravity = [x, y, z]
    return holding_torque(arm)


def commands(publishers: tuple = (), subscriptions: tuple = ()) -> Evidence:
    topic = HEALTHY.commands_topic
    return changed(
        commands_topic=Topic(
            topic.name, publishers or topic.publishers, subscriptions or topic.subscriptions
        )
    )


def pause(number: int, one) -> object:
    late = 0.05 if number >= 50 else 0.0
    return replace(one, received=one.received + late, clock=one.clock + round(1e9 * late))


def jitter(number: int, one) -> object:
    late = 0.012 * (number % 2)
    return replace(one, received=one.received + late, clock=one.clock + round(1e9 * late))


def simulated(clock: bool, use: bool) -> Evidence:
    """States stamped with the time of a simulation."""

    def stamp(number: int, one) -> object:
        time = number * SECOND // 1000
        return replace(one, stamp=time, simulated=time if clock else None)

    return replace(
        set_all_sim_time(use),
        states=states(change=stamp),
        clock_times=100 if clock else 0,
        clock_topic=Topic("/clock", (Endpoint("/simulator", "rosgraph_msgs/msg/Clock"),)),
    )


def set_all_sim_time(use: bool) -> Evidence:
    return changed(
        parameters={
            node: {**values, "use_sim_time": use} for node, values in HEALTHY.parameters.items()
        }
    )


CASES: list[tuple[str, Evidence, str]] = [
    ("parameters-missing", without(CONTROLLER), "/rnea_controller is not there, and no file"),
    ("parameters-missing", changed(file_fault="my.yaml cannot be read"), "my.yaml cannot be read"),
    ("parameter-wrong", set_to(effort_limit_scale=2.0), "effort_limit_scale"),
    ("parameter-wrong", set_to(**{"gains.joint3.p": None}), "gains.joint3.p"),
    ("parameter-wrong", set_to(joint_state_gap=0.2), "joint_state_timeout"),
    ("parameter-unknown", set_to(contol_law="pd"), "contol_law"),
    (
        "parameters-differ",
        changed(file="my.yaml", file_parameters={**PARAMETERS, "gains.joint1.p": 100.0}),
        "gains.joint1.p (400 runs, 100.0 in the file)",
    ),
    ("model-refused", set_to(joints=["joint1", "wrist"]), "wrist"),
    ("model-refused", changed(descriptions=("<robot",)), "robot_description"),
    ("description-missing", replace(without("/robot_state_publisher"), descriptions=()), "nothing"),
    (
        "description-not-latched",
        changed(description_topic=Topic("/robot_description", (Endpoint("/d", "s"),))),
        "/d",
    ),
    (
        "descriptions-differ",
        set_to("/robot_state_publisher", robot_description=URDF.replace('"5"', '"5.5"')),
        "inertias of links",
    ),
    (
        "descriptions-differ",
        set_to(SENTINEL, robot_description=URDF.replace('effort="60"', 'effort="50"')),
        "effort limits",
    ),
    (
        "model-suspicious",
        changed(
            descriptions=(
                URDF.replace(
                    "</joint>", '<safety_controller k_velocity="1" k_position="1"/></joint>'
                ),
            )
        ),
        "safety_controller",
    ),
    (
        "effort-limit-zero",
        changed(descriptions=(URDF.replace('effort="60"', 'effort="0"'),)),
        "joint5",
    ),
    ("states-missing", changed(states=(), states_topic=Topic("/joint_states")), "nobody"),
    (
        "states-missing",
        changed(states=(), controllers=(replace(loaded()[0], state="inactive"), loaded()[1])),
        "joint_state_broadcaster is inactive",
    ),
    ("states-lack-joints", changed(states=states(names=JOINTS[:6])), "joint7 missing"),
    ("states-lack-joints", changed(states=states(names=("gripper",))), "it has gripper"),
    ("states-name-twice", changed(states=states(names=(*JOINTS, "joint1"))), "joint1 twice"),
    (
        "states-incomplete",
        changed(states=states(change=lambda i, one: replace(one, velocity=()))),
        "0 velocity values for 7 names",
    ),
    (
        "states-incomplete",
        changed(
            states=states(change=lambda i, one: replace(one, velocity=(*one.velocity[:6], np.nan)))
        ),
        "velocity of joint7 is not finite",
    ),
    (
        "states-second-publisher",
        changed(states_topic=Topic("/joint_states", (*HEALTHY.states_topic.publishers, OTHER))),
        "/joint_state_broadcaster, /other",
    ),
    ("rate-too-low", changed(states=states(40.0)), "40 Hz"),
    ("rate-low", changed(states=states(100.0)), "100 Hz"),
    ("rate-differs", changed(states=states(800.0)), "update_rate 1000"),
    (
        "states-pause",
        changed(states=states(change=pause)),
        "longest pause was 51 ms, by the stamps 1",
    ),
    ("states-jitter", changed(states=states(change=jitter)), "12 ms"),
    (
        "states-old",
        changed(states=states(change=lambda i, one: replace(one, stamp=one.stamp - SECOND // 50))),
        "20.5 ms old",
    ),
    ("clock-missing", simulated(clock=False, use=True), "1 publisher(s)"),
    ("clock-unused", simulated(clock=True, use=False), "use_sim_time is false"),
    ("sim-time-differs", set_to(MANAGER, use_sim_time=True), "true for /controller_manager"),
    ("stamps-zero", changed(states=states(change=lambda i, one: replace(one, stamp=0))), "all 100"),
    (
        "stamps-stand-still",
        changed(states=states(change=lambda i, one: replace(one, stamp=NOW))),
        "are the same",
    ),
    (
        "stamps-go-back",
        changed(states=states(change=lambda i, one: state(7) if i == 50 else one)),
        "1 of 100 stamps go back",
    ),
    (
        "stamps-of-another-clock",
        changed(states=states(change=lambda i, one: replace(one, stamp=one.stamp - 5 * SECOND))),
        "5 s behind this computer's clock",
    ),
    ("manager-absent", without(MANAGER), "/controller_manager is not there"),
    ("manager-silent", changed(controllers=None), "has not answered"),
    ("manager-messages", changed(has_manager_messages=False, controllers=None), "cannot be asked"),
    ("effort-controller-missing", changed(controllers=loaded()[:1]), "it has joint_state_broad"),
    ("effort-controller-unconfigured", changed(controllers=loaded(state="unconfigured")), EFFORT),
    ("effort-controller-inactive", changed(controllers=loaded(state="inactive")), EFFORT),
    (
        "effort-controller-type",
        changed(controllers=loaded(type="position_controllers/JointGroupPositionController")),
        "position_controllers",
    ),
    ("effort-controller-deprecated", changed(controllers=loaded(type=DEPRECATED)), DEPRECATED),
    ("interface-not-effort", set_to(EFFORT, interface_name="position"), "'position'"),
    ("joints-differ", set_to(EFFORT, joints=list(JOINTS[:6])), "has joint1"),
    ("joints-order", set_to(EFFORT, joints=list(TURNED)), "has joint7, joint6"),
    (
        "interfaces-claimed",
        changed(
            controllers=(
                *loaded(state="inactive", claimed=()),
                LoadedController("arm_controller", "jtc", "active", ("joint2/position",)),
            )
        ),
        "arm_controller is active and holds joint2/position",
    ),
    (
        "commands-unheard",
        commands(subscriptions=HEALTHY.commands_topic.subscriptions[1:]),
        "/effort_controller/commands has no subscription",
    ),
    (
        "commands-type",
        commands(subscriptions=(Endpoint("/jtc", "trajectory_msgs/msg/JointTrajectory"),)),
        "/jtc (trajectory_msgs",
    ),
    (
        "commands-qos",
        commands(
            publishers=(Endpoint(CONTROLLER, COMMAND_TYPE, reliable=False),),
            subscriptions=(Endpoint("/hardware", COMMAND_TYPE),),
        ),
        "/hardware",
    ),
    (
        "commands-second-publisher",
        commands(publishers=(Endpoint("/teleop", COMMAND_TYPE),)),
        "/teleop",
    ),
    ("velocity-limits-enforced", set_to(MANAGER, enforce_command_limits=True), "velocity_limit"),
    ("node-twice", changed(nodes=(*HEALTHY.nodes, CONTROLLER)), "2 times"),
    ("node-silent", changed(parameters={**HEALTHY.parameters, EFFORT: None}), EFFORT),
    ("controller-absent", without(CONTROLLER), "not there"),
    ("controller-silent", changed(diagnostics={}), "no /diagnostics in 3 s"),
    (
        "controller-silent",
        changed(parameters={**HEALTHY.parameters, CONTROLLER: None}),
        "has not answered for its parameters",
    ),
    ("controller-inactive", reporting(message="not active"), "is not active"),
    ("controller-waiting", reporting(1, "waiting for joint_states", mode="waiting"), "waiting for"),
    ("controller-warns", reporting(1, "waited 0.033 s for joint_states"), "(3 of 3 reports)"),
    ("controller-fails", reporting(2, "a collision", mode="fault"), "a collision"),
    ("sentinel-absent", without(SENTINEL), "/rnea_sentinel is not there"),
    (
        "sentinel-required",
        replace(set_to(require_sentinel=True), nodes=without(SENTINEL).nodes),
        "/rnea_sentinel is not there",
    ),
    ("handover-differs", set_to(command_timeout=0.02), "command_timeout (0.02 for the"),
    (
        "sentinel-differs",
        set_to(SENTINEL, gravity=[0.0, 0.0, 9.81]),
        "gravity ([0.0, 0.0, -9.81] for the controller, [0.0, 0.0, 9.81])",
    ),
    (
        "sentinel-fails",
        changed(diagnostics={**HEALTHY.diagnostics, SENTINEL: (Status(2, "holds the arm"),)}),
        "holds the arm",
    ),
    (
        "arm-moves",
        changed(states=states(change=lambda i, one: replace(one, velocity=(0.5,) * 7))),
        "0.5 rad/s",
    ),
    (
        "effort-unknown",
        changed(states=states(change=lambda i, one: replace(one, effort=()))),
        "no finite effort",
    ),
    (
        "gravity-unseen",
        changed(states=states(effort=np.zeros(7)), controllers=loaded(state="inactive")),
        "joint2",
    ),
    ("gravity-not-held", changed(states=states(effort=np.zeros(7))), "joint2"),
    ("gravity-measured", set_to(hardware_compensates_gravity=True), "joint2"),
    ("gravity-opposite", changed(states=states(effort=-holding_torque())), "opposite"),
    (
        "gravity-direction",
        changed(states=states(effort=turned_arm(0.0, 4.905, -8.4957))),
        "4.90, -8.50] in the frame of",
    ),
    ("gravity-strength", set_to(gravity=[0.0, 0.0, -1.0]), "1 m/s^2"),
    (
        "payload",
        changed(states=states(effort=real_arm(mass=2.0, center_of_mass=(0.05, 0.0, 0.1)))),
        "2.00 kg at [0.04, 0.04, 0.08] m",
    ),
    ("payload-at-origin", set_to(payload__mass=0.001), "0.001 kg"),
    ("gravity-differs", changed(states=states(effort=3.0 * holding_torque())), "ampere"),
    (
        "rotor-inertia",
        set_to(**{f"armature.{joint}": 0.0 for joint in JOINTS}),
        "joint7 (",
    ),
    ("gave-way", reporting(gave_way="2", gave_way_last="joint2 was off"), "last as joint2 was off"),
    ("limits-at-work", reporting(effort_limit_at_work="joint4 0.310 s"), "joint4 0.310 s"),
    ("states-refused", reporting(states_refused="4"), "states refused: 4"),
    ("state-gaps", reporting(gaps_in_states="1"), "0 of them in the 3 s"),
    ("states-missed", reporting(states_missed="6000"), "9.1 % of the states"),
    ("states-late", reporting(states_late="6000"), "10 % of the states"),
    ("trajectories-dropped", reporting(trajectories_dropped="1"), "dropped: 1"),
    ("model-differs", reporting(model_1="joint2: model 20 Nm, held with 30 Nm: masses?"), "30 Nm"),
    (
        "report-unknown",
        changed(
            diagnostics={**HEALTHY.diagnostics, CONTROLLER: (Status(0, "", {"mode": "holding"}),)}
        ),
        "says nothing of ticks",
    ),
    ("real-time-priority", computer(largest_priority=0), "largest priority is 0"),
    ("real-time-priority", reporting(real_time="nothing in force; kernel with PREEMPT_RT"), "says"),
    ("memory-lock", computer(may_lock_memory=False), "memlock"),
    ("kernel", computer(real_time_kernel=False), "this computer"),
    ("cpu-quota", computer(cpu_quota=1.5), "1.5 CPUs"),
    ("manager-priority", computer(manager_priorities=((50, 0, 0),)), "2 of its threads have none"),
    (
        "manager-priority",
        computer(manager_priorities=((50, 50, 49),)),
        "2 of its threads have up to 5",
    ),
    ("dds-profile", computer(fast_dds=FastDds()), "no profile"),
    ("dds-profile-unreadable", computer(fast_dds=FastDds("/profile.xml")), "/profile.xml"),
    (
        "dds-local-only",
        computer(fast_dds=FastDds(local_only="ROS_LOCALHOST_ONLY=1")),
        "ROS_LOCALHOST_ONLY=1",
    ),
]
# What else a fault brings with it, rightly.
FOLLOW = {
    "parameters-missing": {"controller-absent"},
    "controller-absent": {"parameters-missing"},
    "controller-silent": {"parameters-missing"},
    "model-refused": {  # by a joint that is nowhere
        "parameter-wrong",
        "parameter-unknown",
        "states-lack-joints",
        "joints-differ",
        "sentinel-differs",
    },
    "effort-limit-zero": {"descriptions-differ"},
    "rate-too-low": {"rate-differs"},
    "rate-low": {"rate-differs"},
    "states-pause": {"states-old"},
    "states-jitter": {"states-old"},
    "interfaces-claimed": {"effort-controller-inactive"},
    "gravity-unseen": {"effort-controller-inactive"},
    "gravity-strength": {"gravity-differs"},
    "real-time-priority": {"memory-lock"},
}


def codes(found: list[Finding]) -> set[str]:
    return {finding.code for finding in found}


def test_healthy_system_gives_nothing() -> None:
    assert findings(HEALTHY) == []


def test_healthy_simulation_gives_nothing() -> None:
    assert findings(simulated(clock=True, use=True)) == []


def test_file_that_runs_gives_nothing() -> None:
    assert findings(changed(file="my.yaml", file_parameters=PARAMETERS)) == []


@pytest.mark.parametrize(("code", "evidence", "words"), CASES, ids=[case[0] for case in CASES])
def test_fault_is_found(code: str, evidence: Evidence, words: str) -> None:
    found = findings(evidence)
    said = [finding.what for finding in found if finding.code == code]
    assert any(words in what for what in said), [str(finding) for finding in found]
    expected = {code} | FOLLOW.get(code, set())
    if evidence.machine is not HEALTHY.machine:
        expected |= {"parameters-missing", "controller-absent"}
    assert codes(found) <= expected, [str(finding) for finding in found]


def test_every_kind_has_a_case_and_a_name_of_its_own() -> None:
    names = [code.name for code in CODES]
    assert len(set(names)) == len(names)
    assert {code for code, _, _ in CASES} == set(names)


def test_worst_comes_first_and_each_is_one_line() -> None:
    evidence = replace(
        set_to(contol_law="pd", joints=["a\nb"]), controllers=loaded(state="inactive")
    )
    found = findings(evidence)
    levels = [list(Level).index(finding.level) for finding in found]
    assert levels == sorted(levels) and set(levels) == {0, 1, 2}
    assert all("\n" not in str(finding) for finding in found)


def test_right_firmware_gives_nothing() -> None:
    torque = np.zeros(MODEL.nv)
    evidence = set_to(hardware_compensates_gravity=True)
    assert findings(replace(evidence, states=states(effort=torque))) == []


def test_states_of_other_devices_do_not_count() -> None:
    mixed = tuple(
        one
        for arm, gripper in zip(states(), states(names=("gripper",)), strict=True)
        for one in (arm, replace(gripper, stamp=0))
    )
    assert findings(changed(states=mixed)) == []


def test_parameters_of_a_file_serve_before_the_controller_runs() -> None:
    evidence = replace(
        without(CONTROLLER, SENTINEL), file="my.yaml", file_parameters={**PARAMETERS, "gain": 1}
    )
    found = findings(evidence)
    assert codes(found) == {"controller-absent", "parameter-unknown"}
    assert any("my.yaml: gain" in finding.what for finding in found)


def test_remedy_has_the_names() -> None:
    rival = LoadedController("arm_controller", "jtc", "active", ("joint2/position",))
    evidence = changed(controllers=(*loaded(state="inactive", claimed=()), rival))
    remedies = {finding.code: finding.remedy for finding in findings(evidence)}
    command = "ros2 control switch_controllers --deactivate arm_controller --activate effort_contro"
    assert command in remedies["interfaces-claimed"]
    assert "--activate effort_controller`" in remedies["effort-controller-inactive"]


def test_noise_of_velocities_is_no_motion() -> None:
    def noisy(number: int, one) -> object:
        return replace(one, velocity=tuple(0.1 * (-1.0) ** number for _ in JOINTS))

    assert findings(changed(states=states(change=noisy))) == []


def test_counts_while_watched() -> None:
    before = Status(0, "in control", REPORT)
    after = Status(0, "in control", {**REPORT, "gaps in states": "3"})
    evidence = changed(diagnostics={**HEALTHY.diagnostics, CONTROLLER: (before, after)})
    (found,) = findings(evidence)
    assert "gaps in states: 3 since activation, 3 of them in the 3 s" in found.what


def test_broadcaster_elsewhere_is_no_fault() -> None:
    assert findings(without(BROADCASTER)) == []


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"a/b/cpu.max": "150000 100000\n"}, 1.5),
        ({"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
    ],
)
def test_cpu_quota_of_all_groups(tmp_path: Path, files: dict[str, str], quota: float) -> None:
    (tmp_path / "groups" / "a" / "b").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "groups" / name).write_text(text)
    own = tmp_path / "cgroup"
    own.write_text("1:cpu:/ignored\n0::/a/b\n")
    assert cpu_quota(own, tmp_path / "groups") == quota


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


def test_profile_that_cannot_be_read_does_not_hide_that_memory_is_shared() -> None:
    environment = FastDds("/profile.xml", local_only="ROS_LOCALHOST_ONLY=1")
    found = codes(findings(computer(fast_dds=environment)))
    assert {"dds-profile-unreadable", "dds-local-only"} <= found and "dds-profile" not in found


def test_documentation_is_that_of_the_code() -> None:
    command = [sys.executable, "-m", "rnea_control.commands.checks"]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed in DOCUMENT.read_text()


def test_posture_is_one_that_tells() -> None:
    assert np.abs(holding_torque()).max() > 10.0 and len(READY) == MODEL.nv
