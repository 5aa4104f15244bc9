"""Runs one trajectory under one control law: the arm in this process, the controller in another."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter

from rnea_control.array_types import FloatArray
from rnea_control.control import ControlLaw
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot, motion
from rnea_control.demo.sender import Sender
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import RneaControlError
from rnea_control.simulation.run import run_in_real_time
from rnea_control.simulation.simulated_arm import SimulatedArm

# Apart from any real robot in the same network.
NAMESPACE = "rnea_demo"

# Feedback of both laws: bandwidth [rad/s], critically damped.
BANDWIDTH = 20.0

# Time for the controller to start, which may compile first, and to settle before it moves, [s].
LONGEST_START = 120.0
SETTLING = 1.0


def run(
    robot: DemoRobot,
    law: ControlLaw,
    rate: float,
    running: Callable[[], bool],
    progress: Callable[[float], None],
) -> Recording:
    """Moves the simulated arm through the robot's waypoints in real time.

    Args:
        robot: the robot.
        law: the control law.
        rate: control ticks a second, [Hz].
        running: asked whether to go on.
        progress: called with the fraction of the trajectory done, now and then.

    Raises:
        RneaControlError: the controller did not start, or was stopped.
    """
    arm = SimulatedArm(namespace=NAMESPACE, parameter_overrides=_arm_parameters(robot, rate))
    executor = SingleThreadedExecutor()
    executor.add_node(arm)
    latency: list[str] = []
    arm.create_subscription(
        DiagnosticArray, "/diagnostics", lambda message: _note_latency(message, latency), 1
    )
    sender = Sender(arm, robot)
    try:
        with _controller(robot, law) as process:
            recorder = _Recorder(robot, arm, sender, process, progress)
            run_in_real_time(arm, executor, lambda: running() and not recorder.done, recorder)
            if not recorder.done:
                raise RneaControlError("the demo was stopped")
            return recorder.recording(law.name, latency[-1] if latency else "not reported")
    finally:
        executor.shutdown()
        arm.destroy_node()


class _Recorder:
    """Sends the trajectory once the controller holds the arm, and records until its end."""

    def __init__(self, robot, arm, sender, process, progress) -> None:
        self.done = False
        self._robot, self._arm, self._sender = robot, arm, sender
        self._process, self._progress = process, progress
        self._deadline = time.monotonic() + LONGEST_START
        self._settled: float | None = None
        self._start = 0
        size = int((robot.waypoints[-1].time + 1.0) / arm.period)
        self._count = 0
        self._stamp = np.zeros(size, dtype=np.int64)
        self._measured = np.zeros((size, robot.model.nv))
        self._torque = np.zeros((size, robot.model.nv))

    def __call__(self, stamp: int) -> None:
        """Takes the state just published."""
        if self._process.poll() is not None:
            raise RneaControlError("the controller has ended; its output above says why")
        self._sender.check()
        if not self._start:
            self._wait(stamp)
            return
        i = self._count
        if stamp < self._start or self.done:
            return
        self._stamp[i], self._measured[i], self._torque[i] = stamp, self._arm.q, self._arm.torque
        self._count += 1
        passed = 1e-9 * (stamp - self._start)
        duration = self._robot.waypoints[-1].time
        if i % 64 == 0:
            self._progress(min(passed / duration, 1.0))
        self.done = passed > duration + 0.3 or self._count == len(self._stamp)

    def _wait(self, stamp: int) -> None:
        now = time.monotonic()
        if self._settled is None and self._arm.commands_received > 0:
            self._settled = now + SETTLING
        if now > self._deadline:
            raise RneaControlError("the controller did not start; its output above says why")
        if self._settled is not None and now > self._settled and self._sender.is_ready:
            self._start = stamp + 200_000_000
            self._sender.send(self._start)

    def recording(self, law: str, latency: str) -> Recording:
        """What was recorded."""
        n = self._count
        times = 1e-9 * (self._stamp[:n] - self._start)
        robot = self._robot
        trajectory = motion(robot.model, robot.start, robot.waypoints)
        desired = np.array([trajectory.at(t)[0] for t in times])
        return Recording(
            law,
            times,
            desired,
            self._measured[:n],
            self._torque[:n],
            latency,
            self._sender.report,
        )


def _arm_parameters(robot: DemoRobot, rate: float) -> list[Parameter]:
    values = {
        "robot_description": robot.urdf,
        "joints": list(robot.model.joint_names),
        "rate": rate,
    }
    for joint, position in zip(robot.model.joint_names, robot.start, strict=True):
        values[f"initial_positions.{joint}"] = float(position)
    locked = robot.parameters.get("locked_positions", {})
    values.update({f"locked_positions.{joint}": position for joint, position in locked.items()})
    return [Parameter(name, value=value) for name, value in values.items()]


@contextmanager
def _controller(robot: DemoRobot, law: ControlLaw) -> Iterator[subprocess.Popen]:
    """The executable `rnea_controller` as a process of its own, ended as by Ctrl-C."""
    parameters = {
        "joints": list(robot.model.joint_names),
        "gains": _gains(robot, np.ones(robot.model.nv)),
        **robot.parameters,
        "control_law": law.name,
        # A desktop computer pauses now and then.
        "joint_state_timeout": 0.5,
        "joint_state_gap": 0.5,
        # PD without a model is far off, and shows how far.
        "max_position_errors": {joint: 0.0 for joint in robot.model.joint_names},
        "saturation_timeout": 0.0,
    }
    if law == ControlLaw.pd:
        M = np.zeros((robot.model.nv, robot.model.nv))
        crba(robot.model, Workspace(robot.model), robot.start, M)
        parameters["gains"] = _gains(robot, M.diagonal())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        command = [sys.executable, "-m", "rnea_control.node.executable", "--ros-args"]
        command += ["--params-file", str(path), "-r", f"__ns:=/{NAMESPACE}", "--log-level", "error"]
        process = subprocess.Popen(command)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _gains(robot: DemoRobot, inertia: FloatArray) -> dict[str, dict[str, float]]:
    """Gains for `BANDWIDTH`: of an acceleration for unit inertia, else of a torque."""
    return {
        joint: {"p": float(BANDWIDTH**2 * m), "d": float(2.0 * BANDWIDTH * m)}
        for joint, m in zip(robot.model.joint_names, inertia, strict=True)
    }


def _note_latency(message: DiagnosticArray, latency: list[str]) -> None:
    for status in message.status:
        if NAMESPACE in status.name:
            for value in status.values:
                if value.key == "state age, since activation":
                    latency.append(value.value)
