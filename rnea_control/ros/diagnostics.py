"""One status on `/diagnostics`."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.time import Time

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def report(
    node: Node, what: str, finding: tuple[bytes, str], values: Mapping[str, str], now: Time
) -> DiagnosticArray:
    """The message of a node.

    Args:
        node: whose status it is.
        what: of the node it is about.
        finding: its level and message.
        values: that it lists.
        now: the time of the node.
    """
    level, message = finding
    status = DiagnosticStatus(
        name=f"{node.get_fully_qualified_name().lstrip('/')}: {what}",
        hardware_id=node.get_name(),
        level=level,
        message=message,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    array = DiagnosticArray(status=[status])
    array.header.stamp = now.to_msg()
    return array
