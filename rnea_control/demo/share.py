"""Where the package's launch, config and urdf files are."""

from __future__ import annotations

import sys
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory


def share_directory() -> Path:
    """The package's share directory, in a ROS workspace and in a plain Python environment alike."""
    try:
        return Path(get_package_share_directory("rnea_control"))
    except (PackageNotFoundError, OSError):
        # No AMENT_PREFIX_PATH, or not in it: installed by pip, the environment is the prefix.
        return Path(sys.prefix) / "share" / "rnea_control"
