"""Breaks one thing after the other, and holds what comes of it against its bound.

A selection by default; all rows with FAULTS=all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bench import DOMAIN
from faults import ROWS
from rows import Row, run_row

CHOSEN = [row for row in ROWS if row.quick or os.environ.get("FAULTS") == "all"]


@pytest.mark.parametrize("row", CHOSEN, ids=lambda row: row.key)
def test_bound_is_kept(row: Row) -> None:
    if row.missing:
        pytest.skip(f"{row.missing} is not installed")
    outcome = run_row(row, DOMAIN)
    if outcome.void:
        pytest.skip(f"the machine was too busy: {outcome.broken}")
    assert not outcome.broken, outcome
