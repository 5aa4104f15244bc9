"""Inverse dynamics by the recursive Newton-Euler algorithm.

[Luh, Walker, Paul 1980; Featherstone 2008, table 5.1], with vectors in body frames, accelerations
of the frames' origins, and inertial parameters about these. For a body with parent P, R and p are
the rotation and position of its frame in P's, z its joint's axis, S = (s_linear z; s_angular z), v
and a the joint's velocity and acceleration:

outward, from a root that stands still and accelerates with -g, which is how gravity enters,

    (1)   w    =  R^T w_P  +  s_angular z v
    (2)   dw   =  R^T dw_P  +  s_angular (z a + w x z v)
    (3)   acc  =  R^T (acc_P + dw_P x p + w_P x (w_P x p))  +  s_linear (z a + 2 w x z v)
    (4)   f    =  m acc + dw x mc + w x (w x mc)
    (5)   n    =  I dw + w x I w + mc x acc

inward, where each joint carries its body and all bodies beyond it,

    (6)   tau   =  S . (f; n) + armature a
    (7)   f_P  +=  R f
    (8)   n_P  +=  R n + p x R f

External forces are subtracted after (5). joint.py has R, p and S v for each type of joint.
`gravity`, `nonlinear_effects` and `static_torque` leave out some of the inputs; `inverse_dynamics`
adds friction.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    forces_fit,
)
from rnea_control.dynamics.friction import friction
from rnea_control.dynamics.workspace import ACCELERATION, FORCE, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel, kernel_on_demand
from rnea_control.kernels.spatial import (
    ORIGIN,
    Spatial,
    Vector3,
    add,
    cross,
    force_to_parent,
    rotate_back,
    scale,
    store_vector,
    times_symmetric,
    vector_at,
)
from rnea_control.model import RobotModel


def rnea(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Joint torques for the accelerations `a` at `q` and `v`: M a + C v + g, without friction.

    Gravity is included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
        external_forces: what the world exerts on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. `world_to_link_force` maps from the world frame.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    try:
        if external_forces is None:
            done = rnea_kernel(model.bodies, ws.memory, q, v, a, tau)
        else:
            done = rnea_with_forces_kernel(
                model.bodies, model.links, ws.memory, q, v, a, external_forces, tau
            )
        if not done:
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "v": v, "a": a, "tau": tau, "external_forces": external_forces}
        raise argument_error(model, ws, **arrays) from fault
    return tau


def gravity(model: RobotModel, ws: Workspace, q: FloatArray, tau: FloatArray) -> FloatArray:
    """Torques that hold the robot still at `q` against gravity, g(q).

    Equal to `rnea` with zero velocity and acceleration [Featherstone 2008, sec. 5.3]. Performs no
    allocation. Errors as of `rnea`.

    Args:
        model, ws, q: as of `rnea`.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
    """
    try:
        if not gravity_kernel(model.bodies, ws.memory, q, tau):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, tau=tau) from fault
    return tau


def nonlinear_effects(
    model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray, tau: FloatArray
) -> FloatArray:
    """C(q, v) v + g(q): Coriolis, centrifugal and gravity torques, without friction.

    Equal to `rnea` with zero acceleration [Featherstone 2008, sec. 6.1]. Performs no allocation.
    Errors as of `rnea`.

    Args:
        model, ws, q, v: as of `rnea`.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
    """
    return rnea(model, ws, q, v, ws.zeros, tau)


def static_torque(
    model: RobotModel, ws: Workspace, q: FloatArray, external_forces: FloatArray, tau: FloatArray
) -> FloatArray:
    """g(q) - J^T F: torques that hold the robot still at `q` while the world exerts F on its links.

    Equal to `rnea` with zero velocity and acceleration. Performs no allocation. Errors as of
    `rnea`.

    Args:
        model, ws, q: as of `rnea`.
        external_forces: as of `rnea`, shape (number of links, 6).
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
    """
    return rnea(model, ws, q, ws.zeros, ws.zeros, tau, external_forces)


def inverse_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Actuator torques for the accelerations `a`, **friction included**: `rnea` + `friction`.

    M(q) a + C(q, v) v + g(q) + tau_f(v); the inverse of `forward_dynamics`. Performs no allocation.
    Arguments and errors as of `rnea`.
    """
    rnea(model, ws, q, v, a, tau, external_forces)
    tau += friction(model, ws, v, ws.torque)
    return tau


@inlined
def outward_pass(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
) -> None:
    """Equations (1) to (5), from the root to the leaf bodies."""
    joint.sines_and_cosines(bodies, memory, q)
    acc_0 = body.base_acceleration(bodies)
    body.store_motion(memory, 0, ORIGIN, ORIGIN, acc_0)
    body.store_force(memory, 0, newton_euler(bodies, 0, ORIGIN, ORIGIN, acc_0))
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        w_P, dw_P, acc_P = body.motion(memory, body.parent(bodies, i))
        w = joint.add_angular_velocity(bodies, v, i, rotate_back(R, w_P))  # (1)
        dw = rotate_back(R, dw_P)
        acc = rotate_back(R, add(acc_P, add(cross(dw_P, p), cross(w_P, cross(w_P, p)))))
        dw, acc = joint.add_acceleration(bodies, v, a, i, w, dw, acc)  # (2), (3)
        body.store_relative_pose(memory, i, R, p)
        body.store_motion(memory, i, w, dw, acc)
        body.store_force(memory, i, newton_euler(bodies, i, w, dw, acc))


@inlined
def newton_euler(bodies: FloatArray, i: int, w: Vector3, dw: Vector3, acc: Vector3) -> Spatial:
    """Equations (4) and (5): the force that body i needs for its motion."""
    m, mc, inertia = body.mass(bodies, i), body.first_moment(bodies, i), body.inertia(bodies, i)
    f = add(scale(m, acc), add(cross(dw, mc), cross(w, cross(w, mc))))  # (4)
    gyroscopic = cross(w, times_symmetric(inertia, w))
    n = add(times_symmetric(inertia, dw), add(gyroscopic, cross(mc, acc)))  # (5)
    return f, n


@inlined
def gravity_outward_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """The same at rest, with equal numbers: (3) is R^T acc_P, (4) m acc, and (5) mc x acc."""
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


@inlined
def inward_pass(bodies: FloatArray, memory: FloatArray, tau: FloatArray) -> None:
    """Equations (6) to (8) without the armature, from the leaf bodies to the root."""
    for j in range(tau.shape[0]):
        tau[j] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, p = body.relative_pose(memory, i)
        force, P = body.force(memory, i), body.parent(bodies, i)
        torque = joint.along_axis(bodies, i, force)  # (6)
        tau[body.velocity_index(bodies, i)] += body.ratio(bodies, i) * torque
        if P != 0:
            body.add_force(memory, P, force_to_parent(R, p, force))  # (7), (8)


@inlined
def add_armature(bodies: FloatArray, a: FloatArray, tau: FloatArray) -> None:
    """The last term of equation (6): the actuators' rotors turn with their joints."""
    for i in range(1, bodies.shape[0]):
        torque = body.armature(bodies, i) * joint.joint_rate(bodies, a, i)
        tau[body.velocity_index(bodies, i)] += body.ratio(bodies, i) * torque


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def rnea_kernel(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, a, tau):
        return False
    outward_pass(bodies, memory, q, v, a)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)
    return True


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])"
)
def rnea_with_forces_kernel(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    external_forces: FloatArray,
    tau: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, a, tau) or not forces_fit(links, external_forces):
        return False
    outward_pass(bodies, memory, q, v, a)
    body.subtract_external_forces(links, memory, external_forces, FORCE)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)
    return True


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def gravity_kernel(bodies: FloatArray, memory: FloatArray, q: FloatArray, tau: FloatArray) -> bool:
    if not fit(bodies, memory, q, tau, tau, tau):
        return False
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, tau)
    return True
