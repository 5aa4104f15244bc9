"""Real ROS nodes over DDS for the tests: a controller process, and a simulated arm in lockstep."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
import yaml
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import two_link_arm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.simulation.executable import in_lockstep
from rnea_control.simulation.simulated_arm import SimulatedArm

# Nothing below takes this long but for a machine that is badly overloaded, [s].
PATIENCE = 90.0
# A controller of the two-joint arm, the same where the arm waits for as long as the machine needs,
# and the arm.
JOINTS = ["shoulder", "elbow"]
# Torques of the law and the model alone, from the first state on.
MODEL_ALONE = {
    "disturbance_observer.bandwidth": 0.0,
    **{f"feedback_inertia.{joint}": 0.0 for joint in JOINTS},
}
PARAMETERS = {
    "joints": JOINTS,
    "gains": {joint: {"p": 100.0, "d": 20.0} for joint in JOINTS},
}
# These start from the first state on, without a check of the wires before.
PATIENT = {
    **PARAMETERS,
    "joint_state_timeout": 1000.0,
    "joint_state_gap": 1000.0,
    "activation": {"check": "off"},
}
# For tests in which an arm is pushed, or jumps, as no arm does that is left alone.
BOUNDS = ("velocity", "velocity_error", "driving_torque", "driving_power", "contact_torque")
UNBOUNDED = {f"motion_bounds.{bound}": 0.0 for bound in BOUNDS}
START = {"initial_positions.shoulder": 0.3, "initial_positions.elbow": -0.4}
ARM = {"robot_description": two_link_arm(), **START}
# Tells who comes later, too; no change is lost on the way.
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# The module of the process that serves the action.
ACTION_PROCESS = "rnea_control.node.action_process"


@contextmanager
def ros(domain: int) -> Iterator[None]:
    """rclpy in a domain of its own, which child processes inherit; the old one comes back. From
    102 on, a domain's ports are among those that the system gives to anybody."""
    before = os.environ.get("ROS_DOMAIN_ID")
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    rclpy.init()
    try:
        yield
    finally:
        rclpy.try_shutdown()
        if before is None:
            del os.environ["ROS_DOMAIN_ID"]
        else:
            os.environ["ROS_DOMAIN_ID"] = before


# Runs a module as `python -m` does.
RUN_MODULE = """
import runpy
import sys
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

# Has all ticks run in Python, as where rcl does not answer by address as rclpy does. With
# PYTHON_TICKS=1 in the environment all processes of the tests do so.
PYTHON_TICKS = """
from rnea_control.ros import rcl_calls
rcl_calls.takes_like_rclpy = lambda domain: rcl_calls.Proof.NOTHING
"""
ALWAYS = PYTHON_TICKS if os.environ.get("PYTHON_TICKS") else ""

# Makes packages look as if they were not installed.
WITHOUT_PACKAGES = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def without(*packages: str) -> str:
    """Code for `Process` that makes packages look as if they were not installed."""
    return WITHOUT_PACKAGES.format(packages=packages)


class Process:
    """An executable of the installed package, whose kernels are compiled, as a process of its own;
    its output is in a file.

    Args:
        module: of the executable.
        parameters: of its node.
        arguments: for ROS.
        before: Python code that runs first.
    """

    def __init__(
        self, module: str, parameters: dict | None = None, *arguments: str, before: str = ""
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = self._folder.name  # it works there: in the repository it would run the sources
        self.log = Path(folder) / "log"
        python = [sys.executable, "-X", "faulthandler", "-c", ALWAYS + before + RUN_MODULE]
        command = [*python, module, "--ros-args", *arguments]
        if parameters is not None:
            path = Path(folder) / "parameters.yaml"
            path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
            command += ["--params-file", str(path)]
        with self.log.open("w") as log:
            output = {"stdout": log, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen(command, cwd=folder, **output)

    @property
    def output(self) -> str:
        return self.log.read_text()

    def said(self, words: str) -> None:
        """Waits until the process has printed these words."""
        wait_for(lambda: words in self.output or self.process.poll() is not None)
        assert words in self.output, self.output

    def stop(self, number: int = signal.SIGINT) -> int:
        """Sends a signal, and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(timeout=20.0)
        self.process.send_signal(signal.SIGABRT)  # it says where each thread is
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5.0)
        self.process.kill()
        self.process.wait()
        raise AssertionError(f"it does not end: {self.output}")

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._folder.cleanup()


def controller(parameters: dict | None, *arguments: str, before: str = "") -> Process:
    return Process("rnea_control.node.executable", parameters, *arguments, before=before)


def action_process(controller: int) -> int:
    """The process that serves the action for a controller's process; 0 if there is none."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        if ACTION_PROCESS in words and parent == controller:
            return int(folder.name)
    return 0


def wait_for(
    condition: Callable[[], object],
    spin: Callable[[], object] | None = None,
    seen: Callable[[], object] = lambda: "",
) -> None:
    """Waits until a condition holds; fails when it does not for long, with what was `seen`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain {seen()}"
        if spin is None:
            time.sleep(0.02)
        else:
            spin()


def ask(node: Node, spin: Callable[[], object], kind: type, name: str, **fields: object) -> object:
    """The answer of a service."""
    client = node.create_client(kind, name)
    wait_for(client.service_is_ready, spin)
    answer = client.call_async(kind.Request(**fields))
    wait_for(answer.done, spin)
    node.destroy_client(client)
    return answer.result()


def settings(values: dict[str, object]) -> list:
    """Parameters as messages; in their names __ stands for a dot."""
    pairs = ((name.replace("__", "."), value) for name, value in values.items())
    return [Parameter(name, value=value).to_parameter_msg() for name, value in pairs]


class LockstepArm:
    """A simulated arm in this process, stepped as the test says, and what it went through.

    Attributes:
        time: of each state, counted from the first one, [s].
        q, torque: positions, and the torques that led there.
    """

    def __init__(self, **parameters: object) -> None:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        overrides.append(Parameter("lockstep", value=True))
        self.node = SimulatedArm(parameter_overrides=overrides)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.time: list[float] = []
        self.q: list[np.ndarray] = []
        self.v: list[np.ndarray] = []
        self.torque: list[np.ndarray] = []
        self.diagnostics: dict[str, str] = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._diagnose, 10)
        topic = "rnea_controller/joint_trajectory"
        self._publisher = self.node.create_publisher(JointTrajectory, topic, 1)

    def _diagnose(self, message: DiagnosticArray) -> None:
        status = message.status[0]
        self.diagnostics = {value.key: value.value for value in status.values}
        self.diagnostics["message"] = status.message

    def run(self, ticks: int) -> None:
        """Lets so many periods pass, each with the command that answers its state."""
        end = self.node.ticks + ticks
        deadline = time.monotonic() + PATIENCE

        def running() -> bool:
            assert time.monotonic() < deadline, "the controller does not answer"
            return self.node.ticks < end

        for stamp in in_lockstep(self.node, self.executor, running):
            self.time.append(1e-9 * stamp - self.node.period)
            self.q.append(self.node.q)
            self.v.append(self.node.v)
            self.torque.append(self.node.torque.copy())

    def answers(self) -> bool:
        """Lets one period pass if the controller still answers the state."""
        received, deadline = self.node.commands_received, time.monotonic() + 3.0
        self.node.publish_state()
        while self.node.commands_received == received:
            if time.monotonic() > deadline:
                return False
            self.spin()
        self.node.advance()
        return True

    def spin(self) -> None:
        self.executor.spin_once(timeout_sec=0.1)

    def send(self, message: JointTrajectory) -> None:
        """Publishes a trajectory once the controller listens."""
        wait_for(lambda: self._publisher.get_subscription_count() > 0, self.spin)
        self._publisher.publish(message)

    def until_diagnosed(self, key: str, words: str) -> None:
        """Waits, without a step, until the controller reports something."""
        wait_for(lambda: words in self.diagnostics.get(key, ""), self.spin)

    def destroy(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()


def trajectory(joints: Sequence[str], points: Sequence, start: float = 0.0) -> JointTrajectory:
    """A message; a point is (time, positions), and optionally velocities, accelerations, effort."""
    message = JointTrajectory(joint_names=list(joints))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(round(1e9 * start), 10**9)
    for seconds, *fields in points:
        nanoseconds = round(1e9 * seconds)
        point = JointTrajectoryPoint()
        point.time_from_start = Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        names = ("positions", "velocities", "accelerations", "effort")
        for name, values in zip(names, fields, strict=False):
            setattr(point, name, array("d", values))
        message.points.append(point)
    return message
