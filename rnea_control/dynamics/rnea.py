"""Inverse dynamics by the recursive Newton-Euler algorithm.

[Luh, Walker, Paul 1980; Featherstone 2008, table 5.1], with vectors in body frames, accelerations
of the frames' origins, and inertial parameters about these. For a body with parent P, R and p are
the rotation and position of its frame in P's frame, z its joint's axis, S = (s_linear z; s_angular
z), v and a the joint's velocity and acceleration:

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
`gravity`, `nonlinear_effects` and `static_torque` leave out some of the inputs. `joint_wrenches`
gives all six components of the forces between links, the loads of bearings and mountings; the joint
torque is only the component along the axis.
"""

from __future__ import annotations

from rnea_control.array_types import IntVector, Matrix, Vector
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, forces_fit, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel, kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.bodies import ARMATURE, RATIO
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import vectors
from rnea_control.spatial.algebra import Spatial
from rnea_control.spatial.vectors import ORIGIN, Vector3, add, cross, rotate_back, scale


def rnea(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    a: Vector,
    tau: Vector,
    external_forces: Matrix | None = None,
) -> Vector:
    """Joint torques for the accelerations `a` at `q` and `v`: M a + C v + g, without friction.

    Gravity is included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. `world_to_link_force` maps from the world frame.
            None: no forces.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then unchanged.
    """
    try:
        if external_forces is None:
            rnea_kernel(model.bodies, ws.memory, q, v, a, tau)
        else:
            rnea_with_forces_kernel(
                model.bodies, model.links, ws.memory, q, v, a, external_forces, tau
            )
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return tau


def gravity(model: RobotModel, ws: Workspace, q: Vector, tau: Vector) -> Vector:
    """Torques that hold the robot still at `q` against gravity, g(q).

    Equal to `rnea` with zero velocity and acceleration [Featherstone 2008, sec. 5.3]. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        gravity_kernel(model.bodies, ws.memory, q, tau)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return tau


def nonlinear_effects(
    model: RobotModel, ws: Workspace, q: Vector, v: Vector, tau: Vector
) -> Vector:
    """C(q, v) v + g(q): Coriolis, centrifugal and gravity torques, without friction.

    Equal to `rnea` with zero acceleration [Featherstone 2008, sec. 6.1]. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return rnea(model, ws, q, v, ws.zeros, tau)


def static_torque(
    model: RobotModel, ws: Workspace, q: Vector, external_forces: Matrix, tau: Vector
) -> Vector:
    """g(q) - J^T F: torques that hold the robot still at `q` while the world exerts F on its links.

    Equal to `rnea` with zero velocity and acceleration. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`.
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return rnea(model, ws, q, ws.zeros, ws.zeros, tau, external_forces)


def joint_wrenches(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    a: Vector,
    wrenches: Matrix,
    external_forces: Matrix | None = None,
) -> Matrix:
    """Forces and moments of each joint's parent link on its child link, and of the ground on the
    root. Gravity is included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        wrenches: output, shape (1 + number of joints, 6): first the force of the ground on the root
            link, in the root link's frame; then for each joint of `model.joint_names` and
            `model.mimic_joints` the force [N], and the moment about the child link frame's origin
            [Nm], both expressed in the child link's URDF frame; overwritten and returned.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        forces = ws.no_forces if external_forces is None else external_forces
        rows = (model.bodies, model.links, model.joint_links, ws.memory)
        _joint_wrenches(*rows, q, v, a, forces, wrenches)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return wrenches


@inlined
def outward_pass(bodies: Matrix, memory: Matrix, q: Vector, v: Vector, a: Vector) -> None:
    """Equations (1) to (5), from the root to the leaf bodies."""
    joint.sines_and_cosines(bodies, memory, q)
    acc_0 = body.base_acceleration(bodies)
    body.store_motion(memory, 0, ORIGIN, ORIGIN, acc_0)
    spatial.store(memory, 0, body.FORCE, newton_euler(bodies, 0, ORIGIN, ORIGIN, acc_0))
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        w_P, dw_P, acc_P = body.motion(memory, body.parent(bodies, i))
        w = joint.add_angular_velocity(bodies, v, i, rotate_back(R, w_P))  # (1)
        dw = rotate_back(R, dw_P)
        acc = rotate_back(R, add(acc_P, add(cross(dw_P, p), cross(w_P, cross(w_P, p)))))
        dw, acc = joint.add_acceleration(bodies, v, a, i, w, dw, acc)  # (2), (3)
        spatial.store_pose(memory, i, body.POSE_IN_PARENT, R, p)
        body.store_motion(memory, i, w, dw, acc)
        spatial.store(memory, i, body.FORCE, newton_euler(bodies, i, w, dw, acc))


@inlined
def newton_euler(bodies: Matrix, i: int, w: Vector3, dw: Vector3, acc: Vector3) -> Spatial:
    """Equations (4) and (5): the force that body i needs for its motion."""
    m, mc, inertia = body.inertia(bodies, i)
    f = add(scale(m, acc), add(cross(dw, mc), cross(w, cross(w, mc))))  # (4)
    gyroscopic = cross(w, vectors.times_symmetric(inertia, w))
    n = add(vectors.times_symmetric(inertia, dw), add(gyroscopic, cross(mc, acc)))  # (5)
    return f, n


@inlined
def gravity_outward_pass(bodies: Matrix, memory: Matrix, q: Vector) -> None:
    """Like `outward_pass` for a robot at rest, to the same numbers: (3) is R^T acc_P, (4) m acc,
    and (5) mc x acc."""
    joint.sines_and_cosines(bodies, memory, q)
    spatial.store_vector(memory, 0, body.ACCELERATION, body.base_acceleration(bodies))
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        acc_P = spatial.vector_at(memory, body.parent(bodies, i), body.ACCELERATION)
        acc = rotate_back(R, acc_P)  # (3)
        m, mc, _ = body.inertia(bodies, i)
        spatial.store_pose(memory, i, body.POSE_IN_PARENT, R, p)
        spatial.store_vector(memory, i, body.ACCELERATION, acc)
        spatial.store(memory, i, body.FORCE, (scale(m, acc), cross(mc, acc)))  # (4), (5)


@inlined
def inward_pass(bodies: Matrix, memory: Matrix, tau: Vector) -> None:
    """Equations (6) to (8) without the armature, from the leaf bodies to the root."""
    tau[:] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, p = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        force, P = spatial.at(memory, i, body.FORCE), body.parent(bodies, i)
        torque = joint.along_axis(bodies, i, force)  # (6)
        tau[body.velocity_index(bodies, i)] += bodies[i, RATIO] * torque
        if P != 0:
            spatial.add_to(memory, P, body.FORCE, spatial.to_parent(R, p, force))  # (7), (8)


@inlined
def add_armature(bodies: Matrix, a: Vector, tau: Vector) -> None:
    """The last term of equation (6): the actuators' rotors turn with their joints."""
    for i in range(1, bodies.shape[0]):
        torque = bodies[i, ARMATURE] * joint.joint_rate(bodies, a, i)
        tau[body.velocity_index(bodies, i)] += bodies[i, RATIO] * torque


@kernel()
def rnea_kernel(
    bodies: Matrix, memory: Matrix, q: Vector, v: Vector, a: Vector, tau: Vector
) -> None:
    require(fit(bodies, memory, q, v, a, tau))
    outward_pass(bodies, memory, q, v, a)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)


@kernel_on_demand()
def rnea_with_forces_kernel(
    bodies: Matrix,
    links: Matrix,
    memory: Matrix,
    q: Vector,
    v: Vector,
    a: Vector,
    external_forces: Matrix,
    tau: Vector,
) -> None:
    require(fit(bodies, memory, q, v, a, tau) and forces_fit(links, external_forces))
    outward_pass(bodies, memory, q, v, a)
    body.subtract_external_forces(links, memory, external_forces, body.FORCE)
    inward_pass(bodies, memory, tau)
    add_armature(bodies, a, tau)


@kernel()
def gravity_kernel(bodies: Matrix, memory: Matrix, q: Vector, tau: Vector) -> None:
    require(fit(bodies, memory, q, tau, tau, tau))
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, tau)


@kernel_on_demand()
def _joint_wrenches(
    bodies: Matrix,
    links: Matrix,
    joint_links: IntVector,
    memory: Matrix,
    q: Vector,
    v: Vector,
    a: Vector,
    forces: Matrix,
    wrenches: Matrix,
) -> None:
    require(fit(bodies, memory, q, v, a, a) and forces_fit(links, forces))
    require(wrenches.shape == (joint_links.shape[0], 6))
    outward_pass(bodies, memory, q, v, a)
    body.subtract_external_forces(links, memory, forces, body.FORCE)
    for i in range(bodies.shape[0] - 1, 0, -1):  # (7) and (8), the root included
        R, p = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        force = spatial.to_parent(R, p, spatial.at(memory, i, body.FORCE))
        spatial.add_to(memory, body.parent(bodies, i), body.FORCE, force)
    for k in range(joint_links.shape[0]):
        link = joint_links[k]
        R, _ = spatial.pose_at(links, link, layout.LINK_ROTATION)
        f, n = spatial.at(memory, body.link_body(links, link), body.FORCE)
        spatial.store(wrenches, k, 0, (rotate_back(R, f), rotate_back(R, n)))
