r"""Forward dynamics by the articulated body algorithm.

With v the velocity of a body, S the axis of its joint, c the acceleration that velocities alone
give, I^A its articulated inertia and p^A the force that it needs with its joints left to
themselves [Featherstone 2008, table 7.1]; outward, inward and outward again:

.. math::

    v_i &= X v_P + S \dot q_i, \quad c_i = v_i \times S \dot q_i, \quad
    I^A_i = I_i, \quad p^A_i = v_i \times^* I_i v_i - f^x_i \\
    U_i &= I^A_i S, \quad D_i = S \cdot U_i, \quad u_i = \tau_i - S \cdot p^A_i \\
    I^A_P &\mathrel{+}= X^* (I^A_i - U_i U_i^T / D_i) X, \quad
    p^A_P \mathrel{+}= X^* (p^A_i + (I^A_i - U_i U_i^T / D_i) c_i + U_i u_i / D_i) \\
    a_i &= X a_P + c_i, \quad \ddot q_i = (u_i - U_i \cdot a_i) / D_i, \quad
    a_i \mathrel{+}= S \ddot q_i

Gravity is included: the root accelerates with -g. The rotor of the drive adds to D.
"""

from __future__ import annotations

from typing import Any

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.articulated_inertia import (
    add_articulated,
    articulated_at,
    rigid_body,
    seen_from_parent,
    store_articulated,
    times_axis,
    times_motion,
    yielding,
)
from rnea_control.dynamics.crba import along_axis
from rnea_control.dynamics.joint import joint_rate
from rnea_control.dynamics.rnea import fits, subtract_external_forces
from rnea_control.dynamics.velocity import velocity_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    add,
    add_to_vector,
    cross,
    dot,
    matrix_at,
    rotate,
    rotate_back,
    scale,
    store_vector,
    subtract,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

_LINEAR, _ANGULAR = 0, 3  # of six numbers


def aba(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    a: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Joint accelerations that the torques `tau` give: the inverse of `rnea`. Performs no
    allocation.

    The articulated body algorithm; the module's docstring has the equations.

    Args:
        model: the robot; none of its joints may mimic another one.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: joint torques, shape (nv,), [Nm] or [N].
        a: output, shape (nv,), [rad/s^2] or [m/s^2]; overwritten and returned. Not finite where a
            joint moves nothing that has inertia.
        external_forces: as of `rnea`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; a model
            with mimic joints, which are no tree: use `forward_dynamics`.
    """
    try:
        forces = ws.no_forces if external_forces is None else external_forces
        if model.mimic_joints:
            raise ArgumentError(
                f"aba cannot do with joints that mimic others ({', '.join(model.mimic_joints)}); "
                "use forward_dynamics"
            )
        if _aba(model.bodies, model.links, ws.memory, q, v, tau, forces, a):
            return a
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, v, tau, a, external_forces) from error
    raise _explain(model, ws, q, v, tau, a, external_forces)


@inlined
def bias_pass(bodies: FloatArray, memory: FloatArray, v: FloatArray) -> None:
    """What velocities alone make of each body: acceleration and force."""
    for i in range(1, bodies.shape[0]):
        w = vector_at(memory, i, ws_layout.ANGULAR_VELOCITY)
        linear = vector_at(memory, i, ws_layout.VELOCITY)
        rate = joint_rate(bodies, v, i)
        z_dot, turn = bodies[i, layout.LINEAR] * rate, bodies[i, layout.ANGULAR] * rate
        c_angular = (w[1] * turn, -w[0] * turn, 0.0)
        c_linear = (w[1] * z_dot + linear[1] * turn, -w[0] * z_dot - linear[0] * turn, 0.0)
        store_vector(memory, i, ws_layout.BIAS + _LINEAR, c_linear)
        store_vector(memory, i, ws_layout.BIAS + _ANGULAR, c_angular)
        body = rigid_body(bodies, i)
        f, n = times_motion(body, linear, w)
        store_articulated(memory, i, ws_layout.ARTICULATED, body)
        store_vector(memory, i, ws_layout.BIAS_FORCE, cross(w, f))
        store_vector(memory, i, ws_layout.BIAS_FORCE + 3, add(cross(w, n), cross(linear, f)))


@inlined
def articulated_pass(bodies: FloatArray, memory: FloatArray, tau: FloatArray) -> None:
    """From the tips to the root: what each joint has to push."""
    for i in range(bodies.shape[0] - 1, 0, -1):
        A = articulated_at(memory, i, ws_layout.ARTICULATED)
        f = vector_at(memory, i, ws_layout.BIAS_FORCE)
        n = vector_at(memory, i, ws_layout.BIAS_FORCE + 3)
        U_f, U_n = times_axis(A, bodies[i, layout.ANGULAR], bodies[i, layout.LINEAR])
        D = along_axis(bodies, i, U_f, U_n) + bodies[i, layout.ARMATURE]
        u = tau[int(bodies[i, layout.V])] - along_axis(bodies, i, f, n)
        s = 1.0 / D
        G_f, G_n = scale(s, U_f), scale(s, U_n)
        store_vector(memory, i, ws_layout.GAIN_FORCE, G_f)
        store_vector(memory, i, ws_layout.GAIN_FORCE + 3, G_n)
        memory[i, ws_layout.TORQUE] = s * u
        parent = int(bodies[i, layout.PARENT])
        if parent == 0:
            continue
        rest, turns = s * bodies[i, layout.ARMATURE], bodies[i, layout.LINEAR] == 0.0
        A = yielding(A, U_f, U_n, G_f, G_n, rest, turns)
        c_linear = vector_at(memory, i, ws_layout.BIAS + _LINEAR)
        c_angular = vector_at(memory, i, ws_layout.BIAS + _ANGULAR)
        c_f, c_n = times_motion(A, c_linear, c_angular)
        R = matrix_at(memory, i, ws_layout.ROTATION)
        p = vector_at(memory, i, ws_layout.TRANSLATION)
        f = rotate(R, add(f, add(c_f, scale(u, G_f))))
        n = add(rotate(R, add(n, add(c_n, scale(u, G_n)))), cross(p, f))
        add_articulated(memory, parent, ws_layout.ARTICULATED, seen_from_parent(A, R, p))
        add_to_vector(memory, parent, ws_layout.BIAS_FORCE, f)
        add_to_vector(memory, parent, ws_layout.BIAS_FORCE + 3, n)


@inlined
def acceleration_pass(bodies: FloatArray, memory: FloatArray, a: FloatArray) -> None:
    """From the root to the tips: what each joint does."""
    store_vector(memory, 0, ws_layout.ACCELERATION, vector_at(bodies, 0, layout.BASE_ACCELERATION))
    store_vector(memory, 0, ws_layout.ANGULAR_ACCELERATION, (0.0, 0.0, 0.0))
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R = matrix_at(memory, i, ws_layout.ROTATION)
        p = vector_at(memory, i, ws_layout.TRANSLATION)
        dw_P = vector_at(memory, parent, ws_layout.ANGULAR_ACCELERATION)
        a_P = vector_at(memory, parent, ws_layout.ACCELERATION)
        linear = rotate_back(R, subtract(a_P, cross(p, dw_P)))
        linear = add(linear, vector_at(memory, i, ws_layout.BIAS + _LINEAR))
        angular = add(rotate_back(R, dw_P), vector_at(memory, i, ws_layout.BIAS + _ANGULAR))
        G_f = vector_at(memory, i, ws_layout.GAIN_FORCE)
        G_n = vector_at(memory, i, ws_layout.GAIN_FORCE + 3)
        acceleration = memory[i, ws_layout.TORQUE] - (dot(G_f, linear) + dot(G_n, angular))
        a[int(bodies[i, layout.V])] = acceleration
        z_linear = linear[2] + bodies[i, layout.LINEAR] * acceleration
        z_angular = angular[2] + bodies[i, layout.ANGULAR] * acceleration
        store_vector(memory, i, ws_layout.ACCELERATION, (linear[0], linear[1], z_linear))
        store_vector(memory, i, ws_layout.ANGULAR_ACCELERATION, (angular[0], angular[1], z_angular))


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])"
)
def _aba(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    forces: FloatArray,
    a: FloatArray,
) -> bool:
    if not fits(bodies, memory, q, v, tau) or a.shape[0] != v.shape[0]:
        return False
    if forces.shape[0] not in (0, links.shape[0]) or forces.shape[1] != 6:
        return False
    velocity_pass(bodies, memory, q, v)
    bias_pass(bodies, memory, v)
    if forces.shape[0] != 0:
        subtract_external_forces(links, memory, forces, ws_layout.BIAS_FORCE)
    articulated_pass(bodies, memory, tau)
    acceleration_pass(bodies, memory, a)
    return True


def _explain(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    a: FloatArray,
    external_forces: FloatArray | None,
) -> Exception:
    n = ("nv",)
    arrays: dict[str, Any] = {"q": (q, ("nq",)), "v": (v, n), "tau": (tau, n), "a": (a, n)}
    if external_forces is not None:
        arrays["external_forces"] = (external_forces, ("links", 6))
    return argument_error(model, ws, **arrays)
