"""The executable `rnea_sentinel`."""

from __future__ import annotations

import sys
import time

from rnea_control.ros.callbacks import GuardedExecutor
from rnea_control.ros.process import build, first_start, ros_process, unblocked_output

# Modules with kernels, which may have to be compiled: imported only once the log can tell of it.
NODE = "rnea_control.sentinel.sentinel_node"
# How long a signal waits until the main loop sees it, [s].
LONGEST_WAIT = 0.25
# How long an arm that the sentinel brakes may take to come to rest before the process ends, [s].
LONGEST_BRAKING = 3.0


def main() -> int:
    """Guards the arm until SIGINT, SIGTERM or SIGHUP."""
    with unblocked_output(), ros_process() as running:
        with first_start("rnea_sentinel", running, NODE):
            from rnea_control.sentinel.sentinel_node import SentinelNode  # noqa: PLC0415

        node = build(SentinelNode)
        executor = GuardedExecutor(node)
        try:
            while running():
                executor.spin_once(LONGEST_WAIT)
            deadline = time.monotonic() + LONGEST_BRAKING
            while node.guard is not None and node.guard.holds and node.guard.moving:
                if time.monotonic() > deadline:
                    break
                executor.spin_once(LONGEST_WAIT)
            if node.guard is not None and node.guard.holds:
                node.get_logger().error(
                    "the sentinel ends while it holds the arm: its last command is the gravity "
                    "torque, which the hardware keeps. If no controller stands by, nothing holds "
                    "the arm: a frozen torque does so only for moments. Support it, or engage its "
                    "brakes"
                )
        finally:
            node.destroy_node()
    return 0


if __name__ == "__main__":
    sys.exit(main())
