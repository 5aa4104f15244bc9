"""What a controller's step did and found: `ControllerState`, the terms of its torque, and words for
the person who must mend it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.advance import HUNG, STOPPED
from rnea_control.control.laws import Friction, Model
from rnea_control.control.motion import Ending, EndKind, Motion
from rnea_control.control.settings import ControllerSettings
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
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import ArgumentError, ControllerError, TorqueError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# `external` is the effort of the trajectory's points: for forces that its sender knows of.
TERMS = ("gravity", "coriolis", "inertia", "friction", "feedback", "external")


@dataclass(frozen=True)
class ControllerState:
    """What a controller did in its last step: the rows of layout.py, and the motion that was
    followed; None if none was."""

    rows: FloatArray
    motion: Motion | None

    @property
    def desired(self) -> FloatArray:
        """Desired position, velocity, acceleration and effort, shape (4, nv)."""
        return self.rows[layout.DESIRED_POSITION : layout.DESIRED_EFFORT + 1]

    @property
    def errors(self) -> FloatArray:
        """Desired minus measured position and velocity when the torque acts, shape (2, nv)."""
        return self.rows[layout.POSITION_ERROR : layout.VELOCITY_ERROR + 1]

    @property
    def measured(self) -> FloatArray:
        """Measured position and velocity, carried on to when the torque acts, shape (2, nv);
        continuous joints in the turn of the desired position."""
        return self.desired[:2] - self.errors

    @property
    def torque(self) -> FloatArray:
        """The torque before the effort limits, shape (nv,)."""
        return self.rows[layout.TORQUE]

    @property
    def speed_scaling(self) -> float:
        return float(self.rows[layout.SCALING, 0])

    @property
    def trajectory_time(self) -> float:
        """[s]."""
        return float(self.rows[layout.LAST_TRAJECTORY_TIME, 0])

    @property
    def time_from_start(self) -> float:
        """How far the motion is, [s]; 0 without one."""
        if self.motion is None:
            return 0.0
        return self.trajectory_time - self.motion.start


def torque_terms(
    model: RobotModel, workspace: Workspace, settings: ControllerSettings, state: ControllerState
) -> FloatArray:
    """One row for each of `TERMS`, shape (6, nv), [Nm] or [N]; they add up to `state.torque`.

    Gravity, Coriolis and inertia are those of the configuration where the control law takes the
    model: the measured one, or for feedforward_pd the desired one. Inertia is that of the desired
    acceleration; the part that the errors add is feedback. Gravity that the hardware compensates is
    left out.
    """
    law, rows, nv = settings.control_law, state.rows, model.nv
    terms = np.zeros((len(TERMS), nv))
    desired_acceleration = state.desired[2]
    if law.model is not Model.none:
        q, v = rows[layout.MODEL_POSITION], rows[layout.MODEL_VELOCITY]
        nle = rnea(model, workspace, q, v, np.zeros(nv), np.zeros(nv))
        gravity(model, workspace, q, terms[0])
        terms[1] = nle - terms[0]
        if law.model in (Model.measured, Model.desired):
            rnea(model, workspace, q, v, desired_acceleration, terms[2])
            terms[2] -= nle
        if settings.hardware_compensates_gravity:
            terms[0] -= gravity(model, workspace, state.measured[0], np.zeros(nv))
    if settings.friction_compensation and law.friction is not Friction.none:
        moving = state.measured if law.friction is Friction.measured else state.desired
        friction(model, workspace, moving[1].copy(), terms[3])
    if law.holds_position:
        terms[5] = state.desired[3]
    terms[4] = state.torque - terms.sum(axis=0)
    return terms


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
