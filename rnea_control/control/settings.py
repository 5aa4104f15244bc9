"""Gains and settings of a controller, checked when the controller takes them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import Enum

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.laws import ControlLaw
from rnea_control.control.safety_settings import SafetySettings
from rnea_control.control.tolerances import Tolerances
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

# Over a longer one no state can be predicted from its velocity, [s].
LONGEST_DEAD_TIME = 0.02


@dataclass(frozen=True)
class Gains:
    """Feedback gains, one of each for every joint, shape (nv,).

    Units by control law: see `rnea_control.control.laws`. The clamps are the upper and lower bound
    of the integral term: rad/s^2 for computed_torque, Nm for the others.
    """

    p: FloatArray
    d: FloatArray
    i: FloatArray
    i_clamp_max: FloatArray
    i_clamp_min: FloatArray

    @classmethod
    def uniform(cls, nv: int, p: float, d: float, i: float = 0.0, i_clamp: float = 10.0) -> Gains:
        """The same gains for every one of `nv` joints; the integral is clamped to +-`i_clamp`."""
        values = {"p": p, "d": d, "i": i, "i_clamp_max": i_clamp, "i_clamp_min": -i_clamp}
        return cls(**{name: np.full(nv, value) for name, value in values.items()})


class ExcessiveEffort(Enum):
    """What becomes of a trajectory that needs more than the effort limits."""

    refuse = "refuse"
    warn = "warn"
    slow_down = "slow_down"


@dataclass(frozen=True)
class TrajectorySettings:
    """How trajectories are taken, followed and stopped.

    Attributes:
        tolerances: those of trajectories that bring none.
        max_deceleration: of each joint in a stop, shape (nv,), [rad/s^2] or [m/s^2]; infinity for
            as much as the effort limits allow.
        allow_moving_end: whether a trajectory may end with a velocity; the arm then settles at the
            last point.
        allow_integration: whether positions may be left out, and are integrated from velocities.
        start_from_desired_state: whether a new trajectory starts where the arm should be; else
            where it is measured to be, which is a step of the desired position.
        upsample_positions: whether trajectories of positions only become smooth (upsampling.py),
            not lines.
        excessive_effort: what becomes of trajectories that need more than the effort limits.
    """

    tolerances: Tolerances
    max_deceleration: FloatArray
    allow_moving_end: bool = False
    allow_integration: bool = False
    start_from_desired_state: bool = True
    upsample_positions: bool = False
    excessive_effort: ExcessiveEffort = ExcessiveEffort.warn

    @classmethod
    def default(cls, nv: int) -> TrajectorySettings:
        """No tolerances, and stops that only the effort limits bound."""
        return cls(Tolerances.none(nv), np.full(nv, math.inf))

    def check(self, joint_names: tuple[str, ...]) -> None:
        """Raises ControllerError for a wrong size, and a bound that is not above 0."""
        bounds = {
            "max_deceleration": self.max_deceleration,
            **{f"tolerances.{name}": values for name, values in vars(self.tolerances).items()},
        }
        goal_time = bounds.pop("tolerances.goal_time")
        for what, values in bounds.items():
            if np.shape(values) != (len(joint_names),):
                raise ControllerError(
                    f"{what} has shape {np.shape(values)}; it needs one number for each of the "
                    f"{len(joint_names)} joints"
                )
            for name, value in zip(joint_names, values, strict=True):
                if not value > 0.0:
                    raise ControllerError(
                        f"{what} of {name!r} is {value}; it must be above 0, or infinite for none"
                    )
        if not goal_time >= 0.0:
            raise ControllerError(f"goal_time is {goal_time} s; it must not be negative")


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of a `Controller`.

    Attributes:
        gains: see `Gains`.
        control_law: see `rnea_control.control.laws`.
        effort_limit_scale: torques are clamped to this part of the model's effort limits, above 0,
            at most 1.
        hardware_compensates_gravity: whether the hardware adds the gravity torque itself, as the
            firmware of UR and Franka arms does; then the commands leave it out.
        friction_compensation: whether the model's friction and offset are added to the torque.
        trajectories: see `TrajectorySettings`; without them, the default ones.
        safety: see `SafetySettings`; without them, only the model's effort limits are in force.
        feedback_inertia: least inertia by which computed_torque turns the feedback of each joint
            into a torque, shape (nv,), [kg m^2] or [kg]; without it, the model's.
        dead_time: how long after its measurement a torque acts, at most `LONGEST_DEAD_TIME`, [s].
    """

    gains: Gains
    control_law: ControlLaw = ControlLaw.computed_torque
    effort_limit_scale: float = 1.0
    hardware_compensates_gravity: bool = False
    friction_compensation: bool = False
    trajectories: TrajectorySettings | None = None
    safety: SafetySettings | None = None
    feedback_inertia: FloatArray | None = None
    dead_time: float = 0.0

    def check(self, joint_names: tuple[str, ...]) -> None:
        """Refuses settings that do not fit these joints.

        Raises:
            ControllerError: a wrong size, a gain that is negative or not finite, clamps that
                exclude 0, a scale outside (0, 1], tolerances or decelerations that are not above
                0. The message names the joint.
        """
        for field in fields(Gains):
            values = getattr(self.gains, field.name)
            if np.shape(values) != (len(joint_names),):
                raise ControllerError(
                    f"gains.{field.name} has shape {np.shape(values)}; it needs one number for "
                    f"each of the {len(joint_names)} joints"
                )
            for name, value in zip(joint_names, values, strict=True):
                sign = -1.0 if field.name == "i_clamp_min" else 1.0
                clamp = field.name.startswith("i_clamp")
                if math.isnan(value) or (math.isinf(value) and not clamp) or sign * value < 0.0:
                    raise ControllerError(
                        f"gains.{name}.{field.name} is {value}; it must be "
                        f"{'' if clamp else 'finite and '}"
                        f"{'not positive' if sign < 0.0 else 'not negative'}"
                    )
        if self.control_law not in tuple(ControlLaw):
            raise ControllerError(
                f"control_law is {self.control_law!r}; it must be one of the ControlLaw members"
            )
        if not 0.0 < self.effort_limit_scale <= 1.0:
            raise ControllerError(
                f"effort_limit_scale is {self.effort_limit_scale}; it must be above 0 and at most 1"
            )
        if self.feedback_inertia is not None:
            self._check_feedback_inertia(self.feedback_inertia, joint_names)
        if not 0.0 <= self.dead_time <= LONGEST_DEAD_TIME:
            raise ControllerError(
                f"dead_time is {self.dead_time} s; it must be 0 to {LONGEST_DEAD_TIME} s: over a "
                "longer one no state can be predicted from its velocity"
            )
        if self.trajectories is not None:
            self.trajectories.check(joint_names)
        if self.safety is not None:
            self.safety.check(joint_names)

    @staticmethod
    def _check_feedback_inertia(values: FloatArray, joint_names: tuple[str, ...]) -> None:
        if np.shape(values) != (len(joint_names),):
            raise ControllerError(
                f"feedback_inertia has shape {np.shape(values)}; it needs one number for each of "
                f"the {len(joint_names)} joints"
            )
        for name, value in zip(joint_names, values, strict=True):
            if not 0.0 <= value < math.inf:
                raise ControllerError(
                    f"feedback_inertia of {name!r} is {value}; it must be finite and not negative"
                )

    def rows(self, model: RobotModel) -> FloatArray:
        """The array that the control step takes; see layout.py."""
        rows = np.zeros((layout.SETTINGS_ROWS, model.nv))
        gains = self.gains
        rows[layout.P_GAIN], rows[layout.I_GAIN], rows[layout.D_GAIN] = gains.p, gains.i, gains.d
        rows[layout.I_CLAMP_MAX], rows[layout.I_CLAMP_MIN] = gains.i_clamp_max, gains.i_clamp_min
        rows[layout.EFFORT_LIMIT] = self.effort_limit(model)
        rows[layout.CONTINUOUS] = model.continuous
        if self.friction_compensation:
            rows[layout.FRICTION : layout.FRICTION + 3] = model.friction_parameters
        rows[layout.LAW] = self.control_law
        rows[layout.HARDWARE_ADDS_GRAVITY] = self.hardware_compensates_gravity
        if self.feedback_inertia is not None:
            rows[layout.FEEDBACK_INERTIA] = self.feedback_inertia
        rows[layout.DEAD_TIME] = self.dead_time
        trajectories = self.trajectories
        rows[layout.MAX_DECELERATION] = trajectories.max_deceleration if trajectories else math.inf
        (self.safety or SafetySettings.none(model.nv)).fill(rows, model)
        return rows

    def effort_limit(self, model: RobotModel) -> FloatArray:
        """What torques are clamped to, shape (nv,), [Nm] or [N]."""
        safety = self.safety or SafetySettings.none(model.nv)
        return safety.effort_limits(model, self.effort_limit_scale)
