"""What real joints add to the dynamics of rigid bodies: friction and a constant torque offset.

    tau_f  =  damping dq  +  coulomb tanh(dq / v_s)  +  offset

The hyperbolic tangent makes Coulomb friction smooth at standstill
[Siciliano et al. 2009, sec. 7.2].
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model.bodies import COULOMB, DAMPING, TORQUE_OFFSET

# v_s: at three times this velocity Coulomb friction is at 99.5 %, [rad/s] or [m/s].
STICKING_VELOCITY = 0.01


def friction(model: RobotModel, ws: Workspace, v: FloatArray, tau: FloatArray) -> FloatArray:
    """Actuator torques for friction and offset at joint velocities `v`. Performs no allocation.
    Errors as of `rnea`.

    From `model.damping`, `model.friction` and `model.torque_offset`, by the equation above.

    Args:
        model, ws, v: as of `rnea`.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
    """
    try:
        if not _friction(model.friction_parameters, v, tau):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, v=v, tau=tau) from fault
    return tau


@inlined
def friction_torque(parameters: FloatArray, v: FloatArray, j: int) -> float:
    """tau_f of velocity j; `parameters` as of the model."""
    torque = parameters[DAMPING, j] * v[j] + parameters[TORQUE_OFFSET, j]
    if parameters[COULOMB, j] != 0.0:
        torque += parameters[COULOMB, j] * math.tanh(v[j] / STICKING_VELOCITY)
    return torque


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1])")
def _friction(parameters: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
    if v.shape[0] != parameters.shape[1] or tau.shape[0] != parameters.shape[1]:
        return False
    for j in range(v.shape[0]):
        tau[j] = friction_torque(parameters, v, j)
    return True
