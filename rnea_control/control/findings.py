"""What a step found, in words for the person who must mend it."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.advance import HUNG, STOPPED
from rnea_control.control.motion import Ending, EndKind, Motion
from rnea_control.control.step import (
    BAD_JUMP,
    BAD_SIZE,
    BAD_TORQUE,
    FROZEN,
    PRESSED,
    SHAKEN,
    TORN_AWAY,
)
from rnea_control.control.tolerances import GOAL_VIOLATED, REACHED
from rnea_control.exceptions import ArgumentError, ControllerError, TorqueError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units


def ending(model: RobotModel, finding: FloatArray, motion: Motion | None) -> Ending:
    """Why a motion ends, by a row of `findings`; see layout.py."""
    found, joint, quantity = finding[[layout.KIND, layout.JOINT, layout.QUANTITY]].astype(int)
    if found == REACHED:
        return Ending(EndKind.REACHED, "the goal is reached")
    if found == STOPPED:
        return Ending(EndKind.DROPPED, "emergency stop")
    if found == HUNG:
        return Ending(EndKind.DROPPED, "the process's interpreter stood still")
    name = model.joint_names[joint]
    excess, allowed = finding[layout.EXCESS], finding[layout.ALLOWED]
    if found == PRESSED:
        text = f"the torque of {name} was at its limit for {excess:.3g} s"
        return Ending(EndKind.PATH_TOLERANCE_VIOLATED, f"{text}: does something hold the arm?")
    if found == SHAKEN:
        text = f"{name} shakes: are its gains too high?"
        return Ending(EndKind.PATH_TOLERANCE_VIOLATED, text)
    off = f"{name} was {excess:.3g} {units(model, joint)[quantity]} off its "
    if found == TORN_AWAY:
        text = f"{off}desired position, more than max_position_error, {allowed:.3g}"
        return Ending(EndKind.PATH_TOLERANCE_VIOLATED, text)
    time = finding[layout.FOUND_AT] - (motion.start if motion else 0.0)
    when = f"{time:.3f} s into the trajectory" if time >= 0.0 else f"{-time:.3f} s before it"
    if found == GOAL_VIOLATED:
        text = f"{off}goal, {allowed:.3g} allowed, {when}"
        return Ending(EndKind.GOAL_TOLERANCE_VIOLATED, text)
    return Ending(EndKind.PATH_TOLERANCE_VIOLATED, f"{off}path, {allowed:.3g} allowed, {when}")


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
