"""Options and robots that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# The tests' own ROS domain, on this machine only; child processes inherit both.
os.environ.setdefault("ROS_DOMAIN_ID", "73")
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
# Fast DDS finds the other processes sooner; its versions read one or the other.
for name in ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE"):
    os.environ.setdefault(name, str(Path(__file__).with_name("fastdds.xml")))
# Matrices of robots are small: threads of NumPy's would wait for each other on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# For robots.py and the others beside this file, and for the counting of allocations.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmark")]


_REPORT: list[str] = []


@pytest.fixture(scope="session")
def report() -> Callable[[str], None]:
    """Takes lines that are printed at the end of the run."""
    return _REPORT.append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _REPORT:
        terminalreporter.section("figures")
        for line in _REPORT:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def panda_urdf() -> Path:
    """The Panda arm of example-robot-data."""
    from robots import example_robot  # noqa: PLC0415

    return example_robot("panda")
