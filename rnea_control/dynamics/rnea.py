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

A prismatic joint adds its terms to p and a instead of to omega, and tau is z . f. Gravity is
included: the root accelerates with -g.
"""

from __future__ import annotations

from typing import Any

from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.kernel import inlined, kernel
from rnea_control.dynamics.vector3 import (
    FloatArray,
    add,
    add_to_vector,
    cross,
    matrix_at,
    rotate,
    rotate_back,
    scale,
    store_matrix,
    store_vector,
    symmetric_at,
    times_symmetric,
    turned_about_z,
    vector_at,
    z_axis,
)
from rnea_control.dynamics.workspace import Workspace, row_count, sine_and_cosine, sines_and_cosines
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
        external_forces: what the world exerts on the link of each joint, shape (nv, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    try:
        if external_forces is None:
            if _rnea(model._bodies, ws._memory, q, v, a, tau):
                return tau
        elif _rnea_with_forces(model._bodies, ws._memory, q, v, a, external_forces, tau):
            return tau
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, v, a, tau, external_forces) from error
    raise _explain(model, ws, q, v, a, tau, external_forces)


@inlined
def outward_pass(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray, a: FloatArray
) -> None:
    """From the root to the tips: velocities, accelerations, and what force each body needs."""
    nv = q.shape[0]
    sines_and_cosines(bodies, memory, q)
    store_vector(memory, 0, ws_layout.ANGULAR_VELOCITY, (0.0, 0.0, 0.0))
    store_vector(memory, 0, ws_layout.ANGULAR_ACCELERATION, (0.0, 0.0, 0.0))
    store_vector(memory, 0, ws_layout.ACCELERATION, vector_at(bodies, 0, layout.BASE_ACCELERATION))
    for i in range(1, nv + 1):
        parent = int(bodies[i, layout.PARENT])
        joint = int(bodies[i, layout.JOINT])
        prismatic = bodies[i, layout.PRISMATIC] != 0.0
        R = turned_about_z(matrix_at(bodies, i, layout.ROTATION), *sine_and_cosine(memory, nv, i))
        p = vector_at(bodies, i, layout.TRANSLATION)
        if prismatic:
            p = add(p, scale(q[joint], z_axis(R)))

        w_P = vector_at(memory, parent, ws_layout.ANGULAR_VELOCITY)
        dw_P = vector_at(memory, parent, ws_layout.ANGULAR_ACCELERATION)
        a_P = vector_at(memory, parent, ws_layout.ACCELERATION)
        w = rotate_back(R, w_P)
        dw = rotate_back(R, dw_P)
        acc = rotate_back(R, add(a_P, add(cross(dw_P, p), cross(w_P, cross(w_P, p)))))
        if prismatic:
            # z times the joint's acceleration, and Coriolis 2 w x z times its velocity
            acc = (
                acc[0] + 2.0 * w[1] * v[joint],
                acc[1] - 2.0 * w[0] * v[joint],
                acc[2] + a[joint],
            )
        else:
            # z times the joint's acceleration, and w x z times its velocity
            dw = (dw[0] + w[1] * v[joint], dw[1] - w[0] * v[joint], dw[2] + a[joint])
            w = (w[0], w[1], w[2] + v[joint])

        m = bodies[i, layout.INERTIA]
        mc = vector_at(bodies, i, layout.INERTIA + 1)
        inertia = symmetric_at(bodies, i, layout.INERTIA + 4)
        f = add(scale(m, acc), add(cross(dw, mc), cross(w, cross(w, mc))))
        n = add(
            times_symmetric(inertia, dw),
            add(cross(w, times_symmetric(inertia, w)), cross(mc, acc)),
        )
        store_matrix(memory, i, ws_layout.ROTATION, R)
        store_vector(memory, i, ws_layout.TRANSLATION, p)
        store_vector(memory, i, ws_layout.ANGULAR_VELOCITY, w)
        store_vector(memory, i, ws_layout.ANGULAR_ACCELERATION, dw)
        store_vector(memory, i, ws_layout.ACCELERATION, acc)
        store_vector(memory, i, ws_layout.FORCE, f)
        store_vector(memory, i, ws_layout.MOMENT, n)


@inlined
def inward_pass(bodies: FloatArray, memory: FloatArray, tau: FloatArray) -> None:
    """From the tips to the root: hands each body's force to its parent; reads the torques off."""
    nv = tau.shape[0]
    for i in range(nv, 0, -1):
        parent = int(bodies[i, layout.PARENT])
        R = matrix_at(memory, i, ws_layout.ROTATION)
        p = vector_at(memory, i, ws_layout.TRANSLATION)
        f = vector_at(memory, i, ws_layout.FORCE)
        n = vector_at(memory, i, ws_layout.MOMENT)
        prismatic = bodies[i, layout.PRISMATIC] != 0.0
        tau[int(bodies[i, layout.JOINT])] = f[2] if prismatic else n[2]
        if parent != 0:
            f_P = rotate(R, f)
            add_to_vector(memory, parent, ws_layout.FORCE, f_P)
            add_to_vector(memory, parent, ws_layout.MOMENT, add(rotate(R, n), cross(p, f_P)))


@inlined
def subtract_external_forces(bodies: FloatArray, memory: FloatArray, forces: FloatArray) -> None:
    """What the world exerts on a body, its joint need not: taken off before the inward pass."""
    nv = forces.shape[0]
    for i in range(1, nv + 1):
        joint = int(bodies[i, layout.JOINT])
        R_BL = matrix_at(bodies, i, layout.LINK)
        f = rotate(R_BL, vector_at(forces, joint, 0))
        n = rotate(R_BL, vector_at(forces, joint, 3))
        add_to_vector(memory, i, ws_layout.FORCE, scale(-1.0, f))
        add_to_vector(memory, i, ws_layout.MOMENT, scale(-1.0, n))


@inlined
def fits(bodies: FloatArray, memory: FloatArray, q: FloatArray, tau: FloatArray) -> bool:
    """Whether the arrays have the sizes the model needs; kernels themselves check no bounds."""
    nv = bodies.shape[0] - 1
    return q.shape[0] == nv and tau.shape[0] == nv and memory.shape[0] == row_count(nv)


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _rnea(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    if not (fits(bodies, memory, q, tau) and fits(bodies, memory, v, a)):
        return False
    outward_pass(bodies, memory, q, v, a)
    inward_pass(bodies, memory, tau)
    return True


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])")
def _rnea_with_forces(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    tau: FloatArray,
) -> bool:
    if not (fits(bodies, memory, q, tau) and fits(bodies, memory, v, a)):
        return False
    if forces.shape[0] != q.shape[0] or forces.shape[1] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    subtract_external_forces(bodies, memory, forces)
    inward_pass(bodies, memory, tau)
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
    n: tuple[Any, ...] = (getattr(model, "nv", None),)
    arrays = {"q": (q, n), "v": (v, n), "a": (a, n), "tau": (tau, n)}
    if external_forces is not None:
        arrays["external_forces"] = (external_forces, (*n, 6))
    return argument_error(model, ws, **arrays)
