"""Gathers what this computer allows, and the environment of the middleware."""

from __future__ import annotations

import os
from pathlib import Path

from rclpy.utilities import get_rmw_implementation_identifier

from rnea_control.commands.evidence import Machine
from rnea_control.ros.real_time import is_real_time_kernel, largest_priority, may_lock_memory

# Fast DDS 3 reads the first one, and 2 the other.
PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
# What keeps discovery on this computer: the variables, and the values that do.
LOCAL_ONLY = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOCALHOST_ONLY": "1"}
CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def machine() -> Machine:
    """This computer as this process finds it."""
    profile = next((path for name in PROFILES if (path := os.environ.get(name))), "")
    local = [
        f"{name}={value}" for name, value in LOCAL_ONLY.items() if os.environ.get(name) == value
    ]
    return Machine(
        largest_priority(),
        may_lock_memory(),
        is_real_time_kernel(),
        cpu_quota(),
        get_rmw_implementation_identifier(),
        profile,
        _text(Path(profile)) if profile else None,
        local[0] if local else "",
    )


def cpu_quota(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """How many CPUs this process's cgroup may use, and those that it is in; None without a bound.

    Args:
        own: the file that names the cgroup, of version 2.
        root: where the cgroups are mounted.
    """
    lines = [line for line in (_text(own) or "").splitlines() if line.startswith("0::")]
    group = root / (lines[0].removeprefix("0::").strip("/") if lines else "")
    quotas = []
    for folder in (group, *group.parents):
        if folder == root.parent:
            break
        quota, _, period = (_text(folder / "cpu.max") or "max").partition(" ")
        if quota.strip() != "max":
            quotas.append(float(quota) / float(period))
    return min(quotas, default=None)


def _text(path: Path) -> str | None:
    """The content of a file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
