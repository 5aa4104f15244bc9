"""The control loop without the interpreter: a loop's ticks as machine code, and the way in for what
Python asks between two of them.

It waits, takes, decodes, steps, publishes and counts, and holds no lock of Python, as long as
states are usual ones. Any other state ends the loop: its bytes go to Python, which does the rest.
Performs no allocation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from rnea_control.array_types import (
    ByteArray,
    FloatArray,
    IntArray,
    RecordArray,
    Vector,
    WordArray,
)
from rnea_control.control import layout, lease, step
from rnea_control.control.controller_state import LONGEST_REPEAT
from rnea_control.control.lease import Lease
from rnea_control.control.output_stage import LATENESS, LONGEST_RATE_STEP, withdraw
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import barrier, fence
from rnea_control.messages import state_intake as intake
from rnea_control.messages.cdr import HEADER, LITTLE_ENDIAN, goes_to
from rnea_control.messages.joint_state import decode_state
from rnea_control.ros import rcl_calls as rcl
from rnea_control.ros.loop_records import note, record

# Why it has ended: somebody asks for the loop; a state is unusual; no state has come for long, or
# the arm may not be commanded meanwhile; the arm is another's now; a step has refused a state;
# another one commands; rcl has not taken a message, or not published the command.
REQUESTED, UNUSUAL, SILENT, YIELDED, REFUSED, COMMANDED, FAILED = range(7)
# After these the last state was stepped.
STEPPED = (YIELDED, REFUSED)
# Kinds of subscriptions beside that of the states: to emergency stops, to the sentinel's mode, and
# to the commands.
STOP, MODE, COMMAND = range(3)

# Numbers of the loop: how many threads ask for it; odd while it writes what others read; whether a
# request waits (1) or is carried out (2); which of the two messages is the newest; what a step or
# rcl has answered; whether it runs; whether states tell efforts; whether
# the system's time counts; how many findings were seen, and whether the arm was under way; how many
# states were answered; how many emergency stops were pressed or released, and how many of these
# Python has heard; whether the interpreter stands still; the period of the states, [ns], 0 until it
# is known.
ASKED, SEQUENCE, POSTED, WHICH, ANSWER, RUNS, TELLS_EFFORTS, SYSTEM_TIME = range(8)
SEEN, UNDER_WAY, TICKS, HEARD, TOLD, HANGS, PERIOD = range(8, 15)
# The kind of each subscription but the first one, the words of the own publisher's GID, and whether
# a state with the last one's stamp tells nothing, unless simulated stamps are late.
KINDS, OWN, IGNORES_REPEATED = 15, 20, 22
# Whether only one publisher's revocation counts, and the words of its GID.
SENTINEL_KNOWN, SENTINEL = 23, 24
UNPUBLISHED = 26  # number of commands that rcl did not publish
NUMBERS = 27
NOTHING, WAITS, SERVED = range(3)
# Times of the loop, [s]: from when on a missing state is predicted, and from when on it is lost;
# how long a wait is; when the last torque was commanded, by the steady clock, and when the last one
# without a state; when the interpreter was known to run, and for how long it may stand still; how
# often a torque is commanded while no state comes; for the last torque that left, until when the
# rate limit has counted time, and how much of the time before it has not counted yet; the same for
# the torque that is computed now.
STATE_GAP, STATE_TIMEOUT, LONGEST_WAIT, PUBLISHED_AT, PREDICTED_AT, ATTENDED_AT = range(6)
LONGEST_HANG, PREDICTION, RATE_AT, RATE_CREDIT = range(6, 10)
NEXT_RATE_AT, NEXT_RATE_CREDIT = 10, 11
TIMES = 12
# Of an emergency stop: 1 if it was pressed, 0 if released, -1 if the message is none, and the words
# of its publisher's GID. So many are kept.
PRESSED, GID_LOW, GID_HIGH = range(3)
MOST_STOPS = 64
# For messages beside the states.
LONGEST_MESSAGE = 4096

# The mode in which the sentinel asks for the arm, as a transition's label.
REVOKING = tuple(b"revoking\0")
# How often a torque is commanded while no state comes, or none that can be used, [s].
PREDICTION_PERIOD = 0.001
# States that seem to be older than this were stamped by another clock, [s].
LONGEST_AGE = 1.0
# Between looks of Python at the loop, [s].
POLL = 5e-5

T = TypeVar("T")


def post(m: IntArray, serve: Callable[[], None]) -> None:
    """Has the request in the controller's box carried out, and returns when it is: between two
    ticks of `run`, if that answers states, and else by `serve`. One thread at a time may post, and
    none may start `run` meanwhile."""
    if m[RUNS]:
        barrier()
        m[POSTED] = WAITS
        while m[RUNS] and m[POSTED] == WAITS:
            time.sleep(POLL)
        barrier()
        served = m[POSTED] == SERVED
        m[POSTED] = NOTHING
        if served:
            return
    serve()


def consistent(m: IntArray, read: Callable[[], T]) -> T:
    """The result of a function that reads what `run` writes, undisturbed by that."""
    while True:
        before = int(m[SEQUENCE])
        barrier()
        found = read()
        barrier()
        if before % 2 == 0 and before == m[SEQUENCE]:
            return found


@inlined
def _begin(m: IntArray) -> None:
    """Announces to readers that it writes from here on."""
    m[SEQUENCE] += 1
    fence()


@inlined
def _end(m: IntArray) -> None:
    """Announces that all is written."""
    fence()
    m[SEQUENCE] += 1


@inlined
def rate_time(r: Vector, now: float, dt: float) -> float:
    """Time that the rate limit counts for a torque [s], where the states' time has advanced by `dt`
    [s] since the last one: no more than has passed at `now` by the steady clock, and `LATENESS`.

    States that were held up and come in a burst count as the one moment in which the hardware gets
    their commands. Where a state is late, the next one may make up for `LATENESS` of it. The time
    is spent when the torque leaves (`spend_rate_time`), and not by a state that is refused.
    """
    elapsed = now - r[RATE_AT] + r[RATE_CREDIT]
    r[NEXT_RATE_AT] = now
    r[NEXT_RATE_CREDIT] = min(max(elapsed - dt, 0.0), LATENESS)
    return min(dt, elapsed)


@inlined
def spend_rate_time(r: Vector) -> None:
    """The torque for which `rate_time` was called last has left."""
    r[RATE_AT], r[RATE_CREDIT] = r[NEXT_RATE_AT], r[NEXT_RATE_CREDIT]


@inlined
def _command(
    calls: IntArray,
    m: IntArray,
    r: FloatArray,
    own: Lease,
    state: FloatArray,
    tau: FloatArray,
    noted: Any,
) -> bool:
    """Publishes the torques of the last step, if the arm is still this loop's; returns whether it
    is. Torques that rcl does not publish are not in force. `noted`: where torques are noted."""
    now = rcl.monotonic(calls)
    m[ANSWER] = rcl.OK
    if not lease.may_answer(own, now):
        withdraw(state)
        return False
    m[ANSWER] = rcl.publish(calls)
    if m[ANSWER] != rcl.OK:
        m[UNPUBLISHED] += 1
        withdraw(state)
        return True
    lease.answered(own, now)
    r[PUBLISHED_AT] = now
    spend_rate_time(r)
    if m[TELLS_EFFORTS] != 0:
        note(*noted, tau, now)
    return True


@inlined
def _tell(calls: IntArray, m: IntArray, n: IntArray, state: FloatArray) -> None:
    """Wakes those who put into words what steps have found, if there is anything."""
    under_way = state[layout.LAST_TRAJECTORY_TIME, 0] < state[layout.PATH_END, 0]
    if n[layout.FINDINGS] != m[SEEN] or (m[UNDER_WAY] != 0 and not under_way):
        rcl.trigger(calls)
    m[SEEN], m[UNDER_WAY] = n[layout.FINDINGS], 1 if under_way else 0


@inlined
def _moved(state: FloatArray, q: FloatArray) -> bool:
    """Whether a joint is elsewhere than when it was measured last."""
    moved = False
    for j in range(q.shape[0]):
        moved |= q[j] != state[layout.LAST_POSITION, j]
    return moved


@inlined
def _is_sentinel(calls: IntArray, m: IntArray) -> bool:
    """Whether the mode that was taken last is that of the sentinel that is followed."""
    low, high = rcl.gid_of(calls)
    return m[SENTINEL_KNOWN] == 0 or (low == m[SENTINEL] and high == m[SENTINEL + 1])


@inlined
def _hear_stop(
    calls: IntArray, m: IntArray, stops: IntArray, size: int, message: ByteArray
) -> bool:
    """Keeps an emergency stop, for Python; whether it was pressed."""
    row = stops[m[HEARD] % MOST_STOPS]
    row[PRESSED] = -1
    if HEADER < size <= message.shape[0] and message[0] == 0 and message[1] <= LITTLE_ENDIAN:
        row[PRESSED] = 1 if message[HEADER] != 0 else 0
    row[GID_LOW], row[GID_HIGH] = rcl.gid_of(calls)
    fence()
    m[HEARD] += 1
    return row[PRESSED] == 1


@kernel(
    "i8(i8[::1], i8[::1], f8[::1], i8[::1], f8[::1], Lease[::1], "
    "i8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], "
    "i8[::1], f8[::1], f8[:,::1], f8[:,:,::1], f8[:,::1], "
    "u1[::1], u1[:,::1], i8[::1], u8[:,::1], f8[:,::1], "
    "i8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], "
    "i8[:,::1], u1[::1])",
    nogil=True,
)
def run(  # noqa: PLR0915
    calls: IntArray,
    m: IntArray,
    r: FloatArray,
    of_states: IntArray,
    state_times: FloatArray,
    leases: RecordArray,
    n: IntArray,
    settings: FloatArray,
    tolerances: FloatArray,
    state: FloatArray,
    findings: FloatArray,
    tau: FloatArray,
    box: IntArray,
    values: FloatArray,
    measured: FloatArray,
    new_settings: FloatArray,
    new_tolerances: FloatArray,
    data: ByteArray,
    pattern: ByteArray,
    indices: IntArray,
    bits: WordArray,
    q_and_v: FloatArray,
    counts: IntArray,
    largest: FloatArray,
    late: IntArray,
    torques: FloatArray,
    torque_times: FloatArray,
    place: IntArray,
    stops: IntArray,
    message: ByteArray,
) -> int:
    """Answers states; returns why it has ended."""
    own, q, v = leases[0], q_and_v[0], q_and_v[1]
    asked = box, values, measured, new_settings, new_tolerances
    noted = torques, torque_times, place
    usual = int(1e9 * r[LONGEST_WAIT])
    longest = usual
    while m[ASKED] == 0:
        if m[POSTED] == WAITS:
            _begin(m)
            if box[step.REQUEST] == step.ADOPT and m[HEARD] != m[TOLD]:
                box[step.DONE] = 0  # the arm has just been stopped
            else:
                step.serve(n, settings, tolerances, state, *asked)
            m[UNDER_WAY] = 1
            _end(m)
            m[POSTED] = SERVED
        if own.phase != lease.COMMANDING:
            return YIELDED
        messages = rcl.arrived(calls, longest)
        longest = usual
        now = rcl.monotonic(calls)
        # One is a state, if nothing unusual happens.
        answer = rcl.take(calls, 0, 1 - m[WHICH]) if messages == 1 else rcl.TAKE_FAILED
        beside = calls[rcl.COUNT] if answer == rcl.TAKE_FAILED else 0
        for i in range(1, beside):
            kind = m[KINDS + i - 1]
            while rcl.take(calls, i, rcl.BESIDE) == rcl.OK:
                if kind == COMMAND:
                    low, high = rcl.gid_of(calls)
                    if low != m[OWN] or high != m[OWN + 1]:
                        return COMMANDED
                    continue
                size = rcl.read(calls, rcl.BESIDE, message)
                _begin(m)
                if kind == MODE and _is_sentinel(calls, m) and goes_to(REVOKING, size, message):
                    lease.hear_revocation(own, now)
                if kind == STOP and _hear_stop(calls, m, stops, size, message):
                    step.emergency_stop(n, settings, state, findings)
                _end(m)
                if kind == STOP:
                    rcl.trigger(calls)
        if beside and own.phase != lease.COMMANDING:
            return YIELDED
        if m[HANGS] == 0 and now - r[ATTENDED_AT] > r[LONGEST_HANG]:
            m[HANGS] = 1
            if n[layout.MOTION] != 0:
                _begin(m)
                step.end_motion(n, state, findings, layout.HUNG)
                step.brake(n, settings[n[layout.BRACED]], state, False)
                _end(m)
        if answer == rcl.TAKE_FAILED:
            answer = rcl.take(calls, 0, 1 - m[WHICH])
        now = rcl.monotonic(calls)
        if answer == rcl.TAKE_FAILED:
            lease.hear_nothing(own, now)
            missing = now - state_times[intake.CAME_AT]
            if m[SYSTEM_TIME] == 0 or missing <= r[STATE_GAP]:
                continue
            if missing > r[STATE_TIMEOUT] or not lease.may_answer(own, now):
                return SILENT
            longest = int(1e9 * r[PREDICTION])
            if now - r[PREDICTED_AT] < r[PREDICTION]:
                continue
            r[PREDICTED_AT] = now
            t = state_times[intake.TIME] + missing
            if t - state[layout.RESTS_SINCE, 0] > LONGEST_REPEAT:
                continue
            _begin(m)
            dt = rate_time(r, now, max(t - state[layout.LAST_TIME, 0], 0.0))
            state[layout.RATE_STEP, 0] = min(dt, LONGEST_RATE_STEP)
            rows = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
            outcome = step.advance(n, settings, tolerances, state, findings, t, *rows, tau, True)
            _end(m)
            _command(calls, m, r, own, state, tau, noted)
            if outcome >= step.BAD_STATE:
                return SILENT
            if m[ANSWER] != rcl.OK:
                return FAILED
            continue
        if answer != rcl.OK:
            m[ANSWER] = answer
            return FAILED
        size = rcl.read(calls, 1 - m[WHICH], data)
        low, high = rcl.gid_of(calls)
        if size > data.shape[0] or of_states[intake.GID_KNOWN] == 0:
            return UNUSUAL
        if low != of_states[intake.GID_LOW] or high != of_states[intake.GID_HIGH]:
            return UNUSUAL
        stamp = decode_state(data, size, pattern, indices, bits)
        clock = rcl.nanoseconds(calls)
        age = (clock - stamp) * 1e-9
        if stamp == 0 and m[SYSTEM_TIME] != 0:  # some hardware does not set it
            stamp, age = clock, math.nan
        gap = intake.gap(of_states, state_times, stamp)
        if stamp <= 0 or not 0.0 <= gap <= r[STATE_TIMEOUT]:
            return UNUSUAL
        missing = m[SYSTEM_TIME] != 0 and now - state_times[intake.CAME_AT] > r[STATE_GAP]
        tells_nothing = n[layout.PREDICTING] != 0 or missing
        if m[IGNORES_REPEATED] != 0:
            tells_nothing |= m[SYSTEM_TIME] != 0 or not _moved(state, q)
        if gap == 0.0 and tells_nothing:
            return UNUSUAL
        _begin(m)
        m[WHICH] = 1 - m[WHICH]
        count = rcl.count_of(calls)
        intake.follow(of_states, state_times, count, 1, low, high, now)
        least = 0
        if m[SYSTEM_TIME] == 0 and (gap > 0.0 or _moved(state, q)):
            least = m[PERIOD]
        intake.place(of_states, state_times, stamp, now, math.nan, least)
        t = state_times[intake.TIME]
        lease.hear_state(own, t, now, float(count))
        if not lease.may_answer(own, now):
            _end(m)
            lease.hear_nothing(own, now)
            if own.phase != lease.COMMANDING:
                return YIELDED
            continue  # it was away, and a state that is fresh must tell for how long
        if m[SYSTEM_TIME] != 0:
            dt = rate_time(r, now, max(t - state[layout.LAST_TIME, 0], 0.0))
            state[layout.RATE_STEP, 0] = min(dt, LONGEST_RATE_STEP)
        outcome = step.advance(n, settings, tolerances, state, findings, t, q, v, tau, False)
        _end(m)
        if outcome >= step.BAD_STATE and outcome != step.BAD_TORQUE:
            m[ANSWER] = outcome
            return REFUSED
        if not _command(calls, m, r, own, state, tau, noted):
            return YIELDED
        if outcome == step.BAD_TORQUE:
            m[ANSWER] = outcome
            return REFUSED
        _tell(calls, m, n, state)
        interval = state_times[intake.INTERVAL]
        if m[SYSTEM_TIME] == 0:
            interval = age = math.nan
        if not 0.0 <= age < LONGEST_AGE:
            age = math.nan  # the stamps are of another clock
        duration = rcl.monotonic(calls) - now
        period = state_times[intake.PERIOD]
        missed = of_states[intake.MISSED]
        record(counts, largest, late, duration, age + duration, interval, period, missed)
        m[TICKS] += 1
        if m[ANSWER] != rcl.OK:
            return FAILED
    return REQUESTED
