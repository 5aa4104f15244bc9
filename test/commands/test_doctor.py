"""`rnea_doctor` over DDS: beside a simulated arm, its controller and a stand-in of ros2_control."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dds
import pytest
import rclpy
import yaml
from dds import ARM, JOINTS, Process, ask, ros, settings, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.commands import machine_checks
from rnea_control.commands.checks import codes_of, findings
from rnea_control.commands.command_checks import FORWARD
from rnea_control.commands.controller_checks import COUNTED, SHARED, TICKS
from rnea_control.commands.doctor import main
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.observer import Observer
from rnea_control.ros.conventions import LATCHED

msg = pytest.importorskip("controller_manager_msgs.msg")
srv = pytest.importorskip("controller_manager_msgs.srv")

DOMAIN, EMPTY_DOMAIN = 86, 87
URDF = two_link_arm().replace('effort="100"', 'effort="40"')
# A busy machine takes long.
LONG = {"joint_state_gap": 5.0, "joint_state_timeout": 5.0, "command_timeout": 3.0}
WATCHED = ("tick_duration", "state_age", "period_jitter", "missed_states", "late_states")
PARAMETERS = {
    **dds.PARAMETERS,
    "command_reliability": "best_effort",
    "model_check.bound": 0.02,
    "command_lease": 2.0,
    "diagnostics": {name: {"warn": 10.0, "error": 20.0} for name in WATCHED},
    **LONG,
}
RATE = 250
# What the wrong load may look like, with two joints to tell it by.
OF_THE_MODEL = {"payload", "gravity-differs", "gravity-direction", "model-differs"}
# What the computer that tests run on may lack, or be too busy for.
OF_THE_COMPUTER = {code.name for code in codes_of(machine_checks.check)} | {"rate-differs"}
OF_THE_COMPUTER -= {"manager-priority", "dds-profile-unreadable"}


class Ros2Control:
    """Speaks for controller_manager and its `controllers`, by name with type, state and claimed
    interfaces."""

    def __init__(self) -> None:
        claimed = tuple(f"{joint}/effort" for joint in JOINTS)
        self.controllers = {"effort_controller": (FORWARD, "active", claimed)}
        self.executor = SingleThreadedExecutor()
        options = {"joints": JOINTS, "interface_name": "effort"}
        self.effort_controller = self.add("effort_controller", **options)
        options = {"update_rate": RATE, "enforce_command_limits": False}
        self.manager = self.add("controller_manager", **options)
        self.manager.create_service(srv.ListControllers, "~/list_controllers", self._list)
        if hasattr(msg, "ControllerManagerActivity"):  # Humble's has none
            state = msg.NamedLifecycleState(name="effort_controller")
            state.state.label = "active"
            activity = msg.ControllerManagerActivity(controllers=[state])
            self._activity = self.manager.create_publisher(type(activity), "~/activity", LATCHED)
            self._activity.publish(activity)
        self.reports: dict[str, str] = {}
        self.manager.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def add(self, name: str, **parameters: object) -> Node:
        node = rclpy.create_node(name)
        for key, value in parameters.items():
            node.declare_parameter(key, value)
        self.executor.add_node(node)
        return node

    def wait(self, said: dict[str, str], *processes: Process) -> None:
        def ended() -> bool:
            return any(each.process.poll() is not None for each in processes)

        wait_for(lambda: said.items() <= self.reports.items() or ended())
        assert said.items() <= self.reports.items(), [each.output for each in processes]

    def destroy(self) -> None:
        self._stopping.set()
        self._thread.join()
        for node in self.executor.get_nodes():
            node.destroy_node()
        self.executor.shutdown()

    def _spin(self) -> None:
        while not self._stopping.is_set():
            self.executor.spin_once(timeout_sec=0.1)

    def _hear(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.reports[status.name] = status.message

    def _list(self, request: object, response: object) -> object:
        response.controller = [
            msg.ControllerState(name=name, type=kind, state=state, claimed_interfaces=claimed)
            for name, (kind, state, claimed) in self.controllers.items()
        ]
        return response


@pytest.fixture(scope="module")
def context() -> Iterator[None]:
    with ros(DOMAIN):
        yield


def system(stack: ExitStack) -> tuple[Ros2Control, Process]:
    """The arm, its controller and the stand-in, in control; and the sentinel's process."""
    hardware = {**ARM, "robot_description": URDF, "rate": float(RATE)}
    stack.enter_context(Process("rnea_control.simulation.executable", hardware))
    control = Ros2Control()
    stack.callback(control.destroy)
    process = stack.enter_context(Process("rnea_control.node.executable", PARAMETERS))
    # One after the other: of a controller that starts on a busy machine the sentinel takes the arm.
    control.wait({"rnea_controller: control loop": "in control"}, process)
    sentinel = stack.enter_context(Process("rnea_control.sentinel.executable", PARAMETERS))
    said = {"rnea_controller: control loop": "in control", "rnea_sentinel: guard": "guarding"}
    control.wait(said, process, sentinel)
    return control, sentinel


def observe(seconds: float = 3.0, file: str = "") -> Evidence:
    observer = Observer("", "rnea_controller", file, seconds)
    try:
        return observer.observe()
    finally:
        observer.destroy()


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in findings(evidence)} - OF_THE_COMPUTER


def test_nothing_runs_and_wrong_options_are_said(monkeypatch, capsys) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(EMPTY_DOMAIN))
    assert main(["rnea_doctor", "--seconds", "1", "--namespace", "arm1"]) == 1
    printed = capsys.readouterr().out
    assert "parameters-missing: /arm1/rnea_controller is not there" in printed
    assert "manager-gone: /arm1/controller_manager is not there, and nothing came on" in printed
    assert printed.splitlines()[-1].split(" kinds")[0].count(",") == 2
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["rnea_doctor", "--seconds", "0"])
    assert "it must be positive and finite" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="--namespace or --node"):
        main(["rnea_doctor", "--namespace", "a b"])
    with pytest.raises(SystemExit, match="ROS 2 does not start"):
        main(["rnea_doctor", "--ros-args", "--params-file", "/nowhere.yaml"])


@pytest.mark.explores
def test_system_that_is_healthy_and_then_is_not(context: None, tmp_path: Path) -> None:
    with ExitStack() as stack:
        control, sentinel = system(stack)
        healthy_system(control, tmp_path)
        streams_that_do_not_fit(control)
        planted_faults(control, sentinel, tmp_path)


def healthy_system(control: Ros2Control, folder: Path) -> None:
    """By the executable, and at the same time by what it observes with."""
    command = [sys.executable, "-m", "rnea_control.commands.doctor", "--seconds", "3", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        observer = Observer("", "rnea_controller", "", 3.0)
        evidence = observer.observe()
        # The controller would take a subscription to its commands for somebody who listens.
        found = control.manager.get_subscriptions_info_by_topic("/effort_controller/commands")
        assert not [info.node_name for info in found if "doctor" in info.node_name]
        observer.destroy()
        printed, _ = process.communicate(timeout=60.0)
    assert process.returncode == 0, printed
    assert json.loads(printed)["counts"]["error"] == 0
    assert codes(evidence) == set(), [str(finding) for finding in findings(evidence)]
    assert len(evidence.states) > 1.5 * RATE
    assert evidence.parameters["/rnea_controller"]["joints"] == JOINTS
    report = evidence.diagnostics["/rnea_controller"][-1].values
    assert {TICKS, *COUNTED, *SHARED, "real time"} <= set(report)


def streams_that_do_not_fit(control: Ros2Control) -> None:
    """A slow stream of targets beside another one, and a publisher of another type; the targets are
    where the arm is."""
    position = list(observe(1.0).states[-1].of(JOINTS, "position"))
    sender = control.add("sender")
    slow = sender.create_publisher(JointState, "target_joint", 1)
    other = sender.create_publisher(Float64MultiArray, "rnea_controller/commands", 1)
    sender.create_publisher(String, "rnea_controller/delta_joint_cmds", 1)
    timers = [
        sender.create_timer(0.2, lambda: slow.publish(JointState(name=JOINTS, position=position))),
        sender.create_timer(0.02, lambda: other.publish(Float64MultiArray(data=position))),
    ]
    expected = {"stream-type", "stream-second-publisher", "stream-too-slow"}
    for seconds in (4.0, 8.0):  # reports come once a second
        evidence = observe(seconds)
        if expected <= codes(evidence):
            break
    assert expected == {code for code in codes(evidence) if code.startswith("stream-")}
    received = {each.topic.name: len(each.received) for each in evidence.streams}
    assert received["/rnea_controller/commands"] > 2 * received["/target_joint"] > 0
    assert received["/rnea_controller/delta_joint_cmds"] == 0
    for timer in timers:
        sender.destroy_timer(timer)
    control.executor.remove_node(sender)
    sender.destroy_node()


def planted_faults(control: Ros2Control, sentinel: Process, tmp_path: Path) -> None:
    sentinel.stop()
    # The controller believes in a load, which the arm does not bear.
    change_elsewhere(control.manager, "/rnea_controller", **{"payload.mass": 1.0})
    rival = "joint_trajectory_controller", "active", ("elbow/position",)
    control.controllers = {"effort_controller": (FORWARD, "inactive", ()), "arm_controller": rival}
    change(control.effort_controller, joints=JOINTS[::-1], interface_name="position")
    change(control.manager, enforce_command_limits=True, use_sim_time=True)
    other = control.add("other")
    other.create_publisher(JointState, "joint_states", 1)
    other.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
    other.create_subscription(Float64MultiArray, "effort_controller/commands", print, 1)
    description = other.create_publisher(String, "robot_description", 1)
    control.add("robot_state_publisher", robot_description=URDF.replace('"2.0"', '"2.5"'))
    file = tmp_path / "other.yaml"
    file.write_text(yaml.safe_dump({"rnea_controller": {"ros__parameters": {"joints": ["x"]}}}))
    expected = {
        *("sentinel-absent", "effort-controller-inactive", "interfaces-claimed", "joints-order"),
        *("interface-not-effort", "velocity-limits-enforced", "sim-time-differs", "commands-qos"),
        *("states-second-publisher", "commands-second-publisher", "description-not-latched"),
        *("descriptions-differ", "parameters-differ", "payload-at-origin"),
    }
    # The controller has seen its rivals too; an arm that nobody holds is driven to its limits by a
    # load that it does not bear.
    possible = expected | {"controller-fails", "controller-warns", "limits-at-work"} | OF_THE_MODEL
    for seconds in (2.5, 8.0):  # nodes answer late on a busy machine
        evidence = observe(seconds, str(file))
        found = codes(evidence)
        if expected <= found <= possible and found & OF_THE_MODEL:
            break
    other.destroy_publisher(description)
    assert expected <= found <= possible, [str(finding) for finding in findings(evidence)]
    assert found & OF_THE_MODEL


def change_elsewhere(node: Node, other: str, **parameters: object) -> None:
    """Sets parameters of a node in another process, and lets the arm come to rest."""
    name, messages = f"{other}/set_parameters", settings(parameters)
    answer = ask(node, lambda: time.sleep(0.02), SetParameters, name, parameters=messages)
    assert all(result.successful for result in answer.results)
    time.sleep(1.0)


def change(node: Node, **parameters: object) -> None:
    answers = node.set_parameters([Parameter(name, value=v) for name, v in parameters.items()])
    assert all(answer.successful for answer in answers)


def test_nodes_that_do_not_answer_hold_nothing_up(context: None) -> None:
    silent = rclpy.create_node("rnea_controller")  # nobody spins it
    manager = rclpy.create_node("controller_manager")
    manager.create_service(srv.ListControllers, "~/list_controllers", lambda _, answer: answer)
    try:
        start = time.monotonic()
        evidence = observe(1.0)
        assert time.monotonic() - start < 3.0
    finally:
        silent.destroy_node()
        manager.destroy_node()
    assert evidence.parameters == {"/rnea_controller": None, "/controller_manager": None}
    assert {"controller-silent", "manager-gone", "parameters-missing"} <= codes(evidence)
