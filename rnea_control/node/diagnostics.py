"""The node's report for `/diagnostics`, from values that the node hands in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from rnea_control.control import Mode
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import GONE
from rnea_control.ros.loop_statistics import (
    NAMES,
    PERIOD_JITTER,
    STATE_AGE,
    STATE_INTERVAL,
    TICK_DURATION,
    LoopStatistics,
)
from rnea_control.ros.native_loop import TICKS

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
LEVELS = {"error": ERROR, "warn": WARN}
NO_CLOCK = "use_sim_time is true, and nothing has come on /clock"
# The rows of `Controller.at_work`.
STAGES = ("soft position limit", "velocity limit", "effort limit", "torque rate limit")
# The measurements that have thresholds.
MEASURED = ("tick_duration", "state_age", "period_jitter", "missed_states", "late_states")


@dataclass(frozen=True)
class NodeReport:
    """What a controller node reports about itself.

    Attributes:
        name: full name of the node.
        loop: its control loop, while it is configured.
        fault: why it is not configured, if that failed.
        publishers: how many publishers of joint states there are.
        rivals: a sentence about other publishers on our topics; empty if there are none.
        sentinel: its mode; empty without one.
        sentinel_gone: whether it was there, and is heard no more.
        effort_controller: its name and state.
        model: how the model differs from the robot, one sentence a joint.
        trajectories: how many trajectories have been received.
        real_time: the parts of the real-time set-up that are in force.
        threshold: gives the threshold `<measured>.<level>`; called while the loop runs.
        recent: the loop's measurements since the last report, to which the thresholds apply.
        failures: how many callbacks have failed.
        failure: the message of the last one, if it came since the last report.
    """

    name: str
    loop: ControlLoop | None
    fault: str
    publishers: int
    rivals: str
    sentinel: str
    sentinel_gone: bool
    effort_controller: str
    model: tuple[str, ...]
    trajectories: int
    real_time: str
    threshold: Callable[[str], float]
    recent: LoopStatistics
    failures: int = 0
    failure: str = ""


def diagnostics(report: NodeReport) -> DiagnosticArray:
    """The report as one diagnostic status."""
    findings = [(ERROR, report.rivals)] if report.rivals else []  # a cause of all the others
    findings.append(_state(report))
    if report.model:
        findings.append((WARN, f"the model does not fit the robot: {report.model[0]}"))
    if report.sentinel_gone:
        findings.append((ERROR, GONE))
    if report.failure:
        findings.append((WARN, report.failure))
    values = {"callbacks failed": str(report.failures)}
    if report.loop is not None:
        values |= _values(report, report.loop)
        if report.loop.running:
            findings += _timing(report)
    level, message = max(findings, key=lambda finding: finding[0])  # the first of the worst
    status = DiagnosticStatus(
        name=f"{report.name.lstrip('/')}: control loop",
        hardware_id=report.name.rpartition("/")[2],
        level=level,
        message=message,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    return DiagnosticArray(status=[status])


def _state(report: NodeReport) -> tuple[bytes, str]:
    loop = report.loop
    if loop is None:
        return (ERROR, report.fault) if report.fault else (OK, "not configured")
    if loop.fault:
        return ERROR, loop.fault
    if not loop.running:
        return OK, "not active"
    if loop.without_clock:
        return ERROR, NO_CLOCK
    if loop.supervisor.mode is Mode.WAITING:
        return WARN, f"waiting {loop.supervisor.reason}"
    if loop.supervisor.mode is Mode.EMERGENCY_STOP:
        return WARN, "emergency stop"
    if loop.controller.saturated:
        return WARN, "torque at the effort limit"
    return OK, "in control"


def _timing(report: NodeReport) -> list[tuple[bytes, str]]:
    """Findings about the time since the last report."""
    recent = report.recent
    states = max(recent.ticks + recent.missed, 1)
    values = (
        *(recent.quantiles(row, 0.99)[0] for row in (TICK_DURATION, STATE_AGE, PERIOD_JITTER)),
        recent.missed / states,
        recent.late / states,
    )
    found = []
    if recent.dropped:
        text = (
            f"trajectory dropped {recent.dropped} times in the last second: the stamps of "
            f"joint_states went back or jumped; joint_states has {report.publishers} publisher(s)"
        )
        found.append((WARN, text))
    longest = recent.largest[STATE_INTERVAL]
    if longest > report.loop.settings.supervision.state_gap:
        found.append((WARN, f"waited {longest:.3g} s for joint_states in the last second"))
    if recent.foreign:
        text = (
            f"{recent.foreign} joint_states of another publisher were ignored in the last second; "
            "only one may be"
        )
        found.append((ERROR, text))
    for word, level in LEVELS.items():
        for name, value in zip(MEASURED, values, strict=True):
            threshold = report.threshold(f"{name}.{word}")
            if value > threshold:
                words = name.replace("_", " ")
                text = f"{words} {value:.3g} exceeds the {word} threshold, {threshold:g}"
                found.append((level, text))
    return found


def _values(report: NodeReport, loop: ControlLoop) -> dict[str, str]:
    controller = loop.controller
    values = {
        "robot": controller.model.name,
        "control_law": controller.settings.control_law.name,
        "ticks": str(loop.statistics.ticks),
        "trajectories received": str(report.trajectories),
    }
    supervisor = loop.supervisor
    values["mode"] = supervisor.mode.value
    values["reason"] = supervisor.reason
    values["sentinel"] = report.sentinel or "none"
    values["effort controller"] = report.effort_controller
    if loop.now is not None and controller.has_trajectory:
        end = controller.trajectory.end_time
        values["motion"] = f"following until {end:.3f} s" if controller.is_moving else "holding"
        values["speed scaling"] = f"{controller.speed_scaling:.3g}"
        values["time"] = f"{loop.now:.3f} s"
        errors = np.abs(controller.position_error)
        worst = int(np.argmax(errors))
        joint = controller.model.joint_names[worst]
        values["largest position error"] = f"{errors[worst]:.3g} ({joint})"
        for stage, seconds in zip(STAGES, controller.at_work, strict=True):
            at_work = (
                f"{name} {time:.3f} s"
                for name, time in zip(controller.model.joint_names, seconds, strict=True)
                if time > 0.0
            )
            values[f"{stage} at work"] = ", ".join(at_work) or "never"
        values["gave way"] = str(controller.gave_way)
        if controller.gave_way:
            values["gave way last"] = controller.gave_way_reason
    values["states refused"] = str(supervisor.bad_states)
    values["gaps in states"] = str(supervisor.gaps)
    for number, sentence in enumerate(report.model, 1):
        values[f"model {number}"] = sentence
    values["publishers of joint_states"] = str(report.publishers)
    values["ticks without the interpreter"] = str(loop.numbers[TICKS])
    values["states missed"] = str(loop.statistics.missed)
    values["states late"] = str(loop.statistics.late)
    values["trajectories dropped"] = str(loop.statistics.dropped)
    for row, name in enumerate(NAMES):
        values[f"{name}, last second"] = report.recent.summary(row)
        values[f"{name}, since activation"] = loop.statistics.summary(row)
    age = loop.torque_age()
    values["age of the applied torque"] = (
        "not known, as effort in joint_states is no command" if math.isnan(age) else f"{age:.4f} s"
    )
    values["real time"] = report.real_time
    return values
