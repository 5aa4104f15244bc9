"""The rows of the table in docs/faults.md: what is broken, and the bound that must hold."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from bench import LONGEST_DELAY, FaultBench, fault_bench
from measures import Measures, measure

# How often a run is repeated whose machine was too busy to say anything.
ATTEMPTS = 3


@dataclass(frozen=True)
class Bound:
    """What a run may do to the arm at most; see `Measures`. The rate is that of the default rate
    limit, the effort limit in 20 ms, with one period of jitter."""

    torque: float = 1.0
    rate: float = 60.0
    speed: float = 1.0
    beyond: float = 0.0
    astray: float = math.inf
    rest: int | None = None
    silence: int | None = None
    handovers: int | None = None
    goal: float = math.inf

    def broken(self, measures: Measures) -> list[str]:
        """What is beyond it, in words."""
        found = [] if measures.finite else ["a command was not finite or of the wrong size"]
        for name in ("torque", "rate", "speed", "beyond", "astray", "goal"):
            value, bound = getattr(measures, name), getattr(self, name)
            if not value <= bound:
                found.append(f"{name} {value:.3g} > {bound:.3g}")
        for name in ("silence", "handovers"):
            value, bound = getattr(measures, name), getattr(self, name)
            if bound is not None and value > bound:
                found.append(f"{name} {value} > {bound}")
        if self.rest is not None and not 0 <= measures.rest <= self.rest:
            rest = f"{measures.rest} > {self.rest}" if measures.rest >= 0 else "never"
            found.append(f"rest {rest}")
        return found


@dataclass(frozen=True)
class Window:
    """The part of a run that is measured: its periods, and the path in it."""

    fault: int
    end: int
    path: np.ndarray | None = None


@dataclass(frozen=True)
class Row:
    """A fault.

    Attributes:
        key: for the command line and for pytest.
        title: what is broken.
        run: breaks it.
        bound: what must hold.
        says: what the controller or the sentinel must say, a regular expression.
        options: of the `FaultBench`.
        lane: of pytest: "quick" runs by default, "explores" with what explores, "all" if asked for.
        needs: package of messages that the row needs, and that may be missing.
    """

    key: str
    title: str
    run: Callable[[FaultBench], Window]
    bound: Bound
    says: str = ""
    options: dict = field(default_factory=dict)
    lane: str = "all"
    needs: str = ""

    @property
    def missing(self) -> str:
        """What it needs, if that is not installed; empty otherwise."""
        return self.needs if self.needs and find_spec(self.needs) is None else ""


@dataclass(frozen=True)
class Outcome:
    """What came of a row: its measures, what is broken, and how long the machine let the arm
    wait [s]."""

    measures: Measures
    broken: list[str]
    delay: float

    @property
    def void(self) -> bool:
        """Whether the machine was too busy for the failure to say anything."""
        return bool(self.broken) and self.delay > LONGEST_DELAY


def run_row(row: Row, keep: Path | None = None) -> Outcome:
    """Runs a row, again if the machine was too busy; its recordings go to the folder `keep`, if
    anywhere."""
    for _ in range(ATTEMPTS):
        outcome = _attempt(row, keep)
        if not outcome.void:
            break
    return outcome


def _attempt(row: Row, keep: Path | None) -> Outcome:
    with fault_bench(**row.options) as bench:
        window = row.run(bench)
        fault, end = window.fault, window.end
        periods, commands = bench.periods.copy(), bench.commands.copy()
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            recorded = {"periods": periods, "commands": commands, "window": [fault, end]}
            np.savez_compressed(keep / f"{row.key}.npz", **recorded)
            (keep / f"{row.key}.log").write_text(bench.output)
        measures = measure(bench.model, periods, commands, fault, end, window.path)
        broken = [*row.bound.broken(measures), *bench.broken, *bench.crashes]
        if row.says and not re.search(row.says, bench.output):
            broken.append(f"nothing says {row.says!r}")
        return Outcome(measures, broken, bench.delay(fault, end))
