"""Compiles the kernels that a process lacks on all cores at once, before it needs them.

Kernels are compiled when the module that has them is imported: one after the other, for half
a minute where none is on disk. `compiled_side_by_side` has a process of its own do that at the
first one that is missing: it imports the modules without compiling anything, and lets as many
workers as there are cores compile what was collected, the largest first. The kernels come from disk
then. Whatever goes wrong with it, they are compiled as they are imported. What was done when it is
interrupted is kept.
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
from rnea_control.kernels import compilation
from rnea_control.kernels.disk_cache import NotOurs, at_first_miss, directories, prepare

# How often it is told how far it has come, [s].
REPORT_PERIOD = 1.0
# How long another process that compiles is waited for, [s].
LONGEST_TURN = 120.0
# Readable by its owner only.
LOCK = "compiling.private.lock"


@contextmanager
def compiled_side_by_side(*modules: str, tell: Callable[[str], None]) -> Iterator[None]:
    """In this context, the first kernel that is not on disk has all those of some modules compiled.

    Args:
        modules: their names.
        tell: is told how far it has come, once a second; what it raises ends the compilation.
    """
    at_first_miss.append(lambda: _run(modules, tell))
    try:
        yield
    finally:
        at_first_miss.clear()


def _run(modules: tuple[str, ...], tell: Callable[[str], None]) -> None:
    try:
        # In a session of its own: a Ctrl-C is for the process that waits to answer.
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
    """Compiles what is missing, and prints how far it has come."""
    lock = _lock()
    if lock is None:  # nothing can be kept either
        return 0
    with _turn(lock), suppress(BrokenPipeError):  # nobody waits for it any more
        compilation.collected = []
        for name in modules:
            importlib.import_module(name)
        compilation.collected.sort(key=lambda each: -_size(each[0], set()))
        began, done, total = time.monotonic(), 0, len(compilation.collected)
        gc.disable()  # what a compilation makes is kept to its end
        # Forked, as the functions are here already; there are no other threads yet.
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
    """Of the bytecode of a function and of the compiled ones that it reaches."""
    seen.add(function)
    size = len(function.__code__.co_code)
    for name in function.__code__.co_names:
        called = getattr(function.__globals__.get(name), "py_func", None)
        if called is not None and called not in seen:
            size += _size(called, seen)
    return size


@contextmanager
def _turn(lock: BinaryIO) -> Iterator[None]:
    """Waits until no other process compiles: what that leaves on disk is not compiled again."""
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
    """A file in the folder where kernels are kept; None if there is none. Only this user can open
    it: whoever may read a file may lock it, and hold up the start of everybody else."""
    for folder in directories(__file__):
        with suppress(NotOurs, OSError):
            prepare(folder)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            lock = os.fdopen(os.open(folder / LOCK, flags, 0o600), "ab")
            os.fchmod(lock.fileno(), 0o600)
            return lock
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
