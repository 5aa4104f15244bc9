"""Bounds on the memory for reading a file, and on the disk space for unpacking it.

A hundred kilobytes of a compressed file can unpack to gigabytes. The declared size of a file is
compared with the bound before the file is read. The actual size is bounded by the operating system,
whichever library unpacks the file.
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
# Upper bounds; half of the machine's memory and half of the free disk space bound them too.
MOST_MEMORY = 4 * GIB  # memory for reading a recording [bytes]
MOST_DISK = 16 * GIB  # size of an unpacked file [bytes]


def most_memory() -> int:
    """Memory for reading a recording on this machine, [bytes]."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return MOST_MEMORY
    return min(MOST_MEMORY, memory // 2)


def most_disk() -> int:
    """Largest size of an unpacked file on this machine, [bytes]."""
    return min(MOST_DISK, shutil.disk_usage(tempfile.gettempdir()).free // 2)


def too_large(path: Path, words: str, most: int) -> RecordingError:
    """Error for a file that unpacks to more than the bound."""
    return RecordingError(
        f"{path} {words}; the bound is {most / GIB:.2g} GiB on this machine. Is it a recording of "
        "joint states? If it is, split it, or record their topic alone"
    )


@contextmanager
def bounded_memory(path: Path) -> Iterator[None]:
    """Context that bounds memory and new files of the whole process while it reads a file.

    Raises:
        RecordingError: the file exceeds the bounds.
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
    """Limits additional memory and the size of files, [bytes]; returns the previous limits."""
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
