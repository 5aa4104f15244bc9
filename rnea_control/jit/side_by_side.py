"""Compiles missing kernels on all cores at once, before a process needs them.

Kernels are compiled when their module is imported: one after the other, for half a minute if none
is on disk. `compiled_side_by_side` starts a separate process at the first missing kernel. This
process imports the modules without compiling, and compiles the collected kernels in one worker for
each core, the largest first. The importing process then loads the kernels from disk. If the
separate process fails, kernels are compiled at their import; finished kernels stay on disk.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, BinaryIO

from rnea_control.child_process import command
from rnea_control.jit import compilation
from rnea_control.jit.disk_cache import (
    NotOurs,
    at_first_miss,
    check_regular,
    directories,
    prepare,
)

REPORT_PERIOD = 1.0  # period of progress reports [s]
LONGEST_TURN = 120.0  # longest wait for another process that compiles [s]
LOCK = "compiling.private.lock"  # readable by its owner only


@contextmanager
def compiled_side_by_side(*modules: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Context in which the first kernel that is not on disk starts the compilation of all kernels
    of `modules`.

    Args:
        modules: names of the modules.
        tell: called with a progress report once a second; an exception from it ends the
            compilation.
    """
    at_first_miss.append(lambda: _run(modules, tell))
    try:
        yield
    finally:
        at_first_miss.clear()


def _run(modules: tuple[str, ...], tell: Callable[[str], None]) -> None:
    try:
        # In its own session: a Ctrl-C goes only to the waiting process, which ends it.
        process = subprocess.Popen(
            command(__name__, *modules),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        tell(f"one kernel after the other, as no process could be started: {error}")
        return
    with process:
        try:
            for line in process.stdout or ():
                tell(line.strip())
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise


def main(modules: list[str]) -> int:
    """Compiles missing kernels, and prints progress reports."""
    lock = _lock()
    if lock is None:  # no kernel can be kept either
        return 0
    with _turn(lock), suppress(BrokenPipeError):  # the waiting process has ended
        compilation.collected = []
        for name in modules:
            importlib.import_module(name)
        compilation.collected.sort(key=lambda each: -_size(each[0], set()))
        began, done, total = time.monotonic(), 0, len(compilation.collected)
        gc.disable()  # results of compilations are kept to the end
        # Forked, as the functions are in memory already; there are no other threads yet.
        with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
            finished = pool.imap_unordered(_compile, range(total))
            told = -math.inf
            while done < total:
                seconds = time.monotonic() - began
                if seconds - told >= REPORT_PERIOD:
                    print(f"{done} of {total} kernels in {seconds:.0f} s", flush=True)
                    told = seconds
                with suppress(multiprocessing.TimeoutError):
                    finished.next(REPORT_PERIOD)
                    done += 1
    return 0


def _compile(index: int) -> None:
    compilation.compiled(*(compilation.collected or ())[index])


def _size(function: FunctionType, seen: set[Any]) -> int:
    """Size of the bytecode of a function and of the compiled functions that it reaches."""
    seen.add(function)
    size = len(function.__code__.co_code)
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None and called not in seen:
            size += _size(called, seen)
    return size


@contextmanager
def _turn(lock: BinaryIO) -> Iterator[None]:
    """Waits until no other process compiles: its kernels on disk are not compiled again."""
    with lock:
        deadline = time.monotonic() + LONGEST_TURN
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                print("another process compiles them", flush=True)
                time.sleep(REPORT_PERIOD)
        yield


def _lock() -> BinaryIO | None:
    """Lock file in the folder of the kernels; None without a folder. Only this user can open it: a
    user with read permission could lock it, and delay the start of all other processes."""
    for folder in directories(__file__):
        with suppress(NotOurs, OSError):
            prepare(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            lock = os.fdopen(os.open(folder / LOCK, flags, 0o600), "ab")
            check_regular(lock.fileno())
            os.fchmod(lock.fileno(), 0o600)
            return lock
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
