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
EXPORT_EFFORT = (
    "Does the hardware export the effort state interface (ros2 control list_hardware_interfaces), "
    "and does joint_state_broadcaster publish it?"
)


@dataclass(frozen=True, eq=False)
class Recording:
    """The joint states of a motion as they came: nothing is sorted, filtered or left out. What a
    message did not have is NaN."""

    source: str  # the file, for messages
    joints: tuple[str, ...]  # the order of the columns
    time: FloatArray  # stamps, counted from the first one, shape (samples,), [s]
    q: FloatArray  # positions, shape (samples, joints), [rad] or [m]
    v: FloatArray  # velocities, the same shape, [rad/s] or [m/s]
    effort: FloatArray  # measured, the same shape, [Nm] or [N]
    robot_description: str = field(default="", kw_only=True)  # the URDF that was recorded with them
    # The assumptions of the file's reader, a sentence each.
    notes: tuple[str, ...] = field(default=(), kw_only=True)


def cleaned(
    recording: Recording, notes: list[str]
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Time, positions and efforts that can be used, and where the time starts again; what is left
    out goes to the notes."""
    time = recording.time
    numbers = np.column_stack([time, recording.q, recording.effort])
    whole = np.isfinite(numbers).all(axis=1)
    if lacking := np.count_nonzero(~whole):
        notes.append(
            f"{lacking} of {len(time)} states lack a position or an effort; they were left out"
        )
    restarts = np.concatenate([[False], np.diff(time) < -RESTART])
    motions = np.cumsum(restarts)
    parts = np.split(time, np.flatnonzero(restarts))
    latest = [np.append(-np.inf, np.maximum.accumulate(part)[:-1]) for part in parts]
    in_order = time > np.concatenate(latest)
    if dropped := np.count_nonzero(~in_order):
        notes.append(f"the stamps of {dropped} states fall or repeat; they were left out")
    if motions.size and motions[-1]:
        notes.append(f"the stamps start again {motions[-1]} times; each part counts by itself")
    kept = whole & in_order
    moved = motions[kept]
    starts = np.concatenate([[False], np.diff(moved) > 0]) if len(moved) else restarts[:0]
    return time[kept], recording.q[kept], recording.effort[kept], starts


def continuous(time: FloatArray, starts: BoolArray, period: float, notes: list[str]) -> list[slice]:
    """The parts without gaps that are long enough; the others go to the notes."""
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
            f"{np.count_nonzero(gaps)} gaps, the longest of {widest:.3g} s; what is between them "
            "counts part by part"
        )
    lost = len(time) - sum(part.stop - part.start for part in long)
    if lost and long:
        notes.append(f"{lost} states in parts of less than {SHORTEST:g} s were left out")
    return long


def check_measured(recording: Recording, moved: float = MOVED) -> None:
    """Raises RecordingError, which names the joints, where some have no position or measured effort
    at all, or go further than `moved`, [rad] or [m], with an effort that never changes."""
    for what, values, remedy in (
        ("position", recording.q, "Record the topic that has positions and efforts"),
        ("effort", recording.effort, EXPORT_EFFORT),
    ):
        has = np.isfinite(values).any(axis=0)
        missing = [recording.joints[j] for j in np.flatnonzero(~has).tolist()]
        if missing:
            who = f"{listed(missing)} {'has' if len(missing) == 1 else 'have'}"
            if not has.any():
                who = f"all joints ({listed(missing)}) have"
            raise RecordingError(
                f"{recording.source}: {who} no {what}: it is empty or NaN in all samples. {remedy}"
            )
    effort, q = (np.where(np.isfinite(x), x, np.nan) for x in (recording.effort, recording.q))
    lowest, way = np.nanmin(effort, axis=0), np.nanmax(q, axis=0) - np.nanmin(q, axis=0)
    dead = [
        f"{recording.joints[j]} ({lowest[j]:g} throughout)"
        for j in np.flatnonzero((np.nanmax(effort, axis=0) == lowest) & (way > moved)).tolist()
    ]
    if dead:
        raise RecordingError(
            f"{recording.source}: the effort never changes although the joint moves: "
            f"{listed(dead)}. That is no measurement: does the hardware fill the effort state "
            "interface?"
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
    q, source, notes = recording.q.copy(), recording.source, []
    time = np.where(np.isfinite(recording.time), recording.time, 0.0)
    wrong: list[str] = []
    jumps: list[str] = []
    positions, efforts = np.zeros(q.shape, np.bool_), _effort_glitches(recording.effort)
    for j, name in enumerate(recording.joints):
        known = np.isfinite(q[:, j])
        if model.joint_types[j] == "continuous":
            turned = np.unwrap(q[known, j])
            if np.abs(turned - q[known, j]).max() > math.pi:
                notes.append(f"{name} jumps by whole turns; they were counted")
            q[known, j] = turned
        limit = float(model.velocity_limit[j])
        positions[known, j] = _position_glitches(q[known, j], time[known], limit)
        q[positions[:, j], j] = np.nan
        known = np.isfinite(q[:, j])
        if known.any():
            wrong += _beyond_limits(model, j, q[known, j], time[known], notes)
            jumps += _jump(model, j, q[known, j], time[known])
    if wrong:
        raise RecordingError(
            f"{source}: {'; '.join(wrong)}. Positions must be in rad and m, with the zeros of the "
            "URDF: are they in degrees or mm?"
        )
    if jumps:
        raise RecordingError(f"{source}: {'; '.join(jumps)}")
    for what, where in (("positions", positions), ("efforts", efforts)):
        counts = zip(recording.joints, where.sum(axis=0).tolist(), strict=True)
        if at := ", ".join(f"{name} ({count})" for name, count in counts if count):
            notes.append(f"{what} that jump there and back were left out: {at}")
    effort = np.where(efforts, np.nan, recording.effort)
    said = (*recording.notes, *(f"{source}: {note}" for note in notes))
    return replace(recording, q=q, effort=effort, notes=said)


def _beyond_limits(
    model: RobotModel, j: int, q: FloatArray, time: FloatArray, notes: list[str]
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
                f"{name} goes from {low:.4g} to {high:.4g} {unit}, and {limits}; are its zero and "
                "direction those of the URDF?"
            )
    rising, limit = np.diff(time) > 0.0, float(model.velocity_limit[j])
    speeds = np.abs(np.diff(q))[rising] / np.diff(time)[rising]
    typical = float(np.median(speeds)) if len(speeds) else 0.0
    if not 0.0 < TOO_FAST * limit < typical:
        return []
    return [
        f"{name} typically moves with {typical:.3g} {unit}/s, and its limit is {limit:.3g} {unit}/s"
    ]


def _jump(model: RobotModel, j: int, q: FloatArray, time: FloatArray) -> list[str]:
    """Where the position jumps first as if its zero were set, in words; empty if it does not."""
    moves, steps, limit = np.diff(q), np.diff(time), float(model.velocity_limit[j])
    if not (steps > 0.0).any() or not 0.0 < limit < math.inf:
        return []
    least = np.maximum(steps, np.median(steps[steps > 0.0]))
    jumps = (np.abs(moves) > LEAST_JUMP + GLITCH_SPEED * limit * least) & (steps > 0.0)
    if not jumps.any():
        return []
    k, unit = int(np.argmax(jumps)), units(model, j).position
    return [
        f"{model.joint_names[j]} jumps by {moves[k]:.3g} {unit} within {steps[k]:.3g} s, "
        f"{time[k]:.6g} s after the beginning; its limit is {limit:.3g} {unit}/s. Was its zero set "
        "there? Record again, or split the recording there"
    ]


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
