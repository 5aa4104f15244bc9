r"""Inverse dynamics by the recursive Newton-Euler algorithm.

The recursion of Luh, Walker and Paul [1980] with vectors in body frames, as in Featherstone [2008,
table 5.1]; the inertial parameters stand about each joint's origin, so that the mass centre appears
only as m c. For each body i with parent P, R and p the rotation and position of i in P, z the joint
axis, outward from the root:

.. math::

    \omega_i &= R^T \omega_P + z \dot q_i \\
    \dot\omega_i &= R^T \dot\omega_P + z \ddot q_i + R^T \omega_P \times z \dot q_i \\
    a_i &= R^T (a_P + \dot\omega_P \times p + \omega_P \times (\omega_P \times p)) \\
    f_i &= m a_i + \dot\omega_i \times m c + \omega_i \times (\omega_i \times m c) \\
    n_i &= I \dot\omega_i + \omega_i \times I \omega_i + m c \times a_i

and inward, where the joint carries what its body needs and what hangs on it:

.. math:: \tau_i = z \cdot n_i, \qquad f_P \mathrel{+}= R f_i, \qquad n_P \mathrel{+}= R n_i + p
\times R f_i

A prismatic joint adds its terms to p and a instead of to omega, and tau is z . f; a screw does
both. Gravity is included: the root accelerates with -g.
"""

from __future__ import annotations

from typing import Any

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.joint import joint_rate, joint_velocity, placement
from rnea_control.dynamics.workspace import Workspace, row_count, sines_and_cosines
from rnea_control.kernels.kernel import inlined, kernel, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Vector3,
    add,
    add_to_vector,
    cross,
    matrix_at,
    rotate,
    rotate_back,
    scale,
    store_matrix,
    store_vector,
    subtract,
    symmetric_at,
    times_symmetric,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout


def rnea(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Joint torques that give the accelerations `a` at positions `q` and velocities `v`. Gravity is
    included.

    The recursive Newton-Euler algorithm; the module's docstring has the equations. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
        external_forces: what the world exerts on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. `world_to_link_force` makes them of others.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    try:
        if external_forces is None:
            if _rnea(model.bodies, ws.memory, q, v, a, tau):
                return tau
        elif _rnea_with_forces(model.bodies, model.links, ws.memory, q, v, a, external_forces, tau):
            return tau
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, v, a, tau, external_forces) from error
    raise _explain(model, ws, q, v, a, tau, external_forces)


@inlined
def outward_pass(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
) -> None:
    """From the root to the tips: velocities, accelerations, and what force each body needs."""
    sines_and_cosines(bodies, memory, q)
    store_vector(memory, 0, ws_layout.ANGULAR_VELOCITY, (0.0, 0.0, 0.0))
    store_vector(memory, 0, ws_layout.ANGULAR_ACCELERATION, (0.0, 0.0, 0.0))
    store_vector(memory, 0, ws_layout.ACCELERATION, vector_at(bodies, 0, layout.BASE_ACCELERATION))
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R, p = placement(bodies, memory, q, i)
        w_P = vector_at(memory, parent, ws_layout.ANGULAR_VELOCITY)
        dw_P = vector_at(memory, parent, ws_layout.ANGULAR_ACCELERATION)
        a_P = vector_at(memory, parent, ws_layout.ACCELERATION)
        w = rotate_back(R, w_P)
        dw = rotate_back(R, dw_P)
        acc = rotate_back(R, add(a_P, add(cross(dw_P, p), cross(w_P, cross(w_P, p)))))
        velocity, acceleration = joint_rate(bodies, v, i), joint_rate(bodies, a, i)
        angular, linear = bodies[i, layout.ANGULAR], bodies[i, layout.LINEAR]
        if bodies[i, layout.MOTION] == layout.AXIS:
            w = (w[0], w[1], w[2] + angular * velocity)
        else:
            v_J, w_J = joint_velocity(bodies, v, i)
            w = add(w, w_J)
            if bodies[i, layout.MOTION] == layout.FREE:  # its linear velocity turns with the body
                acc = subtract(acc, cross(w_J, v_J))
        if angular != 0.0:
            # z times the joint's acceleration, and w x z times its velocity
            z_dot = angular * velocity
            dw = (dw[0] + w[1] * z_dot, dw[1] - w[0] * z_dot, dw[2] + angular * acceleration)
        if linear != 0.0:
            # z times the joint's acceleration, and Coriolis 2 w x z times its velocity
            z_dot = 2.0 * linear * velocity
            acc = (acc[0] + w[1] * z_dot, acc[1] - w[0] * z_dot, acc[2] + linear * acceleration)

        f, n = newton_euler(bodies, i, w, dw, acc)
        store_matrix(memory, i, ws_layout.ROTATION, R)
        store_vector(memory, i, ws_layout.TRANSLATION, p)
        store_vector(memory, i, ws_layout.ANGULAR_VELOCITY, w)
        store_vector(memory, i, ws_layout.ANGULAR_ACCELERATION, dw)
        store_vector(memory, i, ws_layout.ACCELERATION, acc)
        store_vector(memory, i, ws_layout.FORCE, f)
        store_vector(memory, i, ws_layout.MOMENT, n)


@inlined
def newton_euler(
    bodies: FloatArray, i: int, w: Vector3, dw: Vector3, acc: Vector3
) -> tuple[Vector3, Vector3]:
    """Force and moment about its origin that body i needs for its motion."""
    m = bodies[i, layout.INERTIA]
    mc = vector_at(bodies, i, layout.INERTIA + 1)
    inertia = symmetric_at(bodies, i, layout.INERTIA + 4)
    f = add(scale(m, acc), add(cross(dw, mc), cross(w, cross(w, mc))))
    gyroscopic = cross(w, times_symmetric(inertia, w))
    return f, add(times_symmetric(inertia, dw), add(gyroscopic, cross(mc, acc)))


@inlined
def inward_pass(bodies: FloatArray, memory: FloatArray, tau: FloatArray) -> None:
    """From the tips to the root: hands each body's force to its parent; reads the torques off."""
    for j in range(tau.shape[0]):
        tau[j] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        parent = int(bodies[i, layout.PARENT])
        f = vector_at(memory, i, ws_layout.FORCE)
        n = vector_at(memory, i, ws_layout.MOMENT)
        torque = bodies[i, layout.ANGULAR] * n[2] + bodies[i, layout.LINEAR] * f[2]
        tau[int(bodies[i, layout.V])] += bodies[i, layout.RATIO] * torque
        if parent != 0:
            add_to_parent(bodies, memory, i, f, n)


@inlined
def add_to_parent(bodies: FloatArray, memory: FloatArray, i: int, f: Vector3, n: Vector3) -> None:
    """What body i takes from its joint, its parent must give."""
    parent = int(bodies[i, layout.PARENT])
    R = matrix_at(memory, i, ws_layout.ROTATION)
    f_P = rotate(R, f)
    moment = add(rotate(R, n), cross(vector_at(memory, i, ws_layout.TRANSLATION), f_P))
    add_to_vector(memory, parent, ws_layout.FORCE, f_P)
    add_to_vector(memory, parent, ws_layout.MOMENT, moment)


@inlined
def add_armature(bodies: FloatArray, a: FloatArray, tau: FloatArray) -> None:
    """The rotors of the drives turn with their joints, geared up."""
    for i in range(1, bodies.shape[0]):
        torque = bodies[i, layout.ARMATURE] * joint_rate(bodies, a, i)
        tau[int(bodies[i, layout.V])] += bodies[i, layout.RATIO] * torque


@inlined
def subtract_external_forces(
    links: FloatArray, memory: FloatArray, forces: FloatArray, column: int
) -> None:
    """What the world exerts on a body, its joint need not: taken off the force and moment that
    start at `column`, before the inward pass."""
    for k in range(links.shape[0]):
        body = int(links[k, layout.LINK_BODY])
        R_BL = matrix_at(links, k, layout.LINK_ROTATION)
        f = rotate(R_BL, vector_at(forces, k, 0))
        n = rotate(R_BL, vector_at(forces, k, 3))
        n = add(n, cross(vector_at(links, k, layout.LINK_TRANSLATION), f))
        add_to_vector(memory, body, column, scale(-1.0, f))
        add_to_vector(memory, body, column + 3, scale(-1.0, n))


@inlined
def root_force(bodies: FloatArray, memory: FloatArray) -> None:
    """What the root link needs: it stands still, and gravity pulls at it."""
    zero = (0.0, 0.0, 0.0)
    acc = vector_at(bodies, 0, layout.BASE_ACCELERATION)
    f, n = newton_euler(bodies, 0, zero, zero, acc)
    store_vector(memory, 0, ws_layout.FORCE, f)
    store_vector(memory, 0, ws_layout.MOMENT, n)


@inlined
def fits(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray, tau: FloatArray
) -> bool:
    """Whether the arrays have the sizes the model needs; kernels themselves check no bounds."""
    nv = int(bodies[0, layout.V])
    return fits_position(bodies, memory, q) and v.shape[0] == nv and tau.shape[0] == nv


@inlined
def fits_position(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> bool:
    """The same where there are only positions."""
    rows = row_count(bodies.shape[0] - 1)
    return q.shape[0] == int(bodies[0, layout.Q]) and memory.shape[0] == rows


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _rnea(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    if not fits(bodies, memory, q, v, tau) or a.shape[0] != v.shape[0]:
        return False
    outward_pass(bodies, memory, q, v, a)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)
    return True


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])"
)
def _rnea_with_forces(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    tau: FloatArray,
) -> bool:
    if not fits(bodies, memory, q, v, tau) or a.shape[0] != v.shape[0]:
        return False
    if forces.shape[0] != links.shape[0] or forces.shape[1] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    root_force(bodies, memory)
    subtract_external_forces(links, memory, forces, ws_layout.FORCE)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)
    return True


def _explain(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
    external_forces: FloatArray | None,
) -> Exception:
    arrays: dict[str, Any] = {
        "q": (q, ("nq",)),
        "v": (v, ("nv",)),
        "a": (a, ("nv",)),
        "tau": (tau, ("nv",)),
    }
    if external_forces is not None:
        arrays["external_forces"] = (external_forces, ("links", 6))
    return argument_error(model, ws, **arrays)
