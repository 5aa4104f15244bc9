"""Where machine code may not answer the states, Python does: the suite's core in that mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NODE = [f"test/node/test_{name}.py" for name in ("lockstep", "trajectories", "operation")]
CORE = (*NODE, "test/sentinel/test_sentinel.py")


@pytest.mark.explores
def test_core_of_the_suite_passes_with_ticks_in_python() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not explores", *CORE],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHON_TICKS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
