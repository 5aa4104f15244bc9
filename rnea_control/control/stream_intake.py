"""The intake of a stream's targets: whose they are, which are refused, and how they are followed.

The first publisher counts until its targets are missing for `stream_timeout`. A message is taken as
a whole or refused as a whole. After a stop of any kind, and after a time in which the mode takes no
stream, a stream begins only after a pause of its messages: a joystick that is still held does not
pull the arm out of a hold, and moves no arm that is activated or whose fault is reset.
"""

from __future__ import annotations

import math

from rnea_control.array_types import RecordArray, Vector
from rnea_control.control.feedback import shortest_way
from rnea_control.control.joint_stream import LONGEST_SPAN, carried
from rnea_control.control.layout import Settings, State
from rnea_control.control.references import begun_by, is_streamed
from rnea_control.control.step import StepArrays, begin_stream
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.record import Record
from rnea_control.jit.rows import Rows
from rnea_control.messages.joint_targets import READ

SHORTEST_PERIOD = 1e-4  # shorter periods of a joint's targets tell no velocity [s]
PERIOD_SHARE = 0.2  # part of a new period in the average of the periods

# Results of the intake, beside those of joint_targets.py.
TAKEN = READ
FOREIGN = 11  # another publisher's stream is followed
NOT_NOW = 12  # the mode takes no stream, or the stream waits for a pause
BACKWARD = 13  # the stamp is before that of the last message
TOO_FAR = 14  # further than `stream.max_distance` from the desired position


class Targets(Rows):
    """Values of one message; NaN where it has none."""

    position: Vector  # or, of a jog, a step of the position
    velocity: Vector
    effort: Vector


class StreamIntake(Record):
    """State of the intake. Times are the controller's [s]."""

    known: bool = False  # a publisher is followed
    gid_low: int = 0  # its GID, in two words
    gid_high: int = 0
    heard_at: float = -math.inf  # time of its last message, also of a refused one
    stamp: float = math.nan  # stamp of its last targets
    period: float = 0.0  # average distance of its targets; 0 until it is known
    kind: int = 0  # kind of its messages, a `TargetKind`

    # For diagnostics and the log.
    taken: int = 0
    foreign: int = 0
    refused: int = 0
    ignored: int = 0  # messages of the followed publisher that were not taken
    ignored_kind: int = 0  # kind of the last one of them
    result: int = TAKEN  # why it was not
    joint: int = 0  # the joint that it is about
    value: float = 0.0  # the distance
    foreign_low: int = 0  # GID of the last publisher that is not followed
    foreign_high: int = 0
    foreign_kind: int = 0  # kind of its messages


@inlined
def hear(
    intake: StreamIntake,
    arrays: StepArrays,
    kind: int,
    publisher: tuple[int, int],
    t: float,
    may_begin: bool,
) -> int:
    """Notes a message of a publisher at time `t` [s]; returns TAKEN if its targets count.
    `may_begin`: False if no stream may begin now, whatever the mode."""
    arm = arrays.arm[0]
    settings, (low, high) = arrays.settings[arm.braced], publisher
    intake.heard_at = min(intake.heard_at, t)  # the time goes back where that of the states does
    paused = not t - intake.heard_at <= settings.stream_timeout
    if intake.known and (low != intake.gid_low or high != intake.gid_high) and not paused:
        intake.foreign_low, intake.foreign_high, intake.foreign_kind = low, high, kind
        intake.foreign += 1
        return FOREIGN
    intake.known, intake.gid_low, intake.gid_high, intake.kind = True, low, high, kind
    intake.heard_at = t
    if paused:
        arm.stream_waits = False
        intake.stamp, intake.period = math.nan, 0.0
    if not arm.takes_streams:
        arm.stream_waits = True
    follows = may_begin or is_streamed(arrays.state)
    return TAKEN if follows and not arm.stream_waits else NOT_NOW


@inlined
def is_distant(intake: StreamIntake, settings: Settings, targets: Targets, place: Vector) -> bool:
    """True if a target is too far from the position `place` of its joint; writes joint and
    distance."""
    for j in range(place.shape[0]):
        way = shortest_way(settings, j, targets.position[j] - place[j])
        if abs(way) > settings.stream_max_distance[j]:
            intake.joint, intake.value = j, abs(way)
            return True
    return False


@inlined
def note_target(
    intake: StreamIntake, arrays: StepArrays, begins: bool, t: float, age: float
) -> tuple[float, bool]:
    """Notes a target that is taken; returns its time [s], and True if its stamp tells this.

    Args:
        begins: True if the stream begins.
        t: time of the arrival [s].
        age: age by the stamp [s]; NaN if the stamp tells none.
    """
    state, settings = arrays.state, arrays.settings[arrays.arm[0].braced]
    resumes = begins or not t - state.stream_at <= settings.stream_timeout
    stamped = 0.0 <= age <= settings.stream_timeout
    at = t - age if stamped else t
    passed = at - state.stream_at
    if resumes:
        state.target_span[:] = -1.0
        state.pose_span = -1.0
        intake.period = 0.0
    elif intake.period == 0.0:
        intake.period = passed
    elif passed > SHORTEST_PERIOD:  # targets that came while the time stood still say nothing
        intake.period += PERIOD_SHARE * (passed - intake.period)
    state.stream_at = t
    intake.taken += 1
    return at, stamped


@inlined
def target_period(intake: StreamIntake, stamped: bool, passed: float) -> float:
    """Time since the target before [s], for the target's velocity: by stamps, or within a factor of
    two the average period."""
    period = intake.period
    if stamped or not period > 0.0:
        return passed
    return min(max(passed, 0.5 * period), 2.0 * period)


@inlined
def _take_position(
    intake: StreamIntake,
    settings: Settings,
    state: State,
    targets: Targets,
    j: int,
    at: float,
    stamped: bool,
) -> None:
    """Takes the target of joint j for time `at` [s], by its stamp if it is `stamped`. Its velocity,
    if it has none, comes from the target before."""
    x, fastest = state.desired_position[j], settings.stream_max_velocity[j]
    y = x + shortest_way(settings, j, targets.position[j] - x)
    rate, span = targets.velocity[j], LONGEST_SPAN
    if math.isnan(rate):
        rate, span = 0.0, 0.0
        passed = target_period(intake, stamped, at - state.target_at[j])
        if state.target_span[j] >= 0.0 and passed >= SHORTEST_PERIOD:
            rate, span = (y - state.target[j]) / passed, min(2.0 * passed, LONGEST_SPAN)
    state.target[j], state.target_at[j], state.target_span[j] = y, at, span
    state.target_rate[j] = min(max(rate, -fastest), fastest)


@inlined
def _jog(settings: Settings, state: State, targets: Targets, j: int, t: float) -> None:
    """Moves joint j by a step, or with a velocity until the next message."""
    fastest, far = settings.stream_max_velocity[j], settings.stream_max_distance[j]
    y, _ = carried(settings, state, j, t)
    step, rate = targets.position[j], targets.velocity[j]
    if not math.isnan(step):
        y += step
    x = state.desired_position[j]
    y = min(max(y, settings.lower_limit[j]), settings.upper_limit[j])
    state.target[j], state.target_at[j] = min(max(y, x - far), x + far), t
    state.target_rate[j], state.target_span[j] = 0.0, -1.0
    if not math.isnan(rate):
        state.target_rate[j] = min(max(rate, -fastest), fastest)
        state.target_span[j] = settings.stream_timeout


@inlined
def take(
    intake: StreamIntake,
    arrays: StepArrays,
    targets: Targets,
    reference: int,
    is_jog: bool,
    t: float,
    age: float,
) -> int:
    """Follows the targets of a message, which are finite or missing.

    Args:
        reference: number of the reference that they begin.
        t: time of the arrival [s].
        age: age of the message by its stamp [s]; NaN if its stamp tells none.

    Returns:
        TAKEN, or why nothing of it counts.
    """
    arm, state = arrays.arm[0], arrays.state
    settings = arrays.settings[arm.braced]
    if not is_jog and is_distant(intake, settings, targets, state.desired_position):
        return TOO_FAR
    begins = int(state.reference) != reference
    if begins:
        begin_stream(arrays, reference, t)
    at, stamped = note_target(intake, arrays, begins, t, age)
    for j in range(state.shape[1]):
        if is_jog:
            if not (math.isnan(targets.position[j]) and math.isnan(targets.velocity[j])):
                _jog(settings, state, targets, j, t)
        elif not math.isnan(targets.position[j]):
            _take_position(intake, settings, state, targets, j, at, stamped)
            effort = targets.effort[j]
            limit = settings.effort_limit[j]
            state.target_effort[j] = 0.0
            if not math.isnan(effort):
                state.target_effort[j] = min(max(effort, -limit), limit)
    return TAKEN


@inlined
def note(intake: StreamIntake, result: int) -> None:
    """Notes that a message was not taken."""
    if result not in (TAKEN, FOREIGN):
        intake.result, intake.ignored_kind = result, intake.kind
        intake.ignored += 1
        if result != NOT_NOW:
            intake.refused += 1


@inlined
def admit(
    intake: StreamIntake,
    arrays: StepArrays,
    decoded: int,
    kind: int,
    publisher: tuple[int, int],
    t: float,
    stamp: float,
    may_begin: bool,
) -> int:
    """Notes a message; returns TAKEN if it is to be taken. Arguments: see `take_message`."""
    result = hear(intake, arrays, kind, publisher, t, may_begin)
    if result == TAKEN:
        result = decoded
    fresh = t - arrays.state.stream_at <= arrays.settings[arrays.arm[0].braced].stream_timeout
    if result == TAKEN and stamp < intake.stamp and fresh:  # later its clock was set back
        result = BACKWARD
    if result == TAKEN:
        intake.stamp = stamp
    return result


@inlined
def take_message(
    intake: StreamIntake,
    arrays: StepArrays,
    targets: Targets,
    decoded: int,
    kind: int,
    is_jog: bool,
    publisher: tuple[int, int],
    t: float,
    stamp: float,
    age: float,
    may_begin: bool,
) -> int:
    """Takes a message that was `decoded` with this result; returns whether its targets count.

    Args:
        kind: kind of the message, a `TargetKind`.
        is_jog: True if its targets are steps and velocities.
        publisher: its GID, in two words.
        t: time of the arrival [s].
        stamp: its stamp [s]; NaN for none.
        age: its age by its stamp [s]; NaN if its stamp tells none.
        may_begin: False if no stream may begin now.
    """
    result = admit(intake, arrays, decoded, kind, publisher, t, stamp, may_begin)
    if result == TAKEN:
        result = take(intake, arrays, targets, begun_by(kind), is_jog, t, age)
    note(intake, result)
    return result


@kernel(
    "i8(StreamIntake[::1], StepArrays, Targets, i8, i8, b1, UniTuple(i8, 2), f8, f8, f8, b1)",
)
def take_once(
    intakes: RecordArray,
    arrays: StepArrays,
    targets: Targets,
    decoded: int,
    kind: int,
    is_jog: bool,
    publisher: tuple[int, int],
    t: float,
    stamp: float,
    age: float,
    may_begin: bool,
) -> int:
    """Kernel of `take_message`, for Python."""
    message = decoded, kind, is_jog, publisher, t, stamp, age, may_begin
    return take_message(intakes[0], arrays, targets, *message)
