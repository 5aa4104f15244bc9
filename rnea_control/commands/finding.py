"""Findings of checks: each kind has a code, a level, a meaning and a remedy, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rnea_control.exceptions import plain

# Levels, the worst first.
# Error: the arm would not move, or not as commanded.
# Warning: the arm may move worse than it could, or in rare cases not as commanded.
# Note: no fault; a check that was not possible, or the next step.
LEVELS = ("error", "warning", "note")
LONGEST = 10_000  # characters of a printed finding


@dataclass(frozen=True)
class Finding:
    """A single finding."""

    level: str
    code: str  # short and stable, for scripts
    what: str  # sentence with the place and the problem
    remedy: str

    def __str__(self) -> str:
        end = "" if self.what.endswith("?") else "."
        text = f"{self.level:7}  {self.code}: {self.what}{end} {self.remedy}"
        return plain(" ".join(text.splitlines()), LONGEST)


@dataclass(frozen=True)
class Code:
    """A kind of finding. Words in capitals in its remedy are placeholders of names."""

    level: str
    name: str
    meaning: str
    remedy: str

    def found(self, what: str, **names: str) -> Finding:
        """A finding of this kind; `names` replace the placeholders of the remedy."""
        remedy = self.remedy
        for word, name in names.items():
            remedy = remedy.replace(word, name)
        return Finding(self.level, self.name, what.rstrip("."), remedy)


error, warning, note = (partial(Code, level) for level in LEVELS)
