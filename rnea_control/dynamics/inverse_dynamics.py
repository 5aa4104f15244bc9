"""Inverse dynamics with what real joints add: rigid bodies by `rnea`, then friction and offset."""

from __future__ import annotations

from rnea_control.dynamics.friction import friction
from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.vector3 import FloatArray
from rnea_control.dynamics.workspace import Workspace
from rnea_control.model import RobotModel


def inverse_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Torques of the drives that give the accelerations `a`: M a + C v + g, friction and offset.

    Performs no allocation. Arguments and errors as of `rnea`; the friction is that of `friction`.
    """
    rnea(model, ws, q, v, a, tau, external_forces)
    tau += friction(model, ws, v, ws._torque)
    return tau
