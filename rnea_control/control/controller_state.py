"""What a controller's steps did: the rows by name, and the terms of a torque."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.belief import believe
from rnea_control.control.laws import Friction, Model
from rnea_control.control.layout import State
from rnea_control.control.motion import Motion
from rnea_control.control.output_stage import LONGEST_RATE_STEP
from rnea_control.control.settings import ControllerSettings
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

# `external` is the effort of the trajectory's points: for forces that its sender knows of.
TERMS = ("gravity", "coriolis", "inertia", "friction", "feedback", "external")
# For how long the torque of an arm that is predicted to be at rest is repeated, [s].
LONGEST_REPEAT = 0.2
NOTHING_TO_FOLLOW = "the controller has no trajectory yet; call hold(t, q) with the measured state"


def _view(first: str, last: str) -> Any:
    """View of the rows of a state from one to another."""
    return property(lambda of: of.rows.block(first, last))


def _row(name: str, kind: Any = lambda value: value) -> Any:
    """A quantity of a state."""
    return property(lambda of: kind(getattr(of.rows, name)))


class StepRows:
    """Results of the last step, and inputs of the next one: names for the rows of `State`.

    Attributes:
        rows: the state, which machine code writes too; the arrays below are views.
        desired: position, velocity, acceleration and effort, shape (4, nv).
        errors: desired minus measured position and velocity when the torque acts, shape (2, nv).
        position_error: the first row of `errors`, shape (nv,).
        last_state: position and velocity as they were measured last, shape (2, nv).
        torque: before the effort limits, shape (nv,), [Nm] or [N].
        external_torque: what acts on the joints besides, by the momentum of the arm, shape (nv,).
        at_work: for how long in all each stage limited each joint, shape (4, nv), [s]: soft
            position limits, velocity limit, effort limit, rate limit.
        time, trajectory_time: [s].
        guided: whether a hand guides the arm.
    """

    rows: State
    desired = _view("desired_position", "desired_effort")
    errors = _view("position_error", "velocity_error")
    position_error = _row("position_error")
    last_state = _view("last_position", "last_velocity")
    torque = _row("torque")
    external_torque = _row("residual")
    at_work = _view("position_limited", "rate_limited")
    time, trajectory_time = _row("last_time"), _row("last_trajectory_time")
    guided = _row("guided", bool)
    pause_delay = _row("pause_delay")

    @property
    def measured(self) -> FloatArray:
        """Measured position and velocity, carried on to when the torque acts, shape (2, nv);
        continuous joints in the turn of the desired position. No view."""
        return self.desired[:2] - self.errors

    @property
    def is_moving(self) -> bool:
        """Whether the trajectory had not ended."""
        return bool(self.trajectory_time < self.rows.path_end)

    @property
    def speed_scaling(self) -> float:
        """How fast trajectory time runs, 0 to 1: what it follows smoothly when set.

        Raises:
            ControllerError: when set to a value outside 0 to 1.
        """
        return float(self.rows.scaling)

    @speed_scaling.setter
    def speed_scaling(self, factor: float) -> None:
        if not 0.0 <= factor <= 1.0:
            raise ControllerError(
                f"the speed scaling factor is {factor}; it must be 0 to 1: limits were checked at "
                "full speed"
            )
        self.rows.target_scaling = factor

    @property
    def doubts(self) -> bool:
        """Whether the state was one that no motion leads to."""
        return not math.isnan(self.rows.doubted_at)

    def believe(self) -> None:
        """Takes the next state for true, wherever it is."""
        believe(self.rows)

    @property
    def in_force(self) -> FloatArray:
        """The torque that acts, shape (nv,), [Nm] or [N]: the last one that left, or what another
        has commanded since, if that is set; NaN while it is not known."""
        return self.rows.command

    @in_force.setter
    def in_force(self, torque: FloatArray | float) -> None:
        self.rows.command[:] = torque

    def withdraw(self) -> None:
        """The torques of the last step were not published: those before them are in force."""
        self.rows.command = self.rows.previous_command

    def repeats(self, t: float) -> bool:
        """Whether the predicted arm has been at rest for so long that its torque is not commanded
        again: the hardware keeps it, and hardware that starts anew elsewhere must not get it. Ask
        before `predict`: a torque that is not sent is not in force."""
        return bool(t - self.rows.rests_since > LONGEST_REPEAT)

    def limit_rate_step(self, elapsed: float) -> None:
        """Bounds the time that the rate limit counts in the next step, [s]: for a state whose stamp
        is further from the last one than it can be."""
        self.rows.rate_step = min(elapsed, LONGEST_RATE_STEP)


@dataclass(frozen=True)
class ControllerState(StepRows):
    """A copy of what a controller did in its last step, and the motion that was followed; None if
    none was."""

    rows: State
    motion: Motion | None

    @property
    def time_from_start(self) -> float:
        """How far the motion is, [s]; 0 without one."""
        return 0.0 if self.motion is None else self.trajectory_time - self.motion.start


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
    of_gravity, of_coriolis, of_inertia, of_friction, of_feedback, external = terms
    if law.model is not Model.none:
        q, v = rows.model_position, rows.model_velocity
        nle = rnea(model, workspace, q, v, np.zeros(nv), np.zeros(nv))
        gravity(model, workspace, q, of_gravity)
        of_coriolis[:] = nle - of_gravity
        if law.model in (Model.measured, Model.desired):
            rnea(model, workspace, q, v, state.desired[2], of_inertia)
            of_inertia -= nle
        if settings.hardware_compensates_gravity:
            of_gravity -= gravity(model, workspace, state.measured[0], np.zeros(nv))
    if settings.friction_compensation and law.friction is not Friction.none:
        moving = state.measured if law.friction is Friction.measured else state.desired
        friction(model, workspace, moving[1].copy(), of_friction)
    if law.holds_position:
        external[:] = state.desired[3]
    of_feedback[:] = state.torque - terms.sum(axis=0)
    return terms


def supporting_torque(
    model: RobotModel, workspace: Workspace, settings: ControllerSettings, state: ControllerState
) -> FloatArray:
    """The torque that holds an arm at rest against gravity, shape (nv,), [Nm] or [N]: model and
    feedback, and what the hardware adds."""
    terms = dict(zip(TERMS, torque_terms(model, workspace, settings, state), strict=True))
    torque = terms["gravity"] + terms["feedback"]
    if settings.hardware_compensates_gravity:
        torque += gravity(model, workspace, state.measured[0], np.zeros(model.nv))
    return torque
