"""Checks of this computer: permissions of the process, load, and the middleware's environment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rnea_control.commands.evidence import BusyCpu, Evidence, Machine
from rnea_control.commands.finding import Finding, note, warning
from rnea_control.ros import middleware
from rnea_control.ros.real_time import (
    SPINNING,
    is_real_time_kernel,
    largest_priority,
    may_lock_memory,
)

# fmt: off
PRIORITY = warning("real-time-priority",
    "the control loop has, or would have, no real-time priority: other programs delay it by "
    "milliseconds",
    "Give the user an rtprio limit of 98, or the container --cap-add=SYS_NICE (docs/realtime.md)")
MEMORY = warning("memory-lock",
    "the controller's memory is not, or could not be, locked: a tick may wait for a page",
    "Give the user `memlock unlimited`, or the container --ulimit memlock=-1 (docs/realtime.md)")
KERNEL = note("kernel",
    "the kernel has no PREEMPT_RT",
    "Use a real-time kernel for 1 kHz on a busy computer (docs/realtime.md)")
CPU_QUOTA = warning("cpu-quota",
    "the cgroup has a CPU quota, which also stops real-time threads, for many milliseconds",
    "Start the container without --cpus and --cpu-quota; use --cpuset-cpus")
MANAGER_PRIORITY = warning("manager-priority",
    f"controller_manager's executor and {middleware.NAME} threads pass on the commands: at normal "
    "priority other programs delay them, at the controller's priority they delay its loop",
    "Start it with the prefix `chrt -r 45` (docs/realtime.md)")
THROTTLING = warning("real-time-throttling",
    "real-time threads use up a CPU: the kernel then stops them, and the control loop, for 50 ms "
    "of each second",
    "Find out why the named thread is busy, or give it a normal priority (docs/realtime.md)")
DDS_PROFILE = warning("dds-profile",
    middleware.SHARES_MEMORY, middleware.SET_PROFILE)
DDS_PROFILE_UNREADABLE = warning("dds-profile-unreadable",
    f"the environment names a {middleware.NAME} profile that cannot be read; {middleware.NAME} "
    "runs without it",
    "Correct the path")
DDS_LOCAL_ONLY = warning("dds-local-only",
    middleware.LOCAL_ONLY_SHARES, middleware.SET_LOCAL_PROFILE)
# fmt: on

IN_FORCE = "real time"  # key of the controller's report with the real-time settings in force
CGROUPS = Path("/sys/fs/cgroup")  # mount point of the cgroups
OWN_CGROUP = Path("/proc/self/cgroup")  # names the cgroup of this process
MANAGER = "ros2_control_node"  # file name of controller_manager's executable
WATCHED = 0.5  # time for which threads are observed [s]
USED_UP = 0.85  # share of a CPU's time in real-time threads that is reported; Linux stops 0.95
PROC = Path("/proc")


def this_machine() -> Machine:
    """Properties of this computer and permissions of this process."""
    return Machine(
        largest_priority=largest_priority(),
        may_lock_memory=may_lock_memory(),
        real_time_kernel=is_real_time_kernel(),
        cpu_quota=cpu_quota(),
        manager_priorities=priorities_of(MANAGER),
        transports=middleware.transports(),
        busy_cpus=busy_cpus(),
    )


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about the computer."""
    machine, settings = evidence.machine, evidence.settings
    priority, locks = settings.get("thread_priority"), settings.get("lock_memory")
    reports = evidence.diagnostics.get(evidence.controller, ())
    in_force = reports[-1].values.get(IN_FORCE) if reports else None
    if in_force is not None:
        has_priority, has_lock = "SCHED_FIFO" in in_force, "locked in memory" in in_force
        real_time_kernel = "without PREEMPT_RT" not in in_force
        why = (f"{evidence.controller} reports: {in_force}",) * 3
    else:
        has_priority, has_lock = machine.largest_priority >= priority, machine.may_lock_memory
        real_time_kernel = machine.real_time_kernel
        largest = f"here the largest priority is {machine.largest_priority}"
        why = largest, "here the memlock limit is not unlimited", "it is that of this computer"
    if priority > 0 and not has_priority:
        yield PRIORITY.found(f"thread_priority is {priority}; {why[0]}")
    if locks and not has_lock:
        yield MEMORY.found(f"lock_memory is true; {why[1]}")
    if not real_time_kernel:
        yield KERNEL.found(why[2])
    if machine.cpu_quota is not None:
        yield CPU_QUOTA.found(f"rnea_doctor's own cgroup may use {machine.cpu_quota:.3g} CPUs")
    for cpu in machine.busy_cpus:
        yield THROTTLING.found(
            f"CPU {cpu.number}: {cpu.share:.2f} of its time in {WATCHED:g} s, most of it thread "
            f"{cpu.busiest}"
        )
    for priorities in machine.manager_priorities if priority > 0 and has_priority else ():
        others = sorted(priorities)[:-1]  # without the update thread, which has its own parameter
        normal, high = others.count(0), sum(other >= priority - SPINNING for other in others)
        if normal:
            yield MANAGER_PRIORITY.found(f"{normal} of its threads have none")
        elif high:
            yield MANAGER_PRIORITY.found(f"{high} of its threads have up to {others[-1]}")
    if (dds := machine.transports) is not None:
        unreadable = dds.profile and dds.profile_text is None
        if unreadable:
            yield DDS_PROFILE_UNREADABLE.found(dds.profile)
        if dds.local_only:
            yield DDS_LOCAL_ONLY.found(f"{dds.local_only} in this shell")
        elif dds.shared_memory and not unreadable:
            yield DDS_PROFILE.found(f"{dds.shared_memory} in this shell")


def priorities_of(executable: str) -> tuple[tuple[int, ...], ...]:
    """Real-time priorities of the threads of each process that runs a program of this file name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        program = (_text(process / "cmdline") or "").partition("\0")[0]
        if program.rpartition("/")[2] == executable:
            priorities = []
            for thread in process.glob("task/*"):
                with suppress(ProcessLookupError):  # the thread has ended
                    priorities.append(os.sched_getparam(int(thread.name)).sched_priority)
            found.append(tuple(priorities))
    return tuple(found)


def busy_cpus(watched: float = WATCHED) -> tuple[BusyCpu, ...]:
    """CPUs that real-time threads use up, from an observation of `watched` [s]."""
    before, begin = real_time_threads(), time.monotonic()
    time.sleep(watched)
    after, passed = real_time_threads(), time.monotonic() - begin
    ran: dict[int, list[tuple[float, str]]] = {}
    for number, thread in after.items():
        if number in before:
            seconds = thread.ran - before[number].ran
            ran.setdefault(thread.cpu, []).append((seconds / passed, f"{thread.name} ({number})"))
    found = ((cpu, sum(share for share, _ in each), max(each)[1]) for cpu, each in ran.items())
    return tuple(BusyCpu(*each) for each in sorted(found) if each[1] > USED_UP)


class Thread(NamedTuple):
    """A thread, as /proc has it."""

    name: str
    cpu: int  # CPU on which the thread ran last
    ran: float  # CPU time [s]


def real_time_threads(proc: Path = PROC) -> dict[int, Thread]:
    """The threads of SCHED_FIFO and SCHED_RR, by their numbers."""
    found, tick = {}, 1.0 / os.sysconf("SC_CLK_TCK")
    for path in proc.glob("[0-9]*/task/[0-9]*/stat"):
        # The name may have spaces and parentheses; see proc_pid_stat(5) for what follows it.
        number, _, rest = (_text(path) or "").partition(" (")
        name, _, rest = rest.rpartition(") ")
        fields = rest.split()
        if len(fields) > _POLICY and int(fields[_POLICY]) in (os.SCHED_FIFO, os.SCHED_RR):
            ran = tick * (int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME]))
            found[int(number)] = Thread(name, int(fields[_CPU]), ran)
    return found


# Fields of /proc/PID/task/TID/stat, counted from the first one behind the name.
_USER_TIME = 11
_SYSTEM_TIME = 12
_CPU = 36
_POLICY = 38


def cpu_quota(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """Number of CPUs that the cgroup of this process and its parents may use; None without a bound.

    Args:
        own: file that names the cgroup, version 2.
        root: mount point of the cgroups.
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
