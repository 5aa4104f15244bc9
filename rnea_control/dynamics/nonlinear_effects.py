"""Nonlinear effects: Coriolis, centrifugal and gravity torques together."""

from __future__ import annotations

from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.vector3 import FloatArray
from rnea_control.dynamics.workspace import Workspace
from rnea_control.model import RobotModel


def nonlinear_effects(
    model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray, tau: FloatArray
) -> FloatArray:
    """C(q, v) v + g(q): the torques that keep velocity `v` unchanged at positions `q`.

    Equal to `rnea` with zero acceleration [Featherstone 2008, sec. 6.1]. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    return rnea(model, ws, q, v, ws._zeros, tau)
