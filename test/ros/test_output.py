"""Output to a reader that does not read, and to one that does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from rclpy.logging import get_logger
from rnea_control.ros.output import unblocked_output
with unblocked_output():
    for _ in range(int(sys.argv[1])):
        get_logger("talker").warning(100 * "x")
    Path(sys.argv[2]).touch()
"""


def talker(lines: int, done: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(lines), str(done)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_reader_that_does_not_read_stops_nothing(tmp_path: Path) -> None:
    # more than the two pipes on the way hold
    with talker(4000, tmp_path / "done") as process:
        try:
            assert process.wait(30.0) == 0
            assert (tmp_path / "done").exists()
        finally:
            process.kill()


def test_all_lines_come_to_a_reader(tmp_path: Path) -> None:
    with talker(100, tmp_path / "done") as process:
        assert process.stderr is not None
        assert process.stderr.read().count(b"[WARN]") == 100
        assert process.wait(30.0) == 0
