"""The examples run as they stand and print what is right."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = {path.stem: path for path in FOLDER.glob("*.py")}
COMPILED = [4.7645, -36.5829, 3.7556, -12.4094, 0.4827, -0.6682, -0.0003]
TORQUE = [-8.5706, -0.9216]
# The numbers that follow these words in a line of what is printed.
NUMBERS = {
    "bearing_loads": {"^base ": [441.7, 403.3], "^joint7 ": [202.2, 16.7]},
    "compiled_robot": {"^torques:": COMPILED, "^joint 2 leans by": [0.843]},
    "compiled_robot_in_c": {
        words: [0.0, -31.85, 1.971, -12.4977, 0.3365, -0.9029, 0.0]
        for words in ("^in Python:", "^in C:" if which("cc") else "^in Python:")
    },
    "floating_base": {
        "^base wrench in the air": [0.0, 0.0, 109.872, 0.0, 1.77, 0.0],
        "^their sum": [0.0, 0.0, 109.872, 109.872],  # the weight
        "^base wrench standing": [0.0] * 6,
    },
    "four_bar_linkage": {"^ *0 ": [2.666, 3.63], "^ *180 ": [-3.423, 4.03]},
    "identify": {"base parameters of": [98.0], "what is left:": [0.05, 0.05]},
    "leg_on_force_plate": {
        "^ankle": [-61.8, 15.0, -768.2, -6.6, 58.76, 1.65],
        "^knee": [-64.4, 15.0, -732.4, -0.3, 85.39, 1.65],
    },
    "simulate_pendulum": {"^0.0 s.*energy": [-4.257], "^3.0 s.*energy": [-4.257]},
    "symbolic_two_link": {"^formula:": TORQUE, "^recursion:": TORQUE},
    "two_link_arm": {r"^M a \+ C v \+ g": TORQUE, r"^rnea\(q, v, a\)": TORQUE},
}


# Runs files as `python FILE` does, one after the other.
RUN = """
import runpy, sys
for path in sys.argv[1:]:
    print(f"=== {path}", flush=True)
    runpy.run_path(path, run_name="__main__")
"""


@cache
def printed_by(*names: str) -> dict[str, str]:
    command = [sys.executable, "-W", "error", "-c", RUN, *(str(EXAMPLES[name]) for name in names)]
    how = {"capture_output": True, "text": True, "timeout": 240.0}
    done = subprocess.run(command, cwd=FOLDER, check=False, **how)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "nan" not in done.stdout
    return dict(zip(names, re.split("^=== .*$", done.stdout, flags=re.M)[1:], strict=True))


@pytest.mark.parametrize(
    "name", sorted(EXAMPLES.keys() - {"identify_arm", "joystick", "policy", "soft_spring"})
)
def test_example(name: str) -> None:
    printed = printed_by(*sorted(NUMBERS))[name]
    for words, numbers in NUMBERS[name].items():
        (rest,) = re.findall(words + "(.*)", printed, re.MULTILINE)
        found = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", rest)]
        assert found == pytest.approx(numbers, rel=1e-3, abs=2e-3), words


@pytest.mark.explores
def test_identified_arm_is_tracked_closer() -> None:
    """How close depends on the last digits of a search, and so on the machine."""
    numbers = re.findall(r"([0-9.]+) mrad", printed_by("identify_arm")["identify_arm"])
    before, after = map(float, numbers)
    assert before > 10.0 * after


def test_law_of_the_page_is_that_of_the_example() -> None:
    page = (FOLDER.parent / "docs" / "own_law.md").read_text()
    (shown,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
    assert shown in EXAMPLES["soft_spring"].read_text()
