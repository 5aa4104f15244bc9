"""The progress of the first start on a computer, while its kernels are compiled."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.publisher import Publisher

from rnea_control.kernels.side_by_side import compiled_side_by_side
from rnea_control.ros.fast_dds import use_udp

# Between the lines of the log, [s].
LOG_PERIOD = 5.0


@contextmanager
def first_start(name: str, going_on: Callable[[], bool], *modules: str) -> Iterator[None]:
    """Modules that are imported in this context have their kernels compiled side by side, if these
    are not on disk. The log tells how far that has come, and so does /diagnostics once a second.

    Args:
        name: of the node that is to start, unless it is remapped.
        going_on: whether the process is to go on.
        modules: all that are imported.

    Raises:
        SystemExit: the process is to end.
    """
    node: Node | None = None
    publisher: Publisher | None = None
    logged_at = 0.0

    def tell(progress: str) -> None:
        nonlocal node, publisher, logged_at
        if not going_on():
            sys.exit("told to end before it had started")
        if node is None or publisher is None:
            use_udp()
            node = rclpy.create_node(name, start_parameter_services=False, enable_rosout=False)
            publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 1)
        text = f"first start on this computer, compiles for this processor: {progress}"
        if time.monotonic() - logged_at >= LOG_PERIOD:
            logged_at = time.monotonic()
            node.get_logger().info(text)
        status = DiagnosticStatus(
            name=f"{node.get_fully_qualified_name().lstrip('/')}: start",
            hardware_id=node.get_name(),
            level=DiagnosticStatus.WARN,
            message=text,
            values=[KeyValue(key="mode", value="starting")],
        )
        report = DiagnosticArray(status=[status])
        report.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(report)

    try:
        with compiled_side_by_side(*modules, tell=tell):
            yield
    finally:
        if node is not None:
            node.destroy_node()
