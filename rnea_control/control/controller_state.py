"""Results of a controller's steps: the rows of its state by name, and the terms of a torque."""

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
from rnea_control.control.references import Reference
from rnea_control.control.settings import ControllerSettings
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

# `external` is the effort of the trajectory's points: for forces that the sender knows;
# `disturbance` is the compensation by the disturbance observer.
TERMS = ("gravity", "coriolis", "inertia", "friction", "feedback", "external", "disturbance")
LONGEST_REPEAT = 0.2  # time for which the torque of an arm predicted to rest is repeated [s]
NOTHING_TO_FOLLOW = "the controller has no trajectory yet; call hold(t, q) with the measured state"


def _view(first: str, last: str) -> Any:
    """Property: the rows of a state from `first` to `last`, a view."""
    return property(lambda of: of.rows.block(first, last))


def _row(name: str, kind: Any = lambda value: value) -> Any:
    """Property: a quantity of a state by its name."""
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
        external_torque: torque on the joints from outside, by the momentum of the arm, shape (nv,),
            [Nm] or [N].
        at_work: total time for which each stage limited each joint, shape (4, nv), [s]: soft
            position limits, velocity limit, effort limit, rate limit.
        time, trajectory_time: times of the last step, [s].
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
    pause_delay = _row("pause_delay")

    @property
    def guided(self) -> bool:
        """True while a hand guides the arm."""
        return bool(self.rows.reference == Reference.hand)

    @property
    def streams(self) -> bool:
        """True while the arm follows a stream of targets."""
        return Reference(int(self.rows.reference)).is_stream

    @property
    def follows_poses(self) -> bool:
        """True while the tip follows poses."""
        return Reference(int(self.rows.reference)).of_task

    @property
    def measured(self) -> FloatArray:
        """Measured position and velocity, predicted for when the torque acts, shape (2, nv);
        continuous joints in the turn of the desired position. A copy."""
        return self.desired[:2] - self.errors

    @property
    def is_moving(self) -> bool:
        """True if the trajectory had not ended."""
        return bool(self.trajectory_time < self.rows.path_end)

    @property
    def speed_scaling(self) -> float:
        """Speed of trajectory time, 0 to 1. A value that is set is approached smoothly.

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
        """True if the last state was one that no motion leads to."""
        return not math.isnan(self.rows.doubted_at)

    def believe(self) -> None:
        """Accepts the next state, wherever it is."""
        believe(self.rows)

    @property
    def in_force(self) -> FloatArray:
        """The torque that acts, shape (nv,), [Nm] or [N]: the last published torque, or the command
        of another node since, if that is set; NaN while it is not known."""
        return self.rows.command

    @in_force.setter
    def in_force(self, torque: FloatArray | float) -> None:
        self.rows.command[:] = torque

    def repeats(self, t: float) -> bool:
        """True if the predicted arm has been at rest for LONGEST_REPEAT. Its torque is not
        commanded again then: the hardware keeps it, and hardware that restarts elsewhere must not
        get it. Call before `predict`: a torque that is not sent is not in force."""
        return bool(t - self.rows.rests_since > LONGEST_REPEAT)


@dataclass(frozen=True)
class ControllerState(StepRows):
    """A copy of a controller's state after its last step, and the motion that was followed; None if
    there was none."""

    rows: State
    motion: Motion | None

    @property
    def time_from_start(self) -> float:
        """Trajectory time since the start of the motion, [s]; 0 without a motion."""
        return 0.0 if self.motion is None else self.trajectory_time - self.motion.start


def torque_terms(
    model: RobotModel, workspace: Workspace, settings: ControllerSettings, state: ControllerState
) -> FloatArray:
    """One row for each of `TERMS`, shape (7, nv), [Nm] or [N]; they add up to `state.torque`.

    Gravity, Coriolis and inertia terms are computed at the configuration where the control law
    takes the model: the measured one, or for feedforward_pd the desired one. The inertia term is of
    the desired acceleration; the part that the errors add is feedback. Gravity that the hardware
    compensates is left out.
    """
    rows, nv = state.rows, model.nv
    law = settings.law_of(Reference(int(rows.reference)))
    terms = np.zeros((len(TERMS), nv))
    of_gravity, of_coriolis, of_inertia, of_friction, of_feedback, external, disturbance = terms
    disturbance[:] = rows.compensation
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
    if law.follows_trajectories:
        external[:] = state.desired[3]
    of_feedback[:] = state.torque - terms.sum(axis=0)
    return terms


def supporting_torque(
    model: RobotModel, workspace: Workspace, settings: ControllerSettings, state: ControllerState
) -> FloatArray:
    """Torque that holds an arm at rest against gravity, shape (nv,), [Nm] or [N]: the sum of model,
    feedback, and the gravity torque that the hardware adds."""
    terms = dict(zip(TERMS, torque_terms(model, workspace, settings, state), strict=True))
    torque = terms["gravity"] + terms["feedback"] + terms["disturbance"]
    if settings.hardware_compensates_gravity:
        torque += gravity(model, workspace, state.measured[0], np.zeros(model.nv))
    return torque
