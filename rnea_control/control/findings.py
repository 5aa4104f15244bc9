"""What a step found, in words for the person who must mend it."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.motion import EndKind, Motion
from rnea_control.control.step import (
    BAD_JUMP,
    BAD_SIZE,
    BAD_TORQUE,
    FROZEN,
    PRESSED,
    SHAKEN,
    TORN_AWAY,
)
from rnea_control.control.tolerances import GOAL_VIOLATED
from rnea_control.exceptions import ArgumentError, ControllerError, TorqueError
from rnea_control.model import RobotModel
from rnea_control.model.units import units


def violation(
    model: RobotModel, state: FloatArray, found: int, motion: Motion | None, s: float
) -> tuple[EndKind, str]:
    """Why a motion ends at trajectory time `s`, by what is in `state`."""
    names = model.joint_names
    if found == PRESSED:
        j = int(np.argmax(state[layout.SATURATED_SINCE]))
        return EndKind.PATH_TOLERANCE_VIOLATED, (
            f"the torque of {names[j]} was at its limit for {state[layout.SATURATED_SINCE, j]:.3g} "
            "s: does something hold the arm?"
        )
    if found == SHAKEN:
        return EndKind.PATH_TOLERANCE_VIOLATED, (
            f"{names[int(state[layout.VIOLATING_JOINT, 0])]} shakes: are its gains too high?"
        )
    error, bound = state[layout.VIOLATION, 0], state[layout.VIOLATED_TOLERANCE, 0]
    j = int(state[layout.VIOLATING_JOINT, 0])
    unit = units(model, j)[int(state[layout.VIOLATING_QUANTITY, 0])]
    off = f"{names[j]} was {error:.3g} {unit} off its "
    if found == TORN_AWAY:
        return (
            EndKind.PATH_TOLERANCE_VIOLATED,
            f"{off}desired position, more than max_position_error, {bound:.3g}",
        )
    time = s - (motion.start if motion else 0.0)
    when = f"{time:.3f} s into the trajectory" if time >= 0.0 else f"{-time:.3f} s before it"
    if found == GOAL_VIOLATED:
        return EndKind.GOAL_TOLERANCE_VIOLATED, f"{off}goal, {bound:.3g} allowed, {when}"
    return EndKind.PATH_TOLERANCE_VIOLATED, f"{off}path, {bound:.3g} allowed, {when}"


def refusal(
    model: RobotModel,
    state: FloatArray,
    outcome: int,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
) -> Exception:
    """The error for a step that did not come to an end."""
    names = model.joint_names
    if outcome == BAD_SIZE:
        return ArgumentError(
            f"q, v and tau must each have {model.nv} numbers, one for each joint; they have shapes "
            f"{q.shape}, {v.shape} and {tau.shape}"
        )
    if outcome == BAD_TORQUE:
        return TorqueError(
            f"the torque for the state measured at t = {t} s is not finite; are its positions and "
            "velocities in rad and rad/s, and the gains in their units?"
        )
    if outcome == BAD_JUMP:
        j = int(state[layout.JUMPING_JOINT, 0])
        return ControllerError(
            f"the measured position of {names[j]} has jumped from "
            f"{state[layout.LAST_POSITION, j]:.4g} to {q[j]:.4g}, faster than its velocity limit "
            "and its measured velocity allow"
        )
    if outcome == FROZEN:
        j = int(np.argmax(np.abs(v)))
        return ControllerError(
            f"the measured positions do not change, while {names[j]} is measured to move at "
            f"{v[j]:.3g} {units(model, j).velocity}: are the states frozen?"
        )
    bad = [name for name, x, y in zip(names, q, v, strict=True) if not math.isfinite(x + y)]
    return ControllerError(
        f"the measured state at t = {t} s is not finite"
        + (f" (joint {', '.join(bad)})" if bad else "")
        + "; no torque is computed from it"
    )
