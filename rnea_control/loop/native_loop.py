"""The ticks of a loop as machine code, and requests of Python between two ticks.

A tick is decided by four functions, whoever calls them:

- `answer`: from the bytes of a joint state to torques;
- `answer_nothing`: torques for a predicted state, where states are missing;
- `may_command` and `commanded`: before and after the torques are published;
- `count`: the statistics of the tick.

Each returns a verdict. `run` calls them in a loop without the interpreter's lock, and adds the
calls of rcl: it waits, takes and publishes. It ends where Python has to decide. The ticks of Python
(arm_loop.py) call the same functions as kernels, `answer_once` and others, and interpret the same
verdicts. Nothing here allocates.
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
from rnea_control.control.references import is_streamed
from rnea_control.control.step import RequestArrays, StepArrays
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import barrier, fence
from rnea_control.loop import lease, state_intake
from rnea_control.loop.lease import Lease
from rnea_control.loop.loop_records import AppliedArrays, StatisticsArrays, note, record
from rnea_control.loop.loop_state import NOTHING, SERVED, WAITS, LoopState
from rnea_control.loop.other_inputs import (
    COMMAND,
    MODE,
    MOST_STOPS,
    STOP,
    TARGET_JOINT,
    OtherArrays,
    hear_targets,
)
from rnea_control.loop.state_intake import Intake, IntakeArrays
from rnea_control.messages.cdr import HEADER, LITTLE_ENDIAN, goes_to
from rnea_control.messages.joint_state import decode_state
from rnea_control.ros import rcl_calls as rcl

# Verdicts of `answer` and `answer_nothing`. `run` ends with the first four.
YIELDED = 0  # the arm is not this loop's
UNUSUAL = 1  # Python has to decide about the state; `loop.look` says why
SILENT = 2  # joint states are missing for long
REFUSED = 3  # a step refused a state, or found no finite torque; `loop.outcome` says why
ANSWERED = 4  # there is a torque to publish, from a step with the result `loop.outcome`
ADMITTED = 5  # the state may be answered, by a torque of Python
PAUSED = 6  # the loop was away, and a fresh joint state has to show for how long
NO_TORQUE = 7  # none is due
NOT_MISSING = 8  # the next state is not overdue
IGNORED = 9  # there is no state, or none of use
# Further reasons for which `run` ends.
REQUESTED = 10  # a thread wants the loop to stop
COMMANDED = 11  # another node commands the arm
FAILED = 12  # rcl did not take a message, or did not publish the command
NOTHING_UNUSUAL = 13  # no message beside the states needs a decision of Python

# Results of `look_at`, from the bytes of a state.
USUAL = 20
FOREIGN = 21  # from another publisher, with other names, or invalid
JUMPED = 22  # its stamp does not follow the last one closely
REPEATED = 23  # repeats the last state, which has no information
LATE = 24  # repeats the last state, and a new one is overdue

REVOKING = tuple(b"revoking\0")  # label of the mode in which the sentinel requests the arm
PREDICTION_PERIOD = 0.001  # period of commands while no usable joint state arrives [s]
LONGEST_AGE = 1.0  # age of a joint state beyond which its stamp is from a different clock [s]
POLL = 5e-5  # period in which Python checks whether the loop has stopped [s]


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
def limit_rate(loop: LoopState, state: State, t: float, now: float) -> None:
    """On hardware the rate limit of the next torque, for a state at time `t`, counts no more time
    than has passed at `now`, [s]."""
    if loop.system_time:
        dt = rate_time(loop, now, max(t - state.last_time, 0.0))
        state.rate_step = min(dt, LONGEST_RATE_STEP)


@inlined
def place(loop: LoopState, states: IntakeArrays, stamp: int, now: float, time: float) -> None:
    """Places the state that was taken last in time; `loop.advanced` says if time advances by it. In
    simulated time it does while the arm moves, though the stamps are late.

    Args:
        stamp: stamp of the state [ns].
        now: arrival of the state by the steady clock [s].
        time: time of the state [s]; NaN: by its stamp.
    """
    intake = states.intake[0]
    gap = state_intake.gap(intake, stamp)
    moves = not loop.system_time and (gap > 0.0 or state_intake.has_moved(states))
    least = loop.period if moves else 0
    state_intake.place(intake, stamp, now, time, least)
    state_intake.keep_position(states)
    loop.advanced = gap != 0.0 or least > 0


@inlined
def known_age(loop: LoopState) -> float:
    """Age of the state [s]; NaN where another clock than the system's makes the stamps."""
    return loop.age if loop.system_time and 0.0 <= loop.age < LONGEST_AGE else math.nan


@inlined
def may_command(own: Lease, state: State, now: float) -> bool:
    """True if the torques of the last step may be published at once. They are not in force else."""
    if lease.may_answer(own, now):
        return True
    withdraw(state)
    return False


@inlined
def commanded(
    loop: LoopState,
    own: Lease,
    state: State,
    tau: FloatArray,
    applied: AppliedArrays,
    now: float,
    published: bool,
) -> None:
    """The torques that `may_command` allowed at `now` were published: they are in force, and renew
    the lease. Torques that rcl has not `published` are not in force."""
    if not published:
        loop.unpublished += 1
        withdraw(state)
        return
    lease.answered(own, now)
    loop.published_at = now
    spend_rate_time(loop)
    if loop.has_efforts:
        note(applied, tau, now)


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
    does."""
    now = rcl.monotonic(calls)
    loop.answer = rcl.OK
    if not may_command(own, state, now):
        return False
    loop.answer = rcl.publish(calls)
    commanded(loop, own, state, tau, applied, now, loop.answer == rcl.OK)
    return True


@inlined
def _tell(calls: IntArray, loop: LoopState, arm: Arm, state: State) -> None:
    """Wakes the executor if a step has found something, or a motion has ended."""
    under_way = state.last_trajectory_time < state.path_end
    if arm.findings != loop.findings_seen or (loop.under_way and not under_way):
        rcl.trigger(calls)
    loop.findings_seen, loop.under_way = arm.findings, under_way


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
    others: OtherArrays,
    own: Lease,
    arrays: StepArrays,
    intake: Intake,
    now: float,
) -> int:
    """Takes all messages beside the states; returns COMMANDED if another node commands the arm,
    FAILED if rcl does not take a message, else NOTHING_UNUSUAL."""
    message = others.message
    for i in range(1, calls[rcl.COUNT]):
        kind = others.kinds[i - 1]
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
            if kind == STOP and _hear_stop(calls, loop, others.stops, size, message):
                step.emergency_stop(arrays)
            if kind >= TARGET_JOINT:
                clock, publisher = rcl.nanoseconds(calls), rcl.gid_of(calls)
                hear_targets(loop, others, arrays, intake, kind, size, publisher, clock, now)
            _end(loop)
            if kind >= TARGET_JOINT:
                if arrays.arm[0].findings != loop.findings_seen:
                    rcl.trigger(calls)  # a stream has begun; no state may follow
                break  # a storm of targets must not keep the states waiting
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
    if arm.motion != 0 or is_streamed(state):
        _begin(loop)
        step.end_motion(arm, state, arrays.findings, layout.HUNG)
        step.brake(arm, arrays.settings[arm.braced], state, False)
        _end(loop)


@inlined
def gives_torque(outcome: int) -> bool:
    """True if a step with this result has filled in torques."""
    return outcome < step.BAD_STATE or outcome == step.BAD_TORQUE


@inlined
def step_at(
    loop: LoopState,
    arrays: StepArrays,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    predicted: bool,
    now: float,
) -> None:
    """Fills `tau` by a step at time `t`, whose result is `loop.outcome`; see `step.advance`. `now`:
    steady clock [s]."""
    limit_rate(loop, arrays.state, t, now)
    arrays.state.state_age = known_age(loop)
    loop.outcome = step.advance(arrays, t, q, v, tau, predicted)


@inlined
def answer_nothing(
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    now: float,
    refused: bool,
    longest: float,
    steps: bool,
) -> int:
    """No usable state waits at `now`. Fills `tau` for a predicted one if states have been missing
    for `state_gap`, and it is time for a command.

    Args:
        now: steady clock [s].
        refused: true if the last state was refused: the next one is missing from then on.
        longest: time without states after which Python decides [s].
        steps: false if the arm gets no torque without states.

    Returns:
        NOT_MISSING; NO_TORQUE where states are missing, and no command is due; SILENT after
        `longest`; YIELDED or PAUSED where the lease allows no command; or ANSWERED.
    """
    lease.hear_nothing(own, now)
    missing = now - states.intake[0].came_at
    if not loop.system_time or not (refused or missing > loop.state_gap):
        return NOT_MISSING
    if now - loop.predicted_at < loop.prediction_period:
        return NO_TORQUE
    if missing > longest:
        return SILENT
    loop.predicted_at = now
    if not lease.may_answer(own, now):
        return PAUSED if own.phase == lease.COMMANDING else YIELDED
    t = states.intake[0].time + missing
    rests = t - arrays.state.rests_since > LONGEST_REPEAT
    if not steps or (rests and not refused):
        return NO_TORQUE
    q, v = arrays.state.predicted_position, arrays.state.predicted_velocity
    step_at(loop, arrays, t, q, v, tau, True, now)
    return ANSWERED


@inlined
def note_stamp(loop: LoopState, stamp: int, clock: int) -> None:
    """Notes the stamp of a state, and its age by the clock of the stamps, [ns]."""
    loop.stamp, loop.age = stamp, (clock - stamp) * 1e-9
    if stamp == 0:  # some hardware does not set it
        loop.stamp, loop.age = clock, math.nan


@inlined
def judge(loop: LoopState, states: IntakeArrays, is_predicting: bool, now: float) -> int:
    """Result of `look_at` for a decoded state of the followed publisher."""
    intake = states.intake[0]
    gap = state_intake.gap(intake, loop.stamp)
    if not 0.0 <= gap <= loop.state_timeout:
        return JUMPED
    if gap > 0.0 or not intake.begun:
        return USUAL
    is_ignored = is_predicting
    if loop.ignores_repeated:
        is_ignored = loop.system_time or not state_intake.has_moved(states)
    if is_ignored:
        return REPEATED
    return LATE if loop.system_time and now - intake.came_at > loop.state_gap else USUAL


@inlined
def look_at(
    loop: LoopState,
    states: IntakeArrays,
    is_predicting: bool,
    size: int,
    number: int,
    publisher: tuple[bool, int, int],
    clock: int,
    now: float,
) -> int:
    """Decodes a message of joint states, and writes its stamp and its age into `loop`; returns what
    is unusual about it.

    Args:
        is_predicting: true if the last torques were for a predicted state.
        size: length of the message [bytes].
        number: sequence number of the message; -1 if unknown.
        publisher: true if the GID of its publisher is known, and the GID in two words.
        clock: clock of the stamps [ns]; negative if unknown.
        now: arrival by the steady clock [s].
    """
    known, low, high = publisher
    if size > states.data.shape[0]:
        return FOREIGN
    if state_intake.is_another(states.intake[0], number, known, low, high):
        return FOREIGN
    stamp = decode_state(states.data, size, states.pattern, states.indices, states.bits)
    if stamp < 0:
        return FOREIGN
    note_stamp(loop, stamp, clock)
    if loop.stamp < 0:
        return FOREIGN
    return judge(loop, states, is_predicting, now)


@inlined
def resolve(
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    time: float,
    now: float,
    steps: bool,
) -> int:
    """The second half of `answer`: places the state with the stamp `loop.stamp`, and fills `tau` if
    the lease allows that.

    Args:
        time: time of the state [s]; NaN: by its stamp.
        now: arrival by the steady clock [s].
        steps: see `answer`.
    """
    intake, q, v = states.intake[0], states.rows[0], states.rows[1]
    place(loop, states, loop.stamp, now, time)
    lease.hear_state(own, intake.time, now, float(state_intake.last_number(intake)))
    if not lease.may_answer(own, now):
        if own.phase != lease.COMMANDING:
            return YIELDED
        lease.hear_nothing(own, now)
        return PAUSED
    if not steps:
        limit_rate(loop, arrays.state, intake.time, now)
        return ADMITTED
    step_at(loop, arrays, intake.time, q, v, tau, False, now)
    return ANSWERED if gives_torque(loop.outcome) else REFUSED


@inlined
def answer(
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    size: int,
    number: int,
    publisher: tuple[bool, int, int],
    clock: int,
    now: float,
    steps: bool,
) -> int:
    """Answers a message of joint states: decodes it, places it in time, asks the lease, and fills
    `tau` by a step.

    Args:
        size: length of the message [bytes]; `states.data` has the message unless it is longer.
        number: sequence number of the message; -1 if unknown.
        publisher: true if the GID of its publisher is known, and the GID in two words.
        clock: clock of the stamps [ns]; negative if unknown.
        now: arrival by the steady clock [s].
        steps: false if Python decides about the torque.

    Returns:
        UNUSUAL: nothing has changed. YIELDED or PAUSED: the lease allows no command. REFUSED: by
        the step. ADMITTED without `steps`; else ANSWERED.
    """
    known, low, high = publisher
    is_predicting = arrays.arm[0].predicting
    loop.look = look_at(loop, states, is_predicting, size, number, publisher, clock, now)
    if loop.look != USUAL:
        return UNUSUAL
    state_intake.follow(states.intake[0], number, known, low, high, now)
    return resolve(loop, own, arrays, states, tau, math.nan, now, steps)


@inlined
def _command_nothing(
    calls: IntArray,
    loop: LoopState,
    own: Lease,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    applied: AppliedArrays,
    now: float,
) -> int:
    """Publishes a torque of `answer_nothing`; returns its verdict, or FAILED. Python logs that a
    torque is not finite: SILENT."""
    _begin(loop)
    verdict = answer_nothing(loop, own, arrays, states, tau, now, False, loop.state_timeout, True)
    _end(loop)
    if verdict != ANSWERED:
        return verdict
    loop.answer = rcl.OK
    if gives_torque(loop.outcome):
        _command(calls, loop, own, arrays.state, tau, applied)
    if loop.outcome >= step.BAD_STATE:
        return SILENT
    return ANSWERED if loop.answer == rcl.OK else FAILED


@inlined
def count(
    loop: LoopState, statistics: StatisticsArrays, intake: Intake, duration: float, missed: int
) -> None:
    """Counts a tick that took `duration` [s], before which `missed` states were not taken."""
    interval = intake.interval if loop.system_time else math.nan
    record(statistics, duration, known_age(loop) + duration, interval, intake.period, missed)


@kernel(
    "i8(LoopState[::1], Lease[::1], StepArrays, IntakeArrays, f8[::1], i8, i8, b1, i8, i8, i8, f8, "
    "b1)"
)
def answer_once(
    loops: RecordArray,
    leases: RecordArray,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    size: int,
    number: int,
    known: bool,
    low: int,
    high: int,
    clock: int,
    now: float,
    steps: bool,
) -> int:
    """Kernel of `answer`, for Python."""
    publisher = known, low, high
    return answer(
        loops[0], leases[0], arrays, states, tau, size, number, publisher, clock, now, steps
    )


@kernel("i8(LoopState[::1], IntakeArrays, b1, f8)")
def judge_once(loops: RecordArray, states: IntakeArrays, is_predicting: bool, now: float) -> int:
    """Kernel of `judge`, for Python."""
    return judge(loops[0], states, is_predicting, now)


@kernel("i8(LoopState[::1], Lease[::1], StepArrays, IntakeArrays, f8[::1], f8, f8, b1)")
def resolve_once(
    loops: RecordArray,
    leases: RecordArray,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    time: float,
    now: float,
    steps: bool,
) -> int:
    """Kernel of `resolve`, for Python."""
    return resolve(loops[0], leases[0], arrays, states, tau, time, now, steps)


@kernel("i8(LoopState[::1], Lease[::1], StepArrays, IntakeArrays, f8[::1], f8, b1, f8, b1)")
def answer_nothing_once(
    loops: RecordArray,
    leases: RecordArray,
    arrays: StepArrays,
    states: IntakeArrays,
    tau: FloatArray,
    now: float,
    refused: bool,
    longest: float,
    steps: bool,
) -> int:
    """Kernel of `answer_nothing`, for Python."""
    return answer_nothing(loops[0], leases[0], arrays, states, tau, now, refused, longest, steps)


@kernel("i8(LoopState[::1], StepArrays, f8, f8[::1], f8[::1], f8[::1], b1, f8)")
def step_once(
    loops: RecordArray,
    arrays: StepArrays,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    predicted: bool,
    now: float,
) -> int:
    """Kernel of `step_at`, for Python; returns the result of the step."""
    loop = loops[0]
    step_at(loop, arrays, t, q, v, tau, predicted, now)
    return loop.outcome


@kernel("b1(Lease[::1], State, f8)")
def may_command_once(leases: RecordArray, state: State, now: float) -> bool:
    """Kernel of `may_command`, for Python."""
    return may_command(leases[0], state, now)


@kernel("void(LoopState[::1], Lease[::1], State, f8[::1], AppliedArrays, f8, b1)")
def commanded_once(
    loops: RecordArray,
    leases: RecordArray,
    state: State,
    tau: FloatArray,
    applied: AppliedArrays,
    now: float,
    published: bool,
) -> None:
    """Kernel of `commanded`, for Python."""
    commanded(loops[0], leases[0], state, tau, applied, now, published)


@kernel("void(LoopState[::1], StatisticsArrays, Intake[::1], f8, i8)")
def count_once(
    loops: RecordArray,
    statistics: StatisticsArrays,
    intakes: RecordArray,
    duration: float,
    missed: int,
) -> None:
    """Kernel of `count`, for Python."""
    count(loops[0], statistics, intakes[0], duration, missed)


@kernel(
    "i8(i8[::1], LoopState[::1], OtherArrays, Lease[::1], StepArrays, RequestArrays, IntakeArrays, "
    "f8[::1], StatisticsArrays, AppliedArrays)",
    nogil=True,
)
def run(
    calls: IntArray,
    loops: RecordArray,
    others: OtherArrays,
    leases: RecordArray,
    arrays: StepArrays,
    asked: RequestArrays,
    states: IntakeArrays,
    tau: FloatArray,
    statistics: StatisticsArrays,
    applied: AppliedArrays,
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
            reason = _hear_others(calls, loop, others, own, arrays, states.intake[0], now)
            if reason != NOTHING_UNUSUAL:
                return reason
            if calls[rcl.COUNT] and own.phase != lease.COMMANDING:
                return YIELDED
        _look_at_interpreter(loop, arrays, now)
        if taken == rcl.TAKE_FAILED:
            taken = rcl.take(calls, 0, 1 - loop.newest)
        now = rcl.monotonic(calls)
        if taken == rcl.TAKE_FAILED:
            verdict = _command_nothing(calls, loop, own, arrays, states, tau, applied, now)
            if verdict in (SILENT, YIELDED, FAILED):
                return verdict
            if verdict != NOT_MISSING:
                longest = int(1e9 * loop.prediction_period)
            continue
        if taken != rcl.OK:
            loop.answer = taken
            return FAILED
        size, number = rcl.read(calls, 1 - loop.newest, states.data), rcl.count_of(calls)
        low, high = rcl.gid_of(calls)
        publisher = True, low, high
        clock = rcl.nanoseconds(calls) if loop.system_time else -1
        _begin(loop)
        verdict = answer(loop, own, arrays, states, tau, size, number, publisher, clock, now, True)
        if verdict != UNUSUAL:
            loop.newest = 1 - loop.newest
        _end(loop)
        if verdict == PAUSED:
            continue
        if verdict != ANSWERED:
            return verdict
        if not _command(calls, loop, own, state, tau, applied):
            return YIELDED
        if loop.outcome == step.BAD_TORQUE:
            return REFUSED
        _tell(calls, loop, arrays.arm[0], state)
        duration = rcl.monotonic(calls) - now
        count(loop, statistics, states.intake[0], duration, states.intake[0].missed)
        loop.ticks += 1
        if loop.answer != rcl.OK:
            return FAILED
    return REQUESTED
