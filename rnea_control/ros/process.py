"""A process that runs ROS nodes, and ends them in order on SIGINT, SIGTERM and SIGHUP.

rclpy's own signal handlers shut its context down at once, and with it every publisher: a controller
could no longer leave a safe torque behind. Here a signal only asks the main loop to end.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from rnea_control.exceptions import RneaControlError
from rnea_control.ros.fast_dds import use_udp
from rnea_control.ros.rclpy_internals import RCLError

N = TypeVar("N", bound=Node)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ros_process(arguments: list[str] | None = None) -> Iterator[Callable[..., bool]]:
    """Sets rclpy up and takes it down; gives a function that says whether to go on: until the first
    signal, or until as many as its argument says.

    Args:
        arguments: the command line; the process's own by default.

    Raises:
        SystemExit: rclpy does not start, for example over a YAML file that cannot be read; its
            message says why.
    """
    signals = 0

    def stop(signal_number: int, frame: object) -> None:
        nonlocal signals
        signals += 1

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        try:
            rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        except RCLError as error:
            sys.exit(f"ROS 2 does not start with these arguments: {error}")
        yield lambda most=1: signals < most and rclpy.ok()
    finally:
        rclpy.try_shutdown()
        for number, handler in previous.items():
            # One more, as of a launch file beside a terminal's, ends no process that is ending.
            signal.signal(number, signal.SIG_IGN if signals else handler)
        gc.freeze()  # Python would look for garbage before it ends, for a tenth of a second or two


def build(node_class: Callable[[], N]) -> N:
    """Makes the process's first node, over UDP if that may be chosen, or ends with a message.

    Raises:
        SystemExit: the node, or rclpy before it, refuses the parameters.
    """
    use_udp()
    try:
        return node_class()
    except RneaControlError as error:
        sys.exit(f"{node_class.__name__} does not start: {error}")
    except ValueError as error:
        # rclpy cannot declare a parameter that a YAML file sets to [], as that tells no type.
        sys.exit(
            f"{node_class.__name__} does not start: {error}. Does the YAML file set a parameter "
            "to [] or leave it empty? Leave the parameter out instead"
        )
