"""`SafetySettings`: the limits that every torque keeps, checked when the controller takes them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

# Of a joint's range: a soft limit's margin is no wider.
WIDEST_MARGIN = 0.1


@dataclass(frozen=True)
class SafetySettings:
    """What the output stage and the checks around it hold a controller to; infinity is no bound.

    Attributes:
        effort_limit: in place of the model's, shape (nv,), [Nm] or [N]; NaN for the model's.
        torque_rate_limit: shape (nv,), [Nm/s] or [N/s].
        position_margin: before a position limit, where the soft limit begins to push back, at most
            a tenth of the joint's range, shape (nv,), [rad] or [m]; 0 for no soft limit.
        limit_stiffness: of the soft limits, [1/s^2].
        velocity_limit_scale: joints brake beyond this factor times the model's velocity limit.
        max_position_error: beyond it the desired position is taken from the arm, shape (nv,), [rad]
            or [m].
        saturation_timeout: so it is after a torque was at its limit for this long, [s].
        blend_time: how long the torque of before a start takes to fade out, [s].
        guiding_damping: part of the velocity gains that is felt while a hand guides the arm.
        check_jumps: whether states that jump further than the velocities allow are refused.
    """

    effort_limit: FloatArray
    torque_rate_limit: FloatArray
    position_margin: FloatArray
    max_position_error: FloatArray
    limit_stiffness: float = 900.0
    velocity_limit_scale: float = math.inf
    saturation_timeout: float = math.inf
    blend_time: float = 0.0
    guiding_damping: float = 0.05
    check_jumps: bool = False

    @classmethod
    def none(cls, nv: int) -> SafetySettings:
        """Nothing but the model's effort limits."""
        bounds = np.full((2, nv), math.inf)
        return cls(np.full(nv, math.nan), bounds[0], np.zeros(nv), bounds[1])

    def changed(self, **changes: object) -> SafetySettings:
        """These with other values for some attributes."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def check(self, joint_names: tuple[str, ...]) -> None:
        """Raises ControllerError for a wrong size, and a bound that is not above 0."""
        for name in ("effort_limit", "torque_rate_limit", "position_margin", "max_position_error"):
            values = getattr(self, name)
            if np.shape(values) != (len(joint_names),):
                raise ControllerError(
                    f"{name} has shape {np.shape(values)}; it needs one number for each of the "
                    f"{len(joint_names)} joints"
                )
            for joint, value in zip(joint_names, values, strict=True):
                if name == "effort_limit" and math.isnan(value):
                    continue
                if not (value > 0.0 or (name == "position_margin" and value == 0.0)):
                    raise ControllerError(f"{name} of {joint!r} is {value}; it must be above 0")
        for name in ("limit_stiffness", "velocity_limit_scale", "saturation_timeout"):
            if not getattr(self, name) > 0.0:
                raise ControllerError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("blend_time", "guiding_damping"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ControllerError(
                    f"{name} is {getattr(self, name)}; it must be finite and not negative"
                )

    def effort_limits(self, model: RobotModel, scale: float) -> FloatArray:
        """What torques are clamped to, shape (nv,), [Nm] or [N]."""
        own = np.isnan(self.effort_limit)
        return scale * np.where(own, model.effort_limit, self.effort_limit)

    def fill(self, rows: FloatArray, model: RobotModel) -> None:
        """Fills their rows of a settings array; see layout.py."""
        margin = np.minimum(self.position_margin, WIDEST_MARGIN * (model.upper - model.lower))
        rows[layout.TORQUE_RATE_LIMIT] = self.torque_rate_limit
        rows[layout.MARGIN] = np.where(np.isfinite(margin), margin, 0.0)
        rows[layout.LOWER_LIMIT], rows[layout.UPPER_LIMIT] = model.lower, model.upper
        rows[layout.SOFT_LOWER] = model.lower + rows[layout.MARGIN]
        rows[layout.SOFT_UPPER] = model.upper - rows[layout.MARGIN]
        rows[layout.VELOCITY_LIMIT] = model.velocity_limit * self.velocity_limit_scale
        rows[layout.STATE_VELOCITY_LIMIT] = model.velocity_limit
        rows[layout.MAX_POSITION_ERROR] = self.max_position_error
        rows[layout.LIMIT_STIFFNESS] = self.limit_stiffness
        rows[layout.SATURATION_TIMEOUT] = self.saturation_timeout
        rows[layout.BLEND_TIME] = self.blend_time
        rows[layout.GUIDING_DAMPING] = self.guiding_damping
        rows[layout.CHECK_JUMPS] = self.check_jumps
