"""Runs one trajectory under one control law: the arm in this process, the controller in another."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter

from rnea_control.array_types import FloatArray
from rnea_control.child_process import command
from rnea_control.control import ControlLaw
from rnea_control.demo.controller_link import ControllerWatch, Sender
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot, motion
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import RneaControlError
from rnea_control.parameters.table import LONGEST_DEAD_TIME
from rnea_control.simulation.simulated_arm import SimulatedArm, run_in_real_time

# Apart from any real robot in the same network.
NAMESPACE = "rnea_demo"

# Feedback of both laws: bandwidth [rad/s], critically damped.
BANDWIDTH = 20.0

# Time for the controller to start, which may compile first, and to settle before it moves, [s].
LONGEST_START = 120.0
SETTLING = 0.5

# After the trajectory: how much is recorded, and how long the controller has for its last report,
# which comes once a second, [s].
TAIL = 0.3
LONGEST_REPORT = 3.0


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
    try:
        with _controller(robot, law, rate) as process:
            recorder = _Recorder(robot, arm, process, progress)
            run_in_real_time(arm, executor, lambda: running() and not recorder.done, recorder)
            if not recorder.done:
                raise RneaControlError("the demo was stopped")
            return recorder.recording(law.name)
    finally:
        executor.shutdown()
        arm.destroy_node()


class _Recorder:
    """Sends the trajectory once the controller holds the arm, and records until its end."""

    def __init__(
        self,
        robot: DemoRobot,
        arm: SimulatedArm,
        process: subprocess.Popen,
        progress: Callable[[float], None],
    ) -> None:
        self.done = False
        self._robot, self._arm, self._process, self._progress = robot, arm, process, progress
        self._sender, self._watch = Sender(arm, robot), ControllerWatch(arm)
        self._deadline = time.monotonic() + LONGEST_START
        self._settled: float | None = None
        self._start = 0
        self._duration = robot.waypoints[-1].time
        self._ended = False
        self._reports = 0
        # Stamp, positions, torques, lateness, and how many commands had come.
        self._rows: list[tuple[int, FloatArray, FloatArray, float, int]] = []

    def __call__(self, stamp: int) -> None:
        """Takes the state just published."""
        if self._process.poll() is not None:
            raise RneaControlError("the controller has ended; its output above says why")
        self._sender.check()
        if not self._start:
            self._wait(stamp)
        elif self._ended:
            reported = self._watch.reports > self._reports
            self.done = reported or time.monotonic() > self._deadline
        elif stamp >= self._start:
            self._take(stamp)

    def _wait(self, stamp: int) -> None:
        now = time.monotonic()
        if self._settled is None and self._arm.commands_received > 0:
            self._settled = now + SETTLING
        if now > self._deadline:
            raise RneaControlError("the controller did not start; its output above says why")
        settled = self._settled is not None and now > self._settled
        if settled and self._sender.is_ready and self._watch.reports:
            self._start = stamp + 200_000_000
            self._watch.begin()
            self._sender.send(self._start)

    def _take(self, stamp: int) -> None:
        arm, passed = self._arm, 1e-9 * (stamp - self._start)
        lateness = 1e-9 * (arm.get_clock().now().nanoseconds - stamp)
        if len(self._rows) % 64 == 0:
            self._progress(min(passed / self._duration, 1.0))
        self._rows.append((stamp, arm.q, arm.torque, lateness, arm.commands_received))
        if passed > self._duration + TAIL or self._sender.aborted:
            self._ended = True
            self._reports = self._watch.reports
            self._deadline = time.monotonic() + LONGEST_REPORT

    def recording(self, law: str) -> Recording:
        """What was recorded, once it is done."""
        stamps, *columns = map(np.array, zip(*self._rows, strict=True))
        measured, torque, lateness, commands = columns
        times = 1e-9 * (stamps - self._start)
        robot = self._robot
        trajectory = motion(robot.model, robot.start, robot.waypoints)
        desired = np.array([trajectory.at(t)[0] for t in times])
        incidents = list(self._watch.incidents())
        if self._sender.aborted:
            incidents.insert(0, self._sender.aborted)
        if self._watch.reports == self._reports:
            incidents.append("the controller did not report how the run went")
        return Recording(
            law,
            times,
            desired,
            measured,
            torque,
            self._watch.latency,
            self._sender.report,
            lateness,
            commands,
            tuple(incidents),
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
def _controller(robot: DemoRobot, law: ControlLaw, rate: float) -> Iterator[subprocess.Popen]:
    """The executable `rnea_controller` as a process of its own, ended as by Ctrl-C."""
    parameters = {
        "joints": list(robot.model.joint_names),
        "gains": _gains(robot, np.ones(robot.model.nv)),
        **robot.parameters,
        "control_law": law.name,
        # The simulated arm gets each torque at once, and holds it for a state.
        "dead_time": min(0.5 / rate, LONGEST_DEAD_TIME),
        # A desktop computer pauses now and then.
        "joint_state_timeout": 0.5,
        "joint_state_gap": 0.5,
        # PD without a model is far off, and shows how far.
        "max_position_errors": {joint: 0.0 for joint in robot.model.joint_names},
        "saturation_timeout": 0.0,
    }
    if not law.feeds_back_acceleration:
        M = np.zeros((robot.model.nv, robot.model.nv))
        crba(robot.model, Workspace(robot.model), robot.start, M)
        parameters["gains"] = _gains(robot, M.diagonal())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        options = ["--params-file", str(path), "-r", f"__ns:=/{NAMESPACE}", "--log-level", "error"]
        process = subprocess.Popen(command("rnea_control.node.executable", "--ros-args", *options))
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
