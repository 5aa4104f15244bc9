"""`new_folder`: a folder of results that appears complete or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from rnea_control.exceptions import IdentificationError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Temporary folder that is renamed to `path` at the end, or removed after an error.

    Raises:
        IdentificationError: `path` exists, or cannot be written.
    """
    temporary = path.with_name(f".{path.name}_{uuid4().hex}")
    try:
        if os.path.lexists(path):
            raise FileExistsError("it exists, and is not overwritten")
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(path)
    except OSError as error:
        raise IdentificationError(
            f"{path} cannot be written: {error.strerror or error}. Name a new folder by --output"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
