"""Real-time set-up of the process: scheduling and memory.

The controller runs without it too: each part that the system denies is reported and left out.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from rnea_control.array_types import IntArray
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import c_address, call_c
from rnea_control.parameters.settings import Settings, row

# Lock present and future pages, each when it is first used: otherwise every thread's whole stack
# would become resident.
_MCL_CURRENT = 1  # present pages
_MCL_FUTURE = 2  # future pages
_MCL_ONFAULT = 4  # when first used
_CAP_IPC_LOCK = 14  # capability to lock memory
_CAP_SYS_NICE = 23  # capability to raise priorities
# Priorities of other threads, below the loop's.
#
# The middleware's threads deliver its messages. Its threads that send messages again spin while
# another thread holds what they need: at the holder's priority, on every CPU, they would keep the
# holder from ever running, and the machine would stand still.
#
# No usual tick waits for Python threads; but hand-overs do. Python threads take locks of the
# middleware, which lend no priority: they must not wait for other programs. Niceness is not enough:
# it counts within a session only (autogroup).
MIDDLEWARE = 1  # threads of the middleware
SPINNING = 2  # threads of the middleware that may spin
PYTHON = 10  # threads that run Python
_SPINNING_THREADS = "dds.asyn"
# Where real-time threads use a CPU up, Linux takes 50 ms of each second there from all of them, the
# loop too, for usual programs. So a Python thread that works for more than `MOST_WORK` of the
# watched time gives way to usual programs for `REST` after every `WORK`. The rest is short, as the
# thread may hold a lock that the loop waits for, and runs in machine code, as the thread may hold
# the interpreter's lock.
MOST_WORK = 0.5  # fraction of the watched time
WATCHED = 0.25  # shortest time over which work is measured [s]
WORK = 0.005  # time between two rests [s]
REST = 0.005  # duration of a rest [s]
# Entries of the array of `_give_way`: addresses of functions and of their arguments.
_SCHEDULE = 0  # sched_setscheduler
_SLEEP = 1  # nanosleep
_TIME = 2  # duration of a rest, a timespec
_USUAL = 3  # sched_param during a rest
_RAISED = 4  # sched_param after a rest
# Scheduling policies of `_give_way`: during a rest, and after it.
_RESTING, _WORKING = (os.SCHED_RESET_ON_FORK | each for each in (os.SCHED_OTHER, os.SCHED_FIFO))
# While a process holds this file open, CPUs enter no sleep state that takes longer to leave.
CPU_LATENCY = Path("/dev/cpu_dma_latency")
_REALTIME_KERNEL = Path("/sys/kernel/realtime")


@dataclass(frozen=True)
class RealTimeSettings(Settings):
    """The real-time set-up that the user asks for.

    Attributes:
        thread_priority: SCHED_FIFO priority of the control loop's thread; 0 changes nothing.
        cpu_affinity: the CPUs that the control loop's thread may use; empty for all.
        lock_memory: whether all memory stays in RAM.
        cpu_dma_latency: how long CPUs may take to wake up, [us]; negative changes nothing.
    """

    thread_priority: int = row("thread_priority", 0)
    cpu_affinity: Sequence[int] = row("cpu_affinity", ())
    lock_memory: bool = row("lock_memory", False)
    cpu_dma_latency: int = row("cpu_dma_latency", -1)


class RealTime:
    """Applies settings once, and restores what was before.

    Attributes:
        in_force: the parts that are in force, in words, by what they are about.
        denied: the parts that the system denied, in words, and why.
    """

    def __init__(self, settings: RealTimeSettings) -> None:
        self.settings = settings
        self.in_force: dict[str, str] = {}
        self.denied: dict[str, str] = {}
        self._takes_priority = False
        self._raised: set[int] = set()
        self._loops: set[int] = set()  # threads that never give way
        self._left = threading.Event()
        self._undo = ExitStack()

    def enter_process(self) -> None:
        """Applies everything but what belongs to the control loop's thread alone.

        All other threads get a priority below that of the loop's; see `MIDDLEWARE`. Threads that
        start later have none until `housekeeping`.
        """
        if self.settings.thread_priority > 0:
            self._raise_priorities(self.settings.thread_priority)
        if self.settings.lock_memory:
            self._lock_memory()
        if self.settings.cpu_dma_latency >= 0:
            self._keep_awake(self.settings.cpu_dma_latency)

    def enter_thread(self) -> None:
        """Applies priority and affinity to the calling thread, which is the control loop's, and
        ends before the process leaves."""
        thread = threading.get_native_id()
        if self._takes_priority:
            self._loops.add(thread)
            _schedule(thread, os.SCHED_FIFO, self.settings.thread_priority)
        if self.settings.cpu_affinity:
            self._bind(thread, self.settings.cpu_affinity)

    def housekeeping(self) -> None:
        """Gives new threads their priority; to be called beside the ticks, once a second."""
        if self._takes_priority:
            self._raise_others()

    def leave(self) -> None:
        """Restores everything; not to be called by the control loop's thread."""
        self._undo.close()

    def _raise_priorities(self, priority: int) -> None:
        thread = threading.get_native_id()
        try:
            policy, before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
            _schedule(thread, os.SCHED_FIFO, priority)  # raises if the limit is lower
            self._raise_others()
        except OSError as error:
            self.denied["priority"] = f"SCHED_FIFO ({error.strerror}; needs an rtprio limit)"
            return
        self._takes_priority = True
        watch = threading.Thread(target=self._watch, name="real time", daemon=True)
        self._undo.callback(_restore_priorities, policy & ~os.SCHED_RESET_ON_FORK, before)
        watch.start()
        self._undo.callback(watch.join)
        self._undo.callback(self._left.set)
        self.in_force["priority"] = f"SCHED_FIFO priority {priority}"

    def _watch(self) -> None:
        """Has threads of Python give way that use a CPU up; see `MOST_WORK`."""
        own = threading.get_native_id()
        self._loops.add(own)
        _schedule(own, os.SCHED_FIFO, max(self.settings.thread_priority - MIDDLEWARE, 1))
        priority = max(self.settings.thread_priority - PYTHON, 1)
        libc = ctypes.CDLL(None)
        given = np.array([0, round(1e9 * REST), 0, priority])  # a timespec, and two sched_param
        functions = c_address(libc.sched_setscheduler), c_address(libc.nanosleep)
        calls = np.array([*functions, *(given.ctypes.data + 8 * np.array([0, 2, 3]))])
        used: dict[int, float] = {}
        busy: list[int] = []
        looked_at = time.monotonic()
        while not self._left.wait(WORK if busy else WATCHED):
            if busy:
                _give_way(calls, np.array(busy))
            watched = time.monotonic() - looked_at
            if watched >= WATCHED:
                ids = {each.native_id or own for each in threading.enumerate()} - self._loops
                before, used = used, {thread: _cpu_time(thread) for thread in ids}
                most, looked_at = MOST_WORK * watched, looked_at + watched
                busy = [each for each in ids if used[each] - before.get(each, used[each]) > most]

    def _raise_others(self) -> None:
        """Raises the threads that were not here before."""
        present = set(_threads())
        python = {thread.native_id for thread in threading.enumerate()}
        for thread in present - self._raised - self._loops:
            spins = _name(thread).startswith(_SPINNING_THREADS)
            less = SPINNING if spins else PYTHON if thread in python else MIDDLEWARE
            priority = self.settings.thread_priority - less
            if priority > 0 or not spins:
                _schedule(thread, os.SCHED_FIFO, max(priority, 1))
        self._raised = present

    def _bind(self, thread: int, cpus: tuple[int, ...]) -> None:
        try:
            os.sched_setaffinity(thread, cpus)
        except OSError as error:
            self.denied["CPUs"] = f"{_cpus(cpus)} ({error.strerror}; there are {os.cpu_count()})"
            return
        granted = os.sched_getaffinity(thread)
        self.in_force["CPUs"] = _cpus(granted)
        if refused := set(cpus) - granted:
            self.denied["CPUs"] = f"{_cpus(refused)} (there are {os.cpu_count()})"

    def _lock_memory(self) -> None:
        # With a limit, allocations fail once it is reached.
        if not may_lock_memory():
            limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
            self.denied["lock"] = f"memory lock (the memlock limit is {limit} bytes, not unlimited)"
            return
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT) != 0:
            self.denied["lock"] = f"memory lock ({os.strerror(ctypes.get_errno())})"
            return
        self._undo.callback(libc.munlockall)
        self.in_force["lock"] = f"{int(_status('VmRSS')) // 1024} MB locked in memory"

    def _keep_awake(self, latency: int) -> None:
        try:
            device = CPU_LATENCY.open("wb", buffering=0)
            self._undo.callback(device.close)
            device.write(struct.pack("=i", latency))
        except OSError as error:
            self.denied["latency"] = f"CPU latency ({error.strerror}; needs to write {CPU_LATENCY})"
            return
        self.in_force["latency"] = f"CPUs awake within {latency} us"

    def __str__(self) -> str:
        kernel = "with" if is_real_time_kernel() else "without"
        in_force = ", ".join(self.in_force.values()) or "nothing in force"
        return f"{in_force}; kernel {kernel} PREEMPT_RT"


@cache
def is_real_time_kernel() -> bool:
    """True if the kernel has PREEMPT_RT."""
    return _REALTIME_KERNEL.exists() and _REALTIME_KERNEL.read_text().strip() == "1"


def may_lock_memory() -> bool:
    """True if the process may lock all of its memory: by its memlock limit, or CAP_IPC_LOCK."""
    return _limit(resource.RLIMIT_MEMLOCK, _CAP_IPC_LOCK) == resource.RLIM_INFINITY


def largest_priority() -> int:
    """The highest SCHED_FIFO priority that the process may take; 0 for none."""
    limit = _limit(resource.RLIMIT_RTPRIO, _CAP_SYS_NICE)
    highest = os.sched_get_priority_max(os.SCHED_FIFO)
    return highest if limit == resource.RLIM_INFINITY else limit


def _limit(of: int, capability: int) -> int:
    """The soft limit of a resource; RLIM_INFINITY with the capability that overrides it."""
    overridden = int(_status("CapEff"), 16) >> capability & 1
    return resource.RLIM_INFINITY if overridden else resource.getrlimit(of)[0]


def _threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]


def _name(thread: int) -> str:
    """A thread's name; empty if it has ended meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/self/task/{thread}/comm").read_text()
    return ""


def _cpu_time(thread: int) -> float:
    """How much a thread has run so far, [s]; 0 if it has ended meanwhile."""
    with suppress(OSError):
        return time.clock_gettime(~thread << 3 | 6)  # the kernel's number for the clock of a thread
    return 0.0


def _cpus(numbers: Iterable[int]) -> str:
    return f"CPU {', '.join(map(str, sorted(numbers)))}"


def _restore_priorities(policy: int, priority: int) -> None:
    for thread in _threads():
        _schedule(thread, policy, priority)


@kernel("void(i8[::1], i8[::1])", nogil=True)
def _give_way(calls: IntArray, threads: IntArray) -> None:
    """Has threads rest, and work at their priority again."""
    for i in range(threads.shape[0]):
        call_c(calls[_SCHEDULE], (threads[i], _RESTING, calls[_USUAL]))
    call_c(calls[_SLEEP], (calls[_TIME], 0))
    for i in range(threads.shape[0]):
        call_c(calls[_SCHEDULE], (threads[i], _WORKING, calls[_RAISED]))


def _schedule(thread: int, policy: int, priority: int) -> None:
    """Sets the scheduling of a thread; threads and processes that it starts inherit no real-time
    priority."""
    flag = 0 if policy == os.SCHED_OTHER else os.SCHED_RESET_ON_FORK
    with suppress(ProcessLookupError):  # it has ended meanwhile
        try:
            os.sched_setscheduler(thread, policy | flag, os.sched_param(priority))
        except PermissionError:  # without CAP_SYS_NICE the flag stays
            os.sched_setscheduler(thread, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def _status(field: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{field}:"))
