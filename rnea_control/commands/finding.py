"""What a check finds: each kind has a code, a level, a meaning and a remedy, declared once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How bad it is; the worst comes first."""

    error = "error"
    """The arm would not move, or not as told."""
    warning = "warning"
    """It may move worse than it could, or in a rare case not as told."""
    note = "note"
    """Not a fault: what could not be checked, or what comes next."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        level: how bad it is.
        code: short and stable, for scripts.
        what: where and what it is, in a sentence.
        remedy: what to do.
    """

    level: Level
    code: str
    what: str
    remedy: str

    def __str__(self) -> str:
        end = "" if self.what.endswith("?") else "."
        text = f"{self.level.value:7}  {self.code}: {self.what}{end} {self.remedy}"
        return " ".join(text.splitlines())


@dataclass(frozen=True)
class Code:
    """A kind of finding.

    Attributes:
        name: short and stable.
        level: how bad it is.
        meaning: what it means, in general.
        remedy: what to do, in a sentence or two; words in capitals stand for names.
    """

    name: str
    level: Level
    meaning: str
    remedy: str

    def found(self, what: str, **names: str) -> Finding:
        """A finding of this kind.

        Args:
            what: where and what it is, without a full stop.
            names: what stands for the words in capitals of the remedy.
        """
        remedy = self.remedy
        for word, name in names.items():
            remedy = remedy.replace(word, name)
        return Finding(self.level, self.name, what.rstrip("."), remedy)


def error(name: str, meaning: str, remedy: str) -> Code:
    """A `Code` that is an error."""
    return Code(name, Level.error, meaning, remedy)


def warning(name: str, meaning: str, remedy: str) -> Code:
    """A `Code` that is a warning."""
    return Code(name, Level.warning, meaning, remedy)


def note(name: str, meaning: str, remedy: str) -> Code:
    """A `Code` that is a note."""
    return Code(name, Level.note, meaning, remedy)


def markdown(codes: Iterable[Code]) -> str:
    """The table of codes, for the documentation."""
    rows = [("code", "level", "meaning", "remedy"), ("---",) * 4]
    rows += [(f"`{c.name}`", c.level.value, c.meaning, c.remedy) for c in codes]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
