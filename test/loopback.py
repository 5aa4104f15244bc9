"""The tests' network: the loopback interface, without Fast DDS's shared memory."""

from __future__ import annotations

import atexit
import os
import tempfile
from pathlib import Path

from rnea_control.ros.middleware import PROFILES

PROFILE = str(Path(__file__).parents[1] / "config" / "fastdds_localhost.xml")
# Each start waits until others must have been discovered: for an announcement and a margin.
ANNOUNCEMENT, QUICK_ANNOUNCEMENT = "<sec>1</sec>", "<nanosec>200000000</nanosec>"


def use_loopback() -> None:
    """For this process and its children, before rclpy begins.

    Through shared memory a process that is killed holds up the others (docs/middleware.md). With
    LOCALHOST, rmw_fastrtps uses it whatever the profile says; other middleware needs LOCALHOST.
    """
    fast_dds = os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps").startswith("rmw_fastrtps")
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT" if fast_dds else "LOCALHOST"
    os.environ.pop("ROS_LOCALHOST_ONLY", None)  # the same as LOCALHOST
    os.environ.update(dict.fromkeys(PROFILES, _quick_profile()))


def _quick_profile() -> str:
    """A profile as `PROFILE`, whose participants announce themselves more often; removed when this
    process ends."""
    text = Path(PROFILE).read_text(encoding="utf-8")
    assert text.count(ANNOUNCEMENT) == 1
    with tempfile.NamedTemporaryFile("w", suffix=".xml", delete=False) as file:
        file.write(text.replace(ANNOUNCEMENT, QUICK_ANNOUNCEMENT))
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return file.name
