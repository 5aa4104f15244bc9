"""The demo's controller, a separate process, and its reports during a run."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import TransitionEvent
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from rnea_control.child_process import command
from rnea_control.control import ControlLaw
from rnea_control.demo.robots import DemoRobot
from rnea_control.dynamics import Workspace, crba
from rnea_control.parameters.table import LONGEST_DEAD_TIME

CONTROLLER = "rnea_controller"
LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)

LONGEST_END = 10.0  # time limit for the end of a process [s]
BANDWIDTH = 20.0  # bandwidth of the critically damped feedback in all runs [rad/s]

FOLLOWING = "moving"  # mode while the controller follows the trajectory
EXPECTED = {"holding", FOLLOWING}  # modes of an undisturbed run

# Counters in the controller's diagnostics that do not rise in an undisturbed run.
COUNTS = {
    "gave way": "the controller gave way to the arm",
    "gaps in states": "joint states did not come in time",
    "states refused": "the controller refused joint states",
    "trajectories dropped": "the controller dropped the trajectory because stamps jumped",
}


@contextmanager
def controller(
    robot: DemoRobot, law: ControlLaw, rate: float, namespace: str
) -> Iterator[subprocess.Popen]:
    """Runs the executable `rnea_controller` for joint states at `rate` [Hz]; ends it by SIGINT."""
    values = parameters(robot, law, rate)
    with executable("rnea_control.node.executable", values, namespace) as process:
        yield process


@contextmanager
def executable(
    module: str, values: Mapping[str, object], namespace: str
) -> Iterator[subprocess.Popen]:
    """Runs an executable of this package; ends it by SIGINT.

    Args:
        module: module of the executable.
        values: its parameters.
        namespace: namespace of its node.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(values)}}))
        options = ["--params-file", str(path), "-r", f"__ns:=/{namespace}", "--log-level", "error"]
        with subprocess.Popen(command(module, "--ros-args", *options)) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=LONGEST_END)
                except subprocess.TimeoutExpired:
                    process.kill()


def parameters(robot: DemoRobot, law: ControlLaw, rate: float) -> dict[str, object]:
    """Parameters of the controller. The gains have the bandwidth `BANDWIDTH`; they are those of an
    acceleration or of a torque, as the control law needs."""
    model = robot.model
    M = np.eye(model.nv)
    if not law.feeds_back_acceleration:
        crba(model, Workspace(model), robot.start, M)
    own = {
        joint: {"p": float(BANDWIDTH**2 * inertia), "d": float(2.0 * BANDWIDTH * inertia)}
        for joint, inertia in zip(model.joint_names, M.diagonal(), strict=True)
    }
    # The gains in the robot's configuration are for control laws that feed back an acceleration.
    gains = robot.parameters.get("gains", own) if law.feeds_back_acceleration else own
    return {
        "joints": list(model.joint_names),
        **robot.parameters,
        "gains": gains,
        "control_law": law.name,
        # The simulated arm applies each torque without delay, and holds it for one period.
        "dead_time": min(0.5 / rate, LONGEST_DEAD_TIME),
        # Tolerate the pauses of a desktop computer.
        "joint_state_timeout": 0.5,
        "joint_state_gap": 0.5,
        # Do not end the motion of a run with large errors.
        "max_position_errors": {joint: 0.0 for joint in model.joint_names},
        "saturation_timeout": 0.0,
        # The check would move the arm off the start of the trajectory by some hundredths of a rad.
        "activation": {"check": "off"},
    }


def watched_controller(node: Node) -> tuple[list[dict[str, str]], list[TransitionEvent]]:
    """Lists that receive the diagnostics and the modes of the controller in a node's namespace."""
    reports: list[dict[str, str]] = []
    modes: list[TransitionEvent] = []
    name = f"{node.get_namespace()}/{CONTROLLER}".lstrip("/")

    def note(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith(name):
                reports.append({value.key: value.value for value in status.values})

    node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    node.create_subscription(TransitionEvent, f"{CONTROLLER}/mode", modes.append, LATCHED)
    return reports, modes


def incidents(
    before: Mapping[str, str], after: Mapping[str, str], events: Iterable[TransitionEvent]
) -> list[str]:
    """Incidents of a run, a sentence each, from the diagnostics before and after the run and the
    modes during it."""
    modes = [(event.goal_state.label, event.transition.label) for event in events]
    found = [
        f"the controller's mode became {mode}: {reason}"
        for mode, reason in modes
        if mode not in EXPECTED
    ]
    if all(mode != FOLLOWING for mode, _ in modes):
        found.append("the controller did not follow the trajectory")
    for key, words in COUNTS.items():
        count = int(after.get(key, "0")) - int(before.get(key, "0"))
        if count > 0:
            found.append(f"{words} ({count} times)" if count > 1 else words)
    return found
