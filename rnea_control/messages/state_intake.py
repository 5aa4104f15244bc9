"""`StateIntake`: the states of the arm as they come, of one publisher, and in their own time.

The controller's loop and the sentinel take every state by one; what a state means for the arm is
theirs. Publishers are told apart by their GIDs. Where these are not known, by the numbers that each
gives its messages: two series of numbers that are apart.

What is known of the states is the rows of two arrays, so that machine code and Python read and
write the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import AnothersState, CdrError, JointStateError, OtherJoints
from rnea_control.kernels.inlining import inlined
from rnea_control.messages.joint_state import OTHER_LAYOUT, Layout, decode, refusal

# Rows of the numbers. Of the publisher that is followed: whether its GID is known, the two words of
# that, and the number of its next message, -1 where it gives none. `missed`, `begun`, the stamp
# that time is counted from, `stamp`, by how much time is ahead of that, and the most that it was,
# [ns]; the stamp after which states are counted, [ns], and how many have been, lost ones too.
GID_KNOWN, GID_LOW, GID_HIGH, NEXT, MISSED, BEGUN, ORIGIN, STAMP, AHEAD, MOST_AHEAD = range(10)
COUNTED_FROM, COUNTED = 10, 11
# Rows of the times, [s]: `time`, `came_at`, `interval` and `period`; when the last state was
# placed; when the followed publisher was heard, and `silence`.
TIME, CAME_AT, INTERVAL, PERIOD, PLACED_AT, HEARD_AT, SILENCE = range(7)
NUMBERS, TIMES = 12, 7

# A number this much higher than the last one is still the same publisher's.
MOST_MISSED = 1000

# States over which the distance of their stamps is averaged, at most.
MOST_COUNTED = 4096
# Time that is ahead of the stamps goes on slower by this part of it, so that it never runs away.
SLOWER = 256

# The longest message that is read, in bytes; a thousand joints take less than half.
LONGEST = 1 << 17
# How many lists of names are remembered.
LAYOUTS = 8


@inlined
def follow(
    n: IntArray, t: FloatArray, number: int, known: int, low: int, high: int, now: float
) -> bool:
    """Whether a message is of the publisher that is followed: of the one that came first, until it
    falls silent.

    Args:
        n, t: the rows.
        number: its publisher's count of it; -1 where that is not known.
        known, low, high: whether its publisher's GID is known, and the words of that.
        now: by the steady clock, [s].
    """
    missed = 0 if number < 0 or n[NEXT] < 0 else number - n[NEXT]
    another = known != n[GID_KNOWN] or low != n[GID_LOW] or high != n[GID_HIGH]
    if not known:
        another = not 0 <= missed <= MOST_MISSED
    if another:
        if now - t[HEARD_AT] <= t[SILENCE]:
            return False
        missed = 0
    n[GID_KNOWN], n[GID_LOW], n[GID_HIGH], t[HEARD_AT] = known, low, high, now
    n[NEXT] = -1 if number < 0 else number + 1
    n[MISSED] = max(missed, 0)
    return True


@inlined
def gap(n: IntArray, t: FloatArray, stamp: int) -> float:
    """From the state that was placed last to a stamp [ns], [s]; 0 for the first one."""
    return (stamp - n[STAMP]) * 1e-9 if n[BEGUN] else 0.0


@inlined
def place(n: IntArray, t: FloatArray, stamp: int, now: float, time: float, step: int) -> None:
    """Gives a state its time: as the stamps go if `time` is NaN; else time goes on from there.

    Where stamps come late, from a simulation's clock, they stand still or creep while the arm moves
    on. There time goes on by `step`, [ns], with each state, lost ones too, and waits for no stamp:
    it is ahead of the stamps until they have caught up. States that share a stamp because their
    clock is slow are closer together than `step`: on average as the stamps go.
    """
    period = gap(n, t, stamp)
    states = 1 + n[MISSED]
    if n[BEGUN] == 0:
        n[STAMP] = n[COUNTED_FROM] = stamp
        n[COUNTED] = -states  # this one is none after it
    n[COUNTED] += states
    if n[COUNTED] > MOST_COUNTED:  # what was long ago counts less and less
        n[COUNTED] //= 2
        n[COUNTED_FROM] += (stamp - n[COUNTED_FROM]) // 2
    mean = (stamp + n[AHEAD] - n[COUNTED_FROM]) // max(n[COUNTED], 1)
    step = min(step, mean - mean // SLOWER)
    n[AHEAD] = max(n[AHEAD] + step * states - (stamp - n[STAMP]), 0)
    n[MOST_AHEAD] = max(n[MOST_AHEAD], n[AHEAD])
    if n[BEGUN] == 0:
        n[BEGUN], n[ORIGIN], t[CAME_AT] = 1, stamp, now
    elif stamp != n[STAMP]:
        t[CAME_AT] = now
    if math.isnan(time):
        time = max((stamp - n[ORIGIN] + n[AHEAD]) * 1e-9, t[TIME])
    else:
        n[ORIGIN], period = stamp - round(time * 1e9), 0.0
        n[COUNTED_FROM], n[COUNTED], n[AHEAD] = stamp, 0, 0
    t[PERIOD] = period
    n[STAMP], t[TIME] = stamp, time
    t[INTERVAL], t[PLACED_AT] = now - t[PLACED_AT], now


def _read(array: str, row: int, kind: type) -> Any:
    """The attribute that is a row of an array."""
    return property(lambda intake: kind(getattr(intake, array)[row]))


class StateIntake:
    """Takes serialized states.

    Args:
        joints: the controlled ones, in order.
        silence: for how long nothing must have come from a publisher before another one is
            followed, [s].

    Attributes:
        q, v: of the last state that was taken, shape (nv,).
        message: its bytes; None before there is one.
        rows, bits: q and v, shape (2, nv), and the same as words.
        buffer: the last message, and what comes after it.
        layouts: those of the latest publishers, at most `LAYOUTS`, the one decoded last first, by
            which machine code goes.
        numbers, times: what is known of the states.
        begun: whether a state has been placed in time.
        missed: states that their publisher counted right before the last one, and that never came.
        stamp: of the state that was placed last, [ns].
        time: the same, counted from the first one, [s].
        came_at: when the last one with a new stamp came, by the steady clock, [s].
        interval: since the state before came, by the steady clock, [s]; NaN for the first one.
        period: since the stamp of the state before, [s]; 0 if time goes on from elsewhere.
    """

    begun = _read("numbers", BEGUN, bool)
    missed = _read("numbers", MISSED, int)
    stamp = _read("numbers", STAMP, int)
    time = _read("times", TIME, float)
    came_at = _read("times", CAME_AT, float)
    interval = _read("times", INTERVAL, float)
    period = _read("times", PERIOD, float)

    def __init__(self, joints: Sequence[str], silence: float) -> None:
        self._joints = tuple(joints)
        self.bits = np.zeros((2, len(joints)), dtype=np.uint64)
        self.q, self.v = self.rows = self.bits.view(np.float64)
        self.layouts: list[Layout] = []
        self.buffer = np.zeros(LONGEST, dtype=np.uint8)
        self._view = self.buffer.data
        self.numbers: IntArray = np.zeros(NUMBERS, dtype=np.int64)
        self.times: FloatArray = np.zeros(TIMES)
        self.times[SILENCE] = silence
        self.reset()

    def reset(self) -> None:
        """Forgets time and publisher: the next state is the first one."""
        self.message: bytes | None = None
        self.numbers[:] = 0
        self.numbers[NEXT] = -1
        self.times[: PLACED_AT + 1] = math.nan
        self.times[TIME] = 0.0
        self.times[[CAME_AT, HEARD_AT]] = -math.inf

    def take(self, message: bytes, number: int | None, publisher: bytes | None, now: float) -> int:
        """Fills `q` and `v`; returns the stamp, [ns], which is 0 where the publisher left it empty.

        Args:
            message: a serialized JointState.
            number: its publisher's count of it; None where that is not known.
            publisher: the GID of that, 16 bytes; None where it is not known.
            now: when it came, by the steady clock, [s].

        Raises:
            OtherJoints: it is of another device.
            AnothersState: it is of another publisher.
            CdrError, JointStateError: it is of no use. After each, all stays as it was.
        """
        try:
            stamp = self.decode(message)
        except OtherJoints:
            raise
        except (CdrError, JointStateError):
            self._follow(number, publisher, now)
            raise
        try:
            self._follow(number, publisher, now)
        except AnothersState:
            if self.message is not None:
                self.decode(self.message)
            raise
        self.message = message
        return stamp

    def decode(self, data: bytes) -> int:
        """Fills `q` and `v`; returns the stamp as `take` does.

        Raises:
            CdrError: bytes that are not a JointState.
            JointStateError: names the joint and what is wrong.
            `q` and `v` then stay as they were.
        """
        size = len(data)
        if size > LONGEST:
            raise JointStateError(
                f"a joint_states message has {size} bytes; at most {LONGEST} are allowed"
            )
        self._view[:size] = data
        for layout in self.layouts:
            stamp = decode(self.buffer, size, layout.pattern, layout.indices, self.bits)
            if stamp != OTHER_LAYOUT:
                break
        else:
            layout = Layout(data, self._joints)
            stamp = decode(self.buffer, size, layout.pattern, layout.indices, self.bits)
        if stamp < 0:
            raise refusal(data, self._joints)
        if not self.layouts or layout is not self.layouts[0]:
            others = (each for each in self.layouts if each is not layout)
            self.layouts = [layout, *others][:LAYOUTS]
        return stamp

    def _follow(self, number: int | None, publisher: bytes | None, now: float) -> None:
        low, high = np.frombuffer(publisher or bytes(16), dtype=np.int64).tolist()
        count = -1 if number is None else number
        if not follow(self.numbers, self.times, count, publisher is not None, low, high, now):
            raise AnothersState("joint_states come from a second publisher too")

    def time_of(self, stamp: int) -> float:
        """The time of a stamp [ns], [s]."""
        return (stamp - int(self.numbers[ORIGIN])) * 1e-9

    def gap(self, stamp: int) -> float:
        """See the function of that name."""
        return float(gap(self.numbers, self.times, stamp))

    def place(self, stamp: int, now: float, time: float = math.nan, step: int = 0) -> None:
        """Gives the state that was taken its time.

        Args:
            stamp: its stamp, [ns].
            now: when it came, by the steady clock, [s].
            time: from which on time goes on with it, [s]; NaN: as the stamps do.
            step: from state to state, if stamps may be late, [ns]; else 0.
        """
        place(self.numbers, self.times, stamp, now, time, step)

    def most_ahead(self) -> float:
        """The most that time was ahead of the stamps since the last call, [s]."""
        most, self.numbers[MOST_AHEAD] = int(self.numbers[MOST_AHEAD]), 0
        return most * 1e-9
