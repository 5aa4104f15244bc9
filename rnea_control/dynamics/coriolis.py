"""The Coriolis matrix, and the passivity form of the equations of motion.

With v the spatial velocity of a body, v_r a reference velocity that need not be the real one, a_r
its derivative along the motion, and I the body's inertia, the body needs the force

    F  =  I a_r + 1/2 ( v x* I v_r - I (v x v_r) + v_r x* I v )

For v_r = v this is the body's equation of motion. With reference joint accelerations of zero and no
gravity, these forces give the joint torques C(q, v) v_r, with dM/dt - 2C skew-symmetric
[Niemeyer, Slotine 1991; Echeandia, Wensing 2021].
"""

from __future__ import annotations

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.kinematics import velocity_pass
from rnea_control.dynamics.rnea import add_armature, inward_pass
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial.vectors import ORIGIN, Vector3


def passivity_torque(
    model: RobotModel, ws: Workspace, q: Vector, v: Vector, v_r: Vector, a_r: Vector, tau: Vector
) -> Vector:
    """M(q) a_r + C(q, v) v_r + g(q), for passivity-based control, without friction. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        v_r, a_r: reference velocities and accelerations, shape (nv,), in the units of v and a.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _passivity_torque(model.bodies, ws.memory, q, v, v_r, a_r, tau)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return tau


def coriolis_matrix(model: RobotModel, ws: Workspace, q: Vector, v: Vector, C: Matrix) -> Matrix:
    """C(q, v) with C v the Coriolis and centrifugal torques and dM/dt - 2C skew-symmetric. Performs
    no allocation.

    Column j is the torque C v_r for a reference velocity v_r of 1 at index j and 0 elsewhere.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        C: output, shape (nv, nv), [Nm s/rad] or [N s/m]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _coriolis_matrix(model.bodies, ws.memory, ws.unit, ws.zeros, ws.torque, q, v, C)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return C


@inlined
def reference_pass(
    bodies: Matrix, memory: Matrix, v: Vector, v_r: Vector, a_r: Vector, start: Vector3
) -> None:
    """Force that each body needs; call `velocity_pass` first. `start`: acceleration of the root."""
    spatial.store(memory, 0, body.REFERENCE_VELOCITY, spatial.ZERO)
    spatial.store(memory, 0, body.REFERENCE_ACCELERATION, (start, ORIGIN))
    for i in range(1, bodies.shape[0]):
        P = body.parent(bodies, i)
        R, p = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        velocity = spatial.at(memory, i, body.VELOCITY)
        # v_r = X v_rP + S dq_r,  a_r = X a_rP + v x S dq_r + S ddq_r
        reference = spatial.to_child(R, p, spatial.at(memory, P, body.REFERENCE_VELOCITY))
        reference = spatial.add(reference, joint.joint_velocity(bodies, v_r, i))
        change = spatial.to_child(R, p, spatial.at(memory, P, body.REFERENCE_ACCELERATION))
        rate = joint.joint_rate(bodies, v_r, i)
        change = spatial.add(change, joint.velocity_product(bodies, i, velocity, rate))
        change = joint.add_along_axis(bodies, i, change, joint.joint_rate(bodies, a_r, i))
        spatial.store(memory, i, body.REFERENCE_VELOCITY, reference)
        spatial.store(memory, i, body.REFERENCE_ACCELERATION, change)
        rigid = spatial.rigid_body(body.inertia(bodies, i))
        first = spatial.cross_force(velocity, spatial.times_motion(rigid, reference))
        second = spatial.times_motion(rigid, spatial.cross_motion(velocity, reference))
        third = spatial.cross_force(reference, spatial.times_motion(rigid, velocity))
        half = spatial.add(spatial.add(first, third), spatial.scale(-1.0, second))
        force = spatial.add(spatial.times_motion(rigid, change), spatial.scale(0.5, half))
        spatial.store(memory, i, body.FORCE, force)


@kernel_on_demand()
def _passivity_torque(
    bodies: Matrix, memory: Matrix, q: Vector, v: Vector, v_r: Vector, a_r: Vector, tau: Vector
) -> None:
    require(fit(bodies, memory, q, v, tau, tau) and fit(bodies, memory, q, v_r, a_r, a_r))
    velocity_pass(bodies, memory, q, v)
    reference_pass(bodies, memory, v, v_r, a_r, body.base_acceleration(bodies))
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a_r, tau)


@kernel_on_demand()
def _coriolis_matrix(
    bodies: Matrix,
    memory: Matrix,
    unit: Vector,
    zeros: Vector,
    column: Vector,
    q: Vector,
    v: Vector,
    C: Matrix,
) -> None:
    nv = zeros.shape[0]
    require(fit(bodies, memory, q, v, zeros, zeros) and C.shape == (nv, nv))
    velocity_pass(bodies, memory, q, v)
    for j in range(nv):
        unit[:] = 0.0
        unit[j] = 1.0
        reference_pass(bodies, memory, v, unit, zeros, ORIGIN)
        inward_pass(bodies, memory, column)
        for k in range(nv):
            C[k, j] = column[k]
