"""Threads by which Gazebo's server receives commands, in a process that looks like one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rnea_control.ros.real_time import largest_priority
from rnea_control.simulation import gazebo
from rnea_control.simulation.gazebo_priorities import priority_below, raise_receivers, servers

PROCESS = """
import mmap, sys, threading
with open(sys.argv[1], "rb") as file:
    library = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
thread = threading.Thread(target=sys.stdin.read)
thread.start()
print(thread.native_id, flush=True)
thread.join()
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A process that has loaded gz_ros2_control, and one that has not; process and thread ID of the
    first."""
    with ExitStack() as processes:
        for name in ("other.so", "libgz_ros2_control-system.so"):
            library = tmp_path / name
            library.write_bytes(b"library")
            command = [sys.executable, "-c", PROCESS, str(library)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            child = processes.enter_context(subprocess.Popen(command, **pipes))
            assert child.stdout is not None
            thread = int(child.stdout.readline())
        yield child.pid, thread


def test_receivers_of_the_server_are_raised(process: tuple[int, int]) -> None:
    """The main thread simulates: where it waits, the simulation waits with it."""
    pid, thread = process
    assert servers(os.getpid()) == [pid]
    assert servers(pid) == []
    denied = raise_receivers(pid, 3, with_main=False)
    if largest_priority() < 3:
        assert denied == "SCHED_RR priority 3: Operation not permitted"
        return
    assert denied == ""
    policies = [os.sched_getscheduler(each) for each in (pid, thread)]
    assert policies == [os.SCHED_OTHER, os.SCHED_RR]
    assert os.sched_getparam(thread).sched_priority == 3
    raise_receivers(pid, 3, with_main=True)
    assert os.sched_getscheduler(pid) == os.SCHED_RR


def test_priority_is_below_that_of_the_control_loop(
    tmp_path: Path, process: tuple[int, int]
) -> None:
    file = tmp_path / "arm.yaml"
    text = "rnea_controller: {{ros__parameters: {{joints: [a], thread_priority: {0}}}}}"
    for priority, expected in ((50, 45), (0, 0)):
        file.write_text(text.format(priority))
        assert priority_below(gazebo.Arm.of_file(file).thread_priority) == expected
    pid, thread = process
    assert raise_receivers(pid, 0, with_main=True) == ""  # nothing changes
    assert {os.sched_getscheduler(each) for each in (pid, thread)} == {os.SCHED_OTHER}


def test_process_that_has_ended(process: tuple[int, int]) -> None:
    pid, _ = process
    with subprocess.Popen(["true"]) as ended:
        pass
    assert raise_receivers(ended.pid, 3, with_main=True) == ""
    assert pid in servers(os.getpid())
