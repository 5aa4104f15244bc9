"""Random histories of a controller, a sentinel and an arm, each a real process that is stopped,
continued, killed and started again at random moments; see handover_history.py.

HANDOVERS=200 runs so many; HANDOVER_SEED is the seed of the first one.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial

import dds
import handover_history as history
import numpy as np
import pytest
import rclpy
from dds import JOINTS, LATCHED, Process, controller, ros, trajectory
from handover_history import PROCESSES, RATE, Command, Event
from lifecycle_msgs.msg import TransitionEvent
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from robots import two_link_arm
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rnea_control.ros.publishers import publishers_of
from rnea_control.ros.rcl_calls import INFO, RclTable

DOMAIN = 80
FIRST, COUNT = (int(os.environ.get(*each)) for each in (("HANDOVER_SEED", "0"), ("HANDOVERS", "4")))
TOPIC = "effort_controller/commands"
# Nearly hanging: a frozen torque holds it too, while controller and sentinel are both dead.
START = np.array([1.2, 0.4])
PARAMETERS = {
    **dds.PARAMETERS,
    "torque_rate_limits": dict.fromkeys(JOINTS, history.RATE_LIMIT),
    "command_lease": history.LEASE,
    "command_timeout": history.TIMEOUT,
    "measured_effort_is_trusted": True,
    "lock_memory": False,
}
PLACES = dict(zip(JOINTS, START.tolist(), strict=True))
ARM = {"robot_description": two_link_arm(), "rate": RATE, "initial_positions": PLACES}
ARM["joint_damping"] = 0.3
# Below that of the controller's loop, and above all else on the machine; by turns (SCHED_RR), as
# threads of Fast DDS spin, and the one that they wait for must get a CPU.
ARM_PRIORITY = 45
STARTS = {
    "hardware": lambda: Process("rnea_control.simulation.executable", ARM),
    "sentinel": lambda: Process("rnea_control.sentinel.executable", PARAMETERS),
    "controller": lambda: controller(PARAMETERS),
}
SIGNALS = {"stop": signal.SIGSTOP, "continue": signal.SIGCONT, "kill": signal.SIGKILL}
ALL = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)
# The arm is held when only the controller has commanded it for so long, without a longer pause
# than this, [s].
HELD, PAUSE = 0.7, 0.1
# It is not, after so long: kernels may have to be compiled, [s].
LONGEST = 120.0
# The machine stood still if who reads the commands was away for longer, [s]: tried again.
STALL, ATTEMPTS = 0.015, 2


class Bench:
    """The processes, and what they publish.

    Attributes:
        modes: of controller and sentinel.
        done: what was done in this history, by the clock of the commands.
        away: for how long the one who reads the commands was away at most, [s].
    """

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.processes: dict[str, Process] = {}
        self.modes: dict[str, str] = {}
        self.done: list[Event] = []
        self.history = ""
        self.rng = random.Random()
        self.away = 0.0
        self._rows: list[tuple[float, float, bytes, bytes]] = []
        self._names: dict[bytes, str] = {}
        self.node, self._listener = (rclpy.create_node(f"bench{i}") for i in range(2))
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        create = self.node.create_subscription
        for who in ("controller", "sentinel"):
            note = partial(self._note_mode, who)
            create(TransitionEvent, f"rnea_{who}/mode", note, LATCHED)
        self._resume = self.node.create_client(Trigger, "rnea_controller/resume")
        topic = "rnea_controller/joint_trajectory"
        self._trajectories = self.node.create_publisher(JointTrajectory, topic, 1)
        self._ended = False
        reader = threading.Thread(target=self._read)
        reader.start()
        stack.callback(reader.join)
        stack.callback(setattr, self, "_ended", True)

    def _note_mode(self, who: str, event: TransitionEvent) -> None:
        self.modes[who] = event.goal_state.label

    def _read(self) -> None:
        """Keeps every command: when it was published, when it came, by whom."""
        create = self._listener.create_subscription
        subscription = create(Float64MultiArray, TOPIC, print, ALL, raw=True)
        commands, before = RclTable([subscription]), time.time()
        while not self._ended:
            time.sleep(0.001)
            now = time.time()
            self.away, before = max(self.away, now - before), now
            while (taken := commands.take(0)) is not None:
                sent = 1e-9 * commands.array[INFO]  # of an rmw_message_info_t
                self._rows.append((sent, time.time(), taken.publisher or b"", taken.data))
        commands.destroy()

    def commands(self, begin: int) -> list[Command]:
        """Those from number `begin` on."""
        rows = self._rows[max(begin, 0) :]
        if any(row[2] not in self._names for row in rows):
            self._names |= publishers_of(self.node, TOPIC)
        names = (self._names.get(row[2], "").removeprefix("/rnea_") for row in rows)
        torques = (np.array(deserialize_message(row[3], Float64MultiArray).data) for row in rows)
        return [Command(*row[:2], *of) for row, *of in zip(rows, names, torques, strict=True)]

    def spin(self, duration: float) -> None:
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=min(left, 0.01))

    def do(self, action: str, who: str) -> None:
        """Does something now, if it can be done, and notes it."""
        now = time.time()
        process = self.processes.get(who)
        alive = process is not None and process.process.poll() is None
        if action == "resume" and self._resume.service_is_ready():
            self._resume.call_async(Trigger.Request())
        elif action == "move":
            q = START + [self.rng.uniform(-0.3, 0.3) for _ in JOINTS]
            self._trajectories.publish(trajectory(JOINTS, [(0.6, q, [0.0, 0.0])]))
        elif action == "start" and not alive:
            self.processes[who] = self.stack.enter_context(STARTS[who]())
        elif action in SIGNALS and alive:
            process.process.send_signal(SIGNALS[action])
            if action == "kill":
                process.process.wait()
                self.modes.pop(who, None)
        else:
            return
        self.done.append(Event(now, action, who))

    @property
    def held(self) -> bool:
        """Whether the controller has held the arm for `HELD`, guarded by the sentinel."""
        alive = [who for who, each in self.processes.items() if each.process.poll() is None]
        if self.modes != {"controller": "holding", "sentinel": "guarding"} or len(alive) < 3:
            return False
        end = time.time()
        begin = end - HELD
        if self.done and self.done[-1].at > begin:
            return False
        recent = [c for c in self.commands(len(self._rows) - round(4 * RATE)) if c.sent > begin]
        times = [begin, *(command.sent for command in recent), end]
        return {c.who for c in recent} == {"controller"} and np.diff(times).max() < PAUSE

    def settle(self) -> bool:
        """Starts what is dead, and asks for the arm until it is held; whether it is in time."""
        for who in PROCESSES:
            self.do("start", who)
        with suppress(PermissionError):  # hardware goes on on a busy machine
            arm = self.processes["hardware"].process.pid
            os.sched_setscheduler(arm, os.SCHED_RR, os.sched_param(ARM_PRIORITY))
        end = time.monotonic() + LONGEST
        while not (held := self.held) and time.monotonic() < end:
            if self.modes.get("controller") in ("guarded", "blind"):
                self.do("resume", "controller")
            self.spin(0.5)
        return held

    def kill(self) -> None:
        for who in PROCESSES:
            self.do("kill", who)

    def run(self, seed: int) -> list[str]:
        """Runs a history; what was wrong."""
        if not self.settle():
            self.kill()
            raise AssertionError(f"no start: {self.modes} {self.output}")
        self.rng, self.done, self.away = random.Random(seed), [], 0.0
        first, begin = len(self._rows) - 1, time.monotonic()
        for event in history.draw(seed):
            self.spin(begin + event.at - time.monotonic())
            self.do(event.action, event.who)
        ended = {who: each.process.poll() for who, each in self.processes.items()}
        held = self.settle()
        commands = self.commands(first)
        self.history = history.told(commands, self.done)
        found = history.faults(commands, self.done)
        found += [f"{who} has ended: {n}" for who, n in ended.items() if n not in (None, -9)]
        if not held:
            found.append(f"not held in the end: {self.modes}")
            self.kill()
        return found

    @property
    def output(self) -> str:
        return "".join(f"{who}:\n{each.output}" for who, each in self.processes.items())


@pytest.fixture(scope="module")
def bench(publishers_are_known: None) -> Iterator[Bench]:
    with ExitStack() as stack:
        stack.enter_context(ros(DOMAIN))
        yield Bench(stack)


@pytest.mark.explores
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_one_commands_at_a_time_and_the_arm_is_held_in_the_end(bench: Bench, seed: int) -> None:
    for _ in range(ATTEMPTS):
        found = bench.run(seed)
        print(f"\nseed {seed}, the reader was away for {1e3 * bench.away:.1f} ms", bench.history)
        print(*found, *[bench.output] * bool(found), sep="\n")
        if not found or bench.away < STALL:
            break
    assert not found, bench.output
