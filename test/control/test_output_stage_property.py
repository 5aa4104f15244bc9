"""Whatever happens to a controller: each torque that leaves it is finite, within the limits, and no
further from the one before than the rate limit allows.

`PROPERTY_CASES=10000 pytest test/control/test_output_stage_property.py` runs that many histories.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import output_histories
import pytest
from output_stage_mutants import MUTANTS

CASES = int(os.environ.get("PROPERTY_CASES", "300"))
BLOCKS = 20


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    """What all histories together have met: each stage must have been at work."""
    counter: Counter[str] = Counter()
    yield counter
    assert 0 < counter["refused trajectory"] < 0.7 * counter["follow"]
    for what in (
        "effort limit",
        "rate limit",
        "too fast",
        "push",
        "gave way",
        "tolerance violated",
        "blend",
        "refused state",
        "prediction",
        "no finite torque",
        "no finite prediction",
        *output_histories.EVENTS,
    ):
        assert counter[what] >= CASES // 50, what


@pytest.mark.parametrize("block", range(BLOCKS))
def test_each_torque_keeps_its_bounds(block: int, seen: Counter[str]) -> None:
    for seed in range(block * CASES // BLOCKS, (block + 1) * CASES // BLOCKS):
        seen.update(output_histories.run(seed))


@pytest.fixture(scope="module")
def noticed() -> dict[str, str]:
    """How each break of a stage is noticed."""
    run = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "output_stage_mutants.py")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.explores
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_stage_is_noticed(mutant: str, noticed: dict[str, str]) -> None:
    assert bool(noticed[mutant]) == (mutant != "nothing"), noticed[mutant]
