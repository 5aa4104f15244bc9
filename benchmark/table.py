"""A table that prints itself, and turns into Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable


@dataclass
class Table:
    """Rows of texts below column names; `notes` stand below."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def show(self) -> None:
        """Prints the table."""
        table = RichTable(title=self.title)
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left")
        for row in self.rows:
            table.add_row(*row)
        console = Console()
        console.print(table)
        for note in self.notes:
            console.print(note)

    def markdown(self) -> str:
        """The table for the documentation."""
        lines = [f"## {self.title}", ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("| --- |" + " ---: |" * (len(self.columns) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])


def show(tables: Iterable[Table]) -> None:
    """Prints tables, each as soon as it is there."""
    for table in tables:
        table.show()
