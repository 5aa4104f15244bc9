"""Output to a reader that does not read, and to one that does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from rclpy.logging import get_logger
from rnea_control.ros.process import unblocked_output
with unblocked_output():
    for _ in range(int(sys.argv[1])):
        get_logger("talker").warning(100 * "x")
"""


# The many are more than the two pipes on the way hold.
@pytest.mark.parametrize(("lines", "read"), [(2000, False), (100, True)])
def test_all_lines_come_to_a_reader_and_no_reader_stops_it(tmp_path, lines: int, read) -> None:
    command = [sys.executable, "-c", PROGRAM, str(lines)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        try:
            if read:
                assert process.stderr.read().count(b"[WARN]") == lines
            assert process.wait(30.0) == 0
        finally:
            process.kill()


# The file gets the lowest descriptor that is free.
CLOSED = """
import os
from rclpy.logging import get_logger
from rnea_control.ros.process import ros_process, unblocked_output
with {context}:
    with open("data", "wb"):
        get_logger("talker").warning("a line")
        os.system("echo a line; echo a line >&2")
"""


@pytest.mark.parametrize("context", ["unblocked_output()", "ros_process([])"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(tmp_path, closed: str, context: str) -> None:
    """What is printed goes nowhere then, and not into the next file that is opened."""
    program = [sys.executable, "-c", CLOSED.format(context=context)]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *program]
    assert subprocess.run(shell, cwd=tmp_path, timeout=60.0, check=False).returncode == 0
    assert (tmp_path / "data").read_bytes() == b""
