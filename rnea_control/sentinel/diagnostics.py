"""The sentinel's report for `/diagnostics`."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from rnea_control.control.handover import Phase
from rnea_control.ros.native_loop import TICKS
from rnea_control.sentinel.guard import Guard

# Why there is no guard yet.
WAITING = "waiting for the topic robot_description"


def diagnostics(
    name: str, guard: Guard | None, fault: str, differs: str, failures: int, failure: str
) -> DiagnosticArray:
    """The report as one diagnostic status.

    Args:
        name: full name of the node.
        guard: the guard of the arm, if it could be made.
        fault: why it could not.
        differs: why it lacks the values in force in the controller; empty if it has them.
        failures: how many callbacks have failed.
        failure: the message of the last one, if it came since the last report.
    """
    level, message = _finding(guard, fault)
    if differs and level == DiagnosticStatus.OK:
        level, message = DiagnosticStatus.ERROR, differs
    if failure and level == DiagnosticStatus.OK:
        level, message = DiagnosticStatus.WARN, failure
    values = {"callbacks failed": str(failures), **({} if guard is None else _values(guard))}
    if differs:
        values["differs"] = differs
    status = DiagnosticStatus(
        name=f"{name.lstrip('/')}: guard",
        hardware_id=name.rpartition("/")[2],
        level=level,
        message=message,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    return DiagnosticArray(status=[status])


def _finding(guard: Guard | None, fault: str) -> tuple[bytes, str]:
    if guard is None:
        return (DiagnosticStatus.WARN if fault == WAITING else DiagnosticStatus.ERROR), fault
    if guard.failure:
        return DiagnosticStatus.ERROR, guard.failure
    handover = guard.handover
    if handover.contested:
        return DiagnosticStatus.ERROR, f"wrong commands do not stop: {handover.reason}"
    if handover.phase is Phase.commanding:
        return DiagnosticStatus.ERROR, f"the sentinel holds the arm: {handover.reason}"
    if handover.phase is Phase.revoking:
        return DiagnosticStatus.ERROR, f"taking the arm: {handover.reason}"
    if handover.phase is Phase.idle:
        return DiagnosticStatus.OK, "not armed: no command has come"
    return DiagnosticStatus.OK, "guarding"


def _values(guard: Guard) -> dict[str, str]:
    return {
        "mode": guard.handover.phase.value,
        "reason": guard.handover.reason,
        "takeovers": str(guard.takeovers),
        "commands sent": str(guard.commands_sent),
        "ticks without the interpreter": str(guard.numbers[TICKS]),
        "states refused": str(guard.refused_states),
        "fastest joint": f"{guard.speed:.3g}",
    }
