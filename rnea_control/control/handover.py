"""`Handover`: which of two processes commands the arm, the controller or the sentinel.

A ForwardCommandController obeys whoever publishes, so the two must agree. Each has a `Handover`:

1. Ownership is a lease. The owner may publish only if it was not away for `lease` since its last
   command; it asks `may_command` right before. A process that was away for longer, stopped by a
   signal or a debugger or without a CPU, does not know how long the arm was without it: it waits
   for a state that is fresh, that did not wait itself. If the hardware, by its stamps, has gone on
   by no more than the lease, or by fewer states than the other waits for, it was away as well, as
   when the whole computer stood still, and the owner goes on; else its lease is over, and it
   yields. While states are late, or a simulation is paused, it proves that it is awake by
   `hear_nothing`.
2. The other one listens. It takes the arm when it has heard no command for `timeout`, which is
   longer than the lease of the owner, while at least `states` new states came. Silence counts only
   while it is awake, and only once the steady clock and the stamps of the states have both advanced
   by that much: nothing happens while a simulation is paused.
3. Who has just yielded waits longer, until it has heard the other: for `recovery` if its lease
   ran out, for `grace` if it gave the arm away, was asked to yield, or has just begun to listen.
   All waits of the two differ by more than a message takes, so that they never end together.
4. The sentinel revokes when commands come that are wrong. It says so and commands nothing; the
   controller yields when it hears that; the sentinel takes the arm when it has heard nothing for
   its timeout. If commands still come after `yielding`, it gives up: two never alternate. While a
   node commands that is neither of the two, it commands nothing, and says so.
5. An owner may hear one command of the other, sent by a process that was stopped between
   `may_command` and publishing. At the second one the controller yields, and the sentinel revokes.
   One that was away yields at the first: the other has taken the arm.
6. The arm goes back only on request: the sentinel gives it, then the controller receives it. If
   that does not command within `grace`, the sentinel takes the arm again.
7. The sentinel is idle until it has heard a command. Until commands have come for `arming` without
   a pause longer than its timeout, it takes the arm only after a silence of `arming`: processes
   that join may stall each other, and by then the controller knows that its lease counts. Without
   a sentinel, or with an idle one, the controller's does not.

What this needs: both get the states, and messages arrive within a third of the difference between
timeout and lease. test/control/test_handover_exploration.py
explores all interleavings of two such machines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """What one of the two does; the values are the labels that the sentinel publishes."""

    idle = "idle"
    guarding = "guarding"
    revoking = "revoking"
    commanding = "commanding"


# A name to look up in a tick: enumerations take several times as long.
_COMMANDING = Phase.commanding
# How long after a revocation in vain there is no other, [s].
REVOCATION_PAUSE = 1.0
# For how long the sentinel leaves the arm to a node that knows no hand-over, [s].
FOREIGN_PAUSE = 2.0
# A state that comes no later than this part of `awake` after its stamp, compared with the one that
# was answered last, has not waited.
LATE = 0.2
# In simulated time, where stamps do not follow the steady clock, states are fresh when so many in a
# row have each come this part of their stamps' distance after the one before: those that have
# waited come at once. A simulation may run five times as fast as the steady clock.
FRESH, FRESH_STATES = 0.2, 2
# After so many that do not tell for how long it was away, an owner yields.
MOST_STALE = 20


@dataclass(frozen=True)
class HandoverTimes:
    """The times of one side, [s]; see the file.

    Attributes:
        lease: how long its own last command entitles it to the next one.
        timeout: how long the other must have been silent.
        recovery, grace: how long it waits in place of `timeout` after it has yielded.
        awake: who listens was away if it was for longer; that time is no silence.
        arming: for how long commands must come before its timeout counts; see the file.
        yielding: how long the other may go on after it has been asked to yield.
        states: how many new states must come before silence counts.
        revokes: whether it asks the other to yield; else it yields itself.
        accept: how old a request to be given the arm may be when it is received.
        simulated: whether the stamps may stand still, or run as they like.
    """

    lease: float
    timeout: float
    recovery: float
    grace: float
    awake: float = 0.005
    arming: float = 0.0
    yielding: float = 0.05
    states: int = 4
    revokes: bool = False
    accept: float = 0.1
    simulated: bool = False

    @classmethod
    def of_controller(
        cls, lease: float = 0.010, timeout: float = 0.015, simulated: bool = False
    ) -> HandoverTimes:
        """Those of the controller; the arguments are what the two nodes share."""
        return cls(
            lease,
            2.0 * timeout,
            4.0 * timeout,
            6.0 * timeout,
            timeout - lease,
            simulated=simulated,
        )

    @classmethod
    def of_sentinel(
        cls, lease: float = 0.010, timeout: float = 0.015, simulated: bool = False
    ) -> HandoverTimes:
        """Those of the sentinel; its lease is longer, since the controller waits longer."""
        return cls(
            2.0 * lease,
            timeout,
            3.0 * timeout,
            13.0 * timeout,
            timeout - lease,
            arming=0.5,
            yielding=3.5 * timeout,
            revokes=True,
            accept=0.0,
            simulated=simulated,
        )


class Handover:
    """One side. Performs no allocation but for the numbers that Python makes; holds no lock.

    Times `now` are of the steady clock, [s]; stamps are those of the states, [s] on any clock.

    Attributes:
        phase: what it does now.
        reason: why, in words.
        changes: how often `phase` has changed.
        contested: whether the other went on commanding after it was asked to yield.
        strays: commands of the other that came while this one owned the arm.
    """

    def __init__(self, times: HandoverTimes) -> None:
        self.times = times
        self.phase = Phase.idle
        self.reason = "not started"
        self.changes = 0
        self.contested = False
        self.strays = 0
        self._guarded = times.revokes  # whether the other might take the arm
        self._alone = not times.revokes  # whether there is no other
        self._stamp = math.nan  # of the newest state
        self._wait = 0.0  # how long silence must last, and since when it does
        self._since = self._since_stamp = 0.0
        self._states = 0
        self._armed = times.arming == 0.0
        self._steady_since = 0.0  # commands have come without a pause
        self._has_commanded = False
        self._awake_at = 0.0  # since its last command it was never away for a lease until then
        self._commanded_stamp = math.nan  # of the state that its last command answered
        self._number, self._commanded_number = -1, -1  # the same of its publisher's count
        self._was_away = False  # and does not know yet for how long the arm was without it
        self._offset = math.nan  # from the stamps to the steady clock, at its last command
        self._evidence = math.nan, 0.0  # stamp of the last state since, and when it came
        self._in_time = 0  # how many came in time, one after the other
        self._woke_at, self._stale = 0.0, 0  # since when states are judged, and how many waited
        self._looked_at, self._looked_stamp = -math.inf, math.nan
        self._revoked_at = self._revoked_stamp = 0.0
        self._no_revocation_until = -math.inf
        self._foreign_at = -math.inf

    @property
    def commanding(self) -> bool:
        """Whether it owns the arm."""
        return self.phase is _COMMANDING

    @property
    def guarded(self) -> bool:
        """Whether the other might take the arm."""
        return self._guarded

    # What was heard.

    def hear_state(self, stamp: float, now: float, number: int | None = None) -> None:
        """A state was taken; to be told before anything is decided from it.

        Args:
            stamp: of it, [s].
            now: by the steady clock, [s].
            number: its publisher's count of it; None where that is not known.
        """
        self._notice_absence(now)
        self._number = -1 if number is None else number
        if self._was_away:
            self._judge_absence(stamp, now)
        if stamp > self._stamp:
            self._states += 1
        elif not stamp >= self._stamp:  # the first one, or the clock was set back
            self._since_stamp = self._revoked_stamp = stamp
        self._stamp = stamp

    def hear_nothing(self, now: float) -> None:
        """No usable state has come since the last one; to be told more often than once a lease,
        as long as none comes. It keeps an owner in office that has nothing to answer, and lets one
        who listens do so between states that come less often than once a lease."""
        self._notice_absence(now)
        if now - self._awake_at <= self.times.lease:
            self._awake_at = now
        if now - self._looked_at <= self.times.awake:
            self._looked_at = now

    def hear_command(self, now: float) -> None:
        """A command of the other came."""
        self._notice_absence(now)
        if self.commanding and self._was_away:
            self._listen_to_commands(now)
            self._change(Phase.guarding, "it was away, and another node commands")
        elif self.commanding:
            self.strays += 1
            if self.strays > 1:
                self._listen(now, self.times.timeout)
                if self.times.revokes:
                    self._revoke(now, "another node commands too")
                else:
                    self._change(Phase.guarding, "the sentinel commands")
        elif self.phase is not Phase.idle:
            if not self._armed:
                if self._has_passed(now, self.times.timeout):
                    self._steady_since = now
                self._armed = now - self._steady_since >= self.times.arming
            self._listen_to_commands(now)

    def hear_foreign(self, now: float, node: str) -> None:
        """A node commands that knows none of these rules: the sentinel does not fight it."""
        if self.phase is Phase.idle:
            return
        self.strays += self.commanding
        if not self.commanding or self.strays > 1:
            self._foreign_at, self.contested = now, True
            self._no_revocation_until = now + FOREIGN_PAUSE
            self._listen_to_commands(now)
            self._change(Phase.guarding, f"{node} commands too, and does not yield: stop it")

    def hear_mode(self, now: float, label: str) -> None:
        """The sentinel has published its mode; "" when it is known to have gone."""
        if self.times.revokes:
            return
        self._notice_absence(now)
        if label or not self._was_away:  # else it was not there to hear the sentinel
            self._guarded = label in ("guarding", "revoking", "commanding")
            self._alone = not label
        if label == "revoking" and self.commanding:
            self._yield(now, self.times.grace, "the sentinel has revoked it")

    # What is asked of it.

    def may_command(self, now: float) -> bool:
        """Whether a command may be published now, at once after this call.

        It may not while it does not know whether its lease is over.
        """
        if not self.may_answer(now):
            return False
        self._has_commanded = True
        self._answered(now)
        return True

    def may_answer(self, now: float) -> bool:
        """Whether a command for the newest state may be published, if nothing happens meanwhile."""
        if now - self._awake_at > self.times.lease:
            self._notice_absence(now)
        return self.phase is _COMMANDING and not self._was_away

    def look(self, now: float) -> bool:
        """Whether it takes the arm now; to be called after all that came has been told.

        It must be asked more often than once a lease. When this is true, the caller catches the arm
        and commands from now on.
        """
        away = now - self._looked_at
        if away > self.times.awake:
            self._since = min(self._since + away, now)
            missed = max(0.0, self._stamp - self._looked_stamp)  # 0 for the first one
            self._since_stamp = min(self._since_stamp + missed, self._stamp)
        self._looked_at, self._looked_stamp = now, self._stamp
        if now - self._foreign_at < FOREIGN_PAUSE:
            return False
        if self._foreign_at > -math.inf:
            self._foreign_at, self.contested = -math.inf, False
        if self.phase is Phase.guarding:
            if self._is_silent(now):
                self._take(now, "no commands came")
                return True
        elif self.phase is Phase.revoking:
            if self._is_silent(now):
                self._take(now, self.reason)
                return True
            if self._over(now, self._revoked_at, self._revoked_stamp, self.times.yielding):
                self.contested = True
                self._no_revocation_until = now + REVOCATION_PAUSE
                self._change(Phase.guarding, "another node goes on commanding")
        return False

    def start(self, now: float, alone: bool) -> None:
        """The controller begins: as the owner if nobody else can command, else it listens first."""
        self.contested = False
        if alone:
            self._own()
            self._change(Phase.commanding, "nobody else commands")
        else:
            self._listen(now, self.times.grace)
            self._change(Phase.guarding, "listens whether the sentinel commands")

    def guard(self, now: float) -> None:
        """The sentinel begins to guard: it has heard a command, or was stopped for a while."""
        self.contested = False
        self._armed, self._steady_since = False, now
        self._listen_to_commands(now)
        self._change(Phase.guarding, "commands come")

    def stop(self, reason: str) -> None:
        """Commands nothing and takes nothing any more."""
        self._change(Phase.idle, reason)

    def give(self, now: float) -> bool:
        """Stops commanding for the other's sake; returns whether it commanded."""
        if not self.commanding:
            return False
        self._yield(now, self.times.grace, "it gave the arm to the controller")
        return True

    def receive(self, now: float, requested_at: float) -> bool:
        """Takes the arm that the other has given; returns whether it owns the arm.

        Args:
            requested_at: when the other was asked for it: later than `accept` after that, it may
                have taken the arm again.
        """
        if self.phase is Phase.guarding and now - requested_at <= self.times.accept:
            self._take(now, "the sentinel gave it the arm")
        return self.commanding

    def revoke(self, now: float, reason: str) -> bool:
        """Asks the owner to yield, for commands that are wrong; returns whether it does so now."""
        able = self._armed and now >= self._no_revocation_until
        if self.phase is not Phase.guarding or not able:
            return False
        self._revoke(now, reason)
        return True

    def _revoke(self, now: float, reason: str) -> None:
        self._revoked_at, self._revoked_stamp = now, self._stamp
        self._change(Phase.revoking, reason)

    def _notice_absence(self, now: float) -> None:
        """An owner that finds that it was away does not know what the arm did meanwhile."""
        away = now - self._awake_at > self.times.lease
        if away and self._has_commanded and self.commanding and not self._was_away:
            self._was_away, self._evidence, self._in_time = True, (math.nan, now), 0
            self._woke_at, self._stale = now, 0

    def _judge_absence(self, stamp: float, now: float) -> None:
        """What a state tells of the time since the last command."""
        passed = self._number - self._commanded_number  # states, not counting those of another
        within = 0.0 <= stamp - self._commanded_stamp <= self.times.lease
        if self._number >= 0 and self._commanded_number >= 0:
            long = now - self._awake_at > self.times.lease + 0.5 * self.times.awake
            within = within or 0 < passed < self.times.states - long
        if not within and self._guarded:
            away = f"it was away for {1e3 * (now - self._awake_at):.1f} ms"
            missed = f", in which {passed} states came" if passed > 0 else ""
            self._yield(now, self.times.recovery, away + missed)
        elif self._alone or self._is_fresh(stamp, now, within):
            self._was_away, self._awake_at = False, now
        else:
            self._stale += 1
            if self._stale > MOST_STALE and now - self._woke_at > self.times.recovery:
                reason = "it was away, and no state tells for how long"
                self._yield(now, self.times.recovery, reason)

    def _is_fresh(self, stamp: float, now: float, within: bool) -> bool:
        """Whether a state has not waited to be taken; see `FRESH`. One that tells of a long absence
        counts when the other has had time to say that it began to guard."""
        if now - stamp <= self._offset + LATE * self.times.awake:
            return within or now - self._woke_at > self.times.awake
        before, came_at = self._evidence
        if stamp != before and self.times.simulated:
            in_time = 0.0 < FRESH * (stamp - before) <= now - came_at
            self._in_time = self._in_time + 1 if in_time else 0
            self._evidence = stamp, now
        return self._in_time >= FRESH_STATES

    def _is_silent(self, now: float) -> bool:
        return self._has_passed(now, self._wait)

    def _has_passed(self, now: float, wait: float) -> bool:
        """Whether it has listened for so long, and so many states."""
        return self._states >= self.times.states and self._over(
            now, self._since, self._since_stamp, wait
        )

    def _over(self, now: float, since: float, since_stamp: float, duration: float) -> bool:
        """Whether the steady clock and the stamps have both advanced by more than this."""
        return now - since > duration and self._stamp - since_stamp > duration

    def _listen(self, now: float, wait: float) -> None:
        self._wait, self._since, self._since_stamp, self._states = wait, now, self._stamp, 0

    def _listen_to_commands(self, now: float) -> None:
        times = self.times
        self._listen(now, times.timeout if self._armed else max(times.timeout, times.arming))

    def _answered(self, now: float) -> None:
        """Its command for the newest state leaves."""
        self._awake_at = now
        self._commanded_stamp, self._commanded_number = self._stamp, self._number
        self._offset = now - self._stamp

    def _own(self) -> None:
        self.strays = 0
        self._has_commanded = self._was_away = False

    def _take(self, now: float, reason: str) -> None:
        self._own()
        self._has_commanded = True  # the lease begins here
        self._answered(now)
        self.contested = False
        self._change(Phase.commanding, reason)

    def _yield(self, now: float, wait: float, reason: str) -> None:
        self._listen(now, wait)
        self._change(Phase.guarding, reason)

    def _change(self, phase: Phase, reason: str) -> None:
        self._was_away = self._was_away and phase is _COMMANDING
        self.changes += self.phase is not phase
        self.phase, self.reason = phase, reason
