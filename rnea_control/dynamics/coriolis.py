"""The Coriolis matrix, and the passivity form of the equations of motion.

With v the spatial velocity of a body, v_r a reference velocity that need not be the real one, a_r
its derivative along the motion, and I the body's inertia, the body needs the force

    F  =  I a_r + 1/2 ( v x* I v_r - I (v x v_r) + v_r x* I v )

For v_r = v this is the body's equation of motion. With reference joint accelerations of zero and no
gravity, these forces give the joint torques C(q, v) v_r, with dM/dt - 2C skew
[Niemeyer, Slotine 1991; Echeandia, Wensing 2021].
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import articulated_inertia as articulated
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error, fit
from rnea_control.dynamics.kinematics import velocity_pass
from rnea_control.dynamics.rnea import add_armature, inward_pass
from rnea_control.dynamics.workspace import (
    REFERENCE_ACCELERATION,
    REFERENCE_VELOCITY,
    VELOCITY,
    Workspace,
)
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    ORIGIN,
    ZERO,
    Vector3,
    cross_force,
    cross_motion,
    motion_to_child,
    spatial_add,
    spatial_at,
    spatial_scale,
    store_spatial,
)
from rnea_control.model import RobotModel


def passivity_torque(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    v_r: FloatArray,
    a_r: FloatArray,
    tau: FloatArray,
) -> FloatArray:
    """M(q) a_r + C(q, v) v_r + g(q), for passivity-based control, without friction. Performs no
    allocation. Errors as of `rnea`.

    Args:
        model, ws, q, v: as of `rnea`.
        v_r, a_r: reference velocities and accelerations, shape (nv,), in the units of v and a.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
    """
    try:
        if not _passivity_torque(model.bodies, ws.memory, q, v, v_r, a_r, tau):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "v": v, "v_r": v_r, "a_r": a_r, "tau": tau}
        raise argument_error(model, ws, **arrays) from fault
    return tau


def coriolis_matrix(
    model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray, C: FloatArray
) -> FloatArray:
    """C(q, v), with C v the Coriolis and centrifugal torques and dM/dt - 2C skew. Performs no
    allocation. Errors as of `rnea`.

    Column j is the torque C v_r for a reference velocity v_r of 1 at index j and 0 elsewhere.

    Args:
        model, ws, q, v: as of `rnea`.
        C: output, shape (nv, nv), [Nm s/rad] or [N s/m]; overwritten and returned.
    """
    try:
        rows = (model.bodies, ws.memory, ws.unit, ws.zeros, ws.torque)
        if not _coriolis_matrix(*rows, q, v, C):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v, C=C) from fault
    return C


@inlined
def reference_pass(
    bodies: FloatArray,
    memory: FloatArray,
    v: FloatArray,
    v_r: FloatArray,
    a_r: FloatArray,
    start: Vector3,
) -> None:
    """The force that each body needs; after `velocity_pass`. `start`: acceleration of the root."""
    store_spatial(memory, 0, REFERENCE_VELOCITY, ZERO)
    store_spatial(memory, 0, REFERENCE_ACCELERATION, (start, ORIGIN))
    for i in range(1, bodies.shape[0]):
        P = body.parent(bodies, i)
        R, p = body.relative_pose(memory, i)
        velocity = spatial_at(memory, i, VELOCITY)
        # v_r = X v_rP + S dq_r,  a_r = X a_rP + v x S dq_r + S ddq_r
        reference = motion_to_child(R, p, spatial_at(memory, P, REFERENCE_VELOCITY))
        reference = spatial_add(reference, joint.joint_velocity(bodies, v_r, i))
        change = motion_to_child(R, p, spatial_at(memory, P, REFERENCE_ACCELERATION))
        change = spatial_add(change, joint.velocity_product(bodies, v_r, i, velocity))
        change = joint.add_along_axis(bodies, i, change, joint.joint_rate(bodies, a_r, i))
        store_spatial(memory, i, REFERENCE_VELOCITY, reference)
        store_spatial(memory, i, REFERENCE_ACCELERATION, change)
        rigid = articulated.rigid_body(bodies, i)
        first = cross_force(velocity, articulated.times_motion(rigid, reference))
        second = articulated.times_motion(rigid, cross_motion(velocity, reference))
        third = cross_force(reference, articulated.times_motion(rigid, velocity))
        half = spatial_add(spatial_add(first, third), spatial_scale(-1.0, second))
        force = spatial_add(articulated.times_motion(rigid, change), spatial_scale(0.5, half))
        body.store_force(memory, i, force)


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _passivity_torque(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    v_r: FloatArray,
    a_r: FloatArray,
    tau: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, tau, tau) or not fit(bodies, memory, q, v_r, a_r, a_r):
        return False
    velocity_pass(bodies, memory, q, v)
    reference_pass(bodies, memory, v, v_r, a_r, body.base_acceleration(bodies))
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a_r, tau)
    return True


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])"
)
def _coriolis_matrix(
    bodies: FloatArray,
    memory: FloatArray,
    unit: FloatArray,
    zeros: FloatArray,
    column: FloatArray,
    q: FloatArray,
    v: FloatArray,
    C: FloatArray,
) -> bool:
    nv = zeros.shape[0]
    if not fit(bodies, memory, q, v, zeros, zeros) or C.shape[0] != nv or C.shape[1] != nv:
        return False
    velocity_pass(bodies, memory, q, v)
    for j in range(nv):
        for k in range(nv):
            unit[k] = 1.0 if k == j else 0.0
        reference_pass(bodies, memory, v, unit, zeros, ORIGIN)
        inward_pass(bodies, memory, column)
        for k in range(nv):
            C[k, j] = column[k]
    return True
