"""The executable `rnea_controller`."""

from __future__ import annotations

import sys
import time

from rclpy.executors import Executor, SingleThreadedExecutor

from rnea_control.node.controller_node import LONGEST_HALT, ControllerNode
from rnea_control.ros.output import unblocked_output
from rnea_control.ros.process import build, ros_process
from rnea_control.ros.rclpy_internals import RCLError

# How long a signal waits until the main loop sees it, [s].
LONGEST_WAIT = 0.25


def main() -> int:
    """Runs the controller until SIGINT, SIGTERM or SIGHUP; it then brings the arm to rest."""
    with unblocked_output(), ros_process() as running:
        node = build(ControllerNode)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            node.trajectories.serve_action()
            node.autostart()
            while running():
                _spin_once(executor, node)
            deadline = time.monotonic() + LONGEST_HALT
            while node.active and time.monotonic() < deadline:
                if not (node.loop.halt("the controller ends") or node.trajectories.has_goals):
                    break
                _spin_once(executor, node)
        finally:  # whatever happened: the hardware applies the last command for ever
            if node.active:
                node.trigger_deactivate()
            node.destroy_node()
    return 0


def _spin_once(executor: Executor, node: ControllerNode) -> None:
    try:
        executor.spin_once(timeout_sec=LONGEST_WAIT)
    except RCLError as error:
        # rclpy raises this for a lifecycle request that is not allowed in the present state.
        node.get_logger().error(f"request refused: {error}")


if __name__ == "__main__":
    sys.exit(main())
