"""When a controller starts, and when it does without states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.parameters.settings import Settings, row


@dataclass(frozen=True)
class SupervisionSettings(Settings):
    """Settings of a `Supervisor`.

    Attributes:
        state_gap: from when on a missing state is predicted, and the motion slows down, [s].
        state_timeout: from when on the motion ends, [s].
        max_bad_states: how many in a row are predicted; after that the motion ends.
        start_velocity: no start while a joint is faster, [rad/s] or [m/s].
        start_tolerance: no start while a joint is further beyond a limit, [rad] or [m].
        simulated: whether the world may be reset: jumps that last are true.
    """

    state_gap: float = row("joint_state_gap", 0.02)
    state_timeout: float = row("joint_state_timeout", 0.1)
    max_bad_states: int = row("max_bad_states", 10)
    start_velocity: float = row("activation.max_velocity", 0.2)
    start_tolerance: float = row("activation.position_tolerance", 0.02)
    simulated: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> SupervisionSettings:
        """Those of the controller's parameters.

        Raises:
            ParameterError: a gap that is longer than the timeout.
        """
        settings = super().of(values, **given)
        if settings.state_gap > settings.state_timeout:
            raise ParameterError(
                f"parameter 'joint_state_gap' is {settings.state_gap} s; it must be at most "
                f"joint_state_timeout, {settings.state_timeout} s"
            )
        return settings


def obstacle_to_start(
    model: RobotModel,
    settings: SupervisionSettings,
    q: FloatArray,
    v: FloatArray,
    at_any_velocity: bool = False,
) -> str:
    """Why a controller may not start from this state, as it stands after "waiting"; empty if it
    may."""
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        return "for joint_states that are finite"
    beyond = np.maximum(model.lower - q, q - model.upper)
    j = int(np.argmax(beyond))
    if beyond[j] > settings.start_tolerance:
        return (
            f"as {model.joint_names[j]} is at {q[j]:.4g} {units(model, j).position}, outside its "
            f"limits {model.lower[j]:g} to {model.upper[j]:g}: bring it back by hand"
        )
    j = int(np.argmax(np.abs(v)))
    if abs(v[j]) > settings.start_velocity and not at_any_velocity:
        speed = f"{v[j]:.2g} {units(model, j).velocity}"
        return (
            f"as {model.joint_names[j]} moves at {speed}: the arm must be at rest. To have an arm "
            "caught that falls, set activation.max_velocity to .inf"
        )
    return ""
