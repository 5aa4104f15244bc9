"""Fixtures around the small kernel of tiny_kernel.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_kernel import SOURCES, cached, result, starts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the sources of a small kernel, which gives 3 times the first of an array."""
    made = tmp_path / "tiny"
    made.mkdir()
    for name, text in SOURCES.items():
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="session")
def begin() -> Iterator[Callable[..., int]]:
    with starts() as begin:
        yield begin


@pytest.fixture
def start(begin: Callable[..., int], folder: Path) -> Callable[..., dict[str, Any]]:
    """Runs `begin` to its end; the result has the files that the folder's cache then holds."""

    def run(prelude: str = "", **more: Any) -> dict[str, Any]:
        told = result(begin(folder, prelude, **more))
        assert "failure" not in told, told["failure"]
        return {**told, "files": cached(folder / "__pycache__")}

    return run
