"""What the sentinel tells on `/diagnostics`."""

from __future__ import annotations

from rnea_control.control.handover import Phase
from rnea_control.ros.diagnostics import ERROR, OK, WARN
from rnea_control.ros.native_loop import TICKS
from rnea_control.sentinel.guard import Guard

# Why there is no guard yet.
WAITING = "waiting for the topic robot_description"


def finding(guard: Guard | None, fault: str, differs: str, failure: str) -> tuple[bytes, str]:
    """Its level and message.

    Args:
        guard: the guard of the arm, if it could be made.
        fault: why it could not.
        differs: why it lacks the values in force in the controller; empty if it has them.
        failure: the message of the callback that failed last, if that was since the last report.
    """
    level, message = _state(guard, fault)
    if level == OK and differs:
        return ERROR, differs
    return (WARN, failure) if level == OK and failure else (level, message)


def _state(guard: Guard | None, fault: str) -> tuple[bytes, str]:
    if guard is None:
        return (WARN if fault == WAITING else ERROR), fault
    if guard.failure:
        return ERROR, guard.failure
    handover = guard.handover
    if handover.contested:
        return ERROR, f"wrong commands do not stop: {handover.reason}"
    if handover.phase is Phase.commanding:
        return ERROR, f"the sentinel holds the arm: {handover.reason}"
    if handover.phase is Phase.revoking:
        return ERROR, f"taking the arm: {handover.reason}"
    if handover.phase is Phase.idle:
        return OK, "not armed: no command has come"
    return OK, "guarding"


def values_of(guard: Guard) -> dict[str, str]:
    """What is listed."""
    return {
        "mode": guard.handover.phase.value,
        "reason": guard.handover.reason,
        "takeovers": str(guard.takeovers),
        "commands sent": str(guard.commands_sent),
        "ticks without the interpreter": str(guard.numbers[TICKS]),
        "states refused": str(guard.refused_states),
        "fastest joint": f"{guard.speed:.3g}",
    }
