"""Forward dynamics by the articulated body algorithm.

[Featherstone 2008, table 7.1]. For a body with parent P, v is its velocity, S the motion subspace
of its joint, I its inertia, I^A its articulated inertia, p^A its bias force (the force that it
needs at zero acceleration, with the joints beyond it free) and f^x the external force on it:

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

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.kinematics import find_velocity, start_velocities
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, forces_fit, require
from rnea_control.exceptions import ArgumentError
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model.bodies import ARMATURE, S_ANGULAR, S_LINEAR
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial.vectors import ORIGIN


def aba(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    tau: Vector,
    a: Vector,
    external_forces: Matrix | None = None,
) -> Vector:
    """Joint accelerations that the torques `tau` give, without friction: the inverse of `rnea`.

    Performs no allocation.

    Args:
        model: the robot, without mimic joints.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: joint torques, shape (nv,), [Nm] or [N].
        a: output, shape (nv,), [rad/s^2] or [m/s^2]; overwritten and returned. Not finite for a
            joint that moves no inertia.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

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
        aba_kernel(model.bodies, model.links, ws.memory, q, v, tau, forces, a)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return a


@inlined
def velocity_pass(bodies: Matrix, memory: Matrix, q: Vector, v: Vector) -> None:
    """Equations (1) to (4) without external forces, from the root to the leaf bodies."""
    start_velocities(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        velocity = find_velocity(bodies, memory, q, v, i)  # (1)
        c = joint.velocity_product(bodies, i, velocity, joint.joint_rate(bodies, v, i))  # (2)
        IA = spatial.rigid_body(body.inertia(bodies, i))  # (3)
        pA = spatial.cross_force(velocity, spatial.times_motion(IA, velocity))  # (4)
        spatial.store(memory, i, body.VELOCITY_PRODUCT, c)
        spatial.store_articulated(memory, i, body.ARTICULATED_INERTIA, IA)
        spatial.store(memory, i, body.BIAS_FORCE, pA)


@inlined
def articulated_pass(bodies: Matrix, memory: Matrix, tau: Vector) -> None:
    """Equations (5) to (11), from the leaf bodies to the root."""
    for i in range(bodies.shape[0] - 1, 0, -1):
        IA = spatial.articulated_at(memory, i, body.ARTICULATED_INERTIA)
        pA = spatial.at(memory, i, body.BIAS_FORCE)
        S_linear, S_angular = bodies[i, S_LINEAR], bodies[i, S_ANGULAR]
        U = spatial.times_axis(IA, S_linear, S_angular)  # (5)
        D = joint.along_axis(bodies, i, U) + bodies[i, ARMATURE]  # (6)
        u = tau[body.velocity_index(bodies, i)] - joint.along_axis(bodies, i, pA)  # (7)
        one_over_D = 1.0 / D
        U_D = spatial.scale(one_over_D, U)
        spatial.store(memory, i, body.U_OVER_D, U_D)
        memory[i, body.u_OVER_D] = one_over_D * u
        P = body.parent(bodies, i)
        if P == 0:
            continue
        rotor_share = one_over_D * bodies[i, ARMATURE]
        Ia = spatial.less_outer_product(IA, U, U_D, rotor_share, S_linear == 0.0)  # (8)
        Ia_c = spatial.times_motion(Ia, spatial.at(memory, i, body.VELOCITY_PRODUCT))
        pa = spatial.add(pA, spatial.add(Ia_c, spatial.scale(u, U_D)))  # (9)
        R, p = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        IA_P = spatial.inertia_to_parent(Ia, R, p)
        spatial.add_articulated(memory, P, body.ARTICULATED_INERTIA, IA_P)  # (10)
        spatial.add_to(memory, P, body.BIAS_FORCE, spatial.to_parent(R, p, pa))  # (11)


@inlined
def acceleration_pass(bodies: Matrix, memory: Matrix, a: Vector) -> None:
    """Equations (12) to (14), from the root to the leaf bodies."""
    spatial.store(memory, 0, body.ACCELERATION, (body.base_acceleration(bodies), ORIGIN))
    for i in range(1, bodies.shape[0]):
        R, p = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        a_P = spatial.at(memory, body.parent(bodies, i), body.ACCELERATION)
        c = spatial.at(memory, i, body.VELOCITY_PRODUCT)
        acc = spatial.add(spatial.to_child(R, p, a_P), c)  # (12)
        U_D = spatial.at(memory, i, body.U_OVER_D)
        ddq = memory[i, body.u_OVER_D] - spatial.dot(U_D, acc)  # (13)
        a[body.velocity_index(bodies, i)] = ddq
        acc = joint.add_along_axis(bodies, i, acc, ddq)  # (14)
        spatial.store(memory, i, body.ACCELERATION, acc)


@kernel_on_demand()
def aba_kernel(
    bodies: Matrix,
    links: Matrix,
    memory: Matrix,
    q: Vector,
    v: Vector,
    tau: Vector,
    external_forces: Matrix,
    a: Vector,
) -> None:
    require(fit(bodies, memory, q, v, a, tau) and forces_fit(links, external_forces))
    velocity_pass(bodies, memory, q, v)
    body.subtract_external_forces(links, memory, external_forces, body.BIAS_FORCE)
    articulated_pass(bodies, memory, tau)
    acceleration_pass(bodies, memory, a)
