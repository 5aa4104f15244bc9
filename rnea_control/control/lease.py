"""The lease of an owner of the arm: which commands it allows, and how an absence ends it.

This is the part of `Handover` (handover.py has the rules) that every tick asks. Its facts are the
rows of one array, so that the ticks' machine code and Python read and write the same.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.kernels.inlining import inlined

# The phases of one of the two.
IDLE, GUARDING, REVOKING, COMMANDING = range(4)
# Rows: the phase, and why it is as it is: a reason, and its two numbers.
PHASE, REASON, REASON_NUMBERS = 0, 1, 2
# Whether the other might take the arm, and whether there is no other.
GUARDED, ALONE = 4, 5
# The newest state: its stamp, and its publisher's count of it, -1 where that is not known.
STAMP, NUMBER = 6, 7
# How long silence must last, since when it does, by both clocks, and in how many states.
WAIT, SINCE, SINCE_STAMP, STATES = range(8, 12)
# An owner: whether it has commanded, until when it was never away for a lease, and the stamp and
# the number of the state that its last command answered, with the way from stamps to the clock.
HAS_COMMANDED, AWAKE_AT, COMMANDED_STAMP, COMMANDED_NUMBER, OFFSET = range(12, 17)
# One that was away: whether it does not know yet for how long the arm was without it, the stamp of
# the last state since and when that came, how many came in time, since when states are judged, and
# how many have waited.
WAS_AWAY, EVIDENCE_STAMP, EVIDENCE_AT, IN_TIME, WOKE_AT, STALE = range(17, 23)
# Who listens: when it looked last, and at which stamp.
LOOKED_AT, LOOKED_STAMP = 23, 24
# Who asks the other to yield: the newest stamp when it did.
REVOKED_STAMP = 25
# Constants; see `HandoverTimes`.
LEASE, RECOVERY, GRACE, AWAKE, LEAST_STATES, SIMULATED = range(26, 32)
LONGEST_ABSENCE = 32  # absence after which others may have taken this process for dead [s]
REDISCOVERY = 33  # silence that is then waited for [s]
ROWS = 34

# Reasons that a tick finds; handover.py has the words for them.
OTHER_REASON, WAS_AWAY_FOR, NO_STATE_TELLS, REVOKED = range(4)
# Reasons that only Python finds, beside `OTHER_REASON`.
OVERTAKEN = 4  # commands of the other side came while this one owned the arm
SILENCE = 5  # no command of the other side came
# Reasons by which an owner loses the arm to a pause: its own, or that of its commands on their way.
PAUSES = (WAS_AWAY_FOR, NO_STATE_TELLS, OVERTAKEN)

# A state that comes no later than this part of `awake` after its stamp, compared with the one that
# was answered last, has not waited.
LATE = 0.2
# In simulated time, where stamps do not follow the steady clock, states are fresh when so many in a
# row have each come this part of their stamps' distance after the one before: those that have
# waited come at once. A simulation may run five times as fast as the steady clock.
FRESH, FRESH_STATES = 0.2, 2
# After so many that do not tell for how long it was away, an owner yields.
MOST_STALE = 20


@inlined
def change(h: Vector, phase: int, reason: int) -> None:
    """Changes the phase."""
    if phase != COMMANDING:
        h[WAS_AWAY] = 0.0
    h[PHASE], h[REASON] = phase, reason


@inlined
def listen(h: Vector, now: float, wait: float) -> None:
    """Waits from now on for a silence of `wait`, [s]."""
    h[WAIT], h[SINCE], h[SINCE_STAMP], h[STATES] = wait, now, h[STAMP], 0.0


@inlined
def notice_absence(h: Vector, now: float) -> None:
    """Notes whether an owner was away: it then does not know how the arm has moved meanwhile."""
    away = now - h[AWAKE_AT] > h[LEASE] and h[ALONE] == 0.0
    if away and h[HAS_COMMANDED] != 0.0 and h[PHASE] == COMMANDING and h[WAS_AWAY] == 0.0:
        h[WAS_AWAY], h[EVIDENCE_STAMP], h[EVIDENCE_AT], h[IN_TIME] = 1.0, math.nan, now, 0.0
        h[WOKE_AT], h[STALE] = now, 0.0


@inlined
def is_fresh(h: Vector, stamp: float, now: float, within: bool) -> bool:
    """Whether a state has not waited to be taken; see `FRESH`. One that tells of a long absence
    counts when the other has had time to say that it began to guard."""
    if now - stamp <= h[OFFSET] + LATE * h[AWAKE]:
        return within or now - h[WOKE_AT] > h[AWAKE]
    before, came_at = h[EVIDENCE_STAMP], h[EVIDENCE_AT]
    if stamp != before and h[SIMULATED] != 0.0:
        in_time = 0.0 < FRESH * (stamp - before) <= now - came_at
        h[IN_TIME] = h[IN_TIME] + 1.0 if in_time else 0.0
        h[EVIDENCE_STAMP], h[EVIDENCE_AT] = stamp, now
    return h[IN_TIME] >= FRESH_STATES


@inlined
def recovery(h: Vector, now: float) -> float:
    """Silence after which an owner that was away commands again, [s]. After an absence in which
    another process may have been started in its place, that one must be discovered first."""
    replaced = now - h[AWAKE_AT] > h[LONGEST_ABSENCE]
    return max(h[RECOVERY], h[REDISCOVERY]) if replaced else h[RECOVERY]


@inlined
def judge_absence(h: Vector, stamp: float, now: float) -> None:
    """Takes from a state how long the arm was without a command."""
    passed = h[NUMBER] - h[COMMANDED_NUMBER]  # states, not counting those of another
    within = 0.0 <= stamp - h[COMMANDED_STAMP] <= h[LEASE]
    if h[NUMBER] >= 0.0 and h[COMMANDED_NUMBER] >= 0.0:
        long = now - h[AWAKE_AT] > h[LEASE] + 0.5 * h[AWAKE]
        most = h[LEAST_STATES] - 1.0 if long else h[LEAST_STATES]
        within = within or 0.0 < passed < most
    if not within and h[GUARDED] != 0.0:
        h[REASON_NUMBERS], h[REASON_NUMBERS + 1] = 1e3 * (now - h[AWAKE_AT]), passed
        listen(h, now, recovery(h, now))
        change(h, GUARDING, WAS_AWAY_FOR)
    elif is_fresh(h, stamp, now, within):
        h[WAS_AWAY], h[AWAKE_AT] = 0.0, now
    else:
        h[STALE] += 1.0
        if h[STALE] > MOST_STALE and now - h[WOKE_AT] > h[RECOVERY]:
            listen(h, now, recovery(h, now))
            change(h, GUARDING, NO_STATE_TELLS)


@inlined
def hear_state(h: Vector, stamp: float, now: float, number: float) -> None:
    """A state of this stamp, [s], was taken, its publisher's `number`, or -1 where that is not
    known; to be told before anything is decided from it. `now`: by the steady clock, [s]."""
    notice_absence(h, now)
    h[NUMBER] = number
    if h[WAS_AWAY] != 0.0:
        judge_absence(h, stamp, now)
    if stamp > h[STAMP]:
        h[STATES] += 1.0
    elif not stamp >= h[STAMP]:  # the first one, or the clock was set back
        h[SINCE_STAMP] = h[REVOKED_STAMP] = stamp
    h[STAMP] = stamp


@inlined
def hear_nothing(h: Vector, now: float) -> None:
    """No usable state has come since the last one; to be told more often than once a lease, as long
    as none comes. It keeps an owner in office that has nothing to answer, and lets one who listens
    do so between states that come less often than once a lease."""
    notice_absence(h, now)
    if now - h[AWAKE_AT] <= h[LEASE]:
        h[AWAKE_AT] = now
    if now - h[LOOKED_AT] <= h[AWAKE]:
        h[LOOKED_AT] = now


@inlined
def hear_revocation(h: Vector, now: float) -> None:
    """The sentinel asks the controller to yield."""
    notice_absence(h, now)
    h[GUARDED], h[ALONE] = 1.0, 0.0
    if h[PHASE] == COMMANDING:
        listen(h, now, h[GRACE])
        change(h, GUARDING, REVOKED)


@inlined
def may_answer(h: Vector, now: float) -> bool:
    """Whether a command for the newest state may be published at once after this call; it may not
    while the owner does not know whether its lease is over."""
    if now - h[AWAKE_AT] > h[LEASE]:
        notice_absence(h, now)
    return h[PHASE] == COMMANDING and h[WAS_AWAY] == 0.0


@inlined
def answered(h: Vector, now: float) -> None:
    """The owner's command for the newest state was published; `now`: when `may_answer` allowed it.
    A command that was not published renews no lease: the sentinel has not received it either."""
    h[HAS_COMMANDED], h[AWAKE_AT] = 1.0, now
    h[COMMANDED_STAMP], h[COMMANDED_NUMBER] = h[STAMP], h[NUMBER]
    h[OFFSET] = now - h[STAMP]
