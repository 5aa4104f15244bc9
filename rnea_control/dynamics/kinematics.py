"""Poses, Jacobians and accelerations of links, and forces on links given in the world frame.

With z the axis of a joint and r from a point of it to the origin of a link's frame, the joint's
column of the link's Jacobian is (s_angular z x r + s_linear z; s_angular z), expressed in the root
link's frame W. The acceleration J(q) a + dJ/dt v is from the outward pass of `rnea`.

Several algorithms begin with the outward passes here: poses or velocities of all bodies.
"""

from __future__ import annotations

from rnea_control.array_types import Matrices, Matrix, Vector
from rnea_control.dynamics import body, joint, workspace
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, link_index, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel, kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.bodies import RATIO, S_ANGULAR, S_LINEAR
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import vectors
from rnea_control.spatial.algebra import Spatial
from rnea_control.spatial.vectors import Matrix3, Vector3, add, cross, rotate, subtract


def forward_kinematics(model: RobotModel, ws: Workspace, q: Vector, poses: Matrices) -> Matrices:
    """Homogeneous transforms X_WL of all links at positions `q`. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        poses: output, shape (number of links, 4, 4): rotation R_WL and translation p_WL [m] of each
            link's URDF frame in the root link's frame; rows ordered as `model.link_names`;
            overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        forward_kinematics_kernel(model.bodies, model.links, ws.memory, q, poses)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return poses


def jacobian(model: RobotModel, ws: Workspace, q: Vector, link: str, J: Matrix) -> Matrix:
    """Jacobian J of a link, whose velocity is J v. Performs no allocation.

    Torques J^T F hold a force F = (force; moment) that the link exerts on the world.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        link: name of any link of the robot.
        J: output, shape (6, nv): linear velocity of the link frame's origin, then angular velocity,
            both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
    """
    try:
        jacobian_kernel(model.bodies, model.links, ws.memory, link_index(model, link), q, J)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return J


def link_acceleration(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    a: Vector,
    link: str,
    acceleration: Vector,
) -> Vector:
    """Acceleration of a link, J a + dJ/dt v. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        link: name of any link of the robot.
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        acceleration: output, shape (6,): acceleration of the link frame's origin [m/s^2], without
            gravity, then angular acceleration [rad/s^2], both expressed in the root link's frame;
            overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        _link_acceleration(*rows, link_index(model, link), q, v, a, acceleration)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return acceleration


def world_to_link_force(
    model: RobotModel, ws: Workspace, q: Vector, link: str, world_force: Vector, link_force: Vector
) -> Vector:
    """Converts a force given in the world frame to a row of `external_forces`. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        link: name of any link of the robot.
        world_force: force [N], then moment about the world's origin [Nm], both expressed in the
            root link's frame W, shape (6,). A force f at point p has the moment p x f.
        link_force: output, shape (6,): force, then moment about the link frame's origin, both
            expressed in the link's URDF frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        _world_to_link_force(*rows, link_index(model, link), q, world_force, link_force)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return link_force


@inlined
def pose_pass(bodies: Matrix, memory: Matrix, q: Vector) -> None:
    """R_WB and p_WB of all bodies; and R_PB, p_PB."""
    joint.sines_and_cosines(bodies, memory, q)
    spatial.store_pose(memory, 0, body.POSE, vectors.IDENTITY, vectors.ORIGIN)
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        R_WP, p_WP = spatial.pose_at(memory, body.parent(bodies, i), body.POSE)
        spatial.store_pose(memory, i, body.POSE_IN_PARENT, R, p)
        R_WB, p_WB = vectors.multiply(R_WP, R), add(p_WP, rotate(R_WP, p))
        spatial.store_pose(memory, i, body.POSE, R_WB, p_WB)


@inlined
def link_pose(links: Matrix, memory: Matrix, k: int) -> tuple[Matrix3, Vector3]:
    """R_WL and p_WL of link k, after `pose_pass`."""
    R, p = spatial.pose_at(memory, body.link_body(links, k), body.POSE)
    R_BL, p_BL = spatial.pose_at(links, k, layout.LINK_ROTATION)
    return vectors.multiply(R, R_BL), add(p, rotate(R, p_BL))


@inlined
def velocity_pass(bodies: Matrix, memory: Matrix, q: Vector, v: Vector) -> None:
    """The pose of each body in its parent, and its spatial velocity v = X v_P + S dq."""
    start_velocities(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        find_velocity(bodies, memory, q, v, i)


@inlined
def start_velocities(bodies: Matrix, memory: Matrix, q: Vector) -> None:
    """Prepares `find_velocity`: sines and cosines, and a root at rest."""
    joint.sines_and_cosines(bodies, memory, q)
    spatial.store(memory, 0, body.VELOCITY, spatial.ZERO)


@inlined
def find_velocity(bodies: Matrix, memory: Matrix, q: Vector, v: Vector, i: int) -> Spatial:
    """Stores the relative pose and the velocity of body i; returns the velocity."""
    R, p = joint.placement(bodies, memory, q, i)
    v_P = spatial.at(memory, body.parent(bodies, i), body.VELOCITY)
    velocity = spatial.add(spatial.to_child(R, p, v_P), joint.joint_velocity(bodies, v, i))
    spatial.store_pose(memory, i, body.POSE_IN_PARENT, R, p)
    spatial.store(memory, i, body.VELOCITY, velocity)
    return velocity


@kernel()
def forward_kinematics_kernel(
    bodies: Matrix, links: Matrix, memory: Matrix, q: Vector, poses: Matrices
) -> None:
    require(workspace.fit_position(bodies, memory, q) and poses.shape == (links.shape[0], 4, 4))
    pose_pass(bodies, memory, q)
    for k in range(links.shape[0]):
        R, p = link_pose(links, memory, k)
        for row in range(3):
            poses[k, row, 3] = p[row]
            poses[k, 3, row] = 0.0
            for column in range(3):
                poses[k, row, column] = R[3 * row + column]
        poses[k, 3, 3] = 1.0


@inlined
def _linear_velocity(bodies: Matrix, i: int, z: Vector3, lever: Vector3) -> Vector3:
    """Linear velocity of a point by joint i at unit speed. Arguments: see `_fill_column`."""
    turning = vectors.scale(bodies[i, S_ANGULAR], cross(z, lever))
    return add(turning, vectors.scale(bodies[i, S_LINEAR], z))


@inlined
def _fill_column(bodies: Matrix, i: int, z: Vector3, lever: Vector3, J: Matrix) -> None:
    """Adds the part of joint i to its column of J. `z`: its axis; `lever`: way from a point of the
    axis to the origin of the link's frame."""
    linear = _linear_velocity(bodies, i, z, lever)
    ratio, column = bodies[i, RATIO], body.velocity_index(bodies, i)
    for k in range(3):
        J[k, column] += ratio * linear[k]
        J[3 + k, column] += ratio * bodies[i, S_ANGULAR] * z[k]


@inlined
def jacobian_after_poses(
    bodies: Matrix, links: Matrix, memory: Matrix, link: int, J: Matrix
) -> None:
    """Fills J of a link, from the poses of `pose_pass`."""
    _, p_L = link_pose(links, memory, link)
    J[:] = 0.0
    i = body.link_body(links, link)
    while i != 0:
        R, p = spatial.pose_at(memory, i, body.POSE)
        _fill_column(bodies, i, vectors.z_axis(R), subtract(p_L, p), J)
        i = body.parent(bodies, i)


@inlined
def force_torques_after_poses(
    bodies: Matrix, links: Matrix, memory: Matrix, link: int, force: Vector3, tau: Vector
) -> None:
    """Fills `tau`, shape (nv,), with the torques of a force on the origin of a link's frame,
    expressed in the root link's frame, from the poses of `pose_pass`."""
    _, p_L = link_pose(links, memory, link)
    tau[:] = 0.0
    i = body.link_body(links, link)
    while i != 0:
        R, p = spatial.pose_at(memory, i, body.POSE)
        linear = _linear_velocity(bodies, i, vectors.z_axis(R), subtract(p_L, p))
        tau[body.velocity_index(bodies, i)] += bodies[i, RATIO] * vectors.dot(linear, force)
        i = body.parent(bodies, i)


@inlined
def jacobian_after_mass_matrix(
    bodies: Matrix, links: Matrix, memory: Matrix, link: int, J: Matrix
) -> tuple[Matrix3, Vector3]:
    """Fills J of a link, from the rotations and levers that `crba.mass_matrix` leaves in place of
    poses; returns R_WL and p_WL."""
    J[:] = 0.0
    i = body.link_body(links, link)
    R_BL, p = spatial.pose_at(links, link, layout.LINK_ROTATION)
    if i == 0:
        return R_BL, p
    R_WB = spatial.matrix_at(memory, i, body.POSE)
    R, r = vectors.multiply(R_WB, R_BL), rotate(R_WB, p)
    while i != 0:
        _fill_column(bodies, i, vectors.z_axis(spatial.matrix_at(memory, i, body.POSE)), r, J)
        r = add(r, spatial.vector_at(memory, i, body.LEVER))
        i = body.parent(bodies, i)
    return R, r


@kernel()
def jacobian_kernel(
    bodies: Matrix, links: Matrix, memory: Matrix, link: int, q: Vector, J: Matrix
) -> None:
    nv = body.velocity_count(bodies)
    require(workspace.fit_position(bodies, memory, q) and J.shape == (6, nv))
    pose_pass(bodies, memory, q)
    jacobian_after_poses(bodies, links, memory, link, J)


@inlined
def acceleration_of_link(
    bodies: Matrix, links: Matrix, memory: Matrix, link: int
) -> tuple[Vector3, Vector3]:
    """Acceleration of a link, linear and angular, after `outward_pass` and `pose_pass`."""
    R, _ = spatial.pose_at(memory, body.link_body(links, link), body.POSE)
    _, p = spatial.pose_at(links, link, layout.LINK_ROTATION)
    w, dw, acc = body.motion(memory, body.link_body(links, link))
    acc = add(acc, add(cross(dw, p), cross(w, cross(w, p))))
    # The recursion starts from a root that accelerates with -g.
    return subtract(rotate(R, acc), body.base_acceleration(bodies)), rotate(R, dw)


@kernel_on_demand()
def _link_acceleration(
    bodies: Matrix,
    links: Matrix,
    memory: Matrix,
    link: int,
    q: Vector,
    v: Vector,
    a: Vector,
    acceleration: Vector,
) -> None:
    require(fit(bodies, memory, q, v, a, a) and acceleration.shape[0] == 6)
    outward_pass(bodies, memory, q, v, a)
    pose_pass(bodies, memory, q)
    acceleration[:3], acceleration[3:] = acceleration_of_link(bodies, links, memory, link)


@kernel_on_demand()
def _world_to_link_force(
    bodies: Matrix,
    links: Matrix,
    memory: Matrix,
    link: int,
    q: Vector,
    world_force: Vector,
    link_force: Vector,
) -> None:
    require(workspace.fit_position(bodies, memory, q))
    require(world_force.shape[0] == link_force.shape[0] == 6)
    pose_pass(bodies, memory, q)
    R, p = link_pose(links, memory, link)
    f_W = (world_force[0], world_force[1], world_force[2])
    n_W = (world_force[3], world_force[4], world_force[5])
    link_force[:3] = vectors.rotate_back(R, f_W)
    link_force[3:] = vectors.rotate_back(R, subtract(n_W, cross(p, f_W)))
