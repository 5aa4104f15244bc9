"""Gathers what this computer allows, and the environment of the middleware."""

from __future__ import annotations

from pathlib import Path

from rnea_control.commands.evidence import Machine
from rnea_control.ros.fast_dds import fast_dds
from rnea_control.ros.real_time import is_real_time_kernel, largest_priority, may_lock_memory

CGROUPS, OWN_CGROUP, PROCESSES = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc")
MANAGER = "ros2_control_node"


def machine() -> Machine:
    """This computer as this process finds it."""
    return Machine(
        largest_priority(),
        may_lock_memory(),
        is_real_time_kernel(),
        cpu_quota(),
        priorities_of(MANAGER),
        fast_dds(),
    )


def priorities_of(executable: str, root: Path = PROCESSES) -> tuple[tuple[int, ...], ...]:
    """For each process that runs a program the real-time priorities of its threads.

    Args:
        executable: the program's file name.
        root: where the processes are listed.
    """
    found = []
    for process in root.glob("[0-9]*"):
        program = (_text(process / "cmdline") or "").partition("\0")[0]
        if program.rpartition("/")[2] == executable:
            texts = [_text(thread) for thread in process.glob("task/*/stat")]
            # The name, in parentheses, may have blanks; the 38th value after it.
            fields = [text.rpartition(")")[2].split() for text in texts if text]
            found.append(tuple(int(values[37]) for values in fields))
    return tuple(found)


def cpu_quota(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """How many CPUs this process's cgroup may use, and those that it is in; None without a bound.

    Args:
        own: the file that names the cgroup, of version 2.
        root: where the cgroups are mounted.
    """
    lines = [line for line in (_text(own) or "").splitlines() if line.startswith("0::")]
    group = root / (lines[0].removeprefix("0::").strip("/") if lines else "")
    quotas = []
    for folder in (group, *group.parents):
        if folder == root.parent:
            break
        quota, _, period = (_text(folder / "cpu.max") or "max").partition(" ")
        if quota.strip() != "max":
            quotas.append(float(quota) / float(period))
    return min(quotas, default=None)


def _text(path: Path) -> str | None:
    """The content of a file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
