"""Each break of a bound of the motion, of the arrest, of the release, or of the check of the wires
makes a test fail.

`NUMBA_DISABLE_JIT=1 python test/motion_bound_mutants.py NAME` runs one of them, and
`python test/wiring_mutants.py NAME` one of the check's. Those of the laws of task space and of a
planner's gains take longer than all other tests: `task_space_mutants.py` runs them by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import motion_bound_mutants
import pytest
import task_space_mutants
import wiring_mutants
from mutants import mutated

# Scripts, and what their processes need besides.
UNCOMPILED = {"NUMBA_DISABLE_JIT": "1"}
SCRIPTS = {motion_bound_mutants: UNCOMPILED, wiring_mutants: {}}
MUTANTS = [(script, name) for script in SCRIPTS for name in script.MUTANTS]
BY_HAND = [(task_space_mutants, name) for name in task_space_mutants.MUTANTS]
LONGEST = 2400.0  # of all mutants of a script [s]


def each_of(mutants: list[tuple[object, str]]) -> pytest.MarkDecorator:
    """Runs a test with each of these mutants."""
    name = lambda each: getattr(each, "__name__", each)  # noqa: E731
    return pytest.mark.parametrize(("script", "mutant"), mutants, ids=name)


@pytest.fixture(scope="module")
def noticed() -> dict[tuple[object, str], str]:
    """The first test that fails, by script and mutant."""
    found = {}
    for script, variables in SCRIPTS.items():
        run = subprocess.run(
            [sys.executable, str(script.__file__)],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        for name, first in map(json.loads, run.stdout.splitlines()):
            found[script, name] = first
    return found


@each_of([*MUTANTS, *BY_HAND])
def test_mutant_still_changes_its_source(script, mutant: str) -> None:
    """What it replaces stands there once."""
    change = script.MUTANTS[mutant]
    compile(mutated(change), mutant, "exec")
    assert change.new in mutated(change)


@pytest.mark.explores
@pytest.mark.timeout(2.0 * LONGEST)
@each_of(MUTANTS)
def test_mutant_makes_a_test_fail(script, mutant: str, noticed) -> None:
    first = noticed[script, mutant]
    assert bool(first) == (mutant != "nothing"), first
    assert not first or ".py::" in first  # a test, and no other trouble
