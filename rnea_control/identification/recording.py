"""`Recording`: a robot's joint states during a motion; whether it has what identification needs and
can be that of a robot, and its usable parts."""

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
    """The joint states of a motion as they came: nothing is sorted, filtered or left out. What a
    message did not have is NaN."""

    source: str  # the file, for messages
    joints: tuple[str, ...]  # the order of the columns
    time: FloatArray  # stamps, counted from the first one, shape (samples,), [s]
    q: FloatArray  # positions, shape (samples, joints), [rad] or [m]
    effort: FloatArray  # measured, the same shape, [Nm] or [N]
    robot_description: str = field(default="", kw_only=True)  # the URDF that was recorded with them
    # The assumptions of the file's reader, a sentence each.
    notes: tuple[str, ...] = field(default=(), kw_only=True)


def other_joints(joints: Sequence[str], has: Collection[str]) -> str:
    """The remedy for a recording that lacks some of the joints that are read: fingers, mostly."""
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
    """Time, positions and efforts that can be used, and where the time starts again; what is left
    out goes to the notes."""
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
    """The parts without gaps that are long enough; the others go to the notes."""
    steps = np.diff(time, prepend=time[:1])
    gaps = (steps > max(GAP_PERIODS * period, SHORT_GAP)) & ~starts
    cuts = [0, *np.flatnonzero(gaps | starts).tolist(), len(time)]
    parts = [slice(*pair) for pair in pairwise(cuts)]
    least = max(SHORTEST / period, LEAST_SAMPLES)
    long = [part for part in parts if part.stop - part.start >= least]
    if gaps.any():
        notes.append(
            f"{np.count_nonzero(gaps)} gaps, the longest of {steps[gaps].max():.3g} s; what is "
            "between them counts part by part"
        )
    lost = len(time) - sum(part.stop - part.start for part in long)
    if lost and long:
        notes.append(f"{lost} states in parts of less than {SHORTEST:g} s were left out")
    return long


def check_measured(recording: Recording, moved: float = MOVED) -> None:
    """Raises RecordingError, which names the joints, where some have no position or measured effort
    at all, or go further than `moved`, [rad] or [m], with an effort that never changes."""
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
    """The recording as one of this robot: continuous joints count their turns, and what no joint
    does from one state to the next is left out.

    Args:
        recording: of the joints of `model`.
        model: with joints of one degree of freedom.

    Raises:
        RecordingError: as `check_measured`; positions or velocities far beyond the limits, as if in
            degrees; or a position that jumps and stays.
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
    """Refuses positions and velocities that cannot be of the robot; what is only odd goes to the
    notes."""
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
    """The states that have a stamp, all positions and all efforts."""
    columns = np.column_stack([recording.time, recording.q, recording.effort])
    return np.asarray(np.isfinite(columns).all(axis=1))


def _joints(recording: Recording, which: BoolArray) -> list[str]:
    """Their names."""
    return [name for name, chosen in zip(recording.joints, which, strict=True) if chosen]
