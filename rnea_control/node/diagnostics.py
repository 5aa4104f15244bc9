"""Report of a controller's node about its loop on `/diagnostics`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rnea_control.control import Mode, Supervisor
from rnea_control.control.mode import FREE, HAS_ARM
from rnea_control.control.violations import NOTABLE
from rnea_control.exceptions import distinct
from rnea_control.loop import loop_records as records
from rnea_control.loop.loop_records import LoopStatistics
from rnea_control.model.robot_model import units
from rnea_control.node.configured import NO_CLOCK, Configured
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import GONE
from rnea_control.parameters.parameter import Parameters
from rnea_control.ros.conventions import STOP_HOLDERS, STREAM_REFUSAL
from rnea_control.ros.guarded_node import ERROR, OK, WARN, Finding

LEVELS = {"error": ERROR, "warn": WARN}
# Names of the rows of `Controller.at_work`.
STAGES = ("soft position limit", "velocity limit", "effort limit", "torque rate limit")


def findings(
    configured: Configured, failed: list[Finding], recent: LoopStatistics, parameters: Parameters
) -> Iterator[Finding]:
    """Findings about a configured node; causes come before their effects.

    Args:
        configured: parts of the configured node.
        failed: failures of the node's callbacks.
        recent: the loop's measurements since the last report, to which the thresholds apply.
        parameters: parameters of the node.
    """
    if rivals := configured.rivals():
        yield ERROR, rivals
    if misfit := configured.misfit:
        yield ERROR, misfit
    yield _state(configured.loop)
    if check := _check(configured.loop.supervisor):
        yield check
    supervisor = configured.loop.supervisor
    if supervisor.weak_braking and supervisor.mode is not Mode.FAULT:
        yield WARN, supervisor.weak_braking
    if configured.delay_watch.finding:
        yield WARN, configured.delay_watch.finding
    if late := _late_states(configured.loop, recent):
        yield WARN, late
    if external := _external_torque(configured.loop):
        yield WARN, external
    if model := configured.model_watch.findings:
        yield WARN, f"the model does not fit the robot: {model[0]}"
    if configured.sentinel.gone:
        yield ERROR, GONE
    yield from failed
    if configured.loop.running:
        yield from _timing(configured, recent, parameters)


def _check(supervisor: Supervisor) -> Finding | None:
    """Finding of the check of the wires at activation, if there is one."""
    verdict = supervisor.verdict
    if verdict is None or not verdict.words or supervisor.mode not in HAS_ARM:
        return None
    return ERROR if verdict.failed else WARN, verdict.explanation(supervisor.checked_cause)


def _external_torque(loop: ControlLoop) -> str:
    """Message about a notable external torque; empty without one."""
    if not loop.running or loop.supervisor.mode not in FREE:
        return ""
    model = loop.controller.model
    external = loop.controller.external_torque
    parts = np.abs(external) / np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    j = int(np.argmax(parts))
    if not parts[j] > NOTABLE:
        return ""
    return (
        f"{external[j]:.3g} {units(model, j).effort} act on {model.joint_names[j]} that the model "
        f"does not know of, {parts[j]:.2f} of its effort limit: friction, payload, contact?"
    )


def _late_states(loop: ControlLoop, recent: LoopStatistics) -> str:
    """Message about states that are too old for the disturbance observer and the feedback inertia
    in force; empty without any."""
    rows = loop.controller.rows
    age, longest = recent.quantiles(records.STATE_AGE, 0.5)[0], float(rows.longest_age)
    if not age > longest or not (rows.bandwidth.any() or rows.added_inertia.any()):
        return ""
    is_, most = distinct(age, longest, digits=3)
    return (
        f"joint_states are {is_} s old, more than {most} s, for which the disturbance observer and "
        "the added feedback inertia were judged: both fade. Do the states come late, or is the "
        "clock of their stamps another one than this computer's?"
    )


def _state(loop: ControlLoop) -> Finding:
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
    if loop.controller.restless:
        return WARN, loop.supervisor.reason
    if loop.controller.saturated:
        return WARN, "torque at the effort limit"
    return OK, "in control"


def _timing(
    configured: Configured, recent: LoopStatistics, parameters: Parameters
) -> Iterator[Finding]:
    """Findings about the time since the last report."""
    counts = recent.counts
    late, missed, foreign, dropped = counts.late, counts.missed, counts.foreign, counts.dropped
    if dropped:
        yield (
            WARN,
            f"trajectory dropped {dropped} times in the last second: the stamps of "
            "joint_states went back or jumped; joint_states has "
            f"{configured.loop.arm_loop.heard.publishers()} publisher(s)",
        )
    longest = recent.largest[records.STATE_INTERVAL]
    if longest > configured.loop.settings.state_gap:
        yield WARN, f"waited {longest:.3g} s for joint_states in the last second"
    if foreign:
        yield (
            ERROR,
            f"{foreign} joint_states of another publisher were ignored in the last second; "
            "only one node may publish them",
        )
    timed = records.TICK_DURATION, records.STATE_AGE, records.PERIOD_JITTER
    measured = {records.NAMES[row]: recent.quantiles(row, 0.99)[0] for row in timed}
    states = max(recent.ticks + missed, 1)
    measured |= {"missed states": missed / states, "late states": late / states}
    for word, level in LEVELS.items():
        for name, value in measured.items():
            threshold = parameters[f"diagnostics.{name.replace(' ', '_')}.{word}"]
            if value > threshold:
                measure, bound = distinct(value, threshold, digits=3)
                yield level, f"{name} {measure} exceeds the {word} threshold, {bound}"


def values_of(configured: Configured, recent: LoopStatistics) -> dict[str, str]:
    """Values of a configured node, by the names that the report lists.

    Args:
        configured: parts of the configured node.
        recent: the loop's measurements since the last report.
    """
    loop = configured.loop
    controller, supervisor = loop.controller, loop.supervisor
    values = {
        "robot": controller.model.name,
        "control_law": controller.settings.control_law.name,
        "ticks": str(loop.arm_loop.statistics.ticks),
        "trajectories received": str(configured.trajectories.received),
        "mode": supervisor.mode.value,
        "reason": supervisor.reason,
        STOP_HOLDERS: ", ".join(configured.stop_holders) or "none",
        "sentinel": configured.sentinel.label or "none",
        "effort controller": str(configured.effort_controller),
    }
    if loop.now is not None and controller.has_trajectory:
        end = controller.trajectory.end_time
        values["motion"] = f"following until {end:.3f} s" if controller.is_moving else "holding"
        if controller.streams:
            values["motion"] = "following a stream of targets"
        values["speed scaling"] = f"{controller.speed_scaling:.3g}"
        values["time"] = f"{loop.now:.3f} s"
        errors = np.abs(controller.position_error)
        worst = int(np.argmax(errors))
        joint = controller.model.joint_names[worst]
        values["largest position error"] = f"{errors[worst]:.3g} ({joint})"
        applied = supervisor.mode is not Mode.WAITING  # torques are not applied until then
        for stage, seconds in zip(STAGES, applied * controller.at_work, strict=True):
            at_work = (
                f"{name} {time:.3f} s"
                for name, time in zip(controller.model.joint_names, seconds, strict=True)
                if time > 0.0
            )
            values[f"{stage} at work"] = ", ".join(at_work) or "never"
        values["gave way"] = str(controller.gave_way)
        if controller.gave_way:
            values["gave way last"] = controller.gave_way_reason
        external = (
            f"{name} {torque:.3g}"
            for name, torque in zip(
                controller.model.joint_names, controller.external_torque, strict=True
            )
        )
        values["external torque"] = ", ".join(external)
    if supervisor.verdict is not None:
        said = supervisor.verdict.explanation(supervisor.checked_cause)
        values["check of the wires"] = said if supervisor.verdict.words else "all is well"
    delay = configured.delay_watch.delay
    values["delay of the torques"] = "not known" if math.isnan(delay) else f"{delay:.4f} s"
    values["states refused"] = str(supervisor.bad_states)
    values["gaps in states"] = str(supervisor.gaps)
    stream = configured.stream_watch.intake
    values["stream targets taken"] = str(stream.taken)
    values["stream targets refused"] = str(stream.refused)
    values[STREAM_REFUSAL] = configured.stream_watch.refusal
    values["stream targets of another publisher"] = str(configured.stream_watch.foreign)
    values["commands not published"] = str(loop.arm_loop.unpublished)
    for number, sentence in enumerate(configured.model_watch.findings, 1):
        values[f"model {number}"] = sentence
    values["publishers of joint_states"] = str(configured.loop.arm_loop.heard.publishers())
    values["ticks without the interpreter"] = str(loop.arm_loop.shared.ticks)
    counts = loop.arm_loop.statistics.counts
    values["states missed"] = str(counts.missed)
    values["states late"] = str(counts.late)
    values["trajectories dropped"] = str(counts.dropped)
    for row, name in enumerate(records.NAMES):
        values[f"{name}, last second"] = recent.summary(row)
        values[f"{name}, since activation"] = loop.arm_loop.statistics.summary(row)
    age = loop.torque_age()
    values["age of the applied torque"] = (
        "not known, as effort in joint_states is no command" if math.isnan(age) else f"{age:.4f} s"
    )
    return values
