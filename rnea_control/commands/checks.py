"""All checks: from what was observed to findings, the worst first; pure.

`python -m rnea_control.commands.checks` prints the table of `docs/doctor.md`.
"""

from __future__ import annotations

from types import ModuleType

from rnea_control.commands import (
    clock_checks,
    command_checks,
    configuration,
    controller_checks,
    description_checks,
    machine_checks,
    motion_checks,
    state_checks,
    torque_checks,
)
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Code, Finding, Level, markdown

# From the ground up: what the later ones rest on comes first.
GROUPS = (
    configuration,
    description_checks,
    state_checks,
    clock_checks,
    command_checks,
    controller_checks,
    torque_checks,
    motion_checks,
    machine_checks,
)


def codes_of(group: ModuleType) -> tuple[Code, ...]:
    """The kinds of findings that a file of checks declares, in their order there."""
    return tuple(value for value in vars(group).values() if isinstance(value, Code))


CODES = tuple(code for group in GROUPS for code in codes_of(group))


def findings(evidence: Evidence) -> list[Finding]:
    """What is wrong, errors first, then warnings and notes."""
    settings = configuration.configuration(evidence)
    found = [finding for group in GROUPS for finding in group.check(evidence, settings)]
    levels = list(Level)
    return sorted(found, key=lambda finding: levels.index(finding.level))


if __name__ == "__main__":
    print(markdown(CODES), end="")
