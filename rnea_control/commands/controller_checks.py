"""Checks of the controller and its sentinel: presence, their reports, and the counters of the
motions since activation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rnea_control.commands.evidence import Evidence, Status
from rnea_control.commands.finding import Finding, error, note, warning
from rnea_control.commands.manager_checks import is_gone
from rnea_control.exceptions import listed
from rnea_control.node.diagnostics import STAGES
from rnea_control.parameters.parameter import expand
from rnea_control.parameters.table import DEFAULT, HANDOVER, ROBOT
from rnea_control.ros import middleware

# fmt: off
NODE_TWICE = error("node-twice",
    "two nodes have the same name; both would command the arm",
    "Stop one of the nodes, or give each arm its own namespace")
NODE_SILENT = warning("node-silent",
    "a node does not answer requests for its parameters, which could not be checked",
    "Find out whether its process is stopped or lacks CPU time; a larger --seconds waits longer")
CONTROLLER_ABSENT = note("controller-absent",
    "rnea_controller does not run",
    "Start it: `ros2 launch rnea_control arm.launch.py parameters:=FILE.yaml`, or correct "
    "--namespace and --node")
CONTROLLER_SILENT = warning("controller-silent",
    "the controller runs, and its services do not answer or its /diagnostics are missing",
    "Find out whether its process is stopped or lacks CPU time; a larger --seconds waits longer")
CONTROLLER_INACTIVE = note("controller-inactive",
    "the controller is not configured or not active",
    "`ros2 lifecycle set NODE configure` and `activate`, or leave `autostart` true")
CONTROLLER_WAITING = note("controller-waiting",
    "the controller is active and waits; it commands no more than the gravity torque",
    "Provide what the message names")
CONTROLLER_WARNS = warning("controller-warns",
    "the controller's /diagnostics report WARN",
    "docs/realtime.md explains the figures, docs/safety.md the rest")
CONTROLLER_FAILS = error("controller-fails",
    "the controller's /diagnostics report ERROR",
    "docs/safety.md explains the modes and how to leave them")
SENTINEL_ABSENT = warning("sentinel-absent",
    "the controller runs without rnea_sentinel: if the controller is killed, its last torque stays "
    "in force",
    "Start rnea_sentinel; the launch files do")
SENTINEL_REQUIRED = error("sentinel-required",
    "`require_sentinel` is true, and no rnea_sentinel runs: the controller does not activate",
    "Start rnea_sentinel; the launch files do")
HANDOVER_DIFFERS = error("handover-differs",
    "sentinel and controller have different hand-over times or a different `command_topic`: both "
    "could command at once, or neither",
    "Start sentinel and controller with the same YAML file")
SENTINEL_DIFFERS = warning("sentinel-differs",
    "the sentinel has other robot parameters than the controller: it would hold another arm",
    "Remove them from the sentinel's own section of the YAML file: it uses the controller's values")
SENTINEL_FAILS = error("sentinel-fails",
    "the sentinel's /diagnostics report ERROR",
    "docs/handover.md explains when the sentinel takes over the arm, and how it gives the arm back")
GAVE_WAY = warning("gave-way",
    "the controller has set the desired position to the measured one: something pulled the arm "
    "away or pressed against it",
    "Look for an obstacle; without one, the model or the gains are wrong")
LIMITS_AT_WORK = warning("limits-at-work",
    "limits have changed the torques",
    "Plan slower motions, further from the position limits, or set other limits; docs/safety.md "
    "explains each limit")
STATES_REFUSED = warning("states-refused",
    "the controller has refused joint states as impossible",
    "Its log names the reason: NaN, a missing joint, a jump, a stamp that goes back")
STATE_GAPS = warning("state-gaps",
    "states were missing for longer than `joint_state_gap`",
    f"docs/realtime.md: real-time priority of controller_manager, {middleware.NAME} profile")
STATES_MISSED = warning("states-missed",
    "the controller has missed more states than `diagnostics.missed_states.warn`",
    "docs/realtime.md: real-time priority, a CPU for the controller alone")
STATES_LATE = warning("states-late",
    "more states were late than `diagnostics.late_states.warn`",
    f"docs/realtime.md: real-time priority of controller_manager, {middleware.NAME} profile")
TRAJECTORIES_DROPPED = warning("trajectories-dropped",
    "motions ended because the stamps of the states went back or jumped",
    "Look for a second publisher of joint_states, a clock that is set while the robot runs, or a "
    "hardware process that pauses")
MODEL_DIFFERS = warning("model-differs",
    "the controller has detected that its model does not fit the arm at rest",
    "Follow the remedy in the message")
REPORT_UNKNOWN = error("report-unknown",
    "the controller's report lacks a value that rnea_doctor evaluates: their versions differ",
    "Use rnea_doctor and rnea_controller of the same version")
# fmt: on

# Parameters that controller and sentinel must share. The description has its own check.
OF_HANDOVER = ("command_topic", *(row.name for row in HANDOVER))
OF_ROBOT = tuple(each for each in ROBOT if each.name != "robot_description")

OK = 0  # level of a report: no problem
WARN = 1  # level of a report: warning; larger levels are errors
LONGEST_SILENCE = 2.5  # time without /diagnostics, published once a second, that is reported [s]
# Beginning of the reports that `check_motion` turns into MODEL_DIFFERS.
UNFIT = "the model does not fit the robot"

# Counters of the report, and the finding for a count above 0.
COUNTED = {
    "gave way": GAVE_WAY,
    "states refused": STATES_REFUSED,
    "gaps in states": STATE_GAPS,
    "trajectories dropped": TRAJECTORIES_DROPPED,
}
# Counters whose share of all states has a bound; finding, and name of the parameter for the bound.
SHARED = {
    "states missed": (STATES_MISSED, "diagnostics.missed_states.warn"),
    "states late": (STATES_LATE, "diagnostics.late_states.warn"),
}
TICKS = "ticks"  # counter of the control ticks
NEVER = "never"  # value of a limit that has not acted since activation


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about controller and sentinel."""
    counts = Counter(evidence.nodes)
    ours = {evidence.controller, evidence.sentinel, evidence.manager}
    for node in sorted(name for name in ours if counts[name] > 1):
        yield NODE_TWICE.found(f"{node} is there {counts[node]} times")
    # Silent nodes for which other checks have findings.
    others = {evidence.controller, evidence.manager if evidence.controllers is None else ""}
    if is_gone(evidence):
        others.add(evidence.effort_controller)  # runs in the process of controller_manager
    for node, values in evidence.parameters.items():
        if values is None and node not in others:
            yield NODE_SILENT.found(f"{node} has not answered in {evidence.seconds:g} s")
    if evidence.controller not in counts:
        yield CONTROLLER_ABSENT.found(f"{evidence.controller} is not there")
        return
    yield from _controller(evidence)
    yield from _sentinel(evidence)


def _controller(evidence: Evidence) -> Iterator[Finding]:
    name, seconds = evidence.controller, f"{evidence.seconds:g} s"
    reports = evidence.diagnostics.get(name, ())
    if evidence.parameters.get(name) is None:
        yield CONTROLLER_SILENT.found(f"{name} has not answered for its parameters in {seconds}")
    if not reports and evidence.seconds >= LONGEST_SILENCE:
        yield CONTROLLER_SILENT.found(f"{name} has published no /diagnostics in {seconds}")
    if not reports:
        return
    last = reports[-1]
    if last.level == OK and last.message in ("not configured", "not active"):
        yield CONTROLLER_INACTIVE.found(f"{name} is {last.message}", NODE=name)
    elif last.level == WARN and last.values.get("mode") == "waiting":
        yield CONTROLLER_WAITING.found(f"{name} is {last.message}")
        reports = tuple(one for one in reports if one.values.get("mode") != "waiting")
    for level, code in ((WARN, CONTROLLER_WARNS), (WARN + 1, CONTROLLER_FAILS)):
        for words in _messages(reports, level):
            yield code.found(f"{name}: {words}")


def _messages(reports: tuple[Status, ...], level: int) -> list[str]:
    """Messages of reports at this level: the last one of each kind, with the number of reports."""
    kinds: dict[str, list[str]] = {}
    for report in reports:
        if min(report.level, WARN + 1) == level and not report.message.startswith(UNFIT):
            kind = "".join(letter for letter in report.message if not letter.isdigit())
            kinds.setdefault(kind, []).append(report.message)
    return [f"{said[-1]} ({len(said)} of {len(reports)} reports)" for said in kinds.values()]


def _sentinel(evidence: Evidence) -> Iterator[Finding]:
    name, settings = evidence.sentinel, evidence.settings
    if name not in evidence.nodes:
        code = SENTINEL_REQUIRED if settings.get("require_sentinel") else SENTINEL_ABSENT
        yield code.found(f"{name} is not there")
        return
    for words in _messages(evidence.diagnostics.get(name, ()), WARN + 1):
        yield SENTINEL_FAILS.found(f"{name}: {words}")
    theirs = evidence.parameters.get(name)
    if theirs is None or settings.where != evidence.controller:
        return
    ours = settings.values
    shared = {HANDOVER_DIFFERS: OF_HANDOVER, SENTINEL_DIFFERS: expand(OF_ROBOT, settings.joints)}
    for code, names in shared.items():
        different = [
            f"{each} ({ours[each]!r} for the controller, {theirs[each]!r})"
            for each in names
            if each in ours and each in theirs and ours[each] not in (theirs[each], DEFAULT)
        ]
        if different:
            yield code.found(f"{name}: {listed(different)}")


def check_motion(evidence: Evidence) -> Iterator[Finding]:
    """Findings from the controller's counters since its activation."""
    name = evidence.controller
    reports = [one.values for one in evidence.diagnostics.get(name, ()) if "mode" in one.values]
    if not reports:
        return
    last, keys = reports[-1], (TICKS, *COUNTED, *SHARED)
    if lacking := [key for key in keys if key not in last and key != "gave way"]:
        yield REPORT_UNKNOWN.found(f"the report of {name} lacks {', '.join(lacking)}")
        return
    before, count = ({key: int(one.get(key, "0")) for key in keys} for one in (reports[0], last))

    def counted(key: str) -> str:
        """Count since activation and count during the observation, in words."""
        new = max(count[key] - before[key], 0)
        return (
            f"{name}: {key}: {count[key]} since activation, {new} of them in the "
            f"{evidence.seconds:g} s of this observation"
        )

    for key, code in COUNTED.items():
        if count[key]:
            why = f", last as {last.get('gave way last', 'the report gives no reason')}"
            yield code.found(counted(key) + (why if key == "gave way" else ""))
    states = max(count[TICKS] + count["states missed"], 1)
    for key, (code, bound) in SHARED.items():
        part, allowed = count[key] / states, evidence.settings.get(bound)
        if part > allowed:
            yield code.found(
                f"{counted(key)}; that is {100.0 * part:.2g} % of the states, and "
                f"{100.0 * allowed:g} % is the bound"
            )
    for stage in STAGES:
        at_work = last.get(f"{stage} at work", NEVER)
        if at_work != NEVER:
            yield LIMITS_AT_WORK.found(f"{name}: {stage} since activation: {at_work}")
    for key, sentence in last.items():
        if key.startswith("model "):
            yield MODEL_DIFFERS.found(f"{name}: {sentence}")
