"""Findings of `rnea_doctor --move`: the response of the arm compared with its model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, note, warning

# fmt: off
MOVE_REFUSED = error("move-refused",
    "--move was given, and the arm was not moved",
    "Remove the reason in the message, and run `rnea_doctor --move` again")
MOVE_ENDED = error("move-ended",
    "the check by --move has ended early",
    "Correct the cause in the message, and run `rnea_doctor --move` again with the arm supported")
ARM_MOVED_OFF = error("arm-moved-off",
    "the arm moved further or faster than the torques of --move explain, and was released",
    "Check for a push; a load, friction or `gravity` that the model lacks; a wrong "
    "hardware_compensates_gravity, sign, order or unit. Then run `rnea_doctor --move` again")
WIRES_WRONG = error("wires-wrong",
    "the response to the torques of --move contradicts the model: a sign, order, unit, velocity or "
    "gravity is wrong, or something pushed the arm",
    "Correct the cause in the message before any controller commands the arm, and run "
    "`rnea_doctor --move` again")
WIRES_DOUBTFUL = warning("wires-doubtful",
    "signs and order of the joints that responded to the torques of --move are right, but "
    "something else is wrong",
    "Follow the remedy in the message, and run `rnea_doctor --move` again")
WIRES_UNKNOWN = warning("wires-unknown",
    "no joint has responded to the torques of --move: signs, order and units are unknown",
    "Check that brakes are open, drives enabled and emergency stops released, or follow the remedy "
    "in the message; then run `rnea_doctor --move` again")
WIRES_RIGHT = note("wires-right",
    "each joint responded to the torques of --move as the model predicts",
    "Next: activate the controller, with soft gains first")
# fmt: on


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings from the result of `--move`; none without it."""
    move = evidence.move
    if move is None:
        return
    if move.refusal:
        yield MOVE_REFUSED.found(move.refusal)
    if move.failure:
        yield MOVE_ENDED.found(f"{move.failure}. {move.last_command}")
    verdict, words = move.verdict, ""
    if verdict is not None:
        words = f"{move.likely} (seen: {verdict.words})" if move.likely else verdict.words
    # An arm that moved off without a mistake that explains it may have been pushed.
    wrong = verdict is not None and verdict.wrong
    known = wrong and (move.likely or verdict.told or not move.moved_off)
    if move.moved_off and not known:
        yield ARM_MOVED_OFF.found(words or "it left its place under the gravity torque")
    elif verdict is None:
        return
    elif wrong:
        yield WIRES_WRONG.found(words)
    elif not verdict.verified.any():
        yield WIRES_UNKNOWN.found(words)
    elif words:
        yield WIRES_DOUBTFUL.found(words)
    else:
        count, delay = len(verdict.verified), 1e3 * move.delay
        late = f"{delay:.0f} ms" if delay >= 1.0 else "less than 1 ms"  # resolution of the check
        seen = "" if math.isnan(delay) else f"; torques act {late} after the states they answer"
        yield WIRES_RIGHT.found(f"all {count} joints responded as the model predicts{seen}")
