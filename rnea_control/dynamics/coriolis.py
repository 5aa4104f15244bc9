r"""The Coriolis matrix, and the passivity form of the equations of motion.

With v the spatial velocity of a body, v_r a reference velocity that need not be the real one, a_r
its derivative along the motion, and I the body's inertia, the body needs the force

.. math::

    I a_r + \tfrac{1}{2} \left( v \times^* I v_r - I (v \times v_r)
        + v_r \times^* I v \right)

of which the part that is linear in v_r makes C(q, v) v_r, with dM/dt - 2C skew [Niemeyer, Slotine
1991; Echeandia, Wensing 2021]. For v_r = v it is the body's equation of motion.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.articulated_inertia import rigid_body, times_motion
from rnea_control.dynamics.joint import joint_rate, joint_velocity
from rnea_control.dynamics.rnea import add_armature, fits, inward_pass
from rnea_control.dynamics.velocity import velocity_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Vector3,
    add,
    cross,
    matrix_at,
    rotate_back,
    scale,
    store_vector,
    subtract,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

_V_R = ws_layout.REFERENCE_VELOCITY
_A_R = ws_layout.REFERENCE_ACCELERATION


@explained(q=("nq",), v=("nv",), v_r=("nv",), a_r=("nv",), tau=("nv",))
def passivity_torque(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    v_r: FloatArray,
    a_r: FloatArray,
    tau: FloatArray,
) -> FloatArray:
    """M(q) a_r + C(q, v) v_r + g(q), for laws that rest on passivity. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        v_r, a_r: reference velocities and accelerations, shape (nv,).
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return _passivity_torque(model.bodies, ws.memory, q, v, v_r, a_r, tau) and tau


@explained(q=("nq",), v=("nv",), C=("nv", "nv"))
def coriolis_matrix(
    model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray, C: FloatArray
) -> FloatArray:
    """C(q, v), with C v the Coriolis and centrifugal torques and dM/dt - 2C skew. Performs no
    allocation.

    Column j is the torque C v_r for a reference velocity of 1 of joint j alone.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        C: output, shape (nv, nv); overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    arrays = (model.bodies, ws.memory, ws.unit, ws.zeros, ws.torque)
    return _coriolis_matrix(*arrays, q, v, C) and C


@inlined
def reference_pass(
    bodies: FloatArray,
    memory: FloatArray,
    v: FloatArray,
    v_r: FloatArray,
    a_r: FloatArray,
    start: Vector3,
) -> None:
    """What force each body needs; needs `velocity_pass`. `start`: acceleration of the root."""
    for k in range(6):
        memory[0, _V_R + k] = 0.0
        memory[0, _A_R + k] = 0.0
    store_vector(memory, 0, _A_R, start)
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R = matrix_at(memory, i, ws_layout.ROTATION)
        p = vector_at(memory, i, ws_layout.TRANSLATION)
        w = vector_at(memory, i, ws_layout.ANGULAR_VELOCITY)
        velocity = vector_at(memory, i, ws_layout.VELOCITY)
        linear_J, angular_J = joint_velocity(bodies, v_r, i)
        linear_r, angular_r = _from_parent(memory, parent, _V_R, R, p)
        linear_r, angular_r = add(linear_r, linear_J), add(angular_r, angular_J)
        linear_a, angular_a = _from_parent(memory, parent, _A_R, R, p)
        # v x S times the reference rate, S times the reference acceleration
        rate, acceleration = joint_rate(bodies, v_r, i), joint_rate(bodies, a_r, i)
        turn, slide = bodies[i, layout.ANGULAR], bodies[i, layout.LINEAR]
        angular_a = add(angular_a, scale(turn, (w[1] * rate, -w[0] * rate, acceleration)))
        linear_a = add(linear_a, scale(slide, (w[1] * rate, -w[0] * rate, acceleration)))
        linear_a = add(linear_a, scale(turn * rate, (velocity[1], -velocity[0], 0.0)))
        store_vector(memory, i, _V_R, linear_r)
        store_vector(memory, i, _V_R + 3, angular_r)
        store_vector(memory, i, _A_R, linear_a)
        store_vector(memory, i, _A_R + 3, angular_a)

        body = rigid_body(bodies, i)
        f, n = times_motion(body, linear_a, angular_a)
        # v x v_r, as a motion
        moved = add(cross(w, linear_r), cross(velocity, angular_r))
        f_0, n_0 = times_motion(body, moved, cross(w, angular_r))
        f_r, n_r = times_motion(body, linear_r, angular_r)
        f_v, n_v = times_motion(body, velocity, w)
        f_1, n_1 = cross(w, f_r), add(cross(w, n_r), cross(velocity, f_r))
        f_2, n_2 = cross(angular_r, f_v), add(cross(angular_r, n_v), cross(linear_r, f_v))
        f = add(f, scale(0.5, add(subtract(f_1, f_0), f_2)))
        n = add(n, scale(0.5, add(subtract(n_1, n_0), n_2)))
        store_vector(memory, i, ws_layout.FORCE, f)
        store_vector(memory, i, ws_layout.MOMENT, n)


@inlined
def _from_parent(
    memory: FloatArray, parent: int, column: int, R: tuple, p: Vector3
) -> tuple[Vector3, Vector3]:
    """A motion of the parent, about the body's origin and in its axes."""
    linear = vector_at(memory, parent, column)
    angular = vector_at(memory, parent, column + 3)
    return rotate_back(R, add(linear, cross(angular, p))), rotate_back(R, angular)


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
    if not (fits(bodies, memory, q, v, tau) and fits(bodies, memory, q, v_r, a_r)):
        return False
    velocity_pass(bodies, memory, q, v)
    start = vector_at(bodies, 0, layout.BASE_ACCELERATION)
    reference_pass(bodies, memory, v, v_r, a_r, start)
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
    if not fits(bodies, memory, q, v, zeros) or C.shape[0] != nv or C.shape[1] != nv:
        return False
    velocity_pass(bodies, memory, q, v)
    for j in range(nv):
        for k in range(nv):
            unit[k] = 1.0 if k == j else 0.0
        reference_pass(bodies, memory, v, unit, zeros, (0.0, 0.0, 0.0))
        inward_pass(bodies, memory, column)
        for k in range(nv):
            C[k, j] = column[k]
    return True
