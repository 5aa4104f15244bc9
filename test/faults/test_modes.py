"""The suite's core where the package takes its other way: where machine code may not answer the
states, and where kernels do not read arrays themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NODE = [f"test/node/test_{name}.py" for name in ("lockstep", "trajectories", "operation")]
# By the variable that asks for the other way.
CORES = {
    "PYTHON_TICKS": (*NODE, "test/sentinel/test_sentinel.py"),
    "RNEA_CONTROL_NUMBA_DISPATCH": (
        *("test/jit/test_kernel.py", "test/spatial/test_sincos.py"),
        "test/dynamics/test_arguments.py",
        "test/dynamics/test_every_robot.py::test_mechanism_agrees_with_pinocchio",
        "test/dynamics/test_closed_forms.py::test_planar_arm",
        # Not the test that a call makes no object at all: that is true of the fast way only. Here
        # NumPy hands out an array's flags as an object, which lives for an instant.
        "test/test_allocation.py::test_a_kernel_that_allocates_does_not_compile",
        "test/test_allocation.py::test_whole_tick_of_the_loop_holds_nothing",
    ),
}


@pytest.mark.explores
@pytest.mark.timeout(900.0)  # it shares the machine with the other worker's mutants
@pytest.mark.parametrize("variable", CORES)
def test_core_of_the_suite_passes(variable: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not explores", *CORES[variable]],
        cwd=Path(__file__).parents[2],
        env={**os.environ, variable: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert variable == "PYTHON_TICKS" or f"{variable} is set" in done.stdout
