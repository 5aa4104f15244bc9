"""The examples run as they stand, and are short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120.0)
    assert done.stdout
    assert not done.stderr
    assert "nan" not in done.stdout
