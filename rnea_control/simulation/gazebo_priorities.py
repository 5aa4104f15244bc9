"""Real-time priorities for the threads by which Gazebo receives commands and `/clock`.

gz_ros2_control runs controller_manager inside of Gazebo's server. On a busy computer the server's
main thread can simulate on one CPU while its threads that receive messages wait for a different
CPU: simulated time advances by tenths of a second with the same torques, whatever the controller
commands. So all threads of the server but the main one get a priority. The main thread keeps the
usual scheduling: if it has to wait, the whole simulation waits, and no torque gets old.
"""

from __future__ import annotations

import os
from pathlib import Path

PLUGIN = "gz_ros2_control-system"  # part of the file name of the plugin's library
BELOW_LOOP = 5  # difference to `thread_priority` of the controller; docs/realtime.md
PROC = Path("/proc")


def priority_below(thread_priority: int) -> int:
    """SCHED_RR priority for threads that deliver commands to the simulated hardware; 0 for none.

    Args:
        thread_priority: priority of the controller's loop; 0 for none.
    """
    return max(thread_priority - BELOW_LOOP, 0)


def servers(launcher: int) -> list[int]:
    """Processes that have loaded gz_ros2_control, among those that process `launcher` has
    started."""
    return [pid for pid in _descendants(launcher) if PLUGIN in _read(pid, "maps")]


def raise_receivers(pid: int, priority: int, *, with_main: bool) -> str:
    """Raises the threads of a process; returns why the system denied it, or an empty string. A
    thread that such a thread starts inherits its priority.

    Args:
        pid: the process.
        priority: SCHED_RR priority; 0 changes nothing.
        with_main: True to raise the main thread too.
    """
    if priority <= 0:
        return ""
    try:
        threads = [int(name) for name in os.listdir(PROC / str(pid) / "task")]
    except OSError:
        return ""  # the process has ended
    for thread in threads:
        if thread != pid or with_main:
            try:
                os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(priority))
            except ProcessLookupError:
                continue  # the thread has ended
            except OSError as error:
                return f"SCHED_RR priority {priority}: {error.strerror}"
    return ""


def _descendants(ancestor: int) -> list[int]:
    parents = {pid: _parent(pid) for pid in _processes()}
    found = []
    for pid, parent in parents.items():
        above = parent
        while above not in (0, ancestor):
            above = parents.get(above, 0)
        if above == ancestor:
            found.append(pid)
    return found


def _processes() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdecimal()]


def _parent(pid: int) -> int:
    """Parent of a process; 0 if the process has ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _read(pid: int, name: str) -> str:
    """Text of a file in /proc; empty if the process has ended or is another user's."""
    try:
        return (PROC / str(pid) / name).read_text(errors="replace")
    except OSError:
        return ""
