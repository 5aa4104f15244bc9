"""Forward dynamics by the articulated body algorithm.

[Featherstone 2008, table 7.1]. For a body with parent P, v is its velocity, S the motion subspace
of its joint, I its inertia, I^A its articulated inertia, p^A its bias force (what it needs at zero
acceleration, with the joints beyond it free) and f^x the external force on it:

outward,

    (1)   v      =  X v_P + S dq
    (2)   c      =  v x S dq
    (3)   I^A    =  I
    (4)   p^A    =  v x* I v - f^x

inward,

    (5)   U      =  I^A S
    (6)   D      =  S . U + armature
    (7)   u      =  tau - S . p^A
    (8)   I^a    =  I^A - U U^T / D
    (9)   p^a    =  p^A + I^a c + U u / D
    (10)  I^A_P +=  X* I^a X
    (11)  p^A_P +=  X* p^a

and outward again, from a root that accelerates with -g, which is how gravity enters,

    (12)  a'     =  X a_P + c
    (13)  ddq    =  (u - U . a') / D
    (14)  a      =  a' + S ddq
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import articulated_inertia as articulated
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    forces_fit,
)
from rnea_control.dynamics.body import subtract_external_forces
from rnea_control.dynamics.kinematics import find_velocity, start_velocities
from rnea_control.dynamics.workspace import (
    ACCELERATION,
    ARTICULATED_INERTIA,
    BIAS_FORCE,
    U_OVER_D,
    VELOCITY_PRODUCT,
    Workspace,
    u_OVER_D,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    ORIGIN,
    add_to_spatial,
    cross_force,
    force_to_parent,
    motion_to_child,
    spatial_add,
    spatial_at,
    spatial_dot,
    spatial_scale,
    store_spatial,
)
from rnea_control.model import RobotModel


def aba(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    a: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Joint accelerations that the torques `tau` give, without friction: the inverse of `rnea`.

    Performs no allocation.

    Args:
        model: the robot; none of its joints may mimic another one.
        ws, q, v: as of `rnea`.
        tau: joint torques, shape (nv,), [Nm] or [N].
        a: output, shape (nv,), [rad/s^2] or [m/s^2]; overwritten and returned. Not finite where a
            joint moves nothing that has inertia.
        external_forces: as of `rnea`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; a model
            with mimic joints: use `forward_dynamics`.
    """
    try:
        if model.mimic_joints:
            raise ArgumentError(
                f"aba takes no joints that mimic others ({', '.join(model.mimic_joints)}); "
                "use forward_dynamics"
            )
        forces = ws.no_forces if external_forces is None else external_forces
        if not aba_kernel(model.bodies, model.links, ws.memory, q, v, tau, forces, a):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "v": v, "tau": tau, "a": a, "external_forces": external_forces}
        raise argument_error(model, ws, **arrays) from fault
    return a


@inlined
def velocity_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray) -> None:
    """Equations (1) to (4) without external forces, from the root to the leaf bodies."""
    start_velocities(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        velocity = find_velocity(bodies, memory, q, v, i)  # (1)
        c = joint.velocity_product(bodies, v, i, velocity)  # (2)
        IA = articulated.rigid_body(bodies, i)  # (3)
        pA = cross_force(velocity, articulated.times_motion(IA, velocity))  # (4)
        store_spatial(memory, i, VELOCITY_PRODUCT, c)
        articulated.store_articulated(memory, i, ARTICULATED_INERTIA, IA)
        store_spatial(memory, i, BIAS_FORCE, pA)


@inlined
def articulated_pass(bodies: FloatArray, memory: FloatArray, tau: FloatArray) -> None:
    """Equations (5) to (11), from the leaf bodies to the root."""
    for i in range(bodies.shape[0] - 1, 0, -1):
        IA = articulated.articulated_at(memory, i, ARTICULATED_INERTIA)
        pA = spatial_at(memory, i, BIAS_FORCE)
        S_linear, S_angular = joint.s_linear(bodies, i), joint.s_angular(bodies, i)
        U = articulated.times_axis(IA, S_linear, S_angular)  # (5)
        D = joint.along_axis(bodies, i, U) + body.armature(bodies, i)  # (6)
        u = tau[body.velocity_index(bodies, i)] - joint.along_axis(bodies, i, pA)  # (7)
        one_over_D = 1.0 / D
        U_D = spatial_scale(one_over_D, U)
        store_spatial(memory, i, U_OVER_D, U_D)
        memory[i, u_OVER_D] = one_over_D * u
        P = body.parent(bodies, i)
        if P == 0:
            continue
        rotor_share = one_over_D * body.armature(bodies, i)
        Ia = articulated.less_outer_product(IA, U, U_D, rotor_share, S_linear == 0.0)  # (8)
        Ia_c = articulated.times_motion(Ia, spatial_at(memory, i, VELOCITY_PRODUCT))
        pa = spatial_add(pA, spatial_add(Ia_c, spatial_scale(u, U_D)))  # (9)
        R, p = body.relative_pose(memory, i)
        IA_P = articulated.to_parent(Ia, R, p)
        articulated.add_articulated(memory, P, ARTICULATED_INERTIA, IA_P)  # (10)
        add_to_spatial(memory, P, BIAS_FORCE, force_to_parent(R, p, pa))  # (11)


@inlined
def acceleration_pass(bodies: FloatArray, memory: FloatArray, a: FloatArray) -> None:
    """Equations (12) to (14), from the root to the leaf bodies."""
    store_spatial(memory, 0, ACCELERATION, (body.base_acceleration(bodies), ORIGIN))
    for i in range(1, bodies.shape[0]):
        R, p = body.relative_pose(memory, i)
        a_P = spatial_at(memory, body.parent(bodies, i), ACCELERATION)
        c = spatial_at(memory, i, VELOCITY_PRODUCT)
        acc = spatial_add(motion_to_child(R, p, a_P), c)  # (12)
        ddq = memory[i, u_OVER_D] - spatial_dot(spatial_at(memory, i, U_OVER_D), acc)  # (13)
        a[body.velocity_index(bodies, i)] = ddq
        store_spatial(memory, i, ACCELERATION, joint.add_along_axis(bodies, i, acc, ddq))  # (14)


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])"
)
def aba_kernel(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray,
    a: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, a, tau) or not forces_fit(links, external_forces):
        return False
    velocity_pass(bodies, memory, q, v)
    subtract_external_forces(links, memory, external_forces, BIAS_FORCE)
    articulated_pass(bodies, memory, tau)
    acceleration_pass(bodies, memory, a)
    return True
