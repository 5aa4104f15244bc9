"""`Recording`: a robot's joint states during a motion; checks that it is complete and plausible for
a robot, and its usable parts."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.ndimage import median_filter

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

RESTART = 0.5  # decrease of the stamp that begins another motion; a smaller one is late [s]
GAP_PERIODS = 5.0  # time without states that is a gap, in periods
SHORT_GAP = 0.01  # time without states that is never a gap [s]
SHORTEST = 1.0  # shortest usable part between two gaps [s]
LEAST_SAMPLES = 50  # smallest number of samples of a usable part, as the filter needs them
# Distance of a position beyond a limit, as a fraction of the range, at which the zero is wrong;
# beyond the whole range, the unit.
BEYOND = 0.02
TOO_FAST = 3.0  # typical velocity at which the unit is wrong, over the velocity limit
GLITCH_SPEED = 20.0  # velocity of a glitch of the position, over the velocity limit
GLITCH = 1.0  # largest step from state to state that is no glitch [rad] or [m]
LEAST_GLITCH = 0.01  # smallest step of a glitch [rad] or [m]
LEAST_JUMP = 0.05  # smallest lasting step beyond the velocity of a glitch [rad] or [m]
# A glitch of the effort differs from the median of its neighbors by more than both of:
GLITCH_DIFFERENCES = 50.0  # usual differences from the median
GLITCH_RANGES = 2.0  # ranges of 98 % of all efforts
WINDOW = 5  # number of neighbors, itself included
MEDIAN_DEVIATION = 0.6745  # median absolute deviation over standard deviation, of normal noise
MOVED = 1e-3  # largest difference of the positions of a joint at rest [rad] or [m]


@dataclass(frozen=True, eq=False)
class Recording:
    """Joint states of a motion as received, not sorted, filtered or reduced. Missing values are
    NaN."""

    source: str  # name of the file, for messages
    joints: tuple[str, ...]  # joints in the order of the columns
    time: FloatArray  # stamps, counted from the first, shape (samples,), [s]
    q: FloatArray  # positions, shape (samples, joints), [rad] or [m]
    effort: FloatArray  # measured efforts, shape (samples, joints), [Nm] or [N]
    robot_description: str = field(default="", kw_only=True)  # URDF in the same file
    start: float = field(default=0.0, kw_only=True)  # stamp of the first state [s]
    # Assumptions of the file's reader, a sentence each.
    notes: tuple[str, ...] = field(default=(), kw_only=True)


def other_joints(joints: Sequence[str], has: Collection[str]) -> str:
    """Remedy for a recording that lacks some of the joints, mostly fingers."""
    remedy = "Give the joints as it names them, or the recording of this robot"
    if moved := [joint for joint in joints if joint in has]:
        remedy += (
            "; to lock the others, as fingers that stood, name those that moved: --joints "
            f"{' '.join(moved)}"
        )
    return remedy


def cleaned(
    recording: Recording, notes: list[str]
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Usable time, positions and efforts, and the starts of a new time; notes get a sentence about
    left-out states."""
    time = recording.time
    whole = _whole(recording)
    if lacking := np.count_nonzero(~whole):
        notes.append(
            f"{lacking} of {len(time)} states lack a position or an effort; they were left out"
        )
    restarts = np.diff(time, prepend=time[:1]) < -RESTART
    parts = np.split(time, np.flatnonzero(restarts))
    latest = [np.append(-np.inf, np.maximum.accumulate(part)[:-1]) for part in parts]
    in_order = time > np.concatenate(latest)
    if dropped := np.count_nonzero(~in_order):
        notes.append(f"the stamps of {dropped} states fall or repeat; they were left out")
    if again := np.count_nonzero(restarts):
        notes.append(f"the stamps start again {again} times; each part counts by itself")
    kept = whole & in_order
    starts = np.diff(np.cumsum(restarts)[kept], prepend=0) > 0
    return time[kept], recording.q[kept], recording.effort[kept], starts


def continuous(time: FloatArray, starts: BoolArray, period: float, notes: list[str]) -> list[slice]:
    """Parts without gaps that are long enough; notes get a sentence about the other parts."""
    steps = np.diff(time, prepend=time[:1])
    gaps = (steps > max(GAP_PERIODS * period, SHORT_GAP)) & ~starts
    cuts = [0, *np.flatnonzero(gaps | starts).tolist(), len(time)]
    parts = [slice(*pair) for pair in pairwise(cuts)]
    least = max(SHORTEST / period, LEAST_SAMPLES)
    long = [part for part in parts if part.stop - part.start >= least]
    if gaps.any():
        notes.append(
            f"{np.count_nonzero(gaps)} gaps, the longest of {steps[gaps].max():.3g} s; the parts "
            "between them are used separately"
        )
    lost = len(time) - sum(part.stop - part.start for part in long)
    if lost and long:
        notes.append(f"{lost} states in parts of less than {SHORTEST:g} s were left out")
    return long


def check_measured(recording: Recording, moved: float = MOVED) -> None:
    """Raises RecordingError, which names the joints, if a joint has no position or no measured
    effort at all, or moves by more than `moved`, [rad] or [m], with a constant effort."""
    for what, values in (("position", recording.q), ("effort", recording.effort)):
        has = np.isfinite(values).any(axis=0)
        if missing := _joints(recording, np.logical_not(has)):
            who = listed(missing) if has.any() else f"any joint ({listed(missing)})"
            raise RecordingError(
                f"{recording.source}: no {what} of {who}: it is empty or NaN in all samples. "
                "Record the topic that has both. Does the hardware export the effort state "
                "interface (ros2 control list_hardware_interfaces), and does "
                "joint_state_broadcaster publish it?"
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
    """Adapts a recording to a robot: continuous joints count their turns, and glitches are left
    out.

    Args:
        recording: recording of the joints of `model`.
        model: the robot; its joints have one degree of freedom each.

    Raises:
        RecordingError: a joint without positions or measured efforts, or moving with a constant
            effort; positions or velocities far beyond the limits, as if in degrees; or a position
            that jumps and stays.
    """
    check_measured(recording)
    whole = _whole(recording)
    if not whole.any():
        return recording
    time, q, effort = recording.time[whole], recording.q[whole], recording.effort[whole]
    notes: list[str] = []
    turning = [kind == "continuous" for kind in model.joint_types]
    turned = np.where(turning, np.unwrap(q, axis=0), q)
    if again := _joints(recording, np.abs(turned - q).max(axis=0) > math.pi):
        notes.append(f"jumps by whole turns were counted: {listed(again)}")
    steps = np.diff(time)
    period = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 1.0
    smooth = median_filter(turned, (WINDOW, 1), mode="nearest")
    farthest = np.clip(GLITCH_SPEED * model.velocity_limit * period, LEAST_GLITCH, GLITCH)
    off = np.abs(effort - median_filter(effort, (WINDOW, 1), mode="nearest"))
    usual = np.median(off, axis=0) / MEDIAN_DEVIATION
    span = np.ptp(np.percentile(effort, [1.0, 99.0], axis=0), axis=0)
    most = np.maximum(GLITCH_DIFFERENCES * usual, GLITCH_RANGES * span)
    glitches = {
        "positions": np.abs(turned - smooth) > farthest,
        "efforts": (off > most) & (most > 0.0),
    }
    _check_motion(recording, model, time, np.where(glitches["positions"], smooth, turned), notes)
    for what, where in glitches.items():
        counts = zip(recording.joints, where.sum(axis=0).tolist(), strict=True)
        if at := ", ".join(f"{name} ({count})" for name, count in counts if count):
            notes.append(f"{what} that jump there and back were left out: {at}")
    new_q, new_effort = recording.q.copy(), recording.effort.copy()
    new_q[whole] = np.where(glitches["positions"], np.nan, turned)
    new_effort[whole] = np.where(glitches["efforts"], np.nan, effort)
    said = (*recording.notes, *(f"{recording.source}: {note}" for note in notes))
    return replace(recording, q=new_q, effort=new_effort, notes=said)


def _check_motion(
    recording: Recording, model: RobotModel, time: FloatArray, q: FloatArray, notes: list[str]
) -> None:
    """Raises RecordingError for positions and velocities that are impossible for the robot; notes
    get a sentence about unusual values."""
    rising = np.diff(time) > 0.0
    moves, steps = np.diff(q, axis=0)[rising], np.diff(time)[rising, None]
    low, high, width = q.min(axis=0), q.max(axis=0), model.upper - model.lower
    beyond = np.maximum(model.lower - low, high - model.upper)
    limit, wrong, jumps = model.velocity_limit, [], []
    for j, name in enumerate(recording.joints):
        unit = units(model, j).position
        if beyond[j] > BEYOND * width[j] > 0.0:
            words = (
                f"{name} goes from {low[j]:.4g} to {high[j]:.4g} {unit}, and its limits are "
                f"{model.lower[j]:.4g} and {model.upper[j]:.4g} {unit}"
            )
            if beyond[j] > width[j]:
                wrong.append(words)
            else:
                notes.append(f"{words}; are its zero and direction those of the URDF?")
        if not len(moves) or not 0.0 < limit[j] < math.inf:
            continue
        typical = np.median(np.abs(moves[:, j]) / steps[:, 0])
        if typical > TOO_FAST * limit[j]:
            wrong.append(
                f"{name} typically moves with {typical:.3g} {unit}/s, and its limit is "
                f"{limit[j]:.3g} {unit}/s"
            )
        farthest = LEAST_JUMP + GLITCH_SPEED * limit[j] * np.maximum(steps, np.median(steps))
        for k in np.flatnonzero(np.abs(moves[:, j]) > farthest[:, 0])[:1]:
            jumps.append(
                f"{name} jumps by {moves[k, j]:.3g} {unit} within {steps[k, 0]:.3g} s, "
                f"{time[:-1][rising][k]:.6g} s after the beginning; its limit is {limit[j]:.3g} "
                f"{unit}/s. Was its zero set there? Record again, or split the recording there"
            )
    if wrong:
        wrong[-1] += (
            ". Positions must be in rad and m, with the zeros of the URDF: are they in degrees or "
            "mm?"
        )
    if faults := wrong or jumps:
        raise RecordingError(f"{recording.source}: {'; '.join(faults)}")


def _whole(recording: Recording) -> BoolArray:
    """Mask of the states with a stamp, all positions and all efforts."""
    columns = np.column_stack([recording.time, recording.q, recording.effort])
    return np.asarray(np.isfinite(columns).all(axis=1))


def _joints(recording: Recording, which: BoolArray) -> list[str]:
    """Names of the joints in a mask."""
    return [name for name, chosen in zip(recording.joints, which, strict=True) if chosen]
