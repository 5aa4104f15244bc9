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
    WordArray,
)
from rnea_control.control import layout, lease, step
from rnea_control.control.controller_state import LONGEST_REPEAT
from rnea_control.control.layout import Arm, SettingsStack, State
from rnea_control.control.lease import Lease
from rnea_control.control.motion import ToleranceRows
from rnea_control.control.output_stage import LATENESS, LONGEST_RATE_STEP, withdraw
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import barrier, fence
from rnea_control.messages import state_intake as intake
from rnea_control.messages.cdr import HEADER, LITTLE_ENDIAN, goes_to
from rnea_control.messages.joint_state import decode_state
from rnea_control.ros import rcl_calls as rcl
from rnea_control.ros.loop_records import note, record
from rnea_control.ros.loop_state import NOTHING, SERVED, WAITS, LoopState

# Why it has ended: somebody asks for the loop; a state is unusual; no state has come for long, or
# the arm may not be commanded meanwhile; the arm is another's now; a step has refused a state;
# another one commands; rcl has not taken a message, or not published the command.
REQUESTED, UNUSUAL, SILENT, YIELDED, REFUSED, COMMANDED, FAILED = range(7)
# After these the last state was stepped.
STEPPED = (YIELDED, REFUSED)
# Kinds of subscriptions beside that of the states: to emergency stops, to the sentinel's mode, and
# to the commands.
STOP, MODE, COMMAND = range(3)

# Of an emergency stop: 1 if it was pressed, 0 if released, -1 if the message is none, and the words
# of its publisher's GID. So many are kept.
PRESSED, GID_LOW, GID_HIGH = range(3)
MOST_STOPS = 64
MOST_KINDS = 5  # subscriptions beside that of the states
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


def post(loop: LoopState, serve: Callable[[], None]) -> None:
    """Has the request in the controller's box carried out, and returns when it is: between two
    ticks of `run`, if that answers states, and else by `serve`. One thread at a time may post, and
    none may start `run` meanwhile."""
    if loop.runs:
        barrier()
        loop.request = WAITS
        while loop.runs and loop.request == WAITS:
            time.sleep(POLL)
        barrier()
        served = loop.request == SERVED
        loop.request = NOTHING
        if served:
            return
    serve()


def consistent(loop: LoopState, read: Callable[[], T]) -> T:
    """The result of a function that reads what `run` writes, undisturbed by that."""
    while True:
        before = loop.sequence
        barrier()
        found = read()
        barrier()
        if before % 2 == 0 and before == loop.sequence:
            return found


@inlined
def _begin(loop: LoopState) -> None:
    """Announces to readers that it writes from here on."""
    loop.sequence += 1
    fence()


@inlined
def _end(loop: LoopState) -> None:
    """Announces that all is written."""
    fence()
    loop.sequence += 1


@inlined
def rate_time(loop: LoopState, now: float, dt: float) -> float:
    """Time that the rate limit counts for a torque [s], where the states' time has advanced by `dt`
    [s] since the last one: no more than has passed at `now` by the steady clock, and `LATENESS`.

    States that were held up and come in a burst count as the one moment in which the hardware gets
    their commands. Where a state is late, the next one may make up for `LATENESS` of it. The time
    is spent when the torque leaves (`spend_rate_time`), and not by a state that is refused.
    """
    elapsed = now - loop.rate_at + loop.rate_credit
    loop.next_rate_at = now
    loop.next_rate_credit = min(max(elapsed - dt, 0.0), LATENESS)
    return min(dt, elapsed)


@inlined
def spend_rate_time(loop: LoopState) -> None:
    """The torque for which `rate_time` was called last has left."""
    loop.rate_at, loop.rate_credit = loop.next_rate_at, loop.next_rate_credit


@inlined
def _command(
    calls: IntArray,
    loop: LoopState,
    own: Lease,
    state: State,
    tau: FloatArray,
    noted: Any,
) -> bool:
    """Publishes the torques of the last step, if the arm is still this loop's; returns whether it
    is. Torques that rcl does not publish are not in force. `noted`: where torques are noted."""
    now = rcl.monotonic(calls)
    loop.answer = rcl.OK
    if not lease.may_answer(own, now):
        withdraw(state)
        return False
    loop.answer = rcl.publish(calls)
    if loop.answer != rcl.OK:
        loop.unpublished += 1
        withdraw(state)
        return True
    lease.answered(own, now)
    loop.published_at = now
    spend_rate_time(loop)
    if loop.has_efforts:
        note(*noted, tau, now)
    return True


@inlined
def _tell(calls: IntArray, loop: LoopState, arm: Arm, state: State) -> None:
    """Wakes those who put into words what steps have found, if there is anything."""
    under_way = state.last_trajectory_time < state.path_end
    if arm.findings != loop.findings_seen or (loop.under_way and not under_way):
        rcl.trigger(calls)
    loop.findings_seen, loop.under_way = arm.findings, under_way


@inlined
def _moved(state: State, q: FloatArray) -> bool:
    """Whether a joint is elsewhere than when it was measured last."""
    moved = False
    for j in range(q.shape[0]):
        moved |= q[j] != state.last_position[j]
    return moved


@inlined
def _is_sentinel(calls: IntArray, loop: LoopState) -> bool:
    """Whether the mode that was taken last is that of the sentinel that is followed."""
    low, high = rcl.gid_of(calls)
    is_same = low == loop.sentinel_gid_low and high == loop.sentinel_gid_high
    return is_same or not loop.sentinel_known


@inlined
def _hear_stop(
    calls: IntArray, loop: LoopState, stops: IntArray, size: int, message: ByteArray
) -> bool:
    """Keeps an emergency stop, for Python; whether it was pressed."""
    row = stops[loop.stops_received % MOST_STOPS]
    row[PRESSED] = -1
    if HEADER < size <= message.shape[0] and message[0] == 0 and message[1] <= LITTLE_ENDIAN:
        row[PRESSED] = 1 if message[HEADER] != 0 else 0
    row[GID_LOW], row[GID_HIGH] = rcl.gid_of(calls)
    fence()
    loop.stops_received += 1
    return row[PRESSED] == 1


@kernel(
    "i8(i8[::1], LoopState[::1], i8[::1], i8[::1], f8[::1], Lease[::1], "
    "Arm[::1], SettingsStack, ToleranceRows, State, Finding[::1], f8[::1], "
    "Request[::1], f8[:,::1], SettingsStack, ToleranceRows, "
    "u1[::1], u1[:,::1], i8[::1], u8[:,::1], f8[:,::1], "
    "i8[:,::1], f8[::1], i8[::1], f8[:,::1], f8[::1], i8[::1], "
    "i8[:,::1], u1[::1])",
    nogil=True,
)
def run(  # noqa: PLR0915
    calls: IntArray,
    loops: RecordArray,
    kinds: IntArray,
    of_states: IntArray,
    state_times: FloatArray,
    leases: RecordArray,
    arms: RecordArray,
    settings: SettingsStack,
    tolerances: ToleranceRows,
    state: State,
    findings: RecordArray,
    tau: FloatArray,
    requests: RecordArray,
    measured: FloatArray,
    new_settings: SettingsStack,
    new_tolerances: ToleranceRows,
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
    loop, own, arm = loops[0], leases[0], arms[0]
    q, v = q_and_v[0], q_and_v[1]
    request = requests[0]
    asked = request, measured, new_settings, new_tolerances
    noted = torques, torque_times, place
    usual = int(1e9 * loop.longest_wait)
    longest = usual
    while loop.interruptions == 0:
        if loop.request == WAITS:
            _begin(loop)
            if request.kind == step.ADOPT and loop.stops_received != loop.stops_read:
                request.done = False  # the arm has just been stopped
            else:
                step.serve(arm, settings, tolerances, state, *asked)
            loop.under_way = True
            _end(loop)
            loop.request = SERVED
        if own.phase != lease.COMMANDING:
            return YIELDED
        messages = rcl.arrived(calls, longest)
        longest = usual
        now = rcl.monotonic(calls)
        # One is a state, if nothing unusual happens.
        answer = rcl.take(calls, 0, 1 - loop.newest) if messages == 1 else rcl.TAKE_FAILED
        beside = calls[rcl.COUNT] if answer == rcl.TAKE_FAILED else 0
        for i in range(1, beside):
            kind = kinds[i - 1]
            while rcl.take(calls, i, rcl.BESIDE) == rcl.OK:
                if kind == COMMAND:
                    low, high = rcl.gid_of(calls)
                    if low != loop.own_gid_low or high != loop.own_gid_high:
                        return COMMANDED
                    continue
                size = rcl.read(calls, rcl.BESIDE, message)
                _begin(loop)
                if kind == MODE and _is_sentinel(calls, loop) and goes_to(REVOKING, size, message):
                    lease.hear_revocation(own, now)
                if kind == STOP and _hear_stop(calls, loop, stops, size, message):
                    step.emergency_stop(arm, settings, state, findings)
                _end(loop)
                if kind == STOP:
                    rcl.trigger(calls)
        if beside and own.phase != lease.COMMANDING:
            return YIELDED
        if not loop.hangs and now - loop.attended_at > loop.longest_hang:
            loop.hangs = True
            if arm.motion != 0:
                _begin(loop)
                step.end_motion(arm, state, findings, layout.HUNG)
                step.brake(arm, settings[arm.braced], state, False)
                _end(loop)
        if answer == rcl.TAKE_FAILED:
            answer = rcl.take(calls, 0, 1 - loop.newest)
        now = rcl.monotonic(calls)
        if answer == rcl.TAKE_FAILED:
            lease.hear_nothing(own, now)
            missing = now - state_times[intake.CAME_AT]
            if not loop.system_time or missing <= loop.state_gap:
                continue
            if missing > loop.state_timeout or not lease.may_answer(own, now):
                return SILENT
            longest = int(1e9 * loop.prediction_period)
            if now - loop.predicted_at < loop.prediction_period:
                continue
            loop.predicted_at = now
            t = state_times[intake.TIME] + missing
            if t - state.rests_since > LONGEST_REPEAT:
                continue
            _begin(loop)
            dt = rate_time(loop, now, max(t - state.last_time, 0.0))
            state.rate_step = min(dt, LONGEST_RATE_STEP)
            rows = state.predicted_position, state.predicted_velocity
            outcome = step.advance(arm, settings, tolerances, state, findings, t, *rows, tau, True)
            _end(loop)
            _command(calls, loop, own, state, tau, noted)
            if outcome >= step.BAD_STATE:
                return SILENT
            if loop.answer != rcl.OK:
                return FAILED
            continue
        if answer != rcl.OK:
            loop.answer = answer
            return FAILED
        size = rcl.read(calls, 1 - loop.newest, data)
        low, high = rcl.gid_of(calls)
        if size > data.shape[0] or of_states[intake.GID_KNOWN] == 0:
            return UNUSUAL
        if low != of_states[intake.GID_LOW] or high != of_states[intake.GID_HIGH]:
            return UNUSUAL
        stamp = decode_state(data, size, pattern, indices, bits)
        clock = rcl.nanoseconds(calls)
        age = (clock - stamp) * 1e-9
        if stamp == 0 and loop.system_time:  # some hardware does not set it
            stamp, age = clock, math.nan
        gap = intake.gap(of_states, state_times, stamp)
        if stamp <= 0 or not 0.0 <= gap <= loop.state_timeout:
            return UNUSUAL
        missing = loop.system_time and now - state_times[intake.CAME_AT] > loop.state_gap
        tells_nothing = arm.predicting or missing
        if loop.ignores_repeated:
            tells_nothing |= loop.system_time or not _moved(state, q)
        if gap == 0.0 and tells_nothing:
            return UNUSUAL
        _begin(loop)
        loop.newest = 1 - loop.newest
        count = rcl.count_of(calls)
        intake.follow(of_states, state_times, count, 1, low, high, now)
        least = 0
        if not loop.system_time and (gap > 0.0 or _moved(state, q)):
            least = loop.period
        intake.place(of_states, state_times, stamp, now, math.nan, least)
        t = state_times[intake.TIME]
        lease.hear_state(own, t, now, float(count))
        if not lease.may_answer(own, now):
            _end(loop)
            lease.hear_nothing(own, now)
            if own.phase != lease.COMMANDING:
                return YIELDED
            continue  # it was away, and a state that is fresh must tell for how long
        if loop.system_time:
            dt = rate_time(loop, now, max(t - state.last_time, 0.0))
            state.rate_step = min(dt, LONGEST_RATE_STEP)
        outcome = step.advance(arm, settings, tolerances, state, findings, t, q, v, tau, False)
        _end(loop)
        if outcome >= step.BAD_STATE and outcome != step.BAD_TORQUE:
            loop.answer = outcome
            return REFUSED
        if not _command(calls, loop, own, state, tau, noted):
            return YIELDED
        if outcome == step.BAD_TORQUE:
            loop.answer = outcome
            return REFUSED
        _tell(calls, loop, arm, state)
        interval = state_times[intake.INTERVAL]
        if not loop.system_time:
            interval = age = math.nan
        if not 0.0 <= age < LONGEST_AGE:
            age = math.nan  # the stamps are of another clock
        duration = rcl.monotonic(calls) - now
        period = state_times[intake.PERIOD]
        missed = of_states[intake.MISSED]
        record(counts, largest, late, duration, age + duration, interval, period, missed)
        loop.ticks += 1
        if loop.answer != rcl.OK:
            return FAILED
    return REQUESTED
