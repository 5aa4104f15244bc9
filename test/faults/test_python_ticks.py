"""Where machine code may not answer the states, Python does: the suite's core in that mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NODE = [f"test/node/test_{name}.py" for name in ("lockstep", "trajectories", "operation")]
CORE = (*NODE, "test/sentinel/test_sentinel.py")
# What tells publishers from each other goes by their GID, which rclpy does not hand on.
BY_PUBLISHER = (
    "test/node/test_operation.py::test_each_button_is_released_by_itself",
    "test/sentinel/test_sentinel.py::test_node_that_knows_no_hand_over_is_left_alone_and_named",
)


@pytest.mark.explores
def test_core_of_the_suite_passes_with_ticks_in_python() -> None:
    without = (word for test in BY_PUBLISHER for word in ("--deselect", test))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not explores", *without, *CORE],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHON_TICKS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
