"""All checks: findings from evidence, the worst first. Functions without side effects.

`python -m rnea_control.commands.checks` prints the table of `docs/doctor.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType

from rnea_control.commands import (
    command_checks,
    configuration_checks,
    controller_checks,
    machine_checks,
    manager_checks,
    state_checks,
    stream_checks,
    torque_checks,
    wire_checks,
)
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import LEVELS, Code, Finding

# A check comes after the checks on which its result depends.
CHECKS = (
    manager_checks.check,
    configuration_checks.check,
    state_checks.check,
    command_checks.check,
    controller_checks.check,
    stream_checks.check,
    torque_checks.check,
    wire_checks.check,
    controller_checks.check_motion,
    machine_checks.check,
)


def codes_of(check: FunctionType) -> tuple[Code, ...]:
    """The kinds of findings that the file of a check declares, in their order there."""
    return tuple(value for value in check.__globals__.values() if isinstance(value, Code))


CODES = tuple(dict.fromkeys(code for check in CHECKS for code in codes_of(check)))


def findings(evidence: Evidence) -> list[Finding]:
    """Findings of all checks: errors first, then warnings and notes."""
    found = [finding for check in CHECKS for finding in check(evidence)]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def markdown(codes: Iterable[Code]) -> str:
    """The table of codes, for the documentation."""
    rows = [("code", "level", "meaning", "remedy"), ("---",) * 4]
    rows += [(f"`{c.name}`", c.level, c.meaning, c.remedy) for c in codes]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    print(markdown(CODES), end="")
