"""Counts how often the sentinel takes the arm on a machine that is busy with other work.

`rnea_controller` and `rnea_sentinel` with their defaults, and in turns with them the floor in C,
answer states of a period of one millisecond. The controller follows goals of 1000 points all the
time, and receives 10 000 parameters at once each second; 50 MB arrive on robot_description; in
three processes participants join and leave; and a busy loop runs on each CPU. The sentinel takes an
arm that gets no command for `command_timeout`. The floor has no sentinel: it has lost its arm
whenever its commands were missing for `command_timeout`. Every fifth round is the floor's.

    python kept_arm.py [minutes of the controller]
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import loop
import yaml
from benchmark_robots import PANDA_JOINTS, urdf_path
from lost_answers import JOINER, JOINING_PROCESSES
from table import Table

MINUTES = 30.0  # default time of the controller [min]
ROUND = 60.0  # length of a round [s]
FLOOR_EVERY = 5  # rounds of the controller for one of the floor
PERIOD = 0.001  # period of the states [s]
TIMEOUT = 0.015  # default of command_timeout [s]
PAUSE = 0.005  # excess sleep of this process, at priority 70, that counts as a pause [s]
LOADS = ("parameters", "descriptions")


@dataclass
class Count:
    """Counts of one round.

    Attributes:
        states: number of states sent.
        lost: number of times without a command for `TIMEOUT`.
        longest: longest time without a command [s].
        pauses: number of pauses of the machine.
    """

    states: int = 0
    lost: int = 0
    longest: float = 0.0
    pauses: int = 0


def watch(seconds: float) -> Count:
    """Publishes states for `seconds`, with or without commands, and receives the commands."""
    hardware, count = loop.hardware, Count()
    due = answered = time.perf_counter()
    end, waits = due + seconds, False
    while due < end:
        struct.pack_into("=iI", hardware.state, 4, *divmod(time.time_ns(), 10**9))
        hardware.publisher.publish(bytes(hardware.state))
        count.states += 1
        due += PERIOD
        while (left := due - time.perf_counter()) > 0.0:
            if hardware.commands.take(left) is not None:
                answered, waits = time.perf_counter(), False
        if -left > PAUSE:
            count.pauses += 1
            due = time.perf_counter()
        without = time.perf_counter() - answered
        count.longest = max(count.longest, without)
        count.lost += without > TIMEOUT and not waits
        waits |= without > TIMEOUT
    return count


def run(name: str, seconds: float) -> tuple[Count, dict[str, int]]:
    """One round; with what goals.py has counted."""
    found: dict[str, int] = {}
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        path, results = Path(folder) / "parameters.yaml", Path(folder) / "results.json"
        gains = {joint: {"p": 400.0, "d": 40.0} for joint in PANDA_JOINTS}
        robot = {"joints": PANDA_JOINTS, "robot_description": urdf_path("panda").read_text()}
        given = {"/**": {"ros__parameters": {**robot, "gains": gains}}}
        path.write_text(yaml.safe_dump(given))
        file = ("--ros-args", "--params-file", str(path))
        with loop.normal_priority():
            if name == loop.OURS:
                for room in ("sentinel", "node"):
                    module = f"rnea_control.{room}.executable"
                    stack.enter_context(loop.process("-m", module, *file))
            else:
                stack.enter_context(loop.controller(name))
            loop.hardware.await_controller()
            for _ in range(os.cpu_count() or 1):
                stack.enter_context(loop.process("-c", "while True: pass"))
            for _ in range(JOINING_PROCESSES):
                stack.enter_context(loop.process("-c", JOINER))
            for load in LOADS if name == loop.OURS else ():
                stack.enter_context(loop.process(str(loop.FOLDER / "load.py"), load))
        watch(loop.LOAD_WARM_UP)
        with ExitStack() as motions:
            if name == loop.OURS:
                with loop.normal_priority():
                    motions.enter_context(loop.process(str(loop.FOLDER / "goals.py"), str(results)))
            count = watch(seconds)
        if results.exists():
            found = json.loads(results.read_text())
    return count, found


def tables(minutes: float = MINUTES) -> list[Table]:
    """The controller with its sentinel and the floor in turns."""
    table = Table(
        f"The arm on a busy machine, {minutes:.0f} minutes",
        (
            *("controller", "states", "machine paused > 5 ms", "longest without a command"),
            *("no command for 15 ms", "taken by the sentinel", "goals", "goals lost"),
        ),
    )
    names = loop.OURS, loop.FLOOR_IN_C
    rounds: dict[str, list[tuple[Count, dict[str, int]]]] = {name: [] for name in names}
    for number in range(round(60.0 * minutes / ROUND)):
        for name in names if number % FLOOR_EVERY == 0 else names[:1]:
            rounds[name].append(run(name, ROUND))
            print(name, *rounds[name][-1], flush=True)
    for name, found in rounds.items():
        sums = [sum(getattr(count, key) for count, _ in found) for key in ("states", "pauses")]
        lost, longest = sum(c.lost for c, _ in found), max(c.longest for c, _ in found)
        of_client = (sum(f.get(key, 0) for _, f in found) for key in ("takeovers", "goals", "lost"))
        told = [str(number) if name == loop.OURS else "" for number in of_client]
        row = *map(str, sums), f"{1e3 * longest:.1f} ms", str(lost)
        table.rows.append((name, *row, *told))
    table.notes.append(__doc__.partition("\n\n")[2].partition("\n\n")[0].replace("\n", " "))
    return [table]


if __name__ == "__main__":
    for each in tables(*map(float, sys.argv[1:2])):
        each.show()
