"""Steps between positions, also for joints with quaternions.

Most joints add the step to the position. A spherical joint multiplies its quaternion by that of the
step, a rotation vector. A floating joint moves for 1 s with the step as constant velocity in the
body's own frame. joint.py and kernels/rotation.py have the equations.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error
from rnea_control.dynamics.body import position_count, velocity_count
from rnea_control.dynamics.joint import position_step, step_position
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.model import RobotModel


def integrate(
    model: RobotModel, ws: Workspace, q: FloatArray, step: FloatArray, result: FloatArray
) -> FloatArray:
    """The position that a step leads to: for a velocity v and a short time dt, `step` is v dt.
    Performs no allocation. Errors as of `rnea`.

    Args:
        model, ws: as of `rnea`.
        q: joint positions, shape (nq,).
        step: in the units of v times 1 s, shape (nv,).
        result: output, shape (nq,), with quaternions of length 1; overwritten and returned. May be
            `q`.
    """
    try:
        if not _integrate(model.bodies, q, step, result):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, step=step, result=result) from fault
    return result


def difference(
    model: RobotModel, ws: Workspace, q0: FloatArray, q1: FloatArray, step: FloatArray
) -> FloatArray:
    """The shortest step from `q0` to `q1`: `integrate` leads back. Performs no allocation. Errors
    as of `rnea`.

    Args:
        model, ws: as of `rnea`.
        q0, q1: joint positions, shape (nq,). Continuous joints go the shorter way round.
        step: output, shape (nv,); overwritten and returned.
    """
    try:
        if not _difference(model.bodies, q0, q1, step):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q0=q0, q1=q1, step=step) from fault
    return step


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1], f8[::1])")
def _integrate(bodies: FloatArray, q: FloatArray, step: FloatArray, result: FloatArray) -> bool:
    nq, nv = position_count(bodies), velocity_count(bodies)
    if q.shape[0] != nq or result.shape[0] != nq or step.shape[0] != nv:
        return False
    for i in range(1, bodies.shape[0]):
        step_position(bodies, q, step, i, result)
    return True


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1], f8[::1])")
def _difference(bodies: FloatArray, q0: FloatArray, q1: FloatArray, step: FloatArray) -> bool:
    nq, nv = position_count(bodies), velocity_count(bodies)
    if q0.shape[0] != nq or q1.shape[0] != nq or step.shape[0] != nv:
        return False
    for i in range(1, bodies.shape[0]):
        position_step(bodies, q0, q1, i, step)
    return True
