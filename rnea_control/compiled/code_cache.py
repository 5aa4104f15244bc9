"""Object files on disk, named by all that they were made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rnea_control.kernels.disk_cache import directories, read_sealed, write_sealed

# So many are kept; then those that were made first go.
MOST_FILES = 500


def cached(source: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns, from disk if it was made before.

    Args:
        source: all that it depends on: code, processor and versions.
        make: called if it is not on disk, or damaged there.
    """
    file = f"robot.{hashlib.sha256(source.encode()).hexdigest()}.o"
    folders = directories(__file__)
    for _, code in read_sealed(folders, file):
        return code
    code = make()
    folder = write_sealed(folders, file, code)
    if folder is not None:
        for path in sorted(folder.glob("robot.*.o"), key=_made_at)[:-MOST_FILES]:
            path.unlink(missing_ok=True)
    return code


def _made_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0
