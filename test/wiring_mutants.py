"""Breaks the check of the wires at activation and the search for what is behind it, one line at a
time, and tells which tests fail then."""

from __future__ import annotations

import sys
from pathlib import Path

from mutants import Mutant, report

FOLDER = Path(__file__).parent / "control"
TESTS = [str(FOLDER / f"test_{name}.py") for name in ("activation_check", "miswiring")]


def _check(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.activation_check", old, new)


def _search(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.miswiring", old, new, "test_miswiring.py")


MUTANTS = {
    "nothing": _check("", ""),
    # The codes.
    "codes of no amplitude": _check("FIRST_AMPLITUDE = 0.03", "FIRST_AMPLITUDE = 1e-6"),
    "codes of three times the amplitude": _check(
        "FIRST_AMPLITUDE = 0.03", "FIRST_AMPLITUDE = 0.09"
    ),
    "no larger amplitude": _check("MOST_AMPLITUDE = 0.25", "MOST_AMPLITUDE = 0.03"),
    "codes with a mean": _check("_hadamard(rows)[1 : model.nv + 1]", "_hadamard(rows)[: model.nv]"),
    "codes without gravity": _check("gravity(self._model, self._workspace, q, tau))", "0.0)"),
    "swing of any speed": _check("SWING = 0.1 ", "SWING = 100.0 "),
    "swing of any way": _check("SWING_WAY = 0.3 ", "SWING_WAY = 300.0 "),
    # How it ends.
    "arm may move off as fast as it likes": _check("MOST_SPEED = 0.3", "MOST_SPEED = 30.0"),
    "arm may move off as far as it likes": _check(
        "(slides, FURTHEST_SLIDING, FURTHEST)", "(slides, 2.0, 6.0)"
    ),
    "arm moves off at once": _check("MOST_SPEED = 0.3", "MOST_SPEED = 0.003"),
    "enormous velocities count": _check("ABSURD = 100.0", "ABSURD = 1e250"),
    "one velocity is a speed": _check("AVERAGED = 6", "AVERAGED = 1"),
    "one attempt": _check("ATTEMPTS = 5", "ATTEMPTS = 1"),
    "brakes open at once": _check("OPENING = 2.0", "OPENING = 0.0"),
    "brakes open late": _check("OPENING = 2.0", "OPENING = 20.0"),
    "any period will do": _check("LONGEST_PERIOD = 0.005", "LONGEST_PERIOD = 5.0"),
    "no period will do": _check("LONGEST_PERIOD = 0.005", "LONGEST_PERIOD = 0.0005"),
    "interruptions without end": _check("MOST_INTERRUPTIONS = 3", "MOST_INTERRUPTIONS = 3000"),
    "time may stand still": _check("LONGEST_STANDSTILL = 0.5", "LONGEST_STANDSTILL = 500.0"),
    "proof though time stood still": _check("if wrong and self._stood_still:", "if False:"),
    # What is wrong.
    "no answer is wrong": _check("WRONG = 25.0", "WRONG = 1e9"),
    "each answer is wrong": _check("WRONG = 25.0", "WRONG = 1e-3"),
    "no other explanation is better": _check("BETTER = 0.5", "BETTER = 0.0"),
    "no pushes": _check("PUSHED = 0.2", "PUSHED = 20.0"),
    "each push is wrong": _check("PUSHED = 0.2", "PUSHED = 1e-4"),
    "no torque is doubtful": _check("DOUBTFUL = 0.1 ", "DOUBTFUL = 10.0 "),
    "each torque is doubtful": _check("DOUBTFUL = 0.1 ", "DOUBTFUL = 1e-4 "),
    "sign is not tried": _check("for each in (-own, *others)", "for each in others"),
    "units are not tried": _check("for factor in (10.0, 100.0):", "for factor in ():"),
    "silent joints are right": _check("fit.loss < LOST and", ""),
    "velocities are right": _check("if words := self._contradiction(answer):", "if False:"),
    "velocities are wrong": _check("RATIO = 0.6, 1.6", "RATIO = 0.999, 1.001"),
    "no delay is looked for": _check("if wrong and not aborted and (late", "if False and (late"),
    "joints that have answered hang": _check("HOLDING = 100.0, 20.0", "HOLDING = 0.0, 0.0"),
    # Which mistake it is.
    "each mistake explains anything": _search("    if least > most:\n        return NONE\n", ""),
    "evidence is never enough": _search("EVIDENCE = 12.0", "EVIDENCE = 1e9"),
    "pushes explain nothing": _search(
        "push_factor * _push_score(answer, judge, own))", "math.inf)"
    ),
    "pushes explain everything": _search("PUSH = 6.0", "PUSH = -1e3"),
    "pushes begin at once": _search("ONSETS = 15", "ONSETS = 1"),
    "one kind alone is named": _search("ALIKE = 6.0", "ALIKE = -1.0"),
    "all kinds are alike": _search("ALIKE = 6.0", "ALIKE = 1e9"),
    "no orders": _search("        for i in range(j):\n", "        for i in range(0):\n"),
    "orders of neighbors alone": _search(
        "        for i in range(j):\n", "        for i in range(max(j - 1, 0), j):\n"
    ),
    "no units of all joints": _search(
        "UNITS = (-1.0, 0.0, 1e-3, 0.1, 10.0, 100.0, 1e3)", "UNITS = (-1.0,)"
    ),
    "no signs of a joint": _search(
        "JOINT_UNITS = (-1.0, 0.0, 0.1, 10.0)", "JOINT_UNITS = (0.0, 0.1, 10.0)"
    ),
    "no units of a joint": _search("JOINT_UNITS = (-1.0, 0.0, 0.1, 10.0)", "JOINT_UNITS = (-1.0,)"),
    "no gravity": _search("EARTH = (8.0, 11.5)", "EARTH = (80.0, 115.0)"),
    "compensation is not tried": _search("hardware_adds_gravity=adds)", ")"),
    "velocities that positions agree with": _search(
        "if not _contradiction(answer, velocities) < _contradiction(answer, answer.v):", "if False:"
    ),
}


if __name__ == "__main__":
    report(MUTANTS, TESTS, sys.argv[1:])
