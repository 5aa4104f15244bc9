"""The whole loop over DDS: CPU time a tick and round trips, against a plain rclpy node and floors.

This process plays the hardware: it sends a state, waits for the command, and sends the next state
when it is due, or at once if the command came later. The controllers take turns in short rounds,
all with the same real-time set-up. Two floors answer with fixed bytes: one in C, on rcl (floor.c,
where there is a compiler), and one on rclpy (floor_node.py). The CPUs are kept from sleeping, as
cyclictest does: without this the measurement is mostly their waking, which the rows "CPUs sleeping"
show. All use the transports that docs/middleware.md advises. SOAK=600 in the environment runs
rnea_controller alone for 600 seconds instead.

The second table has requests to a controller that commands the arm (load.py).
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import floor_in_c
import numpy as np
import rclpy
import yaml
from benchmark_robots import PANDA_JOINTS, START, urdf_path
from diagnostic_msgs.msg import DiagnosticArray
from lost_answers import OUR_PROFILE, with_profile
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from table import Table

from rnea_control.ros.raw_subscription import RawSubscription

OURS = "rnea_controller"
PLAIN = "plain rclpy node"
FLOOR = "floor in rclpy: fixed bytes"
FLOOR_IN_C = "floor in C: fixed bytes"
PEERS = {PLAIN: "plain_node.py", FLOOR: "floor_node.py", FLOOR_IN_C: "floor_in_c.py"}
ROUNDS = 3
SECONDS = 3.0
WARM_UP = 1.0  # time before the measurement [s]
LOAD_WARM_UP = 3.0  # time before the measurement with a load [s]
# Above the controller's priority, so that delays of this process are not measured.
PRIORITY = 70
GIVE_UP = 1.0  # time limit for the answer to a state [s]
DIAGNOSTICS_KEPT = 10
FOLDER = Path(__file__).parent
CPU_LATENCY = Path("/dev/cpu_dma_latency")
AWAKE = ""
SLEEPING = ", CPUs sleeping"
# Loads during the measurement, from load.py.
LOADS = {
    ", a Python loop in its process": (),
    ", 1000-point goals": ("goals",),
    ", 50 Hz chunks": ("chunks",),
    ", 100 000-point trajectories": ("long_trajectories",),
    ", 10 000 parameters at once": ("parameters",),
    ", 50 MB on robot_description": ("descriptions",),
    ", all of these, CPUs busy": ("goals", "long_trajectories", "parameters", "descriptions"),
}
PYTHON_LOOP, *_, ALL = LOADS
# Runs a module, with a thread of pure Python once the file BEGIN exists.
BESIDE_A_LOOP = """
import os, runpy, sys, threading, time

def spin():
    while not os.path.exists(os.environ["BEGIN"]):
        time.sleep(0.1)
    while True:
        pass

threading.Thread(target=spin, daemon=True).start()
how, what = sys.argv.pop(1), sys.argv[1]
run = runpy.run_module if how == "-m" else runpy.run_path
sys.argv[:2] = [what]
run(what, run_name="__main__", **({"alter_sys": True} if how == "-m" else {}))
"""
COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
STATES = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Hardware:
    """Sends states and takes commands, both as bytes."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("hardware")
        zeros = array("d", bytes(56))
        state = JointState(name=list(PANDA_JOINTS), position=array("d", START), velocity=zeros)
        self.state = bytearray(serialize_message(state))
        self.publisher = self.node.create_publisher(JointState, "joint_states", STATES)
        self.commands = RawSubscription(
            self.node, Float64MultiArray, "effort_controller/commands", COMMANDS
        )

    def await_controller(self) -> None:
        """Waits until a state is answered by the controller that runs now: the last command of the
        one before may still be here."""
        deadline = time.monotonic() + 60.0
        while self.commands.take(0.0) is not None:
            pass
        while not (self.publisher.get_subscription_count() and self.round_trip() < GIVE_UP):
            if time.monotonic() > deadline:
                raise TimeoutError("the controller does not answer")
            time.sleep(0.05)

    def round_trip(self) -> float:
        """From before a state is sent to when its command is here, [s]."""
        sent = time.perf_counter()
        struct.pack_into("=iI", self.state, 4, *divmod(time.time_ns(), 10**9))
        self.publisher.publish(bytes(self.state))
        while (passed := time.perf_counter() - sent) < GIVE_UP:
            if self.commands.take(GIVE_UP - passed) is not None:
                return time.perf_counter() - sent
        return GIVE_UP

    def run(self, rate: float, seconds: float) -> np.ndarray:
        """Round trips of as many states as fit, [s]."""
        trips, due, end = [], time.perf_counter(), time.perf_counter() + seconds
        while due < end:
            trips.append(self.round_trip())
            due = max(due + 1.0 / rate, time.perf_counter())
            time.sleep(max(due - time.perf_counter(), 0.0))
        return np.array(trips)


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen]:
    """Runs another Python process at normal priority; terminates it at the end."""
    started = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10.0)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def controller(name: str, how: str = AWAKE) -> Iterator[subprocess.Popen]:
    first = ("-c", BESIDE_A_LOOP) if how in (PYTHON_LOOP, ALL) else ()
    if name in PEERS:
        path = str(FOLDER / PEERS[name])
        with process(*first, *(["path"] if first else []), path) as started:
            yield started
        return
    parameters = {
        "joints": PANDA_JOINTS,
        "robot_description": urdf_path("panda").read_text(),
        "gains": {joint: {"p": 400.0, "d": 40.0} for joint in PANDA_JOINTS},
        "activation.check": "off",  # this arm answers to no torque
        "joint_state_timeout": 10.0,
        "joint_state_gap": 10.0,
        "state_publish_rate": 100.0,
        "positions_upsampling.enable": True,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        module = "rnea_control.node.executable"
        arguments = ("-m", module, "--ros-args", "--params-file", str(path))
        with process(*first, *arguments) as started:
            yield started


def cpu_time(pid: int) -> float:
    """CPU time of all threads of a process so far, [s]."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) * 1e-9


class Round(NamedTuple):
    """Measurement of a controller in one round."""

    trips: np.ndarray  # round trips [s]
    cpu: float  # CPU time a tick [s]
    kept: float  # CPU time that the host of a virtual machine withheld [s]


def stolen() -> float:
    """CPU time that the host of a virtual machine has withheld so far [s]."""
    ticks = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(name: str, rate: float, how: str = AWAKE) -> Round:
    """One round."""
    with ExitStack() as stack:
        if how != SLEEPING and os.access(CPU_LATENCY, os.W_OK):
            # In force for all CPUs while it is open.
            stack.enter_context(CPU_LATENCY.open("wb", buffering=0)).write(bytes(4))
        begin = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "begin"
        os.environ["BEGIN"] = str(begin)
        with normal_priority():  # what is started here inherits it
            started = stack.enter_context(controller(name, how))
        hardware.await_controller()
        hardware.run(rate, WARM_UP)
        begin.touch()
        with normal_priority():
            if how == ALL:
                for _ in range(os.cpu_count() or 1):
                    stack.enter_context(process("-c", "while True: pass"))
            for load in LOADS.get(how, ()):
                stack.enter_context(process(str(FOLDER / "load.py"), load))
        if how in LOADS:
            hardware.run(rate, LOAD_WARM_UP)
        before, kept = cpu_time(started.pid), stolen()
        trips = hardware.run(rate, SECONDS)
        cpu = (cpu_time(started.pid) - before) / len(trips)
        return Round(trips, cpu, stolen() - kept)


@contextmanager
def normal_priority() -> Iterator[None]:
    """For what is started within: child processes inherit the priority."""
    raise_priority(0)
    try:
        yield
    finally:
        raise_priority(PRIORITY)


def raise_priority(priority: int) -> str:
    """Sets SCHED_RR for this process, or 0 for none; returns what came of it.

    By turns: threads of Fast DDS spin, and the one that they wait for must get a CPU.
    """
    try:
        for task in os.listdir("/proc/self/task"):
            policy = os.SCHED_RR if priority else os.SCHED_OTHER
            os.sched_setscheduler(int(task), policy, os.sched_param(priority))
    except PermissionError:
        return "SCHED_RR was denied"
    return (
        "the hardware's side ran at SCHED_RR priority 70, all controllers at SCHED_FIFO 50, with "
        "locked memory"
    )


def tables() -> list[Table]:
    """Every round of a table has every case, so that all meet the same machine."""
    floors = (FLOOR_IN_C, FLOOR) if floor_in_c.available() else (FLOOR,)
    kept = "kept awake" if os.access(CPU_LATENCY, os.W_OK) else "not kept awake, which was denied"
    how_measured = (
        f"{ROUNDS} rounds of {SECONDS:.0f} s for each row; a figure is the median of the rounds' "
        "figures, and the worst that of all; host: the CPU time that a virtual machine's host kept "
        f"from it. The CPUs were {kept}, except in rows that say otherwise, by cpu_dma_latency. "
        f"{scheduling}."
    )
    rates = [(250.0, AWAKE), (1000.0, AWAKE), (1000.0, SLEEPING), (2000.0, AWAKE), (4000.0, AWAKE)]
    quiet = _table("The loop over DDS, panda, 7 joints [us]", rates, (OURS, *floors, PLAIN))
    busy = _table(
        "The loop over DDS, and what is asked of it meanwhile, 1000 Hz [us]",
        [(1000.0, how) for how in (AWAKE, *LOADS)],
        (OURS, floors[0]),
    )
    quiet.notes.append(how_measured)
    busy.notes.append(
        "A Python loop: a thread of pure Python in the controller's process, and in the floor's. "
        "Goals, trajectories, parameters and descriptions as load.py sends them; 10 000 parameters "
        "at once are refused. With goals and chunks, controller_state and torque_terms have a "
        "subscriber at 100 Hz."
    )
    busy.notes.append(how_measured)
    return [quiet, busy]


def _table(title: str, cases: list[tuple[float, str]], names: Sequence[str]) -> Table:
    rounds: dict[tuple, list[Round]] = {(name, *case): [] for case in cases for name in names}
    for _ in range(ROUNDS):
        for key, measured in rounds.items():
            measured.append(measure(*key))
    quantiles = "median", "99 %", "99.9 %", "worst"
    table = Table(title, ("controller", "states", "CPU a tick", *quantiles, "> 10 ms", "host"))
    for rate, how in cases:
        what = f"{rate:.0f} Hz{how}"
        figures = {name: _figures(rounds[name, rate, how]) for name in names}
        for name, values in figures.items():
            late = sum(int((trips > 0.01).sum()) for trips, *_ in rounds[name, rate, how])
            kept = sum(each.kept for each in rounds[name, rate, how])
            times = (f"{1e6 * x:.0f}" for x in values)
            table.rows.append((name, what, *times, str(late), f"{kept:.2f} s"))
        ours, floor = figures[OURS], figures[names[1]]
        table.notes.append(
            f"{what}: {ours[0] / floor[0]:.2f} of the CPU time a tick of the {names[1]}, "
            f"{ours[1] / floor[1]:.2f} of its median round trip, {ours[3] / floor[3]:.2f} of its "
            "99.9 %."
        )
    return table


def _figures(rounds: list[Round]) -> np.ndarray:
    """CPU time a tick, then median, 99 %, 99.9 % and worst round trip, [s]."""
    figures = np.array(
        [(cpu, *np.quantile(trips, (0.5, 0.99, 0.999)), trips.max()) for trips, cpu, _ in rounds]
    )
    return np.array([*np.median(figures[:, :4], axis=0), figures[:, 4].max()])


def soak(seconds: float) -> None:
    """Runs this controller at 1 kHz; prints its memory, and what it says of its states, every
    tenth of the time."""
    said: dict[str, str] = {}

    def listen(message: DiagnosticArray) -> None:
        said.update((item.key, item.value) for item in message.status[0].values)

    hardware.node.create_subscription(DiagnosticArray, "/diagnostics", listen, 10)
    with controller(OURS) as started:
        hardware.await_controller()
        hardware.run(1000.0, WARM_UP)
        for part in range(11):
            status = Path(f"/proc/{started.pid}/status").read_text()
            resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            faults = Path(f"/proc/{started.pid}/stat").read_text().split()[9]
            for _ in range(DIAGNOSTICS_KEPT):
                rclpy.spin_once(hardware.node, timeout_sec=0.0)
            print(
                f"{part * seconds / 10:6.0f} s: {resident}, {faults} page faults, "
                f"{said.get('ticks')} ticks, {said.get('states missed')} states missed"
            )
            if part < 10:
                trips = hardware.run(1000.0, seconds / 10.0)
                print(f"          {len(trips)} round trips, {(trips >= GIVE_UP).sum()} lost")


os.environ.update(with_profile(OUR_PROFILE))
rclpy.init()
hardware = Hardware()
scheduling = raise_priority(PRIORITY)
if __name__ == "__main__":
    if "SOAK" in os.environ:
        soak(float(os.environ["SOAK"]))
    else:
        for each in tables():
            each.show()
