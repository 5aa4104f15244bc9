"""Static torques: what holds the robot still against gravity and external forces."""

from __future__ import annotations

from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.vector3 import FloatArray
from rnea_control.dynamics.workspace import Workspace
from rnea_control.model import RobotModel


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
    return rnea(model, ws, q, ws._zeros, ws._zeros, tau, external_forces)
