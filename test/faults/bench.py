"""A controller, a sentinel and an arm as processes of their own, for the faults."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import rclpy
from dds import PATIENCE, Process, controller, ros, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from fast_motion import Path as Motion
from fast_motion import panda, there_and_back
from lifecycle_msgs.msg import TransitionEvent
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from recording import PATIENT, Recording
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

with contextlib.suppress(ModuleNotFoundError):  # the ROS 2 wheels lack it
    from control_msgs.action import FollowJointTrajectory

DOMAIN = 101
RATE = 1000.0
# Of the feedback, [rad/s].
BANDWIDTH = 20.0
# In the frame of the last joint's link, [m].
PAYLOAD_POSITION = (0.0, 0.0, 0.1)
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NAME = "rnea_controller"
# From a request for a motion to its start, so that it is there in time, in periods.
LEAD = 150
# From start to the first command, [s]; the kernels are compiled.
LONGEST_START = 120.0
# In which a start fades in, in periods.
BLEND = 600
# A machine that has let the arm wait for longer has let the others wait too, [s].
LONGEST_DELAY = 0.005
# Modules that not every version of the package, or not every machine has.
SENTINEL, ACTION = "rnea_control.sentinel", "control_msgs"


def installed(module: str) -> bool:
    """Whether there is such a module."""
    return find_spec(module) is not None


class ArmClient:
    """The arm's process, and what it records."""

    def __init__(self, folder: Path, parameters: dict, payload: tuple[float, list[float]]) -> None:
        self.folder = folder
        specification = {"parameters": parameters, "payload": payload}
        (folder / "arm.json").write_text(json.dumps(specification))
        self.log = folder / "arm.log"
        script = Path(__file__).with_name("arm_process.py")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(script), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout.readline() == "ready\n", self.log.read_text()
        self.recording = Recording(folder, 7)

    @property
    def ticks(self) -> int:
        return int(self.recording.counts[0])

    def ask(self, do: str, at: int = 0, **arguments: object) -> int:
        """Asks for something, from period `at` on or at once; returns when it took effect."""
        request = {"do": do, "at": at, **arguments}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return int(line)

    def wait(self, tick: int) -> None:
        """Waits until the arm is in period `tick`."""
        deadline = time.monotonic() + PATIENCE
        while self.ticks < tick:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, "the arm stands"
            time.sleep(0.001)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process.stdout.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()


class FaultBench:
    """See the file.

    Attributes:
        arm: the arm.
        controller: the process of the controller.
        sentinel: that of the sentinel, if there is one.
        remarks: for the reader.
        broken: what is wrong beside the measures, in words.
        modes: those that the controller has published: the arm's period, mode, and reason.
    """

    def __init__(
        self,
        stack: ExitStack,
        arm: dict | None = None,
        payload_mass: float = 0.0,
        sentinel: bool = True,
        controller_process: Callable[[dict], Process] | None = None,
        **parameters: object,
    ) -> None:
        robot = self.robot = panda()
        self.model = robot.model
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._folder, self._arms = folder, 0
        self._stack = stack
        self._arm_parameters = self._parameters_of_arm(arm or {})
        self._payload = (payload_mass or 2.0, list(PAYLOAD_POSITION))
        self.modes: list[tuple[int, str, str]] = []
        self.node = rclpy.create_node("bench")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        stack.callback(self.node.destroy_node)
        stack.callback(self.executor.shutdown)
        self.node.create_subscription(TransitionEvent, f"{NAME}/mode", self._note_mode, LATCHED)
        self._diagnostics: set[str] = set()
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._note_diagnostics, 10)
        self._trajectories = self.node.create_publisher(
            JointTrajectory, f"{NAME}/joint_trajectory", 1
        )
        self._clients: dict = {}
        self.remarks: list[str] = []
        self.broken: list[str] = []
        self.parameters = controller_parameters(**parameters)
        self.sentinel: Process | None = None
        if sentinel and installed(SENTINEL):
            self.sentinel = stack.enter_context(
                Process("rnea_control.sentinel.executable", self.parameters)
            )
        start = controller_process or controller
        self.controller = stack.enter_context(start(self.parameters))
        self.arm = self.start_arm()
        self.until_held()

    def _parameters_of_arm(self, changes: dict) -> dict:
        robot = self.robot
        values = {
            "robot_description": robot.urdf,
            "joints": list(robot.model.joint_names),
            "rate": RATE,
        }
        for joint, position in zip(robot.model.joint_names, robot.start, strict=True):
            values[f"initial_positions.{joint}"] = float(position)
        locked = robot.parameters.get("locked_positions", {})
        values.update({f"locked_positions.{name}": value for name, value in locked.items()})
        return {**values, **changes}

    def _note_mode(self, event: TransitionEvent) -> None:
        self.modes.append((self.arm.ticks, event.goal_state.label, event.transition.label))

    def _note_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self._diagnostics.add(f"/diagnostics: {status.name}: {status.message}\n")

    def start_arm(self, **changes: object) -> ArmClient:
        """A new arm, after the last one has been killed for example."""
        folder = self._folder / f"arm{self._arms}"
        self._arms += 1
        folder.mkdir()
        client = ArmClient(folder, {**self._arm_parameters, **changes}, self._payload)
        self._stack.callback(client.end)
        self.arm = client
        return client

    # Waiting.

    def spin(self, timeout: float = 0.01) -> None:
        self.executor.spin_once(timeout_sec=timeout)

    def run(self, periods: int) -> None:
        """Lets so many periods pass."""
        self.until(self.arm.ticks + periods)

    def until(self, end: int) -> None:
        """Waits for a period."""
        deadline = time.monotonic() + PATIENCE
        while self.arm.ticks < end:
            assert self.arm.process.poll() is None, self.arm.log.read_text()
            assert time.monotonic() < deadline, "the arm stands"
            self.spin(0.005)

    @property
    def _guarded(self) -> bool:
        """Whether the sentinel, if there is one, guards the arm; it needs the CPUs until then."""
        return self.sentinel is None or "idle -> guarding" in self.sentinel.output

    def until_held(self) -> None:
        """Waits until the controller commands the arm, and the sentinel guards it."""
        commands = self.arm.recording.counts
        deadline = time.monotonic() + LONGEST_START
        while commands[1] < 50 or not self._guarded:
            assert self.controller.process.poll() is None, self.output
            assert self.arm.process.poll() is None, self.arm.log.read_text()
            assert time.monotonic() < deadline, f"no commands: {self.output}"
            self.spin()
        self.run(BLEND)

    # What the controller is asked for.

    def _trajectory(self, motion: Motion, lead: int) -> tuple[int, JointTrajectory]:
        """A motion as a message, and the period in which it starts."""
        tick = self.arm.ticks - 1
        stamp = int(self.arm.recording.periods[tick]["stamp"]) + round(lead * 1e9 / RATE)
        points = [
            (w.time, w.position, w.velocity, w.acceleration if w.acceleration is not None else [])
            for w in motion.waypoints
        ]
        message = trajectory(self.model.joint_names, points)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        return tick + lead, message

    def send(self, motion: Motion, lead: int = LEAD) -> int:
        """Sends a motion; returns the period in which it starts."""
        wait_for(lambda: self._trajectories.get_subscription_count() > 0, self.spin)
        begin, message = self._trajectory(motion, lead)
        self._trajectories.publish(message)
        return begin

    def follow(self, motion: Motion, lead: int = LEAD) -> int:
        """As `send`, by the action, until it is accepted: a server that has died is known for a
        while."""
        begin = 0

        def accepted() -> bool:
            nonlocal begin
            begin, message = self._trajectory(motion, lead)
            answer = self._action.send_goal_async(FollowJointTrajectory.Goal(trajectory=message))
            while not answer.done() and self.arm.ticks < begin:
                self.spin()
            return answer.done() and answer.result().accepted

        wait_for(self._action.server_is_ready, self.spin)
        wait_for(accepted)
        return begin

    @cached_property
    def _action(self) -> ActionClient:
        client = ActionClient(self.node, FollowJointTrajectory, f"{NAME}/follow_joint_trajectory")
        self._stack.callback(client.destroy)
        return client

    def move(self, into: int = 500, by_action: bool = False) -> int:
        """Starts the fast motion; returns when the arm is `into` periods into it."""
        begin = (self.follow if by_action else self.send)(there_and_back())
        self.arm.wait(begin + into)
        assert np.abs(self.arm.recording.periods["v"][begin + into - 1]).max() > 0.2, (
            f"no motion: {self.output}"
        )
        return begin

    def call(self, kind: type, name: str, **fields: object) -> object:
        """The answer of a service of the controller."""
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self.node.create_client(kind, f"{NAME}/{name}")
        wait_for(client.service_is_ready, self.spin)
        answer = client.call_async(kind.Request(**fields))
        wait_for(answer.done, self.spin)
        return answer.result()

    def trigger(self, name: str) -> Trigger.Response:
        return self.call(Trigger, name)

    def set(self, **values: object) -> list[bool]:
        """Sets parameters; `gains__panda_joint1__p` is `gains.panda_joint1.p`. Whether each was
        taken."""
        parameters = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        answer = self.call(SetParameters, "set_parameters", parameters=parameters)
        return [result.successful for result in answer.results]

    def refused(self, **values: object) -> None:
        """Sets parameters that must be refused; names as of `set`."""
        for name, value in values.items():
            if any(self.set(**{name: value})):
                self.broken.append(f"{name} = {value} was taken")

    # Signals.

    def signal(self, process: Process, number: int) -> int:
        """Sends a signal, without waiting for what comes of it; returns the arm's period."""
        tick = self.arm.ticks
        process.process.send_signal(number)
        return tick

    def kill_controller(self) -> int:
        """kill -9; the arm no longer waits for answers."""
        self.arm.ask("patience", on=False)
        return self.signal(self.controller, signal.SIGKILL)

    @contextmanager
    def disturber(self, kind: str) -> Iterator[subprocess.Popen]:
        """A process of disturber.py, which publishes from a line on its stdin on."""
        script = Path(__file__).with_name("disturber.py")
        with (self._folder / f"{kind}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(script), kind],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            assert process.stdout.readline() == "ready\n", (
                self._folder / f"{kind}.log"
            ).read_text()
            yield process
        finally:
            # Fast DDS may stand for a second where a process dies while it publishes.
            process.terminate()
            try:
                process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()
            process.stdout.close()

    def end(self) -> None:
        """Asks all processes to end, at the same time."""
        for process in (self.controller.process, self.sentinel and self.sentinel.process):
            if process and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        self.arm.end()

    # What was recorded.

    @property
    def output(self) -> str:
        """What controller and sentinel have said, and what they have reported."""
        said = self.controller.output + "".join(sorted(self._diagnostics))
        return said if self.sentinel is None else said + self.sentinel.output

    @property
    def crashes(self) -> list[str]:
        """Which process has ended by itself, in words."""
        processes = {"controller": self.controller, "sentinel": self.sentinel}
        status = {name: each.process.poll() for name, each in processes.items() if each}
        return [
            f"the {name} has ended with status {number}"
            for name, number in status.items()
            if number not in (None, 0, -signal.SIGKILL)
        ]

    def delay(self, begin: int, end: int) -> float:
        """How long the machine has let the arm wait at most, [s], where it did not wait itself."""
        rows = self.periods[begin:end]
        late = np.diff(rows["wall"]) - 1.0 / RATE
        return float(late[rows["flags"][:-1] & PATIENT == 0].max(initial=0.0))

    @property
    def periods(self) -> np.ndarray:
        return self.arm.recording.periods[: self.arm.ticks]

    @property
    def commands(self) -> np.ndarray:
        return self.arm.recording.commands[: int(self.arm.recording.counts[1])]


def controller_parameters(**changes: object) -> dict:
    """Those of the demo's Panda."""
    robot = panda()
    gains = {"p": BANDWIDTH**2, "d": 2.0 * BANDWIDTH}
    return {
        **robot.parameters,
        "joints": list(robot.model.joint_names),
        "gains": {joint: dict(gains) for joint in robot.model.joint_names},
        "lock_memory": False,
        **changes,
    }


@contextmanager
def fault_bench(domain: int = DOMAIN, **options: object) -> Iterator[FaultBench]:
    """A bench in a domain of its own, that holds the arm at the start posture."""
    with ExitStack() as stack:
        stack.enter_context(ros(domain))
        bench = FaultBench(stack, **options)
        try:
            yield bench
        finally:
            bench.end()
