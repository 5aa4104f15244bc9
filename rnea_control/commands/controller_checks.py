"""The controller and its sentinel: whether they run, what they have said of themselves, and after a
motion, how it went."""

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
    "Stop one of them, or give each arm its namespace")
NODE_SILENT = warning("node-silent",
    "a node does not answer for its parameters, which could not be checked",
    "See whether its process is stopped or short of CPU time; a longer --seconds waits longer")
CONTROLLER_ABSENT = note("controller-absent",
    "rnea_controller does not run",
    "Start it: `ros2 launch rnea_control arm.launch.py parameters:=FILE.yaml`, or correct "
    "--namespace and --node")
CONTROLLER_SILENT = warning("controller-silent",
    "the controller is there, and its services or its /diagnostics are silent",
    "See whether its process is stopped or short of CPU time; a longer --seconds waits longer")
CONTROLLER_INACTIVE = note("controller-inactive",
    "the controller is not configured or not active",
    "`ros2 lifecycle set NODE configure` and `activate`, or leave `autostart` true")
CONTROLLER_WAITING = note("controller-waiting",
    "the controller is active and waits; it commands the gravity torque at most",
    "Do what the message waits for")
CONTROLLER_WARNS = warning("controller-warns",
    "the controller's /diagnostics say WARN",
    "docs/realtime.md explains the figures, docs/safety.md the rest")
CONTROLLER_FAILS = error("controller-fails",
    "the controller's /diagnostics say ERROR",
    "docs/safety.md explains the modes and how to leave them")
SENTINEL_ABSENT = warning("sentinel-absent",
    "the controller runs without rnea_sentinel: if it is killed, its last torque stays in force",
    "Start rnea_sentinel; the launch files do")
SENTINEL_REQUIRED = error("sentinel-required",
    "`require_sentinel` is true, and there is no rnea_sentinel: the controller does not activate",
    "Start rnea_sentinel; the launch files do")
HANDOVER_DIFFERS = error("handover-differs",
    "sentinel and controller have different times of the hand-over, or another `command_topic`: "
    "both could command at once, or neither",
    "Start both with the same YAML file")
SENTINEL_DIFFERS = warning("sentinel-differs",
    "the sentinel has other parameters of the robot than the controller: it would hold another arm",
    "Take them out of the sentinel's own section of the YAML file: it takes over the controller's")
SENTINEL_FAILS = error("sentinel-fails",
    "the sentinel's /diagnostics say ERROR",
    "docs/handover.md says when the sentinel takes the arm, and how it gives it back")
GAVE_WAY = warning("gave-way",
    "the controller has taken the desired position from the arm: it was torn away, or pressed",
    "See what was in its way; if nothing was, the model or the gains are wrong")
LIMITS_AT_WORK = warning("limits-at-work",
    "limits have changed the torques",
    "Plan slower, and further from the position limits, or set other limits; docs/safety.md says "
    "what each does")
STATES_REFUSED = warning("states-refused",
    "the controller has refused joint states as impossible",
    "Its log says why for each kind: NaN, a joint missing, a jump, a stamp that goes back")
STATE_GAPS = warning("state-gaps",
    "states have stayed away for longer than `joint_state_gap`",
    f"docs/realtime.md: real-time priority of controller_manager, {middleware.NAME} profile")
STATES_MISSED = warning("states-missed",
    "the controller has missed more states than `diagnostics.missed_states.warn`",
    "docs/realtime.md: priority, a CPU of its own")
STATES_LATE = warning("states-late",
    "more states were late than `diagnostics.late_states.warn`",
    f"docs/realtime.md: real-time priority of controller_manager, {middleware.NAME} profile")
TRAJECTORIES_DROPPED = warning("trajectories-dropped",
    "motions ended as the stamps of the states went back or jumped",
    "Look for a second publisher of joint_states, a clock that is set while the robot runs, or a "
    "hardware process that pauses")
MODEL_DIFFERS = warning("model-differs",
    "the controller has seen that its model does not fit the arm at rest",
    "Do what the message asks")
REPORT_UNKNOWN = error("report-unknown",
    "the controller's report lacks what rnea_doctor looks for: the two are of different versions",
    "Use rnea_doctor and rnea_controller of the same version")
# fmt: on

# What both must have in common, but for the description, which has a check of its own.
OF_HANDOVER = ("command_topic", *(row.name for row in HANDOVER))
OF_ROBOT = tuple(each for each in ROBOT if each.name != "robot_description")

OK, WARN = 0, 1
# /diagnostics come once a second.
LONGEST_SILENCE = 2.5
# How a report begins that `check_motion` has a finding of its own for.
UNFIT = "the model does not fit the robot"

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


def check(evidence: Evidence) -> Iterator[Finding]:
    """What is wrong with controller and sentinel."""
    counts = Counter(evidence.nodes)
    ours = {evidence.controller, evidence.sentinel, evidence.manager}
    for node in sorted(name for name in ours if counts[name] > 1):
        yield NODE_TWICE.found(f"{node} is there {counts[node]} times")
    # Silent ones that have findings of their own.
    others = {evidence.controller, evidence.manager if evidence.controllers is None else ""}
    if is_gone(evidence):
        others.add(evidence.effort_controller)  # of the same process
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
    """What was said at this level, the last one of each kind, with how often."""
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
    """A verdict on what the controller counted since its activation."""
    name = evidence.controller
    reports = [one.values for one in evidence.diagnostics.get(name, ()) if "mode" in one.values]
    if not reports:
        return
    last, keys = reports[-1], (TICKS, *COUNTED, *SHARED)
    if lacking := [key for key in keys if key not in last and key != "gave way"]:
        yield REPORT_UNKNOWN.found(f"{name} says nothing of {', '.join(lacking)}")
        return
    before, count = ({key: int(one.get(key, "0")) for key in keys} for one in (reports[0], last))

    def counted(key: str) -> str:
        """How often, and how many of them while the system was watched, in words."""
        new = max(count[key] - before[key], 0)
        return (
            f"{name}: {key}: {count[key]} since activation, {new} of them in the "
            f"{evidence.seconds:g} s that were watched"
        )

    for key, code in COUNTED.items():
        if count[key]:
            why = f", last as {last.get('gave way last', 'it does not say why')}"
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
