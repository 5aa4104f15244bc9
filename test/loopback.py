"""The tests' network: the loopback interface, without Fast DDS's shared memory."""

from __future__ import annotations

import os
from pathlib import Path

from rnea_control.ros.middleware import PROFILES

PROFILE = str(Path(__file__).parents[1] / "config" / "fastdds_localhost.xml")


def use_loopback() -> None:
    """For this process and its children, before rclpy begins.

    Through shared memory a process that is killed holds up the others (docs/middleware.md). With
    LOCALHOST, rmw_fastrtps uses it whatever the profile says; other middleware needs LOCALHOST.
    """
    fast_dds = os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps").startswith("rmw_fastrtps")
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT" if fast_dds else "LOCALHOST"
    os.environ.pop("ROS_LOCALHOST_ONLY", None)  # the same as LOCALHOST
    os.environ.update(dict.fromkeys(PROFILES, PROFILE))
