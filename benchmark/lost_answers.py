"""Counts lost answers on both sides while other processes join and leave.

This process simulates the hardware: it publishes a state each millisecond and waits for its command
for up to `LONGEST_WAIT`. A floor in another process answers each state with the number of the state
and the count of its earlier commands. So a state without an answer in time was never received, or
its command was never received, or the command was late. At the same time, in three processes,
participants join and leave the domain, some four a second.

    python lost_answers.py [seconds of each case]

Each case gives Fast DDS another profile, on the loopback interface. The cases differ in
`healthy_check_timeout_ms` of the shared-memory transport: the first write to another participant's
port, and with it `publish`, may take a third of this time.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rclpy
from floor_node import STATES as FLOOR_STATES
from plain_node import enter_real_time
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from table import Table

from rnea_control.ros.raw_subscription import RawSubscription

PERIOD = 0.001  # time between two states [s]
LONGEST_WAIT = 0.2  # time after which a state counts as not answered [s]
LATE = 0.02  # time after which an answer counts as late [s]
TAKE = 0.05  # timeout of the floor's wait for a state [s]
START_UP = 200  # states answered in a row after which the count begins
LONGEST_START = 60.0  # time limit for these states [s]
JOINING_PROCESSES = 3
TABLE_SECONDS = 60.0  # default time of each case [s]
# Fast DDS 3 reads the first variable, Fast DDS 2 the second.
PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
OUR_PROFILE = str(Path(__file__).parents[1] / "config" / "fastdds_localhost.xml")
SHARED_MEMORY = """<transport_descriptor><transport_id>shm</transport_id><type>SHM</type>
<healthy_check_timeout_ms>{timeout}</healthy_check_timeout_ms></transport_descriptor>"""
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com"><profiles><transport_descriptors>
<transport_descriptor><transport_id>udp</transport_id><type>UDPv4</type>
<interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>
<maxInitialPeersRange>40</maxInitialPeersRange></transport_descriptor>
{shared_memory}</transport_descriptors>
<participant profile_name="loopback" is_default_profile="true"><rtps>
{transports}</userTransports><useBuiltinTransports>false</useBuiltinTransports>
<builtin><initialPeersList><locator><udpv4><address>127.0.0.1</address></udpv4></locator>
</initialPeersList></builtin></rtps></participant></profiles></dds>
"""
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
STATES = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NUMBERS = "=5d"  # format of the numbers in a command
# Indices of the numbers in a command.
STATE = 0  # number of the answered state
COMMAND = 1  # count of the commands before
OVERSLEPT = 2  # count of states that were found by a timeout
LONGEST_PUBLISH = 3  # longest `publish` of a command [s]
OLDEST = 4  # largest age of a state when it was received [s]
JOINER = """
import random, time
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
while True:
    context = Context()
    context.init()
    node = Node("joiner", context=context)
    publisher = node.create_publisher(Float64MultiArray, "noise", 1)
    node.create_subscription(Float64MultiArray, "noise", lambda message: None, 1)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    print(end="+", flush=True)
    end = time.monotonic() + random.uniform(0.3, 1.0)
    while time.monotonic() < end:
        publisher.publish(Float64MultiArray(data=[0.0] * 200))
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()
"""


def floor() -> None:
    """Answers states with counts."""
    rclpy.init()
    node = rclpy.create_node("rnea_controller")
    publisher = node.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
    states = RawSubscription(node, JointState, "joint_states", FLOOR_STATES)
    message = bytearray(serialize_message(Float64MultiArray(data=[0.0] * 5)))
    start = len(message) - struct.calcsize(NUMBERS)
    enter_real_time()
    sent = overslept = in_a_row = 0
    longest = oldest = 0.0
    while True:
        before = time.monotonic()
        taken = states.take(TAKE)
        now = time.monotonic()
        if taken is None:
            in_a_row = 0
            continue
        seconds, nanoseconds = struct.unpack_from("=iI", taken[0], 4)
        age = now - seconds - 1e-9 * nanoseconds
        in_a_row += 1
        if in_a_row > START_UP:
            oldest = max(oldest, age)
        overslept += now - before > 0.98 * TAKE and age > 0.5 * TAKE
        answer = (float(taken[1] or -1), float(sent), float(overslept), longest, oldest)
        struct.pack_into(NUMBERS, message, start, *answer)
        publisher.publish(bytes(message))
        sent += 1
        if in_a_row > START_UP:
            longest = max(longest, time.monotonic() - now)


class Joiners:
    """Processes at normal priority in which participants come and go."""

    def __init__(self, folder: Path) -> None:
        environment = with_profile(os.environ["JOINERS_PROFILE"])
        arguments = ["chrt", "-o", "0", sys.executable, "-c", JOINER]
        self._log = folder / "joined"
        with self._log.open("w") as log:
            self._running = [
                subprocess.Popen(arguments, env=environment, stdout=log, stderr=subprocess.DEVNULL)
                for _ in range(JOINING_PROCESSES)
            ]

    @property
    def joined(self) -> int:
        """How many participants have joined so far."""
        return len(self._log.read_text())

    def end(self) -> None:
        for each in self._running:
            each.terminate()
        for each in self._running:
            each.wait()


@dataclass
class Tally:
    """Counts of the hardware's side."""

    states: int = 0
    answered: int = 0
    late: int = 0
    never_taken: int = 0
    never_received: int = 0
    longest_publish: float = 0.0
    trips: list[float] = field(default_factory=list)
    answer: tuple[float, ...] = (0.0, -1.0, 0.0, 0.0, 0.0)

    def follow(self, answer: tuple[float, ...]) -> None:
        """Adds the counts of the next command received."""
        commands = int(answer[COMMAND] - self.answer[COMMAND]) - 1
        self.never_received += commands
        self.never_taken += int(answer[STATE] - self.answer[STATE]) - 1 - commands
        self.answer = answer

    def numbers(self, joined: int) -> dict[str, float]:
        """All counts, with times in [ms] and [us]."""
        return {
            "states": self.states,
            "joined": joined,
            "unanswered": self.states - self.answered,
            "late": self.late,
            "never_taken": self.never_taken,
            "never_received": self.never_received,
            "longest_state_publish": 1e3 * self.longest_publish,
            "longest_command_publish": 1e3 * self.answer[LONGEST_PUBLISH],
            "oldest": 1e3 * self.answer[OLDEST],
            "overslept": self.answer[OVERSLEPT],
            "median": 1e6 * float(np.median(self.trips)),
            "load": os.getloadavg()[0],
        }


REPORT = """\
  {states} states beside {joined} participants that joined: {unanswered} not answered within \
{wait:.0f} ms, {late} after more than {bound:.0f} ms; median round trip {median:.0f} us
  {never_taken} states never taken, {never_received} commands sent but never received
  longest publish: of a state {longest_state_publish:.0f} ms, of a command \
{longest_command_publish:.0f} ms
  oldest state when taken {oldest:.0f} ms; states that were there and found by a timeout only: \
{overslept:.0f}
  load average {load:.1f}, {cpus} CPUs"""


def count(seconds: float) -> None:
    """Simulates the hardware for `seconds`, and prints the counts as JSON."""
    rclpy.init()
    node = rclpy.create_node("hardware")
    publisher = node.create_publisher(JointState, "joint_states", STATES)
    commands = RawSubscription(node, Float64MultiArray, "effort_controller/commands", COMMANDS)
    names, zeros = [f"joint{i}" for i in range(7)], array("d", bytes(56))
    state = bytearray(serialize_message(JointState(name=names, position=zeros, velocity=zeros)))
    peer = subprocess.Popen([sys.executable, __file__, "floor"])
    joiners = Joiners(Path(os.environ["FOLDER"]))
    enter_real_time()
    sent = in_a_row = 0
    tally = Tally()
    started, end = False, time.monotonic() + LONGEST_START
    while time.monotonic() < end:
        begun = time.perf_counter()
        struct.pack_into("=iI", state, 4, *divmod(time.monotonic_ns(), 10**9))
        publisher.publish(bytes(state))
        sent += 1
        published = time.perf_counter()
        found = False
        while not found and (left := published + LONGEST_WAIT - time.perf_counter()) > 0.0:
            if (taken := commands.take(left)) is not None:
                data = taken[0]
                answer = struct.unpack_from(NUMBERS, data, len(data) - struct.calcsize(NUMBERS))
                tally.follow(answer)
                found = answer[STATE] == sent
        in_a_row = in_a_row + 1 if found else 0
        if not started and in_a_row == START_UP:
            started, end = True, time.monotonic() + seconds
            tally = Tally(answer=tally.answer)
        elif started:
            tally.states += 1
            tally.answered += found
            tally.trips.append(time.perf_counter() - begun)
            tally.late += found and tally.trips[-1] > LATE
            tally.longest_publish = max(tally.longest_publish, published - begun)
            time.sleep(max(begun + PERIOD - time.perf_counter(), 0.0))
    peer.kill()
    peer.wait()
    joiners.end()
    if not started:
        raise TimeoutError("the floor does not answer")
    print(json.dumps(tally.numbers(joiners.joined)))


def with_profile(path: str) -> dict[str, str]:
    """The environment for a process with this profile, which says where messages go."""
    # With LOCALHOST, rmw_fastrtps adds transports of its own to those of the profile.
    discovery = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT"}
    return {**os.environ, **discovery, **dict.fromkeys(PROFILE_VARIABLES, path)}


def profile(folder: Path, name: str, shared_memory: str) -> str:
    """Writes a profile; returns its path."""
    path = folder / name
    transport = "<userTransports><transport_id>udp</transport_id>"
    if shared_memory:
        transport += "<transport_id>shm</transport_id>"
    path.write_text(PROFILE.format(shared_memory=shared_memory, transports=transport))
    return str(path)


DEFAULT, SHORT, UDP = "default", "30 ms", "UDP alone"
CASES = (
    ("1000 ms, the default, for all", DEFAULT, DEFAULT),
    ("30 ms for hardware and floor", SHORT, DEFAULT),
    ("30 ms for those who join", DEFAULT, SHORT),
    ("30 ms for all", SHORT, SHORT),
    ("UDP alone for hardware and floor", UDP, DEFAULT),
)


def measured(seconds: float, ours: str, others: str) -> dict[str, float]:
    """Counts while other participants join, with these profiles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profiles = {
            DEFAULT: profile(folder, "default.xml", SHARED_MEMORY.format(timeout=1000)),
            SHORT: profile(folder, "short.xml", SHARED_MEMORY.format(timeout=30)),
            UDP: profile(folder, "udp.xml", ""),
        }
        environment = {
            **with_profile(profiles[ours]),
            "FOLDER": name,
            "JOINERS_PROFILE": profiles[others],
        }
        arguments = [sys.executable, __file__, "count", str(seconds)]
        done = subprocess.run(
            arguments, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def tables() -> list[Table]:
    """Without and with the transports of `config/fastdds_real_time.xml`."""
    table = Table(
        f"While nodes join and leave, {TABLE_SECONDS:.0f} s each",
        (
            "transport of hardware and controller",
            "states",
            "joined",
            "not answered in 200 ms",
            "later than 20 ms",
            "longest publish",
            "median",
        ),
        notes=[
            "A floor answers with fixed bytes at 1 kHz, the next state once it has answered. Three "
            "processes have participants join and leave, with Fast DDS's defaults."
        ],
    )
    for title, ours in (("shared memory, the default", DEFAULT), ("UDP: our profile", UDP)):
        found = measured(TABLE_SECONDS, ours, DEFAULT)
        longest = max(found["longest_state_publish"], found["longest_command_publish"])
        table.rows.append(
            (
                title,
                *(f"{found[key]:.0f}" for key in ("states", "joined", "unanswered", "late")),
                f"{longest:.0f} ms",
                f"{found['median']:.0f} us",
            )
        )
    return [table]


def main() -> None:
    if sys.argv[1:2] == ["floor"]:
        return floor()
    if sys.argv[1:2] == ["count"]:
        return count(float(sys.argv[2]))
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else TABLE_SECONDS
    for title, ours, others in CASES:
        print(f"{title}:", flush=True)
        found = measured(seconds, ours, others)
        shown = {"wait": 1e3 * LONGEST_WAIT, "bound": 1e3 * LATE, "cpus": os.cpu_count(), **found}
        print(REPORT.format(**shown), flush=True)


if __name__ == "__main__":
    main()
