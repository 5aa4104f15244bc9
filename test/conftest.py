"""Options and robots that all tests share."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

# The tests' own ROS domain, on this machine only; child processes inherit both.
os.environ.setdefault("ROS_DOMAIN_ID", "73")
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)

sys.path.insert(0, str(Path(__file__).parent))  # for robots.py and dds.py


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run what takes minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --slow"))


@pytest.fixture(scope="session")
def panda_urdf() -> Path:
    """The Panda arm of example-robot-data."""
    files = metadata.files("example-robot-data")
    return next(Path(f.locate()) for f in files if f.name == "panda.urdf")
