r"""What real joints add to the dynamics of rigid bodies: friction and offset.

.. math:: \tau_f = d\, \dot q + f \tanh(\dot q / \dot q_s) + \tau_0

with damping d, Coulomb friction f, which the hyperbolic tangent makes smooth at standstill, and an
offset [Siciliano et al. 2009, sec. 7.2].
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.model import RobotModel

# Three times this velocity Coulomb friction is full, [rad/s] or [m/s].
STICKING_VELOCITY = 0.01


@explained(v=("nv",), tau=("nv",))
def friction(model: RobotModel, ws: Workspace, v: FloatArray, tau: FloatArray) -> FloatArray:
    """Torques that the drives need for friction and offset at joint velocities `v`. Performs no
    allocation.

    The numbers are `model.damping`, `model.friction` and `model.torque_offset`; the module's
    docstring has the equation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return _friction(model.friction_parameters, v, tau) and tau


@inlined
def friction_torque(drives: FloatArray, v: FloatArray, j: int) -> float:
    """That of velocity j; rows of `drives`: damping, friction, offset."""
    torque = drives[0, j] * v[j] + drives[2, j]
    if drives[1, j] != 0.0:
        torque += drives[1, j] * math.tanh(v[j] / STICKING_VELOCITY)
    return torque


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1])")
def _friction(drives: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
    if v.shape[0] != drives.shape[1] or tau.shape[0] != drives.shape[1]:
        return False
    for j in range(v.shape[0]):
        tau[j] = friction_torque(drives, v, j)
    return True
