"""A process that runs ROS nodes, and ends them in order on SIGINT and SIGTERM.

rclpy's own signal handlers shut its context down at once, and with it every publisher: a controller
could no longer leave a safe torque behind. Here a signal only asks the main loop to end.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.signals import SignalHandlerOptions


@contextmanager
def ros_process(arguments: list[str] | None = None) -> Iterator[Callable[[], bool]]:
    """Sets rclpy up and takes it down; gives a function that says whether to go on.

    Args:
        arguments: the command line; the process's own by default.

    Raises:
        SystemExit: rclpy does not start, for example over a YAML file that cannot be read; its
            message says why.
    """
    stopped = False

    def stop(signal_number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except RCLError as error:
        sys.exit(f"ROS 2 does not start with these arguments: {error}")
    try:
        yield lambda: not stopped and rclpy.ok()
    finally:
        rclpy.try_shutdown()
        for number, handler in previous.items():
            signal.signal(number, handler)
