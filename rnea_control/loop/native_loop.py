"""The ticks of a loop as machine code, and requests of Python between two ticks.

`run` waits for joint states, takes and decodes them, steps, publishes and counts, without the
interpreter's lock, as long as each state is a usual one. It ends at any other state, whose bytes
Python then interprets. It performs no allocation.

`answer` and `answer_nothing` decide about a state, and about its absence; `run` adds the calls of
rcl.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

from rnea_control.array_types import ByteArray, FloatArray, IntArray, RecordArray
from rnea_control.control import layout, step
from rnea_control.control.controller_state import LONGEST_REPEAT
from rnea_control.control.layout import Arm, State
from rnea_control.control.output_stage import LATENESS, LONGEST_RATE_STEP, withdraw
from rnea_control.control.step import RequestArrays, StepArrays
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import barrier, fence
from rnea_control.jit.record import Record
from rnea_control.loop import lease, state_intake
from rnea_control.loop.lease import Lease
from rnea_control.loop.loop_records import AppliedArrays, StatisticsArrays, note, record
from rnea_control.loop.loop_state import NOTHING, SERVED, WAITS, LoopState
from rnea_control.loop.state_intake import Intake, IntakeArrays
from rnea_control.messages.cdr import HEADER, LITTLE_ENDIAN, goes_to
from rnea_control.messages.joint_state import decode_state
from rnea_control.ros import rcl_calls as rcl

# Reasons for which `run` ends.
REQUESTED = 0  # a thread wants the loop to stop
UNUSUAL = 1  # a state that Python has to interpret
SILENT = 2  # joint states are missing for long, or the lease allows no command meanwhile
YIELDED = 3  # the arm belongs to the other side now
REFUSED = 4  # a step refused a state
COMMANDED = 5  # another node commands the arm
FAILED = 6  # rcl did not take a message, or did not publish the command
STEPPED = (YIELDED, REFUSED)  # reasons after which the last state was stepped
# Verdicts of `answer` and `answer_nothing` beside these.
ANSWERED = 7  # there is a torque to publish
NO_TORQUE = 8
NOT_MISSING = 9  # the next state is not overdue
NOTHING_UNUSUAL = 10  # the messages beside the states need no decision of Python

# Kinds of subscriptions beside the joint states.
STOP = 0  # emergency stops
MODE = 1  # the sentinel's mode
COMMAND = 2  # commands

MOST_STOPS = 64  # emergency stops that are kept for Python
MOST_KINDS = 5  # subscriptions beside the joint states
LONGEST_MESSAGE = 4096  # longest message beside the joint states [bytes]

REVOKING = tuple(b"revoking\0")  # label of the mode in which the sentinel requests the arm
PREDICTION_PERIOD = 0.001  # period of commands while no usable joint state arrives [s]
LONGEST_AGE = 1.0  # age of a joint state beyond which its stamp is from a different clock [s]
POLL = 5e-5  # period in which Python checks whether the loop has stopped [s]


class Stop(Record):
    """A message on the topic of the emergency stop."""

    pressed: int = -1  # 1 pressed, 0 released, -1 not a Bool
    gid_low: int = 0  # GID of the publisher, in two words
    gid_high: int = 0


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
    """Spends the time of the last call of `rate_time`, as its torque was published."""
    loop.rate_at, loop.rate_credit = loop.next_rate_at, loop.next_rate_credit


@inlined
def sent(loop: LoopState, own: Lease, now: float) -> None:
    """The torque of the last step was published at `now`: it is in force, and renews the lease."""
    lease.answered(own, now)
    loop.published_at = now
    spend_rate_time(loop)


@inlined
def place(
    loop: LoopState, intake: Intake, stamp: int, now: float, time: float, moved: bool
) -> bool:
    """Places the state that was taken last in time; returns true if time advances by it. In
    simulated time it does while the arm moves, though the stamps are late.

    Args:
        stamp: stamp of the state [ns].
        now: arrival of the state by the steady clock [s].
        time: time of the state [s]; NaN: by its stamp.
        moved: true if a joint is at another position than in the state before.
    """
    gap = state_intake.gap(intake, stamp)
    least = loop.period if not loop.system_time and (gap > 0.0 or moved) else 0
    state_intake.place(intake, stamp, now, time, least)
    return gap != 0.0 or least > 0


@inlined
def measured_times(loop: LoopState, intake: Intake, age: float) -> tuple[float, float]:
    """Time since the state before, and age of the state, [s]; NaN where a clock that is not the
    system's makes the stamps."""
    interval = intake.interval
    if not loop.system_time:
        interval = age = math.nan
    return interval, age if 0.0 <= age < LONGEST_AGE else math.nan


@inlined
def _command(
    calls: IntArray,
    loop: LoopState,
    own: Lease,
    state: State,
    tau: FloatArray,
    applied: AppliedArrays,
) -> bool:
    """Publishes the torques of the last step if this loop still owns the arm; returns true if it
    does. Torques that rcl does not publish are not in force."""
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
    sent(loop, own, now)
    if loop.has_efforts:
        note(applied, tau, now)
    return True


@inlined
def _tell(calls: IntArray, loop: LoopState, arm: Arm, state: State) -> None:
    """Wakes the executor if a step has found something, or a motion has ended."""
    under_way = state.last_trajectory_time < state.path_end
    if arm.findings != loop.findings_seen or (loop.under_way and not under_way):
        rcl.trigger(calls)
    loop.findings_seen, loop.under_way = arm.findings, under_way


@inlined
def _moved(state: State, q: FloatArray) -> bool:
    """True if a joint is at another position than in the last measured state."""
    moved = False
    for j in range(q.shape[0]):
        moved |= q[j] != state.last_position[j]
    return moved


@inlined
def _is_sentinel(calls: IntArray, loop: LoopState) -> bool:
    """True if the mode that was taken last is from the sentinel that is followed."""
    low, high = rcl.gid_of(calls)
    is_same = low == loop.sentinel_gid_low and high == loop.sentinel_gid_high
    return is_same or not loop.sentinel_known


@inlined
def _hear_stop(
    calls: IntArray, loop: LoopState, stops: RecordArray, size: int, message: ByteArray
) -> bool:
    """Keeps an emergency stop for Python; returns true if it was pressed."""
    stop = stops[loop.stops_received % MOST_STOPS]
    stop.pressed = -1
    if HEADER < size <= message.shape[0] and message[0] == 0 and message[1] <= LITTLE_ENDIAN:
        stop.pressed = 1 if message[HEADER] != 0 else 0
    stop.gid_low, stop.gid_high = rcl.gid_of(calls)
    fence()
    loop.stops_received += 1
    return stop.pressed == 1


@inlined
def _serve(loop: LoopState, arrays: StepArrays, asked: RequestArrays) -> None:
    """Carries out the request that waits."""
    _begin(loop)
    if asked.request[0].kind == step.ADOPT and loop.stops_received != loop.stops_read:
        asked.request[0].done = False  # the arm has just been stopped
    else:
        step.serve(arrays, asked)
    loop.under_way = True
    _end(loop)
    loop.request = SERVED


@inlined
def _hear_others(
    calls: IntArray,
    loop: LoopState,
    kinds: IntArray,
    own: Lease,
    arrays: StepArrays,
    stops: RecordArray,
    message: ByteArray,
    now: float,
) -> int:
    """Takes all messages beside the states; returns COMMANDED if another node commands the arm,
    FAILED if rcl does not take a message, else NOTHING_UNUSUAL."""
    for i in range(1, calls[rcl.COUNT]):
        kind = kinds[i - 1]
        while True:
            taken = rcl.take(calls, i, rcl.BESIDE)
            if taken == rcl.TAKE_FAILED:
                break  # none waits
            if taken != rcl.OK:
                loop.answer = taken
                return FAILED
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
                step.emergency_stop(arrays)
            _end(loop)
            if kind == STOP:
                rcl.trigger(calls)
    return NOTHING_UNUSUAL


@inlined
def _look_at_interpreter(loop: LoopState, arrays: StepArrays, now: float) -> None:
    """Brakes a motion that no user could stop, as the interpreter is blocked."""
    if loop.hangs or now - loop.attended_at <= loop.longest_hang:
        return
    loop.hangs = True
    arm, state = arrays.arm[0], arrays.state
    if arm.motion != 0:
        _begin(loop)
        step.end_motion(arm, state, arrays.findings, layout.HUNG)
        step.brake(arm, arrays.settings[arm.braced], state, False)
        _end(loop)


@inlined
def _step(
    loop: LoopState,
    arrays: StepArrays,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    predicted: bool,
    now: float,
) -> int:
    """A step at time `t`; returns what `advance` does. On hardware the rate limit counts no more
    time than has passed at `now`."""
    state = arrays.state
    if loop.system_time:
        dt = rate_time(loop, now, max(t - state.last_time, 0.0))
        state.rate_step = min(dt, LONGEST_RATE_STEP)
    return step.advance(arrays, t, q, v, tau, predicted)


@inlined
def answer_nothing(
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    now: float,
) -> int:
    """No state waits at `now`. Fills `tau` for a predicted one if states have been missing for
    `state_gap`, and it is time for a command.

    Returns:
        ANSWERED with the result of the step in `loop.outcome`; NO_TORQUE where states are missing
        and it is too early for a command; NOT_MISSING; or SILENT where Python goes on.
    """
    lease.hear_nothing(own, now)
    missing = now - states.intake[0].came_at
    if not loop.system_time or missing <= loop.state_gap:
        return NOT_MISSING
    if missing > loop.state_timeout or not lease.may_answer(own, now):
        return SILENT
    if now - loop.predicted_at < loop.prediction_period:
        return NO_TORQUE
    loop.predicted_at = now
    t = states.intake[0].time + missing
    if t - arrays.state.rests_since > LONGEST_REPEAT:
        return NO_TORQUE
    _begin(loop)
    q, v = arrays.state.predicted_position, arrays.state.predicted_velocity
    loop.outcome = _step(loop, arrays, t, q, v, tau, True, now)
    _end(loop)
    return ANSWERED


@inlined
def look_at(
    loop: LoopState,
    states: IntakeArrays,
    arrays: StepArrays,
    size: int,
    publisher: tuple[int, int],
    clock: int,
    now: float,
) -> tuple[bool, int, float]:
    """Decodes a message of joint states.

    Args:
        size: length of the message [bytes]; `states.data` has the message unless it is longer.
        publisher: GID of its publisher, in two words.
        clock: clock of the stamps [ns].
        now: arrival by the steady clock [s].

    Returns:
        True if the message needs no decision of Python; stamp [ns]; age [s], NaN if unknown.
    """
    intake, q = states.intake[0], states.rows[0]
    state, is_predicting = arrays.state, arrays.arm[0].predicting
    low, high = publisher
    if size > states.data.shape[0] or not intake.gid_known:
        return False, 0, 0.0
    if low != intake.gid_low or high != intake.gid_high:
        return False, 0, 0.0
    stamp = decode_state(states.data, size, states.pattern, states.indices, states.bits)
    age = (clock - stamp) * 1e-9
    if stamp == 0 and loop.system_time:  # some hardware does not set it
        stamp, age = clock, math.nan
    gap = state_intake.gap(intake, stamp)
    if stamp <= 0 or not 0.0 <= gap <= loop.state_timeout:
        return False, stamp, age
    missing = loop.system_time and now - intake.came_at > loop.state_gap
    tells_nothing = is_predicting or missing
    if loop.ignores_repeated:
        tells_nothing |= loop.system_time or not _moved(state, q)
    return gap > 0.0 or not tells_nothing, stamp, age


@inlined
def answer(
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    stamp: int,
    count: int,
    publisher: tuple[int, int],
    now: float,
) -> int:
    """Answers a usual state: places it in time, and fills `tau` if the lease allows that.

    Args:
        stamp: stamp of the state [ns].
        count: sequence number of the message.
        publisher: GID of its publisher, in two words.
        now: arrival by the steady clock [s].

    Returns:
        ANSWERED with the result of the step in `loop.outcome`, or NO_TORQUE: the loop was away, and
        a state that is fresh must tell for how long.
    """
    intake, q, v = states.intake[0], states.rows[0], states.rows[1]
    low, high = publisher
    state_intake.follow(intake, count, True, low, high, now)
    place(loop, intake, stamp, now, math.nan, _moved(arrays.state, q))
    lease.hear_state(own, intake.time, now, float(count))
    if not lease.may_answer(own, now):
        lease.hear_nothing(own, now)
        return NO_TORQUE
    loop.outcome = _step(loop, arrays, intake.time, q, v, tau, False, now)
    return ANSWERED


@inlined
def _count(
    loop: LoopState, statistics: StatisticsArrays, intake: Intake, age: float, duration: float
) -> None:
    """Counts a tick that took `duration` [s], for a state that was `age` [s] old at its begin."""
    interval, age = measured_times(loop, intake, age)
    record(statistics, duration, age + duration, interval, intake.period, intake.missed)
    loop.ticks += 1


@kernel(
    "i8(i8[::1], LoopState[::1], i8[::1], Lease[::1], StepArrays, RequestArrays, IntakeArrays, "
    "f8[::1], StatisticsArrays, AppliedArrays, Stop[::1], u1[::1])",
    nogil=True,
)
def run(
    calls: IntArray,
    loops: RecordArray,
    kinds: IntArray,
    leases: RecordArray,
    arrays: StepArrays,
    asked: RequestArrays,
    states: IntakeArrays,
    tau: FloatArray,
    statistics: StatisticsArrays,
    applied: AppliedArrays,
    stops: RecordArray,
    message: ByteArray,
) -> int:
    """Answers states; returns why it has ended."""
    loop, own, state = loops[0], leases[0], arrays.state
    usual = int(1e9 * loop.longest_wait)
    longest = usual
    while loop.interruptions == 0:
        if loop.request == WAITS:
            _serve(loop, arrays, asked)
        if own.phase != lease.COMMANDING:
            return YIELDED
        messages = rcl.arrived(calls, longest)
        longest = usual
        now = rcl.monotonic(calls)
        # One is a state, if nothing unusual happens.
        taken = rcl.take(calls, 0, 1 - loop.newest) if messages == 1 else rcl.TAKE_FAILED
        if taken == rcl.TAKE_FAILED:
            reason = _hear_others(calls, loop, kinds, own, arrays, stops, message, now)
            if reason != NOTHING_UNUSUAL:
                return reason
            if calls[rcl.COUNT] and own.phase != lease.COMMANDING:
                return YIELDED
        _look_at_interpreter(loop, arrays, now)
        if taken == rcl.TAKE_FAILED:
            taken = rcl.take(calls, 0, 1 - loop.newest)
        now = rcl.monotonic(calls)
        if taken == rcl.TAKE_FAILED:
            verdict = answer_nothing(loop, own, arrays, states, tau, now)
            if verdict == NOT_MISSING:
                continue
            if verdict == SILENT:
                return SILENT
            longest = int(1e9 * loop.prediction_period)
            if verdict == NO_TORQUE:
                continue
            _command(calls, loop, own, state, tau, applied)
            if loop.outcome >= step.BAD_STATE:
                return SILENT
            if loop.answer != rcl.OK:
                return FAILED
            continue
        if taken != rcl.OK:
            loop.answer = taken
            return FAILED
        size, publisher = rcl.read(calls, 1 - loop.newest, states.data), rcl.gid_of(calls)
        is_usual, stamp, age = look_at(
            loop, states, arrays, size, publisher, rcl.nanoseconds(calls), now
        )
        if not is_usual:
            return UNUSUAL
        _begin(loop)
        loop.newest = 1 - loop.newest
        verdict = answer(loop, own, arrays, states, tau, stamp, rcl.count_of(calls), publisher, now)
        _end(loop)
        if verdict == NO_TORQUE:
            if own.phase != lease.COMMANDING:
                return YIELDED
            continue
        if loop.outcome >= step.BAD_STATE and loop.outcome != step.BAD_TORQUE:
            return REFUSED
        if not _command(calls, loop, own, state, tau, applied):
            return YIELDED
        if loop.outcome == step.BAD_TORQUE:
            return REFUSED
        _tell(calls, loop, arrays.arm[0], state)
        _count(loop, statistics, states.intake[0], age, rcl.monotonic(calls) - now)
        if loop.answer != rcl.OK:
            return FAILED
    return REQUESTED
