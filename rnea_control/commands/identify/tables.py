"""The tables that the commands print: of joints or parameters, a row each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text


def table_of(title: str, headings: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table of names, numbers and, in columns without a heading, units or words."""
    table = Table(title=title, box=SIMPLE_HEAD)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k and heading else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
