"""The executable `rnea_controller`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rnea_control.kernels import side_by_side
from rnea_control.ros.callbacks import GuardedExecutor
from rnea_control.ros.process import build, first_start, ros_process, unblocked_output

if TYPE_CHECKING:
    from rnea_control.node.controller_node import ControllerNode

# Modules with kernels, which may have to be compiled: imported only once the log can tell of it.
NODE = "rnea_control.node.controller_node"
# The only argument of a process that compiles all that is needed, and ends.
COMPILE = "--compile"
# How long a signal waits until the main loop sees it, [s].
LONGEST_WAIT = 0.25


def main() -> int:
    """Runs the controller until SIGINT, SIGTERM or SIGHUP; it then brings the arm to rest."""
    if sys.argv[1:] == [COMPILE]:
        return side_by_side.main([NODE])
    with unblocked_output(), ros_process() as running:
        with first_start("rnea_controller", running, NODE):
            from rnea_control.node.configured import LONGEST_WAIT_FOR_REST  # noqa: PLC0415
            from rnea_control.node.controller_node import ControllerNode  # noqa: PLC0415

        node = build(ControllerNode)
        executor = GuardedExecutor(node)
        try:
            node.serve_action()
            node.autostart()
            while running():
                executor.spin_once(LONGEST_WAIT)
            _hold_on(executor, node, running)
            deadline = time.monotonic() + LONGEST_WAIT_FOR_REST
            while node.active and time.monotonic() < deadline:
                if not (node.loop.halt("the controller ends") or node.has_goals):
                    break
                executor.spin_once(LONGEST_WAIT)
        finally:  # whatever happened: the hardware applies the last command for ever
            if node.active:
                node.trigger_deactivate()
            node.destroy_node()
    return 0


def _hold_on(executor: GuardedExecutor, node: ControllerNode, running: Callable[..., bool]) -> None:
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
        executor.spin_once(LONGEST_WAIT)


if __name__ == "__main__":
    sys.exit(main())
