"""`StateIntake`: decodes the joint states of one publisher, and computes their time.

The controller's loop and the sentinel each receive every state through a `StateIntake`; they decide
what a state means for the arm. Publishers are identified by their GIDs; without GIDs by the
sequence numbers of their messages, if these are far apart.

The data about the states are one record, which machine code and Python share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from rnea_control.array_types import ByteArray, FloatArray, IntArray, RecordArray, WordArray
from rnea_control.exceptions import AnothersState, CdrError, JointStateError, OtherJoints
from rnea_control.jit.group import group
from rnea_control.jit.inlining import inlined
from rnea_control.jit.record import Record
from rnea_control.messages.joint_state import OTHER_LAYOUT, Layout, decode, refusal


class Intake(Record):
    """Data about the states and their publisher. Times of the steady clock, and the time of the
    states, are in [s]."""

    # The followed publisher.
    gid_known: bool = False
    gid_low: int = 0  # GID in two words
    gid_high: int = 0
    next_number: int = -1  # sequence number of its next message; -1 without these
    missed: int = 0  # messages lost directly before the last one, by these numbers
    heard_at: float = -math.inf  # arrival of its last message
    silence: float = 0.0  # time without its messages after which another publisher is followed

    # The last state that was placed in time.
    begun: bool = False  # there is one
    origin: int = 0  # stamp at time 0 [ns]
    stamp: int = 0  # [ns]
    time: float = 0.0  # counted from the first state
    came_at: float = -math.inf  # arrival of the last state with a new stamp
    placed_at: float = math.nan  # steady clock when it was placed
    interval: float = math.nan  # since the arrival of the state before; NaN for the first state
    period: float = math.nan  # difference to the stamp before; 0 if time was set by the caller

    # Time ahead of late stamps.
    ahead: int = 0  # difference of the time to the stamps [ns]
    most_ahead: int = 0  # largest one since it was last asked for [ns]
    counted_from: int = 0  # stamp after which states are counted [ns]
    counted: int = 0  # counted states, lost states included


@group(
    intake="Intake[::1]",
    data="u1[::1]",
    pattern="u1[:,::1]",
    indices="i8[::1]",
    bits="u8[:,::1]",
    rows="f8[:,::1]",
    placed="f8[::1]",
)
class IntakeArrays(NamedTuple):
    """Arrays by which kernels take states in."""

    intake: RecordArray
    data: ByteArray  # the message
    pattern: ByteArray  # see `Layout`
    indices: IntArray
    bits: WordArray  # positions and velocities, shape (2, nv)
    rows: FloatArray  # the same memory
    placed: FloatArray  # positions of the state that was placed in time last, shape (nv,)


_GID = Struct("=qq")  # two words
MOST_MISSED = 1000  # largest gap in the sequence numbers of one publisher

MOST_COUNTED = 4096  # largest number of states over which the distance of stamps is averaged
SLOWER = 256  # time ahead of the stamps advances slower by 1 / SLOWER, so that the lead is bounded

LONGEST = 1 << 17  # longest message that is read, in bytes; a thousand joints take less than half
LAYOUTS = 8  # largest number of message layouts that are kept


@inlined
def _missed(intake: Intake, number: int) -> int:
    """Number of messages lost before a message, by the sequence numbers."""
    return 0 if number < 0 or intake.next_number < 0 else number - intake.next_number


@inlined
def is_another(intake: Intake, number: int, known: bool, low: int, high: int) -> bool:
    """True if a message is not from the publisher of the last message.

    Args:
        number: sequence number of the message; -1 if unknown.
        known: whether the publisher's GID is known.
        low, high: words of the publisher's GID.
    """
    if not known:
        return not 0 <= _missed(intake, number) <= MOST_MISSED
    return known != intake.gid_known or low != intake.gid_low or high != intake.gid_high


@inlined
def last_number(intake: Intake) -> int:
    """Sequence number of the last message; -1 if unknown."""
    return max(intake.next_number - 1, -1)


@inlined
def follow(intake: Intake, number: int, known: bool, low: int, high: int, now: float) -> bool:
    """True if a message is from the followed publisher: the first publisher, until it has been
    silent for `silence`.

    Args:
        intake: data about the publisher.
        number: sequence number of the message; -1 if unknown.
        known: whether the publisher's GID is known.
        low, high: words of the publisher's GID.
        now: time of the steady clock, [s].
    """
    missed = _missed(intake, number)
    if is_another(intake, number, known, low, high):
        if now - intake.heard_at <= intake.silence:
            return False
        missed = 0
    intake.gid_known, intake.gid_low, intake.gid_high = known, low, high
    intake.heard_at = now
    intake.next_number = -1 if number < 0 else number + 1
    intake.missed = max(missed, 0)
    return True


@inlined
def gap(intake: Intake, stamp: int) -> float:
    """Time from the last placed state to a stamp [ns], in [s]; 0 for the first state."""
    return (stamp - intake.stamp) * 1e-9 if intake.begun else 0.0


@inlined
def has_moved(states: IntakeArrays) -> bool:
    """True if a joint of the decoded state is at another position than in the state before."""
    moved = False
    for j in range(states.placed.shape[0]):
        moved |= states.rows[0, j] != states.placed[j]
    return moved


@inlined
def keep_position(states: IntakeArrays) -> None:
    """Keeps the positions of the decoded state for `has_moved`."""
    for j in range(states.placed.shape[0]):
        states.placed[j] = states.rows[0, j]


@inlined
def place(intake: Intake, stamp: int, now: float, time: float, step: int) -> None:
    """Sets the time of a state: by the stamps if `time` is NaN; else time continues from `time`.

    Late stamps, from a simulation's clock, stand still or advance slowly while the arm moves. Then
    time advances by `step`, [ns], with each state, lost states included: it is ahead of the stamps
    until they have caught up. If states share a stamp because their clock has coarse steps, they
    are closer together than `step`: time then advances by the mean distance of the stamps.
    """
    period = gap(intake, stamp)
    states = 1 + intake.missed
    if not intake.begun:
        intake.stamp = intake.counted_from = stamp
        intake.counted = -states  # the first state is not after its stamp
    if math.isnan(time):
        intake.counted += states
        if intake.counted > MOST_COUNTED:  # old states lose weight
            intake.counted //= 2
            intake.counted_from += (stamp - intake.counted_from) // 2
        mean = (stamp + intake.ahead - intake.counted_from) // max(intake.counted, 1)
        step = min(step, mean - mean // SLOWER)
        intake.ahead = max(intake.ahead + step * states - (stamp - intake.stamp), 0)
        intake.most_ahead = max(intake.most_ahead, intake.ahead)
    if not intake.begun:
        intake.begun, intake.origin, intake.came_at = True, stamp, now
    elif stamp != intake.stamp:
        intake.came_at = now
    if math.isnan(time):
        time = max((stamp - intake.origin + intake.ahead) * 1e-9, intake.time)
    else:
        intake.origin, period = stamp - round(time * 1e9), 0.0
        intake.counted_from, intake.counted, intake.ahead = stamp, 0, 0
    intake.period = period
    intake.stamp, intake.time = stamp, time
    intake.interval, intake.placed_at = now - intake.placed_at, now


def sender(number: int | None, publisher: bytes | None) -> tuple[int, bool, int, int]:
    """A message's number and publisher as kernels take them: sequence number, -1 if unknown; true
    if the GID is known; the words of the GID."""
    count = -1 if number is None else number
    return (count, False, 0, 0) if publisher is None else (count, True, *_GID.unpack(publisher))


def _of_intake(name: str) -> Any:
    """Property for a field of the intake."""
    return property(lambda states: getattr(states.intake, name))


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
        intake: data about the states and their publisher.
        begun: True if a state has been placed in time.
        missed: number of messages lost directly before the last one, by the sequence numbers.
        stamp: stamp of the last placed state, [ns].
        time: time of the last placed state, counted from the first, [s].
        came_at: arrival of the last state with a new stamp, by the steady clock, [s].
        interval: time since the arrival of the state before, by the steady clock, [s]; NaN for the
            first state.
        period: difference to the stamp of the state before, [s]; 0 if time was set by the caller.
    """

    begun, missed = _of_intake("begun"), _of_intake("missed")
    stamp, time = _of_intake("stamp"), _of_intake("time")
    came_at = _of_intake("came_at")
    interval, period = _of_intake("interval"), _of_intake("period")

    def __init__(self, joints: Sequence[str], silence: float) -> None:
        self._joints = tuple(joints)
        self.bits = np.zeros((2, len(joints)), dtype=np.uint64)
        self.q, self.v = self.rows = self.bits.view(np.float64)
        self.layouts: list[Layout] = []
        self._arrays: IntakeArrays | None = None  # for the first layout
        self._placed = np.full(len(joints), math.nan)
        self.buffer = np.zeros(LONGEST, dtype=np.uint8)
        self._view = self.buffer.data
        self.intake, self._silence = Intake(), silence
        self.reset()

    def reset(self) -> None:
        """Forgets time and publisher: the next state is the first."""
        self.message: bytes | None = None
        self._placed[:] = math.nan
        self.intake.reset()
        self.intake.silence = self._silence

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

    @property
    def arrays(self) -> IntakeArrays:
        """Arrays by which kernels take states in, with the layout of the last message."""
        if self._arrays is None:
            first = self.layouts[0]
            of_message = self.buffer, first.pattern, first.indices
            own = self.bits, self.rows, self._placed
            self._arrays = IntakeArrays(self.intake.argument, *of_message, *own)
        return self._arrays

    def put(self, message: bytes) -> int:
        """Puts a message where kernels read it; returns its length [bytes]. A message that is too
        long is not read."""
        size = len(message)
        if size <= LONGEST:
            self._view[:size] = message
        return size

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
            self._arrays = None
        return stamp

    def _follow(self, number: int | None, publisher: bytes | None, now: float) -> None:
        count, known, low, high = sender(number, publisher)
        if not follow(self.intake, count, known, low, high, now):
            raise AnothersState("joint_states come from a second publisher too")

    def time_of(self, stamp: int) -> float:
        """Time of a stamp [ns], in [s]."""
        return (stamp - self.intake.origin) * 1e-9

    def gap(self, stamp: int) -> float:
        """Time from the last placed state to a stamp [ns], in [s]; 0 for the first state."""
        return float(gap(self.intake, stamp))

    def place(self, stamp: int, now: float, time: float = math.nan, step: int = 0) -> None:
        """Sets the time of the state that was taken last.

        Args:
            stamp: stamp of the state, [ns].
            now: arrival of the state, by the steady clock, [s].
            time: time of the state, [s]; NaN: by its stamp.
            step: time from state to state, if stamps may be late, [ns]; else 0.
        """
        place(self.intake, stamp, now, time, step)

    def most_ahead(self) -> float:
        """Largest lead of the time over the stamps since the last call, [s]."""
        most, self.intake.most_ahead = self.intake.most_ahead, 0
        return most * 1e-9
