"""A folder that is there with all its files, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rnea_control.exceptions import IdentificationError


def check_new(path: Path) -> None:
    """Raises IdentificationError if a folder cannot be made there."""
    try:
        is_there = bool(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
    except OSError as error:
        raise IdentificationError(
            f"{path} cannot be made: {error.strerror}. Name another folder by --output"
        ) from error
    if is_there:
        raise IdentificationError(
            f"{path} is there already; nothing is overwritten. Name a new folder by --output"
        )
    nearest = next(each for each in path.absolute().parents if os.path.lexists(each))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        what = "cannot be written" if nearest.is_dir() else "is no folder"
        raise IdentificationError(
            f"{path} cannot be made: {nearest} {what}. Name another folder by --output"
        )


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, which gets its name at the end, or is removed if that fails.

    Raises:
        IdentificationError: it cannot be written.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".rnea_identify_", dir=path.parent))
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        check_new(path)
        temporary.rename(path)
    except OSError as error:
        raise IdentificationError(
            f"{path} cannot be written: {error.strerror or error}. Name another folder by --output"
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
