"""The executable `rnea_controller`."""

from __future__ import annotations

import sys
import time

from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import Executor, SingleThreadedExecutor

from rnea_control.node.controller_node import ControllerNode
from rnea_control.ros.output import unblocked_output
from rnea_control.ros.process import build, ros_process

# How long a signal may wait to be noticed, [s].
LONGEST_WAIT = 0.25
# How long a moving arm has to come to rest before the controller ends, [s].
LONGEST_HALT = 1.0


def main() -> int:
    """Runs the controller until SIGINT, SIGTERM or SIGHUP; it then brings the arm to rest."""
    with unblocked_output(), ros_process() as running:
        node = build(ControllerNode)
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            node.autostart()
            while running():
                _spin_once(executor, node)
            deadline = time.monotonic() + LONGEST_HALT
            while node.active and node.loop.halt() and time.monotonic() < deadline:
                _spin_once(executor, node)
        finally:  # whatever happened: the hardware keeps the last command
            if node.active:
                node.trigger_deactivate()
            node.destroy_node()
    return 0


def _spin_once(executor: Executor, node: ControllerNode) -> None:
    try:
        executor.spin_once(timeout_sec=LONGEST_WAIT)
    except RCLError as error:
        # rclpy lets a lifecycle request that does not fit the state escape from its service.
        node.get_logger().error(f"request refused: {error}")


if __name__ == "__main__":
    sys.exit(main())
