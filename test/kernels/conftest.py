"""Fixtures around the small kernel of tiny_kernel.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_kernel import SOURCES, Start, begin, cached, result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the sources of a small kernel, which gives 3 times the first of an array."""
    made = tmp_path / "tiny"
    made.mkdir()
    for name, text in SOURCES.items():
        (made / name).write_text(text)
    return made


@pytest.fixture
def start(folder: Path) -> Start:
    """Runs `begin` to its end; the result has the files that the folder's cache then holds."""

    def run(prelude: str = "", **more: Any) -> dict[str, Any]:
        told = result(begin(folder, prelude, **more))
        return {**told, "files": cached(folder / "__pycache__")}

    return run
