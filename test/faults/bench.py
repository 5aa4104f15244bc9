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
from pathlib import Path

import numpy as np
import rclpy
from dds import PATIENCE, Process, controller, ros, settings, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from fast_motion import Path as Motion
from fast_motion import panda, there_and_back
from measures import PERIOD
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from recording import PATIENT, Recording
from trajectory_msgs.msg import JointTrajectory

with contextlib.suppress(ModuleNotFoundError):  # the ROS 2 wheels lack it
    from control_msgs.action import FollowJointTrajectory

DOMAIN = 101
# Of the feedback, [rad/s].
BANDWIDTH = 20.0
# In the frame of the last joint's link, [m].
PAYLOAD_POSITION = (0.0, 0.0, 0.1)
NAME = "rnea_controller"
# From a request for a motion to its start, so that it is there in time, in periods.
LEAD = 150
# From start to the first command, [s]; the kernels are compiled.
LONGEST_START = 120.0
# In which a start fades in, in periods.
BLEND = 600
# Velocity of the fastest joint in a stream that counts as full speed, [rad/s].
STREAMED_SPEED = {"streamer.py": 1.2, "pose_streamer.py": 0.3, "planner.py": 1.0}
# A machine that has let the arm wait for longer has let the others wait too, [s].
LONGEST_DELAY = 0.005


class Helper:
    """A process of a script of this folder that takes requests on stdin, from "ready" on."""

    def __init__(self, script: str, *arguments: str, log: Path) -> None:
        path = str(Path(__file__).with_name(script))
        self.log = log
        with log.open("w") as output:
            command = [sys.executable, "-W", "ignore", path, *arguments]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": output}
            self.process = subprocess.Popen(command, text=True, **pipes)
        assert self.answer() == "ready\n"

    def tell(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return line

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """By the end of its stdin; Fast DDS may stand for a second where a process dies while it
        publishes."""
        if self.process.stdout.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()


class ArmClient(Helper):
    """The arm's process, and what it records."""

    def __init__(self, folder: Path, parameters: dict, payload: tuple[float, list[float]]) -> None:
        specification = {"parameters": parameters, "payload": payload}
        (folder / "arm.json").write_text(json.dumps(specification))
        super().__init__("arm_process.py", str(folder), log=folder / "arm.log")
        self.recording = Recording(folder, 7)

    @property
    def ticks(self) -> int:
        return int(self.recording.counts[0])

    def ask(self, do: str, at: int = 0, **arguments: object) -> int:
        """Asks for something, from period `at` on or at once; returns when it took effect."""
        self.tell(json.dumps({"do": do, "at": at, **arguments}))
        return int(self.answer())

    def wait(self, tick: int, spin: Callable[[], None] = lambda: time.sleep(0.001)) -> None:
        """Waits until the arm is in period `tick`."""
        deadline = time.monotonic() + PATIENCE
        while self.ticks < tick:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, "the arm stands"
            spin()


class FaultBench:
    """See the file.

    Attributes:
        arm: the arm.
        controller: the process of the controller.
        sentinel: that of the sentinel.
        broken: what is wrong beside the measures, in words.
    """

    def __init__(
        self,
        stack: ExitStack,
        arm: dict | None = None,
        payload_mass: float = 0.0,
        controller_process: Callable[[dict], Process] = controller,
        **parameters: object,
    ) -> None:
        robot = self.robot = panda()
        self.model = robot.model
        self._folder, self._arms = Path(stack.enter_context(tempfile.TemporaryDirectory())), 0
        self._stack = stack
        self._arm_parameters = self._parameters_of_arm(arm or {})
        self._payload = (payload_mass or 2.0, list(PAYLOAD_POSITION))
        self.node = rclpy.create_node("bench")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        stack.callback(self.node.destroy_node)
        stack.callback(self.executor.shutdown)
        self._diagnostics: set[str] = set()
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._note_diagnostics, 10)
        topic = f"{NAME}/joint_trajectory"
        self._trajectories = self.node.create_publisher(JointTrajectory, topic, 1)
        self._clients: dict = {}
        self.broken: list[str] = []
        self.parameters = controller_parameters(**parameters)
        sentinel = Process("rnea_control.sentinel.executable", self.parameters)
        self.sentinel = stack.enter_context(sentinel)
        self.controller = stack.enter_context(controller_process(self.parameters))
        self.arm = self.start_arm()
        self.until_held()

    def _parameters_of_arm(self, changes: dict) -> dict:
        robot, names = self.robot, list(self.model.joint_names)
        start = dict(zip(names, robot.start.tolist(), strict=True))
        locked = robot.parameters.get("locked_positions", {})
        return {
            "robot_description": robot.urdf,
            "joints": names,
            "rate": 1.0 / PERIOD,
            **{f"initial_positions.{name}": value for name, value in start.items()},
            **{f"locked_positions.{name}": value for name, value in locked.items()},
            **changes,
        }

    def _note_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self._diagnostics.add(f"/diagnostics: {status.name}: {status.message}\n")

    def start_arm(self) -> ArmClient:
        """A new arm, after the last one has been killed for example."""
        folder = self._folder / f"arm{self._arms}"
        self._arms += 1
        folder.mkdir()
        self.arm = ArmClient(folder, self._arm_parameters, self._payload)
        self._stack.callback(self.arm.end)
        return self.arm

    # Waiting.

    def spin(self, timeout: float = 0.01) -> None:
        self.executor.spin_once(timeout_sec=timeout)

    def run(self, periods: int) -> None:
        """Lets so many periods pass."""
        self.until(self.arm.ticks + periods)

    def until(self, end: int) -> None:
        """Waits for a period."""
        self.arm.wait(end, lambda: self.spin(0.005))

    def until_held(self) -> None:
        """Waits until the controller commands the arm, and the sentinel, which needs the CPUs until
        then, guards it."""
        commands = self.arm.recording.counts
        deadline = time.monotonic() + LONGEST_START
        while commands[1] < 50 or "arming -> guarding" not in self.sentinel.output:
            assert self.controller.process.poll() is None, self.output
            assert self.arm.process.poll() is None, self.arm.log.read_text()
            assert time.monotonic() < deadline, f"no commands: {self.output}"
            self.spin()
        self.run(BLEND)

    # What the controller is asked for.

    def _trajectory(self, motion: Motion, lead: int) -> tuple[int, JointTrajectory]:
        """A motion as a message, and the period in which it starts."""
        tick = self.arm.ticks - 1
        stamp = int(self.arm.recording.periods[tick]["stamp"]) + round(lead * PERIOD * 1e9)
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
        fastest = np.abs(self.arm.recording.periods["v"][begin + into - 1]).max()
        assert fastest > 0.2, f"no motion: {self.output}"
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

    def set(self, **values: object) -> list[bool]:
        """Sets parameters; `gains__panda_joint1__p` is `gains.panda_joint1.p`. Whether each was
        taken."""
        answer = self.call(SetParameters, "set_parameters", parameters=settings(values))
        return [result.successful for result in answer.results]

    def refused(self, **values: object) -> None:
        """Sets parameters that must be refused; names as of `set`."""
        taken = [name for name, value in values.items() if any(self.set(**{name: value}))]
        self.broken += [f"{name} = {values[name]} was taken" for name in taken]

    # Signals.

    def signal(self, process: Process, number: int) -> int:
        """Sends a signal, without waiting for what comes of it; returns the arm's period."""
        tick = self.arm.ticks
        process.process.send_signal(number)
        return tick

    @contextmanager
    def helper(self, script: str, *kind: str) -> Iterator[Helper]:
        """A process that publishes from a line on its stdin on."""
        helper = Helper(script, *kind, log=self._folder / f"{script}{'_'.join(kind)}.log")
        try:
            yield helper
        finally:
            helper.process.send_signal(signal.SIGCONT)
            helper.process.terminate()
            helper.end()

    @contextmanager
    def stream(self, script: str = "streamer.py") -> Iterator[Helper]:
        """The process of streamer.py, pose_streamer.py or planner.py; the arm follows its targets,
        and is fast when this begins."""
        fast = STREAMED_SPEED[script]
        with self.helper(script) as streamer:
            streamer.tell("go")
            self.until_fast(fast)
            self.run(1000)  # until the sender is known by its name
            self.until_fast(fast)
            yield streamer

    def until_fast(self, fast: float) -> None:
        """Waits until a joint moves with this velocity [rad/s]."""
        deadline = time.monotonic() + PATIENCE
        while self.speed(10) < fast:
            assert time.monotonic() < deadline, f"the stream is not followed: {self.output}"
            self.spin(0.005)

    def speed(self, periods: int) -> float:
        """Largest velocity of a joint in the last periods [rad/s]."""
        return float(np.abs(self.periods["v"][-periods:]).max())

    def end(self) -> None:
        """Asks all processes to end, at the same time."""
        for process in (self.controller.process, self.sentinel.process):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        self.arm.end()

    # What was recorded.

    @property
    def output(self) -> str:
        """What controller and sentinel have said, and what they have reported."""
        reported = "".join(sorted(self._diagnostics))
        return self.controller.output + reported + self.sentinel.output

    @property
    def crashes(self) -> list[str]:
        """Which process has ended by itself, in words."""
        status = {name: getattr(self, name).process.poll() for name in ("controller", "sentinel")}
        usual, ended = (None, 0, -signal.SIGKILL), status.items()
        return [f"the {name} has ended with status {n}" for name, n in ended if n not in usual]

    def delay(self, begin: int, end: int) -> float:
        """How long the machine has let the arm wait at most, [s], where it did not wait itself."""
        rows = self.periods[begin:end]
        late = np.diff(rows["wall"]) - PERIOD
        return float(late[rows["flags"][:-1] & PATIENT == 0].max(initial=0.0))

    @property
    def periods(self) -> np.ndarray:
        return self.arm.recording.periods[: self.arm.ticks]

    @property
    def commands(self) -> np.ndarray:
        return self.arm.recording.commands[: int(self.arm.recording.counts[1])]


def controller_parameters(**changes: object) -> dict:
    """Those of the demo's Panda. The check of the wires at activation is a matter of the accidents:
    it refuses an arm whose model is wrong from the start, and it leads a right one a little away
    from its start."""
    robot = panda()
    gains = {"p": BANDWIDTH**2, "d": 2.0 * BANDWIDTH}
    names = list(robot.model.joint_names)
    gains = {joint: dict(gains) for joint in names}
    changes = {"lock_memory": False, "activation": {"check": "off"}, **changes}
    return {**robot.parameters, "joints": names, "gains": gains, **changes}


@contextmanager
def fault_bench(**options: object) -> Iterator[FaultBench]:
    """A bench in a domain of its own, that holds the arm at the start posture."""
    with ExitStack() as stack:
        stack.enter_context(ros(DOMAIN))
        bench = FaultBench(stack, **options)
        try:
            yield bench
        finally:
            bench.end()
