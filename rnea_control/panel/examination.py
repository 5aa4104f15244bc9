"""`examine`: the findings of `rnea_doctor` about a running controller."""

from __future__ import annotations

import json
import subprocess

from rnea_control.child_process import command
from rnea_control.client.controller_link import IN_MOTION
from rnea_control.commands.finding import LEVELS, Finding
from rnea_control.exceptions import NotThere, Refused, plain

OBSERVED = 3.0  # time of the observation [s]
LONGEST_START = 60.0  # longest time that the doctor takes besides [s]
LONGEST_WORDS = 500  # characters of its last words
MOST_FINDINGS = 200


def examine(controller: str, mode: str) -> list[Finding]:
    """Runs `rnea_doctor`, a process of its own, and returns its findings, the worst first. It
    changes nothing.

    Args:
        controller: full name of the controller's node.
        mode: mode of the controller.

    Raises:
        Refused: the arm moves: a new process in the network can delay messages.
        NotThere: the doctor gives no findings.
    """
    if mode in IN_MOTION:
        raise Refused(
            f"the arm is {mode}: a new process in the network can delay messages; examine the arm "
            "at rest"
        )
    namespace, _, name = controller.rpartition("/")
    options = ("--json", "--seconds", str(OBSERVED), "--node", name, "--namespace", namespace)
    program = command("rnea_control.commands.doctor", *options)
    try:
        done = subprocess.run(
            program, capture_output=True, text=True, timeout=OBSERVED + LONGEST_START, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotThere(f"rnea_doctor has not ended within {error.timeout:g} s") from error
    try:
        found = [Finding(**each) for each in json.loads(done.stdout)["findings"]]
    except (ValueError, KeyError, TypeError) as error:
        words = plain(" ".join(done.stderr.split())[-LONGEST_WORDS:], LONGEST_WORDS)
        raise NotThere(f"rnea_doctor has given no findings: {words}") from error
    return [each for each in found if each.level in LEVELS][:MOST_FINDINGS]
