"""Torques by one call of `rnea`: nonlinear effects, static torque, and with friction."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.friction import friction
from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.workspace import Workspace
from rnea_control.model import RobotModel


def nonlinear_effects(
    model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray, tau: FloatArray
) -> FloatArray:
    """C(q, v) v + g(q): Coriolis, centrifugal and gravity torques, without friction.

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
    return rnea(model, ws, q, v, ws.zeros, tau)


def static_torque(
    model: RobotModel, ws: Workspace, q: FloatArray, external_forces: FloatArray, tau: FloatArray
) -> FloatArray:
    """g(q) - J^T F: torques that hold the robot still at `q` while the world exerts F on its links.

    Equal to `rnea` with zero velocity and acceleration. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        external_forces: as of `rnea`, shape (number of links, 6).
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return rnea(model, ws, q, ws.zeros, ws.zeros, tau, external_forces)


def inverse_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Actuator torques for the accelerations `a`, **friction included**: `rnea` + `friction`.

    M(q) a + C(q, v) v + g(q) + tau_f(v); the inverse of `forward_dynamics`. Performs no allocation.
    Arguments and errors as of `rnea`.
    """
    rnea(model, ws, q, v, a, tau, external_forces)
    tau += friction(model, ws, v, ws.torque)
    return tau
