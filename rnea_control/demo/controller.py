"""The demo's controller, a process of its own, and what it reports of itself during a run."""

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

# Feedback of all runs: bandwidth [rad/s], critically damped.
BANDWIDTH = 20.0

# The modes of an undisturbed run.
FOLLOWING = "moving"
EXPECTED = {"holding", FOLLOWING}

# Counts in the controller's diagnostics that do not rise in an undisturbed run.
COUNTS = {
    "gave way": "the controller gave way to the arm",
    "gaps in states": "joint states did not come in time",
    "states refused": "the controller refused joint states",
    "trajectories dropped": "the controller dropped the trajectory, as the states' stamps jumped",
}


@contextmanager
def controller(
    robot: DemoRobot, law: ControlLaw, rate: float, namespace: str
) -> Iterator[subprocess.Popen]:
    """The executable `rnea_controller` as a process of its own, for joint states at a rate, [Hz];
    ended as by Ctrl-C."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters(robot, law, rate)}}))
        options = ["--params-file", str(path), "-r", f"__ns:=/{namespace}", "--log-level", "error"]
        with subprocess.Popen(
            command("rnea_control.node.executable", "--ros-args", *options)
        ) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=10.0)
                except subprocess.TimeoutExpired:
                    process.kill()


def parameters(robot: DemoRobot, law: ControlLaw, rate: float) -> dict[str, object]:
    """Gains for `BANDWIDTH`: of an acceleration for unit inertia, else of a torque."""
    model = robot.model
    M = np.eye(model.nv)
    if not law.feeds_back_acceleration:
        crba(model, Workspace(model), robot.start, M)
    own = {
        joint: {"p": float(BANDWIDTH**2 * inertia), "d": float(2.0 * BANDWIDTH * inertia)}
        for joint, inertia in zip(model.joint_names, M.diagonal(), strict=True)
    }
    # The robot's own gains are of an acceleration.
    gains = robot.parameters.get("gains", own) if law.feeds_back_acceleration else own
    return {
        "joints": list(model.joint_names),
        **robot.parameters,
        "gains": gains,
        "control_law": law.name,
        # The simulated arm gets each torque at once, and holds it for a state.
        "dead_time": min(0.5 / rate, LONGEST_DEAD_TIME),
        # A desktop computer pauses now and then.
        "joint_state_timeout": 0.5,
        "joint_state_gap": 0.5,
        # A run that is far off shows how far; its motion does not end.
        "max_position_errors": {joint: 0.0 for joint in model.joint_names},
        "saturation_timeout": 0.0,
        # It would move the arm off the start of the trajectory, by some hundredths of a radian.
        "activation": {"check": "off"},
    }


def heard_of_controller(node: Node) -> tuple[list[dict[str, str]], list[TransitionEvent]]:
    """The diagnostics and the modes of the controller in a node's namespace, as they come."""
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
    """What has happened in a run, a sentence each, by the diagnostics before and after it, and the
    modes in it."""
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
