"""`StateIntake`: decodes the joint states of one publisher, and computes their time.

The controller's loop and the sentinel each receive every state through a `StateIntake`; they decide
what a state means for the arm. Publishers are identified by their GIDs; without GIDs by the
sequence numbers of their messages, if these are far apart.

The data about the states are rows of two arrays, which machine code and Python share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import AnothersState, CdrError, JointStateError, OtherJoints
from rnea_control.jit.inlining import inlined
from rnea_control.messages.joint_state import OTHER_LAYOUT, Layout, decode, refusal

# Rows of the integers.
GID_KNOWN = 0  # 1 if the GID of the followed publisher is known
GID_LOW = 1  # first word of that GID
GID_HIGH = 2  # second word of that GID
NEXT = 3  # sequence number of the followed publisher's next message; -1 without sequence numbers
MISSED = 4  # `missed`
BEGUN = 5  # `begun`
ORIGIN = 6  # stamp at time 0 [ns]
STAMP = 7  # `stamp` [ns]
AHEAD = 8  # difference of the time to the stamps [ns]
MOST_AHEAD = 9  # largest difference since the last call of `most_ahead` [ns]
COUNTED_FROM = 10  # stamp after which states are counted [ns]
COUNTED = 11  # number of counted states, lost states included
NUMBERS = 12
# Rows of the times.
TIME = 0  # `time` [s]
CAME_AT = 1  # `came_at` [s]
INTERVAL = 2  # `interval` [s]
PERIOD = 3  # `period` [s]
PLACED_AT = 4  # time of the steady clock at the last call of `place` [s]
HEARD_AT = 5  # time of the steady clock at the last message of the followed publisher [s]
SILENCE = 6  # `silence` [s]
TIMES = 7

MOST_MISSED = 1000  # largest gap in the sequence numbers of one publisher

MOST_COUNTED = 4096  # largest number of states over which the distance of stamps is averaged
SLOWER = 256  # time ahead of the stamps advances slower by 1 / SLOWER, so that the lead is bounded

LONGEST = 1 << 17  # longest message that is read, in bytes; a thousand joints take less than half
LAYOUTS = 8  # largest number of message layouts that are kept


@inlined
def follow(
    n: IntArray, t: FloatArray, number: int, known: int, low: int, high: int, now: float
) -> bool:
    """True if a message is from the followed publisher: the first publisher, until it has been
    silent for `silence`.

    Args:
        n: the integers.
        t: the times.
        number: sequence number of the message; -1 if unknown.
        known: 1 if the publisher's GID is known, else 0.
        low, high: words of the publisher's GID.
        now: time of the steady clock, [s].
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
    """Time from the last placed state to a stamp [ns], in [s]; 0 for the first state."""
    return (stamp - n[STAMP]) * 1e-9 if n[BEGUN] else 0.0


@inlined
def place(n: IntArray, t: FloatArray, stamp: int, now: float, time: float, step: int) -> None:
    """Sets the time of a state: by the stamps if `time` is NaN; else time continues from `time`.

    Late stamps, from a simulation's clock, stand still or advance slowly while the arm moves. Then
    time advances by `step`, [ns], with each state, lost states included: it is ahead of the stamps
    until they have caught up. If states share a stamp because their clock has coarse steps, they
    are closer together than `step`: time then advances by the mean distance of the stamps.
    """
    period = gap(n, t, stamp)
    states = 1 + n[MISSED]
    if n[BEGUN] == 0:
        n[STAMP] = n[COUNTED_FROM] = stamp
        n[COUNTED] = -states  # the first state is not after its stamp
    if math.isnan(time):
        n[COUNTED] += states
        if n[COUNTED] > MOST_COUNTED:  # old states lose weight
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
    """Property for a row of an array."""
    return property(lambda intake: kind(getattr(intake, array)[row]))


class StateIntake:
    """Takes serialized states.

    Args:
        joints: names of the controlled joints, in order.
        silence: time without messages of the followed publisher after which another is followed,
            [s].

    Attributes:
        q, v: positions and velocities of the last accepted state, shape (nv,).
        message: bytes of that state; None before the first.
        rows: q and v in one array, shape (2, nv).
        bits: the same memory as words.
        buffer: memory for messages; begins with the last message.
        layouts: layouts of the latest publishers, at most `LAYOUTS`, the last used layout first;
            machine code uses the first.
        numbers, times: data about the states; rows as at the top of this module.
        begun: True if a state has been placed in time.
        missed: number of messages lost directly before the last one, by the sequence numbers.
        stamp: stamp of the last placed state, [ns].
        time: time of the last placed state, counted from the first, [s].
        came_at: arrival of the last state with a new stamp, by the steady clock, [s].
        interval: time since the arrival of the state before, by the steady clock, [s]; NaN for the
            first state.
        period: difference to the stamp of the state before, [s]; 0 if time was set by the caller.
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
        """Forgets time and publisher: the next state is the first."""
        self.message: bytes | None = None
        self.numbers[:] = 0
        self.numbers[NEXT] = -1
        self.times[: PLACED_AT + 1] = math.nan
        self.times[TIME] = 0.0
        self.times[[CAME_AT, HEARD_AT]] = -math.inf

    def take(self, message: bytes, number: int | None, publisher: bytes | None, now: float) -> int:
        """Fills `q` and `v`; returns the stamp, [ns], which is 0 if the publisher left it empty.

        Args:
            message: serialized JointState.
            number: sequence number of the message; None if unknown.
            publisher: GID of the publisher, 16 bytes; None if unknown.
            now: arrival of the message, by the steady clock, [s].

        Raises:
            OtherJoints: the message names only joints of another device.
            AnothersState: the message is from another publisher.
            CdrError, JointStateError: the message is invalid. After each error the object is
                unchanged.
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
        """Fills `q` and `v`; returns the stamp, [ns], which is 0 if the publisher left it empty.

        Raises:
            CdrError: bytes that are not a JointState.
            JointStateError: an invalid message; names the joint and the fault. After each error `q`
                and `v` are unchanged.
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
        """Time of a stamp [ns], in [s]."""
        return (stamp - int(self.numbers[ORIGIN])) * 1e-9

    def gap(self, stamp: int) -> float:
        """Time from the last placed state to a stamp [ns], in [s]; 0 for the first state."""
        return float(gap(self.numbers, self.times, stamp))

    def place(self, stamp: int, now: float, time: float = math.nan, step: int = 0) -> None:
        """Sets the time of the state that was taken last.

        Args:
            stamp: stamp of the state, [ns].
            now: arrival of the state, by the steady clock, [s].
            time: time of the state, [s]; NaN: by its stamp.
            step: time from state to state, if stamps may be late, [ns]; else 0.
        """
        place(self.numbers, self.times, stamp, now, time, step)

    def most_ahead(self) -> float:
        """Largest lead of the time over the stamps since the last call, [s]."""
        most, self.numbers[MOST_AHEAD] = int(self.numbers[MOST_AHEAD]), 0
        return most * 1e-9
