"""Whether a recording has what identification needs, and whether it can be that of a robot."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.ndimage import median_filter

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.least_squares import MEDIAN_DEVIATION
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

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
# A joint moves if its positions differ by more than this, [rad] or [m].
MOVED = 1e-3


def check_effort(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no measured effort at all, or
    move with an effort that never changes."""
    missing = _without(recording, recording.effort)
    if missing:
        raise RecordingError(
            f"{recording.source}: {_all(missing, recording)} no effort: it is empty or NaN in all "
            f"{len(recording.time)} samples. Does the hardware export the effort state interface "
            "(ros2 control list_hardware_interfaces), and does joint_state_broadcaster publish it?"
        )
    dead = [
        f"{joint} ({lowest:g} throughout)"
        for joint, moved, lowest, effort_range in zip(
            recording.joints,
            _range(recording.q),
            np.nanmin(recording.effort, axis=0),
            _range(recording.effort),
            strict=True,
        )
        if moved > MOVED and effort_range == 0.0
    ]
    if dead:
        raise RecordingError(
            f"{recording.source}: the effort never changes although the joint moves: "
            f"{listed(dead)}. That is no measurement: does the hardware fill the effort state "
            "interface?"
        )


def check_positions(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no position at all."""
    missing = _without(recording, recording.q)
    if missing:
        raise RecordingError(
            f"{recording.source}: {_all(missing, recording)} no position: it is empty or NaN in "
            f"all {len(recording.time)} samples. Record the topic that has positions and efforts"
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
    time = np.where(np.isfinite(recording.time), recording.time, 0.0)
    wrong: list[str] = []
    lost = {"positions": np.zeros(q.shape, np.bool_), "efforts": _effort_glitches(recording.effort)}
    for j, name in enumerate(recording.joints):
        known = np.isfinite(q[:, j])
        if model.joint_types[j] == "continuous":
            turned = np.unwrap(q[known, j])
            if np.abs(turned - q[known, j]).max() > math.pi:
                notes.append(f"{recording.source}: {name} jumps by whole turns; they were counted")
            q[known, j] = turned
        limit = float(model.velocity_limit[j])
        lost["positions"][known, j] = _position_glitches(q[known, j], time[known], limit)
        q[lost["positions"][:, j], j] = np.nan
        wrong += _beyond_limits(recording.source, model, j, q[:, j], time, notes)
    if wrong:
        raise RecordingError(
            f"{recording.source}: {'; '.join(wrong)}. Positions must be in rad and m, with the "
            "zeros of the URDF: are they in degrees or mm?"
        )
    for j in range(model.nv):
        _check_jumps(recording.source, model, j, q[:, j], time)
    for what, where in lost.items():
        if where.any():
            at = ", ".join(
                f"{name} ({count})"
                for name, count in zip(recording.joints, where.sum(axis=0).tolist(), strict=True)
                if count
            )
            notes.append(f"{recording.source}: {what} that jump there and back were left out: {at}")
    effort = np.where(lost["efforts"], np.nan, recording.effort)
    return replace(recording, q=q, effort=effort, notes=tuple(notes))


def _beyond_limits(
    source: str, model: RobotModel, j: int, q: FloatArray, time: FloatArray, notes: list[str]
) -> list[str]:
    """What cannot be of the joint; what is only odd goes to the notes."""
    name, (lower, upper) = model.joint_names[j], (float(model.lower[j]), float(model.upper[j]))
    unit = units(model, j).position
    known = np.isfinite(q)
    if not known.any():
        return []
    low, high = float(q[known].min()), float(q[known].max())
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
    steps = np.diff(time[known])
    moves = np.abs(np.diff(q[known]))[steps > 0.0] / steps[steps > 0.0]
    limit = float(model.velocity_limit[j])
    if len(moves) and 0.0 < TOO_FAST * limit < float(np.median(moves)):
        return [
            f"{name} typically moves with {np.median(moves):.3g} {unit}/s, and its limit is "
            f"{limit:.3g} {unit}/s"
        ]
    return []


def _check_jumps(source: str, model: RobotModel, j: int, q: FloatArray, time: FloatArray) -> None:
    """Raises RecordingError where the position jumps as if its zero were set."""
    known = np.isfinite(q)
    moves, steps = np.diff(q[known]), np.diff(time[known])
    limit = float(model.velocity_limit[j])
    if not (steps > 0.0).any() or not 0.0 < limit < math.inf:
        return
    least = np.maximum(steps, np.median(steps[steps > 0.0]))
    jumps = (np.abs(moves) > LEAST_JUMP + GLITCH_SPEED * limit * least) & (steps > 0.0)
    if jumps.any():
        k = int(np.argmax(jumps))
        unit = units(model, j).position
        raise RecordingError(
            f"{source}: {model.joint_names[j]} jumps by {moves[k]:.3g} {unit} within "
            f"{steps[k]:.3g} s, {time[known][k]:.6g} s after the beginning; its limit is "
            f"{limit:.3g} {unit}/s. Was its zero set there? Record again, or split the recording "
            "there"
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
        low, high = np.percentile(values, [1.0, 99.0])
        limit = max(GLITCH_DIFFERENCES * usual, GLITCH_RANGES * float(high - low))
        found[known, j] = off > limit if limit > 0.0 else False
    return found


def _range(values: FloatArray) -> FloatArray:
    known = np.where(np.isfinite(values), values, np.nan)
    return np.asarray(np.nanmax(known, axis=0) - np.nanmin(known, axis=0))


def _without(recording: Recording, values: np.ndarray) -> list[str]:
    has = np.isfinite(values).any(axis=0).tolist()
    return [joint for joint, one in zip(recording.joints, has, strict=True) if not one]


def _all(joints: list[str], recording: Recording) -> str:
    if len(joints) == len(recording.joints):
        return f"all joints ({listed(joints)}) have"
    return f"{listed(joints)} {'has' if len(joints) == 1 else 'have'}"
