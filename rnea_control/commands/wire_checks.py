"""Whether the arm answers to the torques of `rnea_doctor --move` as its model says."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, note, warning

# fmt: off
MOVE_REFUSED = error("move-refused",
    "--move was given, and the arm was not moved",
    "Do what the message asks for, and run `rnea_doctor --move` again")
MOVE_ENDED = error("move-ended",
    "the check by --move has ended early",
    "Mend what the message names, and run `rnea_doctor --move` again with the arm supported")
ARM_MOVED_OFF = error("arm-moved-off",
    "the arm went further or faster than the torques of --move should lead it, and was let go",
    "Look, one by one, for a push, a load, friction or a `gravity` that the model lacks, a wrong "
    "hardware_compensates_gravity, and a wrong sign, order or unit; then run `rnea_doctor --move` "
    "again")
WIRES_WRONG = error("wires-wrong",
    "the arm did not answer to the torques of --move as its model says: a sign, order, unit, "
    "velocity or the gravity is wrong, or something pushed it",
    "Mend what the message names before anything controls the arm, and run `rnea_doctor --move` "
    "again")
WIRES_DOUBTFUL = warning("wires-doubtful",
    "signs and order of the joints that answered to the torques of --move are right, and something "
    "else is not",
    "Do what the message asks for, and run `rnea_doctor --move` again")
WIRES_UNKNOWN = warning("wires-unknown",
    "no joint has answered to the torques of --move: signs, order and units are not known",
    "See whether brakes are open, drives enabled and emergency stops released, or do what the "
    "message asks for; then run `rnea_doctor --move` again")
WIRES_RIGHT = note("wires-right",
    "each joint answered to the torques of --move as the model says",
    "Next: activate the controller, with soft gains first")
# fmt: on


def check(evidence: Evidence) -> Iterator[Finding]:
    """The result of the move, if `--move` was given."""
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
    # If no mistake explains why an arm moved off, its cause is not known: it may be a push.
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
        late = f"{delay:.0f} ms" if delay >= 1.0 else "less than 1 ms"  # no finer than was looked
        seen = "" if math.isnan(delay) else f"; torques act {late} after the states they answer"
        yield WIRES_RIGHT.found(f"all {count} joints answered as the model says{seen}")
