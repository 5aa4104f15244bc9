"""`Handover`: which of two processes commands the arm, the controller or the sentinel.

A ForwardCommandController obeys whoever publishes, so the two must agree. Each has a `Handover`, by
the rules of docs/handover.md; lease.py has what every tick asks of them:

- Ownership is a lease. The owner asks `may_answer` right before it publishes, and proves by
  `hear_nothing` that it is awake while no state arrives. An owner that was away for longer yields,
  unless a fresh state shows that the hardware was away as well.
- The other side listens, and takes the arm after a silence by the steady clock and by the stamps.
  All waits of the two sides differ by more than a message takes, so that they never end together.
- An owner may receive one command of the other side, from a process that was stopped between
  `may_answer` and publishing; an owner that was away yields at the first. They never alternate.

test/loop/test_handover_exploration.py explores all interleavings of two such machines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from rnea_control.loop import lease
from rnea_control.loop.lease import Lease


class Phase(Enum):
    """The phase of one of the two; the values are the labels that the sentinel publishes."""

    idle = "idle"
    guarding = "guarding"
    revoking = "revoking"
    commanding = "commanding"


_PHASES = tuple(Phase)  # by the numbers of lease.py
# Label of a sentinel that guards, and takes the arm only after a long silence: steady commands have
# not come for long enough.
ARMING = "arming"
UNHEARD = "unheard"  # mode of a sentinel that was discovered, and has not published a mode yet
LONGEST_UNHEARD = 5.0  # time for which a controller that starts waits for that mode [s]
# For how long commands must come without a pause before a short silence counts, [s].
ARMING_TIME = 0.5
# How long after a revocation in vain there is no other, [s].
REVOCATION_PAUSE = 1.0
# For how long the sentinel leaves the arm to a node that knows no hand-over, [s].
FOREIGN_PAUSE = 2.0


@dataclass(frozen=True)
class HandoverTimes:
    """The times of one side, [s]."""

    lease: float  # how long its own last command entitles it to the next one
    timeout: float  # how long the other must have been silent
    # How long it waits in place of `timeout` after it has yielded: as its lease ran out, or else.
    recovery: float
    grace: float
    awake: float = 0.005  # longest pause of a listening side that counts as silence
    arming: float = 0.0  # for how long commands must come without a pause before `timeout` counts
    tolerated: float = 0.0  # absence after which an owner goes on while the other side is `ARMING`
    yielding: float = 0.05  # how long the other may go on after it has been asked to yield
    # How many new states must come before silence counts: fewer than in 15 ms at 1 kHz, and more
    # than come while a whole computer stutters.
    states: int = 7
    revokes: bool = False  # whether it asks the other to yield; else it yields itself
    accept: float = 0.1  # how old a request to be given the arm may be when it is received
    simulated: bool = False  # whether the stamps may stand still, or run as they like
    # Absence after which a process that was started meanwhile takes this process for dead.
    longest_absence: float = math.inf
    # Silence after such an absence that lets the owner command again: time for discovery.
    rediscovery: float = 0.0

    @classmethod
    def of_controller(
        cls,
        lease: float = 0.010,
        timeout: float = 0.015,
        simulated: bool = False,
        longest_absence: float = math.inf,
        rediscovery: float = 0.0,
    ) -> HandoverTimes:
        """The times of the controller, from the two that both nodes share."""
        return cls(
            lease=lease,
            timeout=2.0 * timeout,
            recovery=4.0 * timeout,
            grace=6.0 * timeout,
            awake=timeout - lease,
            tolerated=0.5 * ARMING_TIME,
            simulated=simulated,
            longest_absence=longest_absence,
            rediscovery=rediscovery,
        )

    @classmethod
    def of_sentinel(
        cls, lease: float = 0.010, timeout: float = 0.015, simulated: bool = False
    ) -> HandoverTimes:
        """The times of the sentinel; its lease is longer, since the controller waits longer."""
        return cls(
            lease=2.0 * lease,
            timeout=timeout,
            recovery=3.0 * timeout,
            grace=13.0 * timeout,
            awake=timeout - lease,
            arming=ARMING_TIME,
            yielding=3.5 * timeout,
            revokes=True,
            accept=0.0,
            simulated=simulated,
        )


class Handover:
    """One side. Holds no lock.

    Times `now` are of the steady clock, [s]; stamps are those of the states, [s] on any clock.

    Attributes:
        lease: its facts.
        contested: whether the other went on commanding after it was asked to yield.
        strays: commands of the other side that arrived while this side owned the arm.
    """

    def __init__(self, times: HandoverTimes) -> None:
        self.lease = Lease()
        self.lease.guarded, self.lease.alone = times.revokes, not times.revokes
        self.times, self.contested, self.strays = times, False, 0
        self._words, self._unheard = "not started", False
        self._armed = times.arming == 0.0
        self._steady_since = 0.0  # since when commands come without a pause
        self._may_be_stray = False  # the next command may be the only one; see `resume_guarding`
        self._revoked_at = 0.0
        self._no_revocation_until = self._foreign_at = -math.inf

    @property
    def times(self) -> HandoverTimes:
        """Its times; they may be set at any moment."""
        return self._times

    @times.setter
    def times(self, times: HandoverTimes) -> None:
        own, self._times = self.lease, times
        own.duration, own.recovery, own.grace = times.lease, times.recovery, times.grace
        own.awake = times.awake
        own.least_states, own.simulated = times.states, times.simulated
        own.longest_absence, own.rediscovery = times.longest_absence, times.rediscovery

    @property
    def phase(self) -> Phase:
        """Its phase."""
        return _PHASES[self.lease.phase]

    @property
    def label(self) -> str:
        """The label of its mode: its phase, or `ARMING` while it waits for a long silence."""
        waits = self.phase is Phase.guarding and self.lease.silence >= self.times.arming > 0.0
        return ARMING if waits and not self._armed else self.phase.value

    @property
    def reason(self) -> str:
        """Why, in words."""
        reason, away, missed = self.lease.reason, self.lease.away_for, self.lease.missed_states
        if reason == lease.WAS_AWAY_FOR:
            words = f", in which {missed:.0f} states came" if missed > 0.0 else ""
            return f"it was paused for {away:.1f} ms{words}"
        if reason == lease.NO_STATE_TELLS:
            return "it was paused, and no joint state shows for how long"
        if reason == lease.REVOKED:
            return "the sentinel has revoked it"
        return self._words

    @property
    def commanding(self) -> bool:
        """True if it owns the arm."""
        return self.lease.phase == lease.COMMANDING

    @property
    def lost_by_pause(self) -> bool:
        """True if this side lost the arm because it, or its commands, were held up: the other side
        may give the arm back once that is over. False after a revocation."""
        return self.phase is Phase.guarding and self.lease.reason in lease.PAUSES

    @property
    def won_by_silence(self) -> bool:
        """True if this side owns the arm because no command of the other side arrived."""
        return self.commanding and self.lease.reason == lease.SILENCE

    @property
    def guarded(self) -> bool:
        """True if the other side may take the arm."""
        return self.lease.guarded

    def hear_state(self, stamp: float, now: float, number: int | None = None) -> None:
        """See `lease.hear_state`; `number` is None where it is not known."""
        lease.hear_state(self.lease, stamp, now, -1.0 if number is None else float(number))

    def hear_nothing(self, now: float) -> None:
        """See `lease.hear_nothing`."""
        lease.hear_nothing(self.lease, now)

    def hear_command(self, now: float) -> None:
        """A command of the other came."""
        lease.notice_absence(self.lease, now)
        self._unheard = False  # whoever it is: silence tells when it has ended
        if self.commanding and self.lease.was_away:
            self._yield(
                now, self._wait, "it was paused, and another node commands", lease.OVERTAKEN
            )
        elif self.commanding:
            self.strays += 1
            if self.strays > 1 and self.times.revokes:
                lease.listen(self.lease, now, self.times.timeout)
                self._revoke(now, "another node commands too")
            elif self.strays > 1:
                self._yield(now, self.times.timeout, "the sentinel commands", lease.OVERTAKEN)
        elif self.phase is not Phase.idle:
            if not self._armed:
                if self._has_passed(now, self.times.timeout):
                    self._steady_since = now
                self._armed = now - self._steady_since >= self.times.arming
            stray, self._may_be_stray = self._may_be_stray, False
            wait = min(self._wait, self.times.recovery) if stray else self._wait
            lease.listen(self.lease, now, wait)

    def miss_commands(self, now: float) -> None:
        """No command could be received until now: that was no silence."""
        lease.listen(self.lease, now, self.lease.silence)

    def hear_foreign(self, now: float, node: str) -> None:
        """A node commands that knows none of these rules: the sentinel does not fight it."""
        if self.phase is Phase.idle:
            return
        self.strays += self.commanding
        if not self.commanding or self.strays > 1:
            self._foreign_at, self.contested = now, True
            self._no_revocation_until = now + FOREIGN_PAUSE
            self._yield(now, self._wait, f"{node} commands too, and does not yield: stop it")

    def hear_mode(self, now: float, label: str) -> None:
        """The sentinel has published its mode; "" when it is known to have gone, `UNHEARD` while it
        seems to be there."""
        if self.times.revokes:
            return
        lease.notice_absence(self.lease, now)
        if label == "commanding" and self.commanding and self.lease.alone:
            self._yield(
                now, self.times.timeout, "a sentinel that was not discovered before commands"
            )
        guarded = label not in ("", "idle")
        if self._unheard and self.phase is Phase.guarding and label != UNHEARD:
            self.start(now, alone=not guarded)
        self._unheard = label == UNHEARD
        if label or not self.lease.was_away:  # else it could not receive the mode
            self.lease.guarded = guarded
            self.lease.alone = not label
            self.lease.tolerated = self.times.tolerated if label == ARMING else 0.0
        if label == "revoking":
            lease.hear_revocation(self.lease, now)

    def may_answer(self, now: float) -> bool:
        """See `lease.may_answer`."""
        return bool(lease.may_answer(self.lease, now))

    def look(self, now: float) -> bool:
        """True if it takes the arm now: then the caller catches the arm, and commands from now on.

        Call it after all that has arrived was passed on, and more often than once a lease.
        """
        own = self.lease
        away = now - own.looked_at
        if away > self.times.awake:
            own.silent_since = min(own.silent_since + away, now)
            missed = max(0.0, own.stamp - own.looked_stamp)  # 0 for the first one
            own.silent_since_stamp = min(own.silent_since_stamp + missed, own.stamp)
        own.looked_at, own.looked_stamp = now, own.stamp
        if now - self._foreign_at < FOREIGN_PAUSE:
            return False
        if self._foreign_at > -math.inf:
            self._foreign_at, self.contested = -math.inf, False
        revoking = self.phase is Phase.revoking
        if not revoking and self.phase is not Phase.guarding:
            return False
        if self._has_passed(now, own.silence):
            if revoking:
                self._take(now, self.reason)
            else:
                self._take(now, "no commands came", lease.SILENCE)
            return True
        revoked = self._revoked_at, own.revoked_stamp
        if revoking and self._over(now, *revoked, self.times.yielding):
            self.contested = True
            self._no_revocation_until = now + REVOCATION_PAUSE
            self._change(lease.GUARDING, "another node still commands")
        return False

    def start(self, now: float, alone: bool, wait: float = 0.0) -> None:
        """Begins as the owner if no other node can command; else listens first, for `wait` [s], or
        for `grace` if that is 0."""
        self.contested = False
        if alone:
            self.strays = 0
            self.lease.has_commanded = self.lease.was_away = False
            self._change(lease.COMMANDING, "nobody else commands")
        else:
            self._yield(now, wait or self.times.grace, "checks whether the sentinel commands")

    def guard(self, now: float) -> None:
        """The sentinel begins to guard: it has received a command."""
        self._begin_to_guard(now, math.inf)

    def resume_guarding(self, now: float) -> None:
        """The sentinel guards again after it was paused for longer than `arming`.

        The controller may take the sentinel for gone until it receives the next mode, so a
        controller that commands has to be silent for `arming` again. If no command comes, or only
        the one that a controller may send when it wakes, the controller was paused too, or has died
        meanwhile, and the torque in force is old.
        """
        self._begin_to_guard(now, self.times.recovery)
        self._may_be_stray = True

    def _begin_to_guard(self, now: float, longest: float) -> None:
        """Guards unarmed; waits for no more than `longest` until the first command [s]."""
        self.contested = self._may_be_stray = False
        self._armed, self._steady_since = False, now
        self._yield(now, min(self._wait, longest), "commands come")

    def stop(self, reason: str) -> None:
        """Commands nothing and takes nothing any more."""
        self._change(lease.IDLE, reason)

    def give(self, now: float) -> bool:
        """Stops commanding for the other's sake; returns whether it commanded."""
        if not self.commanding:
            return False
        self._yield(now, self.times.grace, "it gave the arm to the controller")
        return True

    def receive(self, now: float, requested_at: float) -> bool:
        """Takes the arm that the other has given; returns whether it owns the arm. Later than
        `accept` after the other was asked for it, that may have taken the arm again."""
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
        self._revoked_at, self.lease.revoked_stamp = now, self.lease.stamp
        self._change(lease.REVOKING, reason)

    def _has_passed(self, now: float, wait: float) -> bool:
        """True if it has listened for the time `wait`, and for the least number of states."""
        own = self.lease
        if own.silent_states < self.times.states:
            return False
        return self._over(now, own.silent_since, own.silent_since_stamp, wait)

    def _over(self, now: float, since: float, since_stamp: float, duration: float) -> bool:
        """True if the steady clock and the stamps have both advanced by more than `duration`."""
        return now - since > duration and self.lease.stamp - since_stamp > duration

    @property
    def _wait(self) -> float:
        """How long the other that commands must be silent, [s]."""
        return max(self.times.timeout, 0.0 if self._armed else self.times.arming)

    def _take(self, now: float, words: str, reason: int = lease.OTHER_REASON) -> None:
        """The arm is its own, and the lease begins."""
        self.strays, self.contested = 0, False
        self.lease.was_away = False
        lease.answered(self.lease, now)
        self._change(lease.COMMANDING, words, reason)

    def _yield(self, now: float, wait: float, words: str, reason: int = lease.OTHER_REASON) -> None:
        """It does not command, and listens for a silence of `wait`, [s]."""
        lease.listen(self.lease, now, wait)
        self._change(lease.GUARDING, words, reason)

    def _change(self, phase: int, words: str, reason: int = lease.OTHER_REASON) -> None:
        self._words = words
        lease.change(self.lease, phase, reason)
