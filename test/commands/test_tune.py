"""`rnea_tune` as a process, beside a controller and a simulated arm with rotors and friction."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

import rclpy
import yaml
from dds import (
    ARM,
    JOINTS,
    LATCHED,
    PARAMETERS,
    PATIENT,
    Process,
    ask,
    controller,
    ros,
    settings,
    trajectory,
    wait_for,
)
from lifecycle_msgs.msg import TransitionEvent
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python
from std_msgs.msg import Bool

from rnea_control.commands.tune.temporary_settings import OF_ARM, OF_JOINT
from rnea_control.trajectory_client import TrajectoryClient

DOMAIN = 33
MODULE = "rnea_control.commands.tune.executable"
ROTOR, FRICTION = 0.1, 1.0
SIMULATION = {**ARM, "rate": 500.0, "lockstep": True, "joint_armature": ROTOR}
SIMULATION |= {"joint_friction": FRICTION, "velocity_noise": 0.002}
# On a busy machine the interpreter may stand still for seconds, which would end a motion.
CONTROLLER = {**PATIENT, "interpreter_timeout": 1000.0}
NAMES = [*OF_ARM, *(name.format(joint) for joint in JOINTS for name in OF_JOINT)]
TUNED = 200.0  # time limit of a measurement with --apply [s]
# A rotor that is measured wrongly: gains that the controller takes, and that shake the arm.
TOO_LARGE_ROTOR = """
from dataclasses import replace
from rnea_control.identification.tuning import joint_experiment, proposal
measured = proposal._of_joint
def planted(*given):
    found = measured(*given)
    return replace(found, armature=40.0 * found.armature)
proposal._of_joint = planted
joint_experiment.LEAST_ROUNDS = joint_experiment.MOST_ROUNDS = 2
"""


class Bench:
    """A controller with an arm, and what it says."""

    def __init__(self, process: Process) -> None:
        self.controller, self.mode = process, ""
        self.node, self._executor = rclpy.create_node("bench"), SingleThreadedExecutor()
        self._executor.add_node(self.node)
        topic = "rnea_controller/mode"
        self.node.create_subscription(TransitionEvent, topic, self._note, LATCHED)

    def _note(self, event: TransitionEvent) -> None:
        self.mode = event.goal_state.label

    def spin(self) -> None:
        self._executor.spin_once(timeout_sec=0.1)

    def until_mode(self, mode: str) -> None:
        wait_for(lambda: self.mode == mode, self.spin)

    def in_force(self) -> dict[str, object]:
        name = "rnea_controller/get_parameters"
        answer = ask(self.node, self.spin, GetParameters, name, names=NAMES)
        return dict(zip(NAMES, map(parameter_value_to_python, answer.values), strict=True))

    def set(self, values: dict[str, object]) -> None:
        name = "rnea_controller/set_parameters_atomically"
        given = settings(values)
        answer = ask(self.node, self.spin, SetParametersAtomically, name, parameters=given)
        assert answer.result.successful, answer.result.reason

    def send_goal(self) -> TrajectoryClient:
        """Client of a long goal that the controller has accepted, between two of rnea_tune."""
        clients = [TrajectoryClient(self.node, "rnea_controller")]
        wait_for(lambda: clients[0].is_there, self.spin)

        def is_accepted() -> bool:
            if not clients[-1].way or clients[-1].rejected:
                clients.append(clients[-1].another())
                clients[-1].send(trajectory(JOINTS, [(100.0, [0.5, -0.2], [0.0, 0.0])]))
            return clients[-1].accepted

        wait_for(is_accepted, self.spin)
        return clients[-1]

    def until_braced(self, before: dict[str, object]) -> None:
        wait_for(lambda: self.in_force()["gains.elbow.p"] != before["gains.elbow.p"])


@pytest.fixture
def bench() -> Iterator[Bench]:
    with (
        ros(DOMAIN),
        Process("rnea_control.simulation.executable", SIMULATION),
        controller(CONTROLLER) as process,
    ):
        process.said("]: holding: ")
        bench = Bench(process)
        yield bench
        bench.node.destroy_node()


def tune(output: Path, *options: str, before: str = "") -> Process:
    own = ["--output", str(output), "--joints", "elbow", "--yes", "--wait", "60"]
    return Process(MODULE, None, "--", *own, *options, before=before)


def test_signal_leaves_the_arm_with_its_old_settings(bench: Bench, tmp_path: Path) -> None:
    before = bench.in_force()
    with tune(tmp_path / "tuned") as process:
        bench.until_braced(before)
        assert (tmp_path / "tuned_before.yaml").exists()
        assert process.stop() == 130, process.output
        assert "the controller is in mode holding" in process.output
    bench.until_mode("holding")
    assert bench.in_force() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_signals_at_any_moment(bench: Bench, tmp_path: Path) -> None:
    before, rng = bench.in_force(), random.Random(0)
    for number in (signal.SIGINT, signal.SIGTERM) * 3:
        with tune(tmp_path / "tuned") as process:
            process.said("rnea_tune moves")
            time.sleep(rng.uniform(0.0, 15.0))
            assert process.stop(number) == 130, process.output
        bench.until_mode("holding")
        assert bench.in_force() == before
        assert not list(tmp_path.iterdir())


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_killed_process_leaves_a_file_with_the_old_settings(bench: Bench, tmp_path: Path) -> None:
    before, file = bench.in_force(), tmp_path / "tuned_before.yaml"
    with tune(tmp_path / "tuned") as process:
        bench.until_braced(before)
        process.process.kill()
        process.process.wait()
    assert yaml.safe_load(file.read_text()) == {"/rnea_controller": {"ros__parameters": before}}
    time.sleep(25.0)  # the dead process is discovered no more
    with tune(tmp_path / "tuned") as process:
        assert process.process.wait(timeout=60.0) == 1
        assert "a rnea_tune was killed, and its settings may be in force" in process.output
    bench.set(yaml.safe_load(file.read_text())["/rnea_controller"]["ros__parameters"])


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_others_have_the_arm(bench: Bench, tmp_path: Path) -> None:
    before = bench.in_force()
    with tune(tmp_path / "tuned") as process:
        bench.until_braced(before)
        with tune(tmp_path / "second") as second:
            assert second.process.wait(timeout=60.0) == 1
            # A process that is not discovered yet moves the arm.
            words = ("another rnea_tune is running", "it follows a trajectory of another client")
            assert any(each in second.output for each in words), second.output
        client = bench.send_goal()
        assert process.process.wait(timeout=60.0) == 1, process.output
        assert bench.in_force() == before
        bench.until_mode("moving")  # the other goal goes on
    with tune(tmp_path / "tuned") as process:
        assert process.process.wait(timeout=60.0) == 1
        assert "it follows a trajectory of another client" in process.output
    client.cancel()
    wait_for(lambda: client.ended, bench.spin)
    stop = bench.node.create_publisher(Bool, "rnea_controller/emergency_stop", LATCHED)
    with tune(tmp_path / "tuned") as process:
        bench.until_braced(before)
        stop.publish(Bool(data=True))
        assert process.process.wait(timeout=60.0) == 1, process.output
        assert "in mode emergency_stop" in process.output
    assert bench.in_force() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.explores
def test_another_law_is_refused(bench: Bench, tmp_path: Path) -> None:
    values: dict[str, object] = {"control_law": "pd_gravity"}
    for joint, (p, d) in {"shoulder": (100.0, 15.0), "elbow": (50.0, 3.0)}.items():
        values |= {f"gains.{joint}.p": p, f"gains.{joint}.d": d}
    bench.set(values)
    with tune(tmp_path / "tuned") as process:
        assert process.process.wait(timeout=90.0) == 1, process.output
        assert "control_law is pd_gravity; rnea_tune needs computed_torque" in process.output
    assert not list(tmp_path.iterdir())


@pytest.mark.explores
def test_controller_that_is_killed(bench: Bench, tmp_path: Path) -> None:
    before = bench.in_force()
    with tune(tmp_path / "tuned") as process:
        bench.until_braced(before)
        bench.controller.process.kill()
        assert process.process.wait(timeout=90.0) == 1, process.output
        assert "SETTINGS OF THE MEASUREMENT ARE IN FORCE" in process.output


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_proposal_that_is_applied(bench: Bench, tmp_path: Path) -> None:
    output = tmp_path / "tuned"
    before = bench.in_force()
    with tune(output, "--apply") as process:
        assert process.process.wait(timeout=TUNED) == 0, process.output
        assert "The proposal is in force" in process.output
    text = yaml.safe_load((output / "rnea_controller.yaml").read_text())
    written = text["/**"]["rnea_controller"]["ros__parameters"]
    assert written["armature"]["elbow"] == pytest.approx(ROTOR, rel=0.2)
    assert written["friction"]["elbow"]["coulomb"] == pytest.approx(0.8 * FRICTION, rel=0.1)
    after = bench.in_force()
    assert after["gains.elbow.p"] == pytest.approx(written["gains"]["elbow"]["p"], rel=1e-4)
    assert after["gains.elbow.p"] > PARAMETERS["gains"]["elbow"]["p"]
    bandwidth = written["disturbance_observer"]["bandwidth"]
    assert after["disturbance_observer.bandwidth"] == pytest.approx(bandwidth, rel=1e-4)
    assert bandwidth > 1.0
    for name in ("gains.shoulder.p", "max_position_errors.elbow", "max_position_errors.shoulder"):
        assert after[name] == before[name]
    assert "<img" in (output / "report.html").read_text()
    assert (output / "before.yaml").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["tuned"]


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_signal_while_a_proposal_is_applied(bench: Bench, tmp_path: Path) -> None:
    before = bench.in_force()
    for stage in ("applying: friction", "applying: gains"):
        with tune(tmp_path / "tuned", "--apply") as process:
            process.said(stage)
            assert bench.in_force() != before
            assert process.stop() == 130, process.output
        bench.until_mode("holding")
        assert bench.in_force() == before
        assert not list(tmp_path.iterdir())


@pytest.mark.explores
@pytest.mark.timeout(900)
def test_proposal_that_shakes_the_arm_is_taken_back(bench: Bench, tmp_path: Path) -> None:
    before = bench.in_force()
    with tune(tmp_path / "tuned", "--apply", before=TOO_LARGE_ROTOR) as process:
        assert process.process.wait(timeout=TUNED) == 3, process.output
        assert "The old settings are in force again" in process.output
    bench.until_mode("holding")
    assert bench.in_force() == before
