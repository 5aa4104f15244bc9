"""The demo's controller, a process of its own, and what it reports of itself during a run."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterator
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

# Feedback of both laws: bandwidth [rad/s], critically damped.
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
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": _parameters(robot, law, rate)}}))
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


def _parameters(robot: DemoRobot, law: ControlLaw, rate: float) -> dict[str, object]:
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
        # PD without a model is far off, and shows how far.
        "max_position_errors": {joint: 0.0 for joint in model.joint_names},
        "saturation_timeout": 0.0,
    }


class ControllerWatch:
    """Collects modes and diagnostics of the controller in a node's namespace: `reports` says how
    many of these have come, and `values` has those of the last one."""

    def __init__(self, node: Node) -> None:
        self.reports = 0
        self.values: dict[str, str] = {}
        self._controller = f"{node.get_namespace()}/{CONTROLLER}".lstrip("/")
        self._before: dict[str, str] = {}
        self._modes: list[TransitionEvent] = []
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_report, 10)
        node.create_subscription(TransitionEvent, f"{CONTROLLER}/mode", self._modes.append, LATCHED)

    @property
    def latency(self) -> str:
        """From the stamp of a state to the command, in words."""
        return self.values.get("state age, since activation", "not reported")

    def begin(self) -> None:
        """The run begins: what was before does not count."""
        self._before = dict(self.values)
        self._modes.clear()

    def incidents(self) -> tuple[str, ...]:
        """What has happened since `begin`, a sentence each."""
        modes = [(event.goal_state.label, event.transition.label) for event in self._modes]
        found = [
            f"the controller's mode became {mode}: {reason}"
            for mode, reason in modes
            if mode not in EXPECTED
        ]
        if all(mode != FOLLOWING for mode, _ in modes):
            found.append("the controller did not follow the trajectory")
        for key, words in COUNTS.items():
            count = int(self.values.get(key, "0")) - int(self._before.get(key, "0"))
            if count > 0:
                found.append(f"{words} ({count} times)" if count > 1 else words)
        return tuple(found)

    def _note_report(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith(self._controller):
                self.values = {value.key: value.value for value in status.values}
                self.reports += 1
