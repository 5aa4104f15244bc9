"""The node's own report for `/diagnostics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

if TYPE_CHECKING:
    from rnea_control.node.controller_node import ControllerNode


def diagnostics(node: ControllerNode) -> DiagnosticArray:
    """The present state of a controller node as one diagnostic status."""
    status = DiagnosticStatus(
        name=f"{node.get_fully_qualified_name().lstrip('/')}: control loop",
        hardware_id=node.get_name(),
    )
    values: dict[str, str] = {
        "ticks": str(node.ticks),
        "trajectories received": str(node.trajectories_received),
    }
    controller = node.controller
    if node.fault:
        status.level, status.message = DiagnosticStatus.ERROR, node.fault
    elif not node.active:
        status.level, status.message = DiagnosticStatus.OK, "not active"
    elif node.now is None:
        status.level, status.message = DiagnosticStatus.WARN, "waiting for joint_states"
    elif node.state_age() > node.timeout:
        status.level = DiagnosticStatus.ERROR
        status.message = (
            f"no joint_states for {node.state_age():.3g} s; the last command stays in force"
        )
    elif controller.saturated:
        status.level, status.message = DiagnosticStatus.WARN, "torque at the effort limit"
    else:
        status.level, status.message = DiagnosticStatus.OK, "in control"
    if controller is not None:
        values["robot"] = controller.model.name
        values["control_law"] = controller.settings.control_law.name
    if controller is not None and node.now is not None:
        end = controller.trajectory.end_time
        values["motion"] = f"following until {end:.3f} s" if node.now < end else "holding"
        values["time"] = f"{node.now:.3f} s"
        errors = np.abs(controller.position_error)
        worst = int(np.argmax(errors))
        values["largest position error"] = (
            f"{errors[worst]:.3g} ({controller.model.joint_names[worst]})"
        )
    for name, latency in node.statistics.percentiles().items():
        values[f"state to command latency, {name}"] = f"{1e6 * latency:.0f} us"
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticArray(status=[status])
