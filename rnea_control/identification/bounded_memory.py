"""A bound on what reading a file may take: memory, and disk space for what is unpacked.

A hundred kilobytes of a compressed file unpack to gigabytes. What a file declares is compared with
the bound before it is read; what it really unpacks to is bounded by the operating system, whichever
library unpacks it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnea_control.exceptions import RecordingError

try:
    import resource
except ImportError:  # Windows has no limits of this kind
    resource = None  # type: ignore[assignment]

GIB = 1 << 30
# Most memory that one recording takes while it is read [bytes]; never more than half of it all.
MOST_MEMORY = 4 * GIB
# Largest file that a compressed one is unpacked to [bytes]; never more than half of what is free.
MOST_DISK = 16 * GIB


def most_memory() -> int:
    """Memory that one recording may take on this machine, [bytes]."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return MOST_MEMORY
    return min(MOST_MEMORY, memory // 2)


def most_disk() -> int:
    """Size of a file that a compressed one may be unpacked to on this machine, [bytes]."""
    return min(MOST_DISK, shutil.disk_usage(tempfile.gettempdir()).free // 2)


def too_large(path: Path, words: str, most: int) -> RecordingError:
    """The error for a file that unpacks to more than is read."""
    return RecordingError(
        f"{path} {words}; the bound is {most / GIB:.2g} GiB on this machine. Is it a recording of "
        "joint states? If it is, split it, or record their topic alone"
    )


@contextmanager
def bounded_memory(path: Path) -> Iterator[None]:
    """Bounds memory and new files of the whole process while it reads a file.

    Raises:
        RecordingError: the file needs more.
    """
    memory, disk = most_memory(), most_disk()
    before = _set_limits(memory, disk)
    try:
        yield
    except MemoryError as error:
        raise too_large(path, "takes more memory than a recording may", memory) from error
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise too_large(path, "unpacks to a larger file than a recording may", disk) from error
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)


def _set_limits(memory: int, disk: int) -> dict[int, tuple[int, int]]:
    """Allows so many bytes of memory more than now, and files of this size; the limits before."""
    statistics = Path("/proc/self/statm")
    if resource is None or not statistics.exists():
        return {}
    used = int(statistics.read_text().split()[0]) * resource.getpagesize()
    before = {}
    for kind, most in ((resource.RLIMIT_AS, used + memory), (resource.RLIMIT_FSIZE, disk)):
        soft, hard = before[kind] = resource.getrlimit(kind)
        finite = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min(most, *finite) if finite else most, hard))
    return before
