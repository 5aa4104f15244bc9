"""Code for `dds.Process` that spoils a process's surroundings before it starts, and functions that
spoil them while it runs."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

# The log file is on a file system of one page, in a mount namespace of its own where the system
# allows that; the console is a device that is always full.
DISK_FULL = """
import ctypes, os, sys
def small_file_system(folder):
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    NEW_NAMESPACES, RECURSIVELY_PRIVATE = 0x10020000, 0x44000
    if libc.unshare(NEW_NAMESPACES) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"),
                       ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    libc.mount(None, b"/", None, RECURSIVELY_PRIVATE, None)
    return libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, b"size=4096") == 0
os.makedirs(FOLDER)
allowed = small_file_system(FOLDER)
print("small file system:", allowed, flush=True)
os.environ["HOME"] = os.environ["ROS_HOME"] = os.environ["ROS_LOG_DIR"] = FOLDER
if allowed:
    with open(FOLDER + "/full", "wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
for stream in (1, 2):
    os.dup2(os.open("/dev/full", os.O_WRONLY), stream)
"""

# Its output goes to a pipe that is full, and that nobody reads.
LOG_BLOCKED = """
import os
_source, _pipe = os.pipe()
os.set_blocking(_pipe, False)
while True:
    try:
        os.write(_pipe, bytes(4096))
    except BlockingIOError:
        break
os.set_blocking(_pipe, True)
for stream in (1, 2):
    os.dup2(_pipe, stream)
"""


def disk_full(folder: str) -> str:
    """`DISK_FULL` with the file system at `folder`, which is made."""
    return f"FOLDER = {folder!r}\n{DISK_FULL}"


@contextmanager
def no_free_descriptor(process: int) -> Iterator[None]:
    """Meanwhile the process can open nothing more; what it has open stays."""
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (8, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_NOFILE, before)
