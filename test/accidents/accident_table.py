"""Breaks arms in all ways of the catalogue, and writes the table of docs/faults.md:
`python test/accidents/accident_table.py`.

`--healthy` runs right arms instead, on ten kinds with three laws and two gains, and says what has
stopped them; it writes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)

from accident_run import Outcome, run  # noqa: E402
from accidents import accidents, healthy  # noqa: E402
from broken_arm import KINDS  # noqa: E402

from rnea_control.control import ControlLaw, Mode  # noqa: E402

PAGE = TESTS.parent / "docs" / "faults.md"
BEGIN, END = "<!-- accident table: begin -->", "<!-- accident table: end -->"
BROKEN = ("panda", "ur5", "ur10", "tiago")
GAINS = ((100.0, 20.0), (400.0, 40.0))
LAWS = (ControlLaw.computed_torque, ControlLaw.feedforward_pd, ControlLaw.pd_gravity)
ORIGIN = (
    "Written by `python test/accidents/accident_table.py`: Panda, UR5, UR10 and TIAGo's arm with "
    "its lift, in MuJoCo with friction and rotors; computed torque with `p: 100`, `d: 20` and "
    "`p: 400`, `d: 40`; everything else by default. A row summarizes runs with other joints, "
    "arms and gains, at rest, in gentle and in fast motion, {rows} in all. *Refused* counts runs "
    "that the check at activation ends, with `activation.check: refuse`; the other columns are "
    "without the check, worst of all runs.\n\n"
    "TIAGo's lift moves at 0.07 m/s at most, and falls faster until its brake closes, 60 ms after "
    "the controller has let go. **BROKEN** marks what is against the promises of safety.md."
)
HEAD = (
    "| what is wrong | refused | stopped, of those off their way | named | "
    "velocity / limit, without and with the check | above 1.5 for, ms | contact, N |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)
STRAYED = 0.05  # way off the start at the end that makes a run one that is off its way [rad] or [m]


@dataclass
class Group:
    """The runs of one line."""

    unchecked: list[Outcome] = field(default_factory=list)
    checked: list[Outcome] = field(default_factory=list)

    def line(self, title: str, wiring: bool) -> str:
        runs = self.unchecked
        refused = sum(each.refused for each in self.checked)
        off = [each for each in runs if each.off > STRAYED or each.mode is not Mode.HOLDING]
        stopped = sum(each.stopped_after is not None or each.refused for each in off)
        named = sum(
            a.names or a.refused or b.names for a, b in zip(runs, self.checked, strict=True)
        )
        broken = sorted({text for each in (*self.checked, *self.wrong()) for text in each.broken()})
        marks = [f"**BROKEN: {'; '.join(broken)}**"] if broken else []
        fastest = (max(each.fastest for each in part) for part in (runs, self.checked))
        touched = max(each.touched for each in runs)
        cells = [
            title,
            f"{refused} of {len(runs)}",
            f"{stopped} of {len(off)}",
            f"{named} of {len(runs)}" if wiring else "",
            ", ".join(f"{value:.2f}" for value in fastest),
            f"{1e3 * max(each.above for each in runs):.0f}",
            " ".join([*([f"{touched:.0f}"] if touched else []), *marks]),
        ]
        return f"| {' | '.join(cells)} |"

    def wrong(self) -> Iterable[Outcome]:
        """Runs without a check whose speed or mode is against the promises; that they may be off
        without a word is what the check is for."""
        return (each for each in self.unchecked if each.above > 0.1)


def _broken(job: tuple[str, int]) -> list[tuple[str, bool, str, Outcome]]:
    kind_name, number = job
    kind = KINDS[kind_name]
    accident = accidents(kind)[number]
    return [
        (accident.group, accident.wiring, check, run(kind, accident, when, gains=g, check=check))
        for when in accident.when
        for g in GAINS
        for check in ("off", "refuse")
    ]


def _healthy(job: tuple[str, int]) -> list[tuple[str, Outcome]]:
    kind_name, number = job
    kind = KINDS[kind_name]
    accident = healthy(kind)[number]
    return [
        (
            f"{kind_name}, {accident.title}, {law.name}, {gains[0]:g}",
            run(kind, accident, accident.when[0], law=law, gains=gains, check="refuse"),
        )
        for law in LAWS
        for gains in GAINS
    ]


def _of_all(kinds: Iterable[str], catalogue: object) -> list[tuple[str, int]]:
    return [(name, number) for name in kinds for number in range(len(catalogue(KINDS[name])))]


def run_healthy() -> int:
    """Runs right arms; how many were stopped."""
    stopped = restless = total = 0
    with Pool() as pool:
        for outcomes in pool.imap(_healthy, _of_all(KINDS, healthy)):
            for title, outcome in outcomes:
                total += 1
                if outcome.mode is Mode.BRAKING and "although it is held" in outcome.cause:
                    restless += 1
                    print(f"{title}: {outcome.cause}", flush=True)
                elif outcome.mode is not Mode.HOLDING or outcome.refused:
                    stopped += 1
                    print(f"{title}: {outcome.mode.value}, {outcome.cause}", flush=True)
    print(f"{stopped} of {total} healthy runs were stopped; {restless} did not come to rest")
    return stopped


def run_broken() -> int:
    """Runs the accidents, and writes the table; how many lines are broken."""
    groups: dict[tuple[str, bool], Group] = {}
    with Pool() as pool:
        for outcomes in pool.imap(_broken, _of_all(BROKEN, accidents)):
            for title, wiring, check, outcome in outcomes:
                group = groups.setdefault((title, wiring), Group())
                (group.unchecked if check == "off" else group.checked).append(outcome)
    lines = [group.line(title, wiring) for (title, wiring), group in groups.items()]
    rows = sum(len(group.unchecked) for group in groups.values())
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(
        "\n".join([before + BEGIN, ORIGIN.format(rows=rows), "", *HEAD, *lines, END]) + after
    )
    wiring = [
        (a, b)
        for (_, is_wiring), group in groups.items()
        if is_wiring
        for a, b in zip(group.unchecked, group.checked, strict=True)
    ]
    named = sum(a.names or b.names or b.mode is Mode.WAITING for a, b in wiring)
    ended = sum(b.refused or (a.stopped_after is not None) for a, b in wiring)
    print("\n".join([*HEAD, *lines]))
    print(f"signs, orders and units: {ended} of {len(wiring)} ended, {named} named")
    return sum("BROKEN" in line for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--healthy", action="store_true", help="run right arms")
    return min(run_healthy() if parser.parse_args().healthy else run_broken(), 100)


if __name__ == "__main__":
    sys.exit(main())
