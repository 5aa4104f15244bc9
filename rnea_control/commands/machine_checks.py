"""This computer: what it allows, the middleware's environment, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rnea_control.commands.evidence import Evidence, Machine
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
    "the control loop has, or would have, no real-time priority: others delay it by milliseconds",
    "Give the user an rtprio limit of 98, or the container --cap-add=SYS_NICE (docs/realtime.md)")
MEMORY = warning("memory-lock",
    "the controller's memory is not, or could not be, locked: a tick may wait for a page",
    "Give the user `memlock unlimited`, or the container --ulimit memlock=-1 (docs/realtime.md)")
KERNEL = note("kernel",
    "the kernel has no PREEMPT_RT",
    "Use a real-time kernel for 1 kHz on a busy computer (docs/realtime.md)")
CPU_QUOTA = warning("cpu-quota",
    "the cgroup has a CPU quota: it stops real-time threads too, for many milliseconds",
    "Start the container without --cpus and --cpu-quota; use --cpuset-cpus")
MANAGER_PRIORITY = warning("manager-priority",
    f"controller_manager's executor and {middleware.NAME} threads carry the commands: at normal "
    "priority other programs delay them, at the controller's they keep its loop from running",
    "Start it with the prefix `chrt -r 45` (docs/realtime.md)")
DDS_PROFILE = warning("dds-profile",
    middleware.SHARES_MEMORY, middleware.SET_PROFILE)
DDS_PROFILE_UNREADABLE = warning("dds-profile-unreadable",
    f"the environment names a {middleware.NAME} profile that cannot be read; {middleware.NAME} "
    "goes on without",
    "Correct the path")
DDS_LOCAL_ONLY = warning("dds-local-only",
    middleware.LOCAL_ONLY_SHARES, middleware.SET_LOCAL_PROFILE)
# fmt: on

# What the controller's report says of what is in force.
IN_FORCE = "real time"

CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
MANAGER = "ros2_control_node"


def this_machine() -> Machine:
    """This computer as this process finds it."""
    return Machine(
        largest_priority=largest_priority(),
        may_lock_memory=may_lock_memory(),
        real_time_kernel=is_real_time_kernel(),
        cpu_quota=cpu_quota(),
        manager_priorities=priorities_of(MANAGER),
        transports=middleware.transports(),
    )


def check(evidence: Evidence) -> Iterator[Finding]:
    """What is wrong with the computer."""
    machine, settings = evidence.machine, evidence.settings
    priority, locks = settings.get("thread_priority"), settings.get("lock_memory")
    reports = evidence.diagnostics.get(evidence.controller, ())
    in_force = reports[-1].values.get(IN_FORCE) if reports else None
    if in_force is not None:
        has_priority, has_lock = "SCHED_FIFO" in in_force, "locked in memory" in in_force
        real_time_kernel = "without PREEMPT_RT" not in in_force
        why = (f"{evidence.controller} says: {in_force}",) * 3
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
    for priorities in machine.manager_priorities if priority > 0 and has_priority else ():
        others = sorted(priorities)[:-1]  # but for the update thread, whose priority is a parameter
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
    """For each process that runs a program of this file name the real-time priorities of its
    threads."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        program = (_text(process / "cmdline") or "").partition("\0")[0]
        if program.rpartition("/")[2] == executable:
            priorities = []
            for thread in process.glob("task/*"):
                with suppress(ProcessLookupError):  # it has ended
                    priorities.append(os.sched_getparam(int(thread.name)).sched_priority)
            found.append(tuple(priorities))
    return tuple(found)


def cpu_quota(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """How many CPUs this process's cgroup may use, and those that it is in; None without a bound.
    `own` names the cgroup, of version 2; `root` is where cgroups are mounted."""
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
