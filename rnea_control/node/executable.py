"""The executable `rnea_controller`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

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
            _hold_on(executor, node, running)
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


def _hold_on(executor: Executor, node: ControllerNode, running: Callable[..., bool]) -> None:
    """Goes on holding the arm for as long as that is asked for."""
    seconds = node.parameters["hold_on_shutdown"]
    if seconds == 0.0 or not node.active:
        return
    node.get_logger().info(
        "told to end: the controller holds the arm"
        + (f" for {seconds:g} s," if seconds > 0.0 else "")
        + " until nobody takes the commands, or a second signal"
    )
    node.loop.halt("the controller ends")
    deadline = time.monotonic() + (seconds if seconds > 0.0 else math.inf)
    while node.active and node.listening and time.monotonic() < deadline and running(2):
        _spin_once(executor, node)


def _spin_once(executor: Executor, node: ControllerNode) -> None:
    try:
        executor.spin_once(timeout_sec=LONGEST_WAIT)
    except RCLError as error:
        # rclpy raises this for a lifecycle request that is not allowed in the present state.
        node.get_logger().error(f"request refused: {error}")


if __name__ == "__main__":
    sys.exit(main())
