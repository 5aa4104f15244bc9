r"""Generalized momentum, and how it changes without actuator torque.

.. math::

    p = M v, \quad \dot p = \tau + C^T v - g

With v the spatial velocity of a body, and h the momentum of it and of all bodies beyond it,

    p        =  S . h + armature v
    C^T v    =  (v x S) . h  =  dT/dq

The second line is the derivative of the first, less the joint's torque S . dh/dt: axes that move
along with their bodies are all that C^T v comes from. So neither M nor C is needed, and one
recursion outward and one inward give all [De Luca et al. 2006, eq. 9; Featherstone 2008,
sec. 2.10].
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import articulated_inertia as articulated
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error, fit
from rnea_control.dynamics.forward_kinematics import find_velocity, start_velocities
from rnea_control.dynamics.workspace import ACCELERATION, MOMENTUM, VELOCITY, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    add_to_spatial,
    force_to_parent,
    spatial_at,
    spatial_dot,
    store_spatial,
)
from rnea_control.kernels.vector3 import cross, rotate_back, scale, store_vector, vector_at
from rnea_control.model import RobotModel


def generalized_momentum(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    p: FloatArray,
    rate: FloatArray,
) -> FloatArray:
    """The momentum M v, and its rate C^T v - g without actuator torque and friction. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        p: output, shape (nv,), [Nm s] or [N s]; overwritten and returned.
        rate: output, shape (nv,), [Nm] or [N]; overwritten.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        if not _generalized_momentum(model.bodies, ws.memory, q, v, p, rate):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v, p=p, rate=rate) from fault
    return p


@inlined
def momentum_passes(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    gravity_share: float,
    p: FloatArray,
    rate: FloatArray,
) -> None:
    """Fills `p` with M v, and `rate` with C^T v less `gravity_share` times g."""
    start_velocities(bodies, memory, q)
    store_vector(memory, 0, ACCELERATION, scale(gravity_share, body.base_acceleration(bodies)))
    for i in range(1, bodies.shape[0]):
        velocity = find_velocity(bodies, memory, q, v, i)
        momentum = articulated.times_motion(articulated.rigid_body(bodies, i), velocity)
        store_spatial(memory, i, MOMENTUM, momentum)
        R, _ = body.relative_pose(memory, i)
        acc = rotate_back(R, vector_at(memory, body.parent(bodies, i), ACCELERATION))
        store_vector(memory, i, ACCELERATION, acc)
        weight = scale(body.mass(bodies, i), acc), cross(body.first_moment(bodies, i), acc)
        body.store_force(memory, i, weight)
    for j in range(p.shape[0]):
        p[j] = rate[j] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, translation = body.relative_pose(memory, i)
        momentum, weight = spatial_at(memory, i, MOMENTUM), body.force(memory, i)
        change = joint.axis_change(bodies, i, spatial_at(memory, i, VELOCITY))
        along = joint.along_axis(bodies, i, momentum)
        along += body.armature(bodies, i) * joint.joint_rate(bodies, v, i)
        torque = spatial_dot(momentum, change) - joint.along_axis(bodies, i, weight)
        j = body.velocity_index(bodies, i)
        p[j] += body.ratio(bodies, i) * along
        rate[j] += body.ratio(bodies, i) * torque
        P = body.parent(bodies, i)
        if P != 0:
            add_to_spatial(memory, P, MOMENTUM, force_to_parent(R, translation, momentum))
            body.add_force(memory, P, force_to_parent(R, translation, weight))


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _generalized_momentum(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    p: FloatArray,
    rate: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, p, rate):
        return False
    momentum_passes(bodies, memory, q, v, 1.0, p, rate)
    return True
