"""Time from the start to the first torque, with kernels on disk and without.

This process plays the hardware, which sends states from before the start on. The floor is a small
rclpy node that answers each state (floor_node.py). A start for the first time runs in a copy of the
package without compiled kernels.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import yaml
from benchmark_robots import PANDA_JOINTS, urdf_path
from loop import FLOOR, FOLDER, PEERS, Hardware
from table import Table, show

import rnea_control

CONTROLLER, SENTINEL = "rnea_control.node.executable", "rnea_control.sentinel.executable"
BOTH = (CONTROLLER, SENTINEL)
# Processes of each start with kernels on disk; the starts take turns.
WARM = {FLOOR: (), "rnea_controller": (CONTROLLER,), "rnea_controller and rnea_sentinel": BOTH}
ROUNDS = 5  # starts with kernels on disk
COLD_ROUNDS = 2  # starts without kernels on disk
PERIOD = 0.002  # time between two states [s]
LONGEST = 180.0  # time limit of a start [s]
STARTED = ("active:", "guards ")  # words in the log of a process that commands or guards


def start(
    hardware: Hardware, commands: list[list[str]], lines: int, folder: str
) -> tuple[float, float]:
    """Seconds until processes said so often that they are active, and until the first torque."""
    said: list[float] = []
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": folder}
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for command in commands
    ]

    def read(process: subprocess.Popen) -> None:
        for line in process.stdout or ():
            if any(words in line for words in STARTED):
                said.append(time.perf_counter() - began)

    readers = [threading.Thread(target=read, args=(process,)) for process in processes]
    for reader in readers:
        reader.start()
    try:
        torque = _first_torque(hardware, began)
        while len(said) < lines and time.perf_counter() - began < LONGEST:
            time.sleep(0.01)
        return max(said, default=torque), torque
    finally:
        for process in processes:
            process.terminate()
        for process, reader in zip(processes, readers, strict=True):
            process.wait(20.0)
            reader.join()


def _first_torque(hardware: Hardware, began: float) -> float:
    while (passed := time.perf_counter() - began) < LONGEST:
        struct.pack_into("=iI", hardware.state, 4, *divmod(time.time_ns(), 10**9))
        hardware.publisher.publish(bytes(hardware.state))
        if hardware.commands.take(PERIOD) is not None:
            return time.perf_counter() - began
    raise TimeoutError(f"no torque after {passed:.0f} s")


@contextmanager
def parameters() -> Iterator[str]:
    values = {
        "joints": PANDA_JOINTS,
        "robot_description": urdf_path("panda").read_text(),
        "gains": {joint: {"p": 400.0, "d": 40.0} for joint in PANDA_JOINTS},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parameters.yaml"
        path.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
        yield str(path)


@contextmanager
def package(compiled: bool) -> Iterator[str]:
    """A folder with a copy of the package, with its kernels or without."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(rnea_control.__file__).parent
        left_out = () if compiled else ("*.nb?", "*.lock")
        ignore = shutil.ignore_patterns(*left_out)
        shutil.copytree(source, Path(folder) / source.name, ignore=ignore)
        yield folder


def tables() -> Iterator[Table]:
    hardware = Hardware()
    table = Table("From the start of the process, panda [s]", ("process", "active", "first torque"))
    times: dict[str, list[tuple[float, float]]] = {}

    def measure(name: str, modules: tuple[str, ...], folder: str) -> None:
        options = ["--ros-args", "--params-file", path]
        commands = [["-m", module, *options] for module in modules]
        commands = commands or [[str(FOLDER / PEERS[FLOOR])]]
        started = start(hardware, commands, len(modules), folder)
        times.setdefault(name, []).append(started)
        while hardware.commands.take(0.2) is not None:
            pass

    with parameters() as path:
        with package(compiled=True) as folder:
            measure("", BOTH, folder)  # the files come from disk
            del times[""]
            for _ in range(ROUNDS):
                for name, modules in WARM.items():
                    measure(name, modules, folder)
        for name, modules in list(WARM.items())[1:]:
            for _ in range(COLD_ROUNDS):
                with package(compiled=False) as folder:
                    measure(f"{name}, nothing compiled", modules, folder)
    for name, found in times.items():
        active, torque = (median(each) for each in zip(*found, strict=True))
        table.rows.append((name, f"{active:.2f}", f"{torque:.2f}"))
    table.notes.append(
        f"Medians of {ROUNDS} rounds, {COLD_ROUNDS} where nothing is compiled. States come from "
        "before the start on; the floor is a small rclpy node that answers them."
    )
    hardware.node.destroy_node()
    yield table


if __name__ == "__main__":
    show(tables())
