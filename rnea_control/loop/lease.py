"""The lease of an owner of the arm: which commands it allows, and how an absence ends it.

This is the part of `Handover` (handover.py has the rules) that every tick uses. Its facts are one
record, so that the machine code of the ticks and Python read and write the same fields.
"""

from __future__ import annotations

import math

from rnea_control.jit.inlining import inlined
from rnea_control.jit.record import Record

# Phases of a side.
IDLE = 0  # neither commands nor listens
GUARDING = 1  # listens to the commands of the other side
REVOKING = 2  # asks the other side to yield
COMMANDING = 3  # owns the arm


class Lease(Record):
    """Facts of one side. Stamps are those of the joint states; other times are of the steady clock;
    all [s]."""

    phase: int = IDLE
    reason: int = 0  # why it is in this phase, see the reasons below
    away_for: float = 0.0  # length of the absence that ended the lease [ms]
    missed_states: float = 0.0  # joint states during that absence

    guarded: bool = False  # the other side may take the arm
    tolerated: float = 0.0  # absence that the other side lets pass in any case [s]
    alone: bool = False  # no other side exists

    stamp: float = math.nan  # stamp of the newest joint state
    number: float = -1.0  # its publisher's count of it; -1 where that is not known

    # A side that listens.
    silence: float = 0.0  # silence that it waits for [s]
    silent_since: float = 0.0  # beginning of the silence
    silent_since_stamp: float = 0.0  # newest stamp at the beginning of the silence
    silent_states: float = 0.0  # joint states during the silence
    looked_at: float = -math.inf  # last time at which it looked for commands
    looked_stamp: float = math.nan  # newest stamp at that time
    revoked_stamp: float = 0.0  # newest stamp when it asked the other side to yield

    # A side that owns the arm.
    has_commanded: bool = False
    awake_at: float = 0.0  # last time at which it was known to be awake
    commanded_stamp: float = math.nan  # stamp of the joint state that its last command answered
    commanded_number: float = -1.0  # number of that joint state
    clock_minus_stamp: float = math.nan  # steady clock minus stamp at its last command [s]

    # An owner that was paused.
    was_away: bool = False  # it does not know yet for how long
    evidence_stamp: float = math.nan  # stamp of the last joint state since it is awake again
    evidence_at: float = 0.0  # arrival of that joint state
    in_time: float = 0.0  # joint states in a row that arrived in time since then
    woke_at: float = 0.0  # time at which it was awake again
    stale: float = 0.0  # joint states since then that had waited

    # Constants; see `HandoverTimes` [s].
    duration: float = 0.0  # duration of the lease
    recovery: float = 0.0
    grace: float = 0.0
    awake: float = 0.0
    least_states: float = 0.0  # joint states without a command before silence counts
    simulated: bool = False
    longest_absence: float = 0.0  # absence after which others may have declared it dead [s]
    rediscovery: float = 0.0  # silence that it then waits for [s]


# Reasons of a phase that a tick finds; handover.py has the words for them.
OTHER_REASON = 0
WAS_AWAY_FOR = 1  # the owner was paused for longer than its lease
NO_STATE_TELLS = 2  # the owner was paused, and no joint state shows for how long
REVOKED = 3  # the sentinel asked the controller to yield
# Reasons that only Python finds, beside `OTHER_REASON`.
OVERTAKEN = 4  # commands of the other side arrived while this side owned the arm
SILENCE = 5  # no command of the other side arrived
# Reasons by which an owner loses the arm to a pause: its own, or that of its commands on their way.
PAUSES = (WAS_AWAY_FOR, NO_STATE_TELLS, OVERTAKEN)

# A fresh joint state may come later than that answered last, by this fraction of `awake`.
LATE = 0.2
# In simulated time stamps do not follow the steady clock. A joint state is in time if it arrives
# this fraction of the distance of their stamps after the one before: joint states that have waited
# arrive at once. A simulation may run five times as fast as the steady clock.
FRESH = 0.2
FRESH_STATES = 2  # joint states in a row that arrive in time, after which the next one is fresh
MOST_STALE = 20  # joint states that have waited, after which an owner that was paused yields


@inlined
def change(lease: Lease, phase: int, reason: int) -> None:
    """Changes the phase."""
    if phase != COMMANDING:
        lease.was_away = False
    lease.phase, lease.reason = phase, reason


@inlined
def listen(lease: Lease, now: float, silence: float) -> None:
    """Waits from now on for a silence [s]."""
    lease.silence = silence
    lease.silent_since, lease.silent_since_stamp = now, lease.stamp
    lease.silent_states = 0.0


@inlined
def notice_absence(lease: Lease, now: float) -> None:
    """Notes that an owner was paused for longer than its lease: it does not know how the arm has
    moved meanwhile."""
    if now - lease.awake_at <= lease.duration or lease.alone or lease.was_away:
        return
    if lease.has_commanded and lease.phase == COMMANDING:
        lease.was_away = True
        lease.evidence_stamp, lease.evidence_at = math.nan, now
        lease.in_time = lease.stale = 0.0
        lease.woke_at = now


@inlined
def is_fresh(lease: Lease, stamp: float, now: float, within: bool) -> bool:
    """True for a joint state that has not waited to be taken; see `FRESH`. Unless it is `within`
    the lease, it counts only after the other side has had time to announce that it guards."""
    if now - stamp <= lease.clock_minus_stamp + LATE * lease.awake:
        return within or now - lease.woke_at > lease.awake
    before, arrived_at = lease.evidence_stamp, lease.evidence_at
    if stamp != before and lease.simulated:
        in_time = 0.0 < FRESH * (stamp - before) <= now - arrived_at
        lease.in_time = lease.in_time + 1.0 if in_time else 0.0
        lease.evidence_stamp, lease.evidence_at = stamp, now
    return lease.in_time >= FRESH_STATES


@inlined
def recovery(lease: Lease, now: float) -> float:
    """Silence after which an owner that was paused commands again [s]. If a process may have been
    started in its place during the absence, that process must be discovered first."""
    replaced = now - lease.awake_at > lease.longest_absence
    return max(lease.recovery, lease.rediscovery) if replaced else lease.recovery


@inlined
def judge_absence(lease: Lease, stamp: float, now: float) -> None:
    """Takes from a joint state for how long the arm was without a command."""
    passed = lease.number - lease.commanded_number  # only one publisher is followed
    within = 0.0 <= stamp - lease.commanded_stamp <= lease.duration
    if lease.number >= 0.0 and lease.commanded_number >= 0.0:
        long = now - lease.awake_at > lease.duration + 0.5 * lease.awake
        most = lease.least_states - 1.0 if long else lease.least_states
        within = within or 0.0 < passed < most
    if not within and lease.guarded and now - lease.awake_at > lease.tolerated:
        lease.away_for, lease.missed_states = 1e3 * (now - lease.awake_at), passed
        listen(lease, now, recovery(lease, now))
        change(lease, GUARDING, WAS_AWAY_FOR)
    elif is_fresh(lease, stamp, now, within):
        lease.was_away = False
        lease.awake_at = now
    else:
        lease.stale += 1.0
        if lease.stale > MOST_STALE and now - lease.woke_at > lease.recovery:
            listen(lease, now, recovery(lease, now))
            change(lease, GUARDING, NO_STATE_TELLS)


@inlined
def hear_state(lease: Lease, stamp: float, now: float, number: float) -> None:
    """Notes that a joint state was taken. Call before anything is decided from it.

    Args:
        stamp: stamp of the joint state [s].
        now: steady clock [s].
        number: its publisher's count of it, -1 where that is not known.
    """
    notice_absence(lease, now)
    lease.number = number
    if lease.was_away:
        judge_absence(lease, stamp, now)
    if stamp > lease.stamp:
        lease.silent_states += 1.0
    elif not stamp >= lease.stamp:  # the first one, or the clock was set back
        lease.silent_since_stamp = lease.revoked_stamp = stamp
    lease.stamp = stamp


@inlined
def hear_nothing(lease: Lease, now: float) -> None:
    """Renews the lease, and the look for commands, while no usable joint state arrives, so that a
    slow rate of joint states is not mistaken for an absence. Call more often than once a lease."""
    notice_absence(lease, now)
    if now - lease.awake_at <= lease.duration:
        lease.awake_at = now
    if now - lease.looked_at <= lease.awake:
        lease.looked_at = now


@inlined
def hear_revocation(lease: Lease, now: float) -> None:
    """Yields, as the sentinel requests of the controller."""
    notice_absence(lease, now)
    lease.guarded, lease.alone = True, False
    if lease.phase == COMMANDING:
        listen(lease, now, lease.grace)
        change(lease, GUARDING, REVOKED)


@inlined
def may_answer(lease: Lease, now: float) -> bool:
    """True if a command for the newest joint state may be published, at once after this call. False
    while the owner does not know whether its lease is over."""
    if now - lease.awake_at > lease.duration:
        notice_absence(lease, now)
    return lease.phase == COMMANDING and not lease.was_away


@inlined
def answered(lease: Lease, now: float) -> None:
    """Begins the lease anew, after the owner's command for the newest joint state was published. A
    command that was not published renews no lease: the other side has not received it either.

    Args:
        now: time at which `may_answer` allowed it, steady clock [s].
    """
    lease.has_commanded, lease.awake_at = True, now
    lease.commanded_stamp, lease.commanded_number = lease.stamp, lease.number
    lease.clock_minus_stamp = now - lease.stamp
