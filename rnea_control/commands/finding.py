"""What a check finds: each kind has a code, a level, a meaning and a remedy, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rnea_control.exceptions import plain

# The worst first. Error: the arm would not move, or not as told. Warning: it may move worse than it
# could, or in a rare case not as told. Note: no fault, but what could not be checked or comes next.
LEVELS = ("error", "warning", "note")
LONGEST = 10_000  # characters of a printed finding


@dataclass(frozen=True)
class Finding:
    """One thing that was found: `what` says where and what it is, in a sentence."""

    level: str
    code: str  # short and stable, for scripts
    what: str
    remedy: str

    def __str__(self) -> str:
        end = "" if self.what.endswith("?") else "."
        text = f"{self.level:7}  {self.code}: {self.what}{end} {self.remedy}"
        return plain(" ".join(text.splitlines()), LONGEST)


@dataclass(frozen=True)
class Code:
    """A kind of finding; in its remedy words in capitals stand for names."""

    level: str
    name: str
    meaning: str
    remedy: str

    def found(self, what: str, **names: str) -> Finding:
        """A finding of this kind; `names` stand for the words in capitals of the remedy."""
        remedy = self.remedy
        for word, name in names.items():
            remedy = remedy.replace(word, name)
        return Finding(self.level, self.name, what.rstrip("."), remedy)


error, warning, note = (partial(Code, level) for level in LEVELS)
