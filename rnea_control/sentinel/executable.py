"""The executable `rnea_sentinel`."""

from __future__ import annotations

import sys

from rnea_control.ros.process import run


def main() -> int:
    """Guards the arm until a signal."""
    return run("rnea_sentinel", "rnea_control.sentinel.sentinel_node", "SentinelNode")


if __name__ == "__main__":
    sys.exit(main())
