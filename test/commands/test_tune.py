"""`rnea_tune` as a process, beside a controller and a simulated arm with rotors and friction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

import rclpy
import yaml
from dds import ARM, PARAMETERS, PATIENT, Process, ask, controller, ros, wait_for
from rcl_interfaces.srv import GetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python

DOMAIN = 33
MODULE = "rnea_control.commands.tune.executable"
ROTOR, FRICTION = 0.1, 1.0
SIMULATION = {**ARM, "rate": 500.0, "lockstep": True, "joint_armature": ROTOR}
SIMULATION |= {"joint_friction": FRICTION, "velocity_noise": 0.002}
# On a busy machine the interpreter may stand still for seconds, which would end a motion.
CONTROLLER = {**PATIENT, "interpreter_timeout": 1000.0}
NAMES = ["gains.elbow.p", "armature.elbow", "max_position_errors.elbow", "dead_time"]


@pytest.fixture
def control() -> Iterator[Process]:
    with (
        ros(DOMAIN),
        Process("rnea_control.simulation.executable", SIMULATION),
        controller(CONTROLLER) as process,
    ):
        process.said("]: holding: ")
        yield process


def in_force() -> dict[str, object]:
    node, executor = rclpy.create_node("asker"), SingleThreadedExecutor()
    executor.add_node(node)

    def spin() -> None:
        executor.spin_once(timeout_sec=0.1)

    answer = ask(node, spin, GetParameters, "rnea_controller/get_parameters", names=NAMES)
    node.destroy_node()
    return dict(zip(NAMES, map(parameter_value_to_python, answer.values), strict=True))


@pytest.mark.explores
def test_interrupt_leaves_old_settings_and_a_second_run_applies(control, tmp_path: Path) -> None:
    before, output = in_force(), tmp_path / "tuned"
    options = ["--output", str(output), "--joints", "elbow", "--yes", "--wait", "20"]
    with Process(MODULE, None, "--", *options) as process:
        wait_for(lambda: in_force()["gains.elbow.p"] != before["gains.elbow.p"])
        assert process.stop() == 130, process.output
        assert "the arm has stopped" in process.output
    assert in_force() == before
    assert not output.exists()
    with Process(MODULE, None, "--", *options, "--apply") as process:
        assert process.process.wait(timeout=280.0) == 0, process.output
        assert "The proposal is in force" in process.output
    text = yaml.safe_load((output / "rnea_controller.yaml").read_text())
    written = text["/**"]["rnea_controller"]["ros__parameters"]
    assert written["armature"]["elbow"] == pytest.approx(ROTOR, rel=0.1)
    assert written["friction"]["elbow"]["coulomb"] == pytest.approx(0.8 * FRICTION, rel=0.1)
    assert in_force()["gains.elbow.p"] > PARAMETERS["gains"]["elbow"]["p"]
    assert "<img" in (output / "report.html").read_text()
