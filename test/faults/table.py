"""Runs the rows and writes the table of docs/faults.md: `python test/faults/table.py [KEY ...]`.

With keys it runs those rows, and leaves the others in the table as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)

from loopback import use_loopback  # noqa: E402

use_loopback()

from faults import ROWS  # noqa: E402
from rows import Bound, Outcome, Row, run_row  # noqa: E402

PAGE = TESTS.parent / "docs" / "faults.md"
BEGIN, END = "<!-- fault table: begin -->", "<!-- fault table: end -->"
ORIGIN = (
    "Written by `python test/faults/table.py`, on a shared 2-core machine: Panda with its fastest "
    "motion at 0.69 of the velocity limits, 1 kHz, real processes over UDP on loopback. All rows "
    "keep torques finite and within the effort limit, the torque rate within that of the default "
    "rate limit (4350 Nm/s for 87 Nm, with one period of jitter), velocities within the velocity "
    "limits and positions within theirs, unless their bound says otherwise. **BROKEN** marks what "
    "did not. Target poses have no path of the joints: their 0.000 off the path is no measurement."
)
HEAD = (
    "| what is broken | torque / limit | torque rate, Nm/s | velocity / limit | "
    "to the position limit, rad | off the path, rad | at rest after, ms | silent for, ms | bound |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)


def bound_in_words(bound: Bound) -> str:
    """What the bound of a row asks for beyond that of all rows, in words."""
    usual = Bound()
    words = (
        (bound.rest is not None, f"rests within {bound.rest} ms"),
        (bound.silence is not None, f"commands within {bound.silence} ms"),
        (bound.astray < 1e9, f"{bound.astray:g} rad off the path"),
        (bound.goal < 1e9, f"{bound.goal:g} rad off the goal"),
        (bound.handovers is not None, f"{bound.handovers} hand-overs"),
        (usual.rate < bound.rate < 1e9, f"rate {bound.rate / usual.rate:g} times the limit"),
        (usual.speed < bound.speed < 1e9, f"{bound.speed:g} of the velocity limit"),
        (bound.rate > 1e9, "no bound of the rate"),
        (bound.speed > 1e9, "no bound of velocity and position"),
    )
    return ", ".join(text for asked, text in words if asked)


def line(row: Row, outcome: Outcome) -> str:
    """The row as a line of the table."""
    m = outcome.measures
    cells = [row.title, f"{m.torque:.2f}", f"{m.rate_nm:.0f}", f"{m.speed:.2f}", f"{-m.beyond:.2f}"]
    cells += [f"{m.astray:.3f}", str(m.rest) if m.rest >= 0 else "never", str(m.silence)]
    broken = f" **BROKEN: {'; '.join(outcome.broken)}**" if outcome.broken else ""
    return f"| {' | '.join(cells)} | {bound_in_words(row.bound)}{broken} |"


def write(new: dict[str, str]) -> None:
    """Puts lines, by the titles of their rows, into the table of the page."""
    before, rest = PAGE.read_text().split(BEGIN)
    table, after = rest.split(END)
    old = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()}
    lines = [line for row in ROWS if (line := new.get(row.title) or old.get(row.title))]
    PAGE.write_text("\n".join([before + BEGIN, ORIGIN, "", *HEAD, *lines, END]) + after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="*", help="rows to run; all by default")
    parser.add_argument("--keep", type=Path, help="folder for the recordings")
    options = parser.parse_args()
    unknown = set(options.keys) - {row.key for row in ROWS}
    if unknown:
        parser.error(f"no such rows: {', '.join(sorted(unknown))}")
    lines: dict[str, str] = {}
    failed = 0
    print("\n".join(HEAD), flush=True)
    for row in ROWS:
        if options.keys and row.key not in options.keys:
            continue
        if row.missing:
            print(f"{row.key}: needs {row.missing}", flush=True)
            continue
        begin, problem = time.monotonic(), ""
        try:
            outcome = run_row(row, options.keep)
            if outcome.void:
                problem = f"void, the machine was too busy: {outcome.broken}"
        except AssertionError as error:
            problem = f"did not run: {error}"
        if problem:
            print(f"{row.key}: {problem}", flush=True)
            failed += 1
            continue
        failed += bool(outcome.broken)
        lines[row.title] = line(row, outcome)
        print(f"{lines[row.title]} {row.key} {time.monotonic() - begin:.1f} s", flush=True)
    write(lines)
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
