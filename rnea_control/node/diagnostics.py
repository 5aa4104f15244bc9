"""The node's own report for `/diagnostics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

if TYPE_CHECKING:
    from rnea_control.node.control_loop import ControlLoop
    from rnea_control.node.controller_node import ControllerNode

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def diagnostics(node: ControllerNode) -> DiagnosticArray:
    """The present state of a controller node as one diagnostic status."""
    level, message = _level_and_message(node)
    status = DiagnosticStatus(
        name=f"{node.get_fully_qualified_name().lstrip('/')}: control loop",
        hardware_id=node.get_name(),
        level=level,
        message=message,
    )
    values = _values(node.loop) if node.loop is not None else {}
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticArray(status=[status])


def _level_and_message(node: ControllerNode) -> tuple[bytes, str]:
    loop = node.loop
    if loop is None:
        return (ERROR, node.fault) if node.fault else (OK, "not configured")
    if loop.fault:
        return ERROR, loop.fault
    if not loop.running:
        return OK, "not active"
    if loop.now is None:
        return WARN, "waiting for joint_states"
    if loop.controller.saturated:
        return WARN, "torque at the effort limit"
    return OK, "in control"


def _values(loop: ControlLoop) -> dict[str, str]:
    controller = loop.controller
    values = {
        "robot": controller.model.name,
        "control_law": controller.settings.control_law.name,
        "ticks": str(loop.ticks),
        "trajectories received": str(loop.trajectories_received),
    }
    if loop.now is not None:
        end = controller.trajectory.end_time
        values["motion"] = f"following until {end:.3f} s" if loop.now < end else "holding"
        values["time"] = f"{loop.now:.3f} s"
        errors = np.abs(controller.position_error)
        worst = int(np.argmax(errors))
        joint = controller.model.joint_names[worst]
        values["largest position error"] = f"{errors[worst]:.3g} ({joint})"
    for name, latency in loop.statistics.percentiles().items():
        values[f"state to command latency, {name}"] = f"{1e6 * latency:.0f} us"
    return values
