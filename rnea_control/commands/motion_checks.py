"""A verdict on what the controller counted since its activation: after a motion, how it went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rnea_control.commands.configuration import Configuration
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.node.diagnostics import STAGES

GAVE_WAY = warning(
    "gave-way",
    "the controller has taken the desired position from the arm: it was torn away, or pressed",
    "See what was in its way; if nothing was, the model or the gains are wrong",
)
LIMITS_AT_WORK = warning(
    "limits-at-work",
    "limits have changed the torques",
    "Plan slower, and further from the position limits, or set other limits; docs/safety.md says "
    "what each does",
)
STATES_REFUSED = warning(
    "states-refused",
    "the controller has refused joint states as impossible",
    "Its log says why for each kind: NaN, a joint missing, a jump, a stamp that goes back",
)
STATE_GAPS = warning(
    "state-gaps",
    "states have stayed away for longer than `joint_state_gap`",
    "docs/realtime.md: real-time priority of controller_manager, Fast DDS profile",
)
STATES_MISSED = warning(
    "states-missed",
    "the controller has missed more states than `diagnostics.missed_states.warn`",
    "docs/realtime.md: priority, a CPU of its own",
)
STATES_LATE = warning(
    "states-late",
    "more states were late than `diagnostics.late_states.warn`",
    "docs/realtime.md: real-time priority of controller_manager, Fast DDS profile",
)
TRAJECTORIES_DROPPED = warning(
    "trajectories-dropped",
    "motions ended as the stamps of the states went back or jumped",
    "Look for a second publisher of joint_states, a clock that is set while the robot runs, or a "
    "hardware process that pauses",
)
MODEL_DIFFERS = warning(
    "model-differs",
    "the controller has seen that its model does not fit the arm at rest",
    "Do what the message asks",
)
REPORT_UNKNOWN = error(
    "report-unknown",
    "the controller's report lacks what rnea_doctor looks for: the two are of different versions",
    "Use rnea_doctor and rnea_controller of the same version",
)

# Counters of the report, and what a count above 0 is.
COUNTED = {
    "gave way": GAVE_WAY,
    "states refused": STATES_REFUSED,
    "gaps in states": STATE_GAPS,
    "trajectories dropped": TRAJECTORIES_DROPPED,
}
# Counters whose share of all states has a bound, and its name among the parameters.
SHARED = {
    "states missed": (STATES_MISSED, "diagnostics.missed_states.warn"),
    "states late": (STATES_LATE, "diagnostics.late_states.warn"),
}
TICKS, NEVER = "ticks", "never"


def check(evidence: Evidence, settings: Configuration) -> Iterator[Finding]:
    """How it went so far."""
    name = evidence.controller
    reports = [one.values for one in evidence.diagnostics.get(name, ()) if "mode" in one.values]
    if not reports:
        return
    first, last = reports[0], reports[-1]
    lacking = [key for key in (TICKS, *COUNTED, *SHARED) if key not in last and key != "gave way"]
    if lacking:
        yield REPORT_UNKNOWN.found(f"{name} says nothing of {', '.join(lacking)}")
        return
    for key, code in COUNTED.items():
        if count := _count(last, key):
            words = f"{name}: {key}: {count}{_watched(first, last, key, evidence.seconds)}"
            if key == "gave way":
                words += f", last as {last.get('gave way last', 'it does not say why')}"
            yield code.found(words)
    ticks, missed = _count(last, TICKS), _count(last, "states missed")
    for key, (code, bound) in SHARED.items():
        count, allowed = _count(last, key), settings.get(bound)
        part = count / max(ticks + missed, 1)
        if part > allowed:
            yield code.found(
                f"{name}: {key}: {count}{_watched(first, last, key, evidence.seconds)}; that is "
                f"{100.0 * part:.2g} % of the states, and {100.0 * allowed:g} % is the bound"
            )
    for stage in STAGES:
        at_work = last.get(f"{stage} at work", NEVER)
        if at_work != NEVER:
            yield LIMITS_AT_WORK.found(f"{name}: {stage} since activation: {at_work}")
    for key, sentence in last.items():
        if key.startswith("model "):
            yield MODEL_DIFFERS.found(f"{name}: {sentence}")


def _count(values: Mapping[str, str], key: str) -> int:
    return int(values.get(key, "0"))


def _watched(first: Mapping[str, str], last: Mapping[str, str], key: str, seconds: float) -> str:
    """How many of a counter's came while the system was watched, in words."""
    new = _count(last, key) - _count(first, key)
    return f" since activation, {max(new, 0)} of them in the {seconds:g} s that were watched"
