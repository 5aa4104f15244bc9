"""Breaks one thing after the other, and holds what comes of it against its bound.

A selection by default; all rows with FAULTS=all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from faults import ROWS
from rows import Row, run_row

CHOSEN = [
    pytest.param(row, marks=() if row.lane == "quick" else pytest.mark.explores, id=row.key)
    for row in ROWS
    if row.lane != "all" or os.environ.get("FAULTS") == "all"
]


@pytest.mark.parametrize("row", CHOSEN)
def test_bound_is_kept(row: Row) -> None:
    if row.missing:
        pytest.skip(f"{row.missing} is not installed")
    outcome = run_row(row)
    if outcome.void:
        pytest.skip(f"the machine was too busy: {outcome.broken}")
    assert not outcome.broken, outcome


def test_every_fault_is_in_the_table_of_the_faults_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    assert not [row.key for row in ROWS if f"| {row.title} |" not in page], "test/faults/table.py"
