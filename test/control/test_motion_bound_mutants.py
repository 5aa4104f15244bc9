"""Each break of a bound of the motion, of the arrest or of the release makes a test fail.

`NUMBA_DISABLE_JIT=1 python test/motion_bound_mutants.py NAME` runs one of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from motion_bound_mutants import MUTANTS, mutated

SCRIPT = Path(__file__).parents[1] / "motion_bound_mutants.py"
LONGEST = 1500.0  # of all mutants [s]


@pytest.fixture(scope="module")
def noticed() -> dict[str, str]:
    """The first test that fails, by mutant."""
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.parametrize("mutant", [name for name in MUTANTS if name != "nothing"])
def test_mutant_still_changes_its_source(mutant: str) -> None:
    """What it replaces stands there once."""
    source = mutated(MUTANTS[mutant])
    compile(source, mutant, "exec")
    assert MUTANTS[mutant].new in source


@pytest.mark.explores
@pytest.mark.timeout(LONGEST)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_makes_a_test_fail(mutant: str, noticed: dict[str, str]) -> None:
    assert bool(noticed[mutant]) == (mutant != "nothing"), noticed[mutant]
    assert not noticed[mutant] or ".py::" in noticed[mutant]  # a test, and no other trouble
