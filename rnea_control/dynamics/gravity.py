"""Gravity torques: the equations of `rnea` at rest, with their numbers.

outward, from a root that accelerates with -g,

    (3)   acc  =  R^T acc_P
    (4)   f    =  m acc
    (5)   n    =  mc x acc

and inward (6) to (8) as in `rnea`.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error, fit
from rnea_control.dynamics.rnea import inward_pass
from rnea_control.dynamics.workspace import ACCELERATION, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.vector3 import cross, rotate_back, scale, store_vector, vector_at
from rnea_control.model import RobotModel


def gravity(model: RobotModel, ws: Workspace, q: FloatArray, tau: FloatArray) -> FloatArray:
    """Torques that hold the robot still at `q` against gravity, g(q).

    Equal to `rnea` with zero velocity and acceleration [Featherstone 2008, sec. 5.3]. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    try:
        if not _gravity(model.bodies, ws.memory, q, tau):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, tau=tau) from fault
    return tau


@inlined
def gravity_outward_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """Equations (3) to (5), from the root to the leaf bodies."""
    joint.sines_and_cosines(bodies, memory, q)
    store_vector(memory, 0, ACCELERATION, body.base_acceleration(bodies))
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        acc = rotate_back(R, vector_at(memory, body.parent(bodies, i), ACCELERATION))  # (3)
        f = scale(body.mass(bodies, i), acc)  # (4)
        n = cross(body.first_moment(bodies, i), acc)  # (5)
        body.store_relative_pose(memory, i, R, p)
        store_vector(memory, i, ACCELERATION, acc)
        body.store_force(memory, i, (f, n))


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _gravity(bodies: FloatArray, memory: FloatArray, q: FloatArray, tau: FloatArray) -> bool:
    if not fit(bodies, memory, q, tau, tau, tau):
        return False
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, tau)
    return True
