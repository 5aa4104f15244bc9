"""The launch files, run by the real launch wherever it can be imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; part of a ROS 2 workspace")

import rclpy
import yaml
from ament_index_python.packages import get_package_prefix, get_package_share_directory
from dds import LATCHED, ros, wait_for
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from robots import two_link_arm
from std_msgs.msg import String

SHARE = Path(get_package_share_directory("rnea_control"))

# What `ros2 launch FILE name:=value ...` does.
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
source = PythonLaunchDescriptionSource(sys.argv[1])
arguments = [argument.split(":=", 1) for argument in sys.argv[2:]]
service = LaunchService()
included = IncludeLaunchDescription(source, launch_arguments=arguments)
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


@pytest.fixture(scope="module", autouse=True)
def executables() -> Iterator[None]:
    """In an editable installation executables are in bin only, not where launch looks."""
    folder = Path(get_package_prefix("rnea_control")) / "lib" / "rnea_control"
    links = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("rnea_controller", "rnea_sentinel", "rnea_simulated_arm"):
        link = folder / name
        if not link.exists():
            link.symlink_to(Path(sys.prefix) / "bin" / name)
            links.append(link)
    with ros(71):
        yield
    for link in links:
        link.unlink()


def mode(status: DiagnosticStatus) -> str:
    values = {value.key: value.value for value in status.values}
    return f"{values.get('mode')} {values.get('reason')}".strip()


def launched(tmp_path: Path, launch_file: str, arguments: list[str], name: str, words: str) -> str:
    """Launches until a node diagnoses its mode as in some words, ends as Ctrl-C does; the output.

    Its message would say first that a busy machine is late.
    """
    seen: dict[str, str] = {}
    node = rclpy.create_node("listener")
    node.create_subscription(
        DiagnosticArray,
        "/diagnostics",
        lambda message: seen.update({s.name: mode(s) for s in message.status}),
        10,
    )
    command = [sys.executable, "-c", LAUNCH, str(SHARE / "launch" / launch_file), *arguments]
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_for(
            lambda: seen.get(name, "").startswith(words) or process.poll() is not None,
            lambda: rclpy.spin_once(node, timeout_sec=0.1),
        )
        assert seen.get(name, "").startswith(words), log.read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)  # the terminal signals the whole group
        status = process.wait(timeout=30.0)
        node.destroy_node()
    assert status == 0, log.read_text()
    return log.read_text()


@pytest.mark.parametrize(("use_sim_time", "sentinel"), [("false", "true"), ("true", "false")])
def test_simulation(tmp_path: Path, use_sim_time: str, sentinel: str) -> None:
    arguments = ["namespace:=arm1", f"use_sim_time:={use_sim_time}", f"sentinel:={sentinel}"]
    who = "arm1/rnea_controller: control loop"
    output = launched(tmp_path, "simulation.launch.py", arguments, who, "holding")
    assert output.count("process has finished cleanly") == (3 if sentinel == "true" else 2), output
    assert "Traceback" not in output


def test_arm_without_a_robot_waits(tmp_path: Path) -> None:
    output = launched(
        tmp_path,
        "arm.launch.py",
        [
            f"parameters:={SHARE / 'config' / 'rnea_controller.yaml'}",
            f"robot_description:={(SHARE / 'urdf' / 'seven_axis_arm.urdf').read_text()}",
        ],
        "rnea_controller: control loop",
        "waiting for joint_states",
    )
    assert output.count("process has finished cleanly") == 2, output


def test_two_arms_hear_one_description(tmp_path: Path) -> None:
    """Each takes its joints of the URDF that is published outside of their namespaces."""
    urdf = two_link_arm()
    describer = rclpy.create_node("robot_state_publisher")
    describer.create_publisher(String, "robot_description", LATCHED).publish(String(data=urdf))
    sections = {
        f"/{arm}": {
            "rnea_controller": {
                "ros__parameters": {
                    "joints": [joint],
                    "gains": {joint: {"p": 100.0, "d": 20.0}},
                    "command_topic": f"/{arm}_effort_controller/commands",
                }
            }
        }
        for arm, joint in (("left", "shoulder"), ("right", "elbow"))
    }
    file = tmp_path / "arms.yaml"
    file.write_text(yaml.safe_dump(sections))
    words = "right/rnea_controller: control loop", "waiting for joint_states"
    output = launched(tmp_path, "two_arms.launch.py", [f"parameters:={file}"], *words)
    describer.destroy_node()
    for arm in ("left", "right"):
        assert f"commands to /{arm}_effort_controller/commands" in output
    assert output.count("process has finished cleanly") == 4, output
