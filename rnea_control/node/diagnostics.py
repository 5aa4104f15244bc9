"""The node's own report for `/diagnostics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from rnea_control.node.statistics import (
    NAMES,
    PERIOD_JITTER,
    STATE_AGE,
    TICK_DURATION,
    LoopStatistics,
)

if TYPE_CHECKING:
    from rnea_control.node.control_loop import ControlLoop
    from rnea_control.node.controller_node import ControllerNode

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def diagnostics(node: ControllerNode, recent: LoopStatistics) -> DiagnosticArray:
    """The present state of a controller node as one diagnostic status.

    Args:
        node: the node.
        recent: what its loop measured since the last report, which the thresholds are about.
    """
    findings = [_state(node)]
    if node.active:
        findings += _timing(node, recent)
    level, message = max(findings, key=lambda finding: finding[0])  # the first of the worst
    status = DiagnosticStatus(
        name=f"{node.get_fully_qualified_name().lstrip('/')}: control loop",
        hardware_id=node.get_name(),
        level=level,
        message=message,
    )
    values = _values(node, node.loop, recent) if node.loop is not None else {}
    status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticArray(status=[status])


def _state(node: ControllerNode) -> tuple[bytes, str]:
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


def _timing(node: ControllerNode, recent: LoopStatistics) -> list[tuple[bytes, str]]:
    """What is to be said about the last period."""
    states = max(recent.ticks + recent.missed, 1)
    measured = {
        "tick_duration": recent.quantile(TICK_DURATION, 0.99),
        "state_age": recent.quantile(STATE_AGE, 0.99),
        "period_jitter": recent.quantile(PERIOD_JITTER, 0.99),
        "missed_states": recent.missed / states,
        "late_states": recent.late / states,
    }
    found = []
    if recent.dropped:
        found.append(
            (
                WARN,
                f"motion dropped {recent.dropped} times in the last second, as the stamps of "
                f"joint_states went back or jumped; they have {node.publishers()} publishers",
            )
        )
    for level, word in ((ERROR, "error"), (WARN, "warn")):
        for name, value in measured.items():
            threshold = node.parameters[f"diagnostics.{name}.{word}"]
            if value > threshold:
                words = name.replace("_", " ")
                found.append(
                    (level, f"{words} {value:.3g} exceeds the {word} threshold, {threshold:g}")
                )
    return found


def _values(node: ControllerNode, loop: ControlLoop, recent: LoopStatistics) -> dict[str, str]:
    controller = loop.controller
    values = {
        "robot": controller.model.name,
        "control_law": controller.settings.control_law.name,
        "ticks": str(loop.statistics.ticks),
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
    values["publishers of joint_states"] = str(node.publishers())
    values["states missed"] = str(loop.statistics.missed)
    values["states late"] = str(loop.statistics.late)
    values["motions dropped"] = str(loop.statistics.dropped)
    for row, name in enumerate(NAMES):
        values[f"{name}, last second"] = recent.summary(row)
        values[f"{name}, since activation"] = loop.statistics.summary(row)
    values["real time"] = str(node.real_time)
    return values
