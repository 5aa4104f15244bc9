"""`Recording`: a robot's joint states during a motion; whether it has what identification needs and
can be that of a robot, and its usable parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.ndimage import median_filter

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# A stamp that falls by more than this begins another motion; by less, the message is late, [s].
RESTART = 0.5
# A gap is a time without states of more than so many periods.
GAP_PERIODS = 5.0
# So short a time is bridged, however many periods it has, [s].
SHORT_GAP = 0.01
# A part between two gaps counts if it is at least this long, [s].
SHORTEST = 1.0
# And of so many samples, as the filter needs them.
LEAST_SAMPLES = 50
# A position this far beyond a limit, as a part of the range, is of another zero; beyond all of the
# range, of another unit.
BEYOND = 0.02
# Velocities that are typically so many times the limit are of another unit.
TOO_FAST = 3.0
# No joint moves so many times faster than its limit from one state to the next, nor so far without
# a limit, [rad] or [m]; nor is less than that a glitch.
GLITCH_SPEED, GLITCH, LEAST_GLITCH = 20.0, 1.0, 0.01
# Nor does it jump so much further and stay there, [rad] or [m].
LEAST_JUMP = 0.05
# An effort is a glitch if it differs from its neighbors' median by so many of the usual
# differences, and by so many ranges of 98 % of all efforts.
GLITCH_DIFFERENCES, GLITCH_RANGES = 50.0, 2.0
# Neighbors, itself included.
WINDOW = 5
# One median absolute deviation of normal noise is this part of its standard deviation.
MEDIAN_DEVIATION = 0.6745
# A joint moves if its positions differ by more than this, [rad] or [m].
MOVED = 1e-3


@dataclass(frozen=True, eq=False)
class Recording:
    """The joint states of a motion as they came: nothing is sorted, filtered or left out.

    Attributes:
        source: the file, for messages.
        joints: the order of the columns.
        time: stamps, counted from the first one, shape (samples,), [s].
        q: positions, shape (samples, joints), [rad] or [m]; NaN where the messages had none.
        v: velocities, the same shape, [rad/s] or [m/s]; NaN where the messages had none.
        effort: measured efforts, the same shape, [Nm] or [N]; NaN where the messages had none.
        robot_description: the URDF that was recorded with them; "" if none was.
        notes: the assumptions of the file's reader, a sentence each.
    """

    source: str
    joints: tuple[str, ...]
    time: FloatArray
    q: FloatArray
    v: FloatArray
    effort: FloatArray
    robot_description: str = field(default="", kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)


def cleaned(
    recording: Recording, notes: list[str]
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Time, positions and efforts that can be used, and where the time starts again."""
    time = recording.time
    numbers = np.column_stack([time, recording.q, recording.effort])
    whole = np.isfinite(numbers).all(axis=1)
    if not whole.all():
        notes.append(
            f"{recording.source}: {np.count_nonzero(~whole)} of {len(time)} states lack a position "
            "or an effort; they were left out"
        )
    restarts = np.concatenate([[False], np.diff(time) < -RESTART])
    motions = np.cumsum(restarts)
    parts = np.split(time, np.flatnonzero(restarts))
    latest = [np.append(-np.inf, np.maximum.accumulate(part)[:-1]) for part in parts]
    in_order = time > np.concatenate(latest)
    dropped = np.count_nonzero(~in_order)
    if dropped:
        notes.append(
            f"{recording.source}: the stamps of {dropped} states fall or repeat; they were left out"
        )
    if motions.size and motions[-1]:
        notes.append(
            f"{recording.source}: the stamps start again {motions[-1]} times; each part counts by "
            "itself"
        )
    kept = whole & in_order
    moved = motions[kept]
    starts = np.concatenate([[False], np.diff(moved) > 0]) if len(moved) else restarts[:0]
    return time[kept], recording.q[kept], recording.effort[kept], starts


def continuous(
    recording: Recording, time: FloatArray, starts: BoolArray, period: float, notes: list[str]
) -> list[slice]:
    """The parts without gaps that are long enough."""
    if len(time) < 2:
        return []
    widest_hole = max(GAP_PERIODS * period, SHORT_GAP)
    gaps = np.concatenate([[False], np.diff(time) > widest_hole]) & ~starts
    cuts = [0, *np.flatnonzero(gaps | starts).tolist(), len(time)]
    parts = [slice(*pair) for pair in pairwise(cuts)]
    least = max(SHORTEST / period, LEAST_SAMPLES)
    long = [part for part in parts if part.stop - part.start >= least]
    if gaps.any():
        widest = float(np.diff(time)[gaps[1:]].max())
        notes.append(
            f"{recording.source}: {np.count_nonzero(gaps)} gaps, the longest of {widest:.3g} s; "
            "what is between them counts part by part"
        )
    lost = len(time) - sum(part.stop - part.start for part in long)
    if lost and long:
        notes.append(
            f"{recording.source}: {lost} states in parts of less than {SHORTEST:g} s were left out"
        )
    return long


def check_effort(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no measured effort at all, or
    move with an effort that never changes."""
    _check_there(
        recording,
        recording.effort,
        "effort",
        "Does the hardware export the effort state interface (ros2 control "
        "list_hardware_interfaces), and does joint_state_broadcaster publish it?",
    )
    ranges = []
    for values in (recording.effort, recording.q):
        known = np.where(np.isfinite(values), values, np.nan)
        ranges.append((np.nanmin(known, axis=0), np.nanmax(known, axis=0)))
    (lowest, highest), (low, high) = ranges
    dead = [
        f"{recording.joints[j]} ({lowest[j]:g} throughout)"
        for j in np.flatnonzero((lowest == highest) & ~(low - high >= -MOVED)).tolist()
    ]
    if dead:
        raise RecordingError(
            f"{recording.source}: the effort never changes although the joint moves: "
            f"{listed(dead)}. That is no measurement: does the hardware fill the effort state "
            "interface?"
        )


def check_positions(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no position at all."""
    remedy = "Record the topic that has positions and efforts"
    _check_there(recording, recording.q, "position", remedy)


def _check_there(recording: Recording, values: FloatArray, what: str, remedy: str) -> None:
    has = np.isfinite(values).any(axis=0)
    missing = [recording.joints[j] for j in np.flatnonzero(~has).tolist()]
    if missing:
        who = f"{listed(missing)} {'has' if len(missing) == 1 else 'have'}"
        if not has.any():
            who = f"all joints ({listed(missing)}) have"
        raise RecordingError(
            f"{recording.source}: {who} no {what}: it is empty or NaN in all "
            f"{len(recording.time)} samples. {remedy}"
        )


def of_robot(recording: Recording, model: RobotModel) -> Recording:
    """The recording as one of this robot: continuous joints count their turns, and what no joint
    does from one state to the next is left out.

    Args:
        recording: of the joints of `model`, with positions and efforts.
        model: with joints of one degree of freedom.

    Raises:
        RecordingError: positions or velocities far beyond the limits, as if in degrees, or a
            position that jumps and stays.
    """
    q, notes = recording.q.copy(), list(recording.notes)
    source = recording.source
    time = np.where(np.isfinite(recording.time), recording.time, 0.0)
    wrong: list[str] = []
    positions, efforts = np.zeros(q.shape, np.bool_), _effort_glitches(recording.effort)
    for j, name in enumerate(recording.joints):
        known = np.isfinite(q[:, j])
        if model.joint_types[j] == "continuous":
            turned = np.unwrap(q[known, j])
            if np.abs(turned - q[known, j]).max() > math.pi:
                notes.append(f"{source}: {name} jumps by whole turns; they were counted")
            q[known, j] = turned
        limit = float(model.velocity_limit[j])
        positions[known, j] = _position_glitches(q[known, j], time[known], limit)
        q[positions[:, j], j] = np.nan
        known = np.isfinite(q[:, j])
        if known.any():
            wrong += _beyond_limits(source, model, j, q[known, j], time[known], notes)
    if wrong:
        raise RecordingError(
            f"{source}: {'; '.join(wrong)}. Positions must be in rad and m, with the zeros of the "
            "URDF: are they in degrees or mm?"
        )
    for j in range(model.nv):
        known = np.isfinite(q[:, j])
        _check_jumps(source, model, j, q[known, j], time[known])
    for what, where in (("positions", positions), ("efforts", efforts)):
        counts = zip(recording.joints, where.sum(axis=0).tolist(), strict=True)
        at = ", ".join(f"{name} ({count})" for name, count in counts if count)
        if at:
            notes.append(f"{source}: {what} that jump there and back were left out: {at}")
    return replace(
        recording, q=q, effort=np.where(efforts, np.nan, recording.effort), notes=tuple(notes)
    )


def _beyond_limits(
    source: str, model: RobotModel, j: int, q: FloatArray, time: FloatArray, notes: list[str]
) -> list[str]:
    """What cannot be of the joint; what is only odd goes to the notes."""
    name, unit = model.joint_names[j], units(model, j).position
    lower, upper = float(model.lower[j]), float(model.upper[j])
    low, high = float(q.min()), float(q.max())
    limits = f"its limits are {lower:.4g} and {upper:.4g} {unit}"
    beyond = max(lower - low, high - upper)
    if upper > lower and math.isfinite(beyond):
        if beyond > upper - lower:
            return [f"{name} goes from {low:.4g} to {high:.4g}, and {limits}"]
        if beyond > BEYOND * (upper - lower):
            notes.append(
                f"{source}: {name} goes from {low:.4g} to {high:.4g} {unit}, and {limits}; are its "
                "zero and direction those of the URDF?"
            )
    steps = np.diff(time)
    moves = np.abs(np.diff(q))[steps > 0.0] / steps[steps > 0.0]
    limit = float(model.velocity_limit[j])
    if len(moves) and 0.0 < TOO_FAST * limit < float(np.median(moves)):
        return [
            f"{name} typically moves with {np.median(moves):.3g} {unit}/s, and its limit is "
            f"{limit:.3g} {unit}/s"
        ]
    return []


def _check_jumps(source: str, model: RobotModel, j: int, q: FloatArray, time: FloatArray) -> None:
    """Raises RecordingError where the position jumps as if its zero were set."""
    moves, steps, limit = np.diff(q), np.diff(time), float(model.velocity_limit[j])
    if not (steps > 0.0).any() or not 0.0 < limit < math.inf:
        return
    least = np.maximum(steps, np.median(steps[steps > 0.0]))
    jumps = (np.abs(moves) > LEAST_JUMP + GLITCH_SPEED * limit * least) & (steps > 0.0)
    if jumps.any():
        k, unit = int(np.argmax(jumps)), units(model, j).position
        raise RecordingError(
            f"{source}: {model.joint_names[j]} jumps by {moves[k]:.3g} {unit} within "
            f"{steps[k]:.3g} s, {time[k]:.6g} s after the beginning; its limit is {limit:.3g} "
            f"{unit}/s. Was its zero set there? Record again, or split the recording there"
        )


def _position_glitches(q: FloatArray, time: FloatArray, limit: float) -> BoolArray:
    """Which positions jump away from their neighbors faster than any joint."""
    off = np.abs(q - median_filter(q, WINDOW, mode="nearest"))
    steps = np.diff(time)
    period = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else math.inf
    farthest = GLITCH_SPEED * limit * period if limit < math.inf else GLITCH
    return np.asarray(off > min(max(farthest, LEAST_GLITCH), GLITCH))


def _effort_glitches(effort: FloatArray) -> BoolArray:
    """Which efforts are beyond all that a joint does, shape (samples, joints)."""
    found = np.zeros(effort.shape, np.bool_)
    for j, column in enumerate(effort.T):
        known = np.isfinite(column)
        values = column[known]
        if not len(values):
            continue
        off = np.abs(values - median_filter(values, WINDOW, mode="nearest"))
        usual = float(np.median(off)) / MEDIAN_DEVIATION
        span = float(np.ptp(np.percentile(values, [1.0, 99.0])))
        limit = max(GLITCH_DIFFERENCES * usual, GLITCH_RANGES * span)
        found[known, j] = off > limit if limit > 0.0 else False
    return found
