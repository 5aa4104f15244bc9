"""Where the links of a robot are, how they move, and how forces on them are given in the world.

With z the axis of a joint and r from a point of it to the origin of a link's frame, the joint's
column of the link's Jacobian is (s_angular z x r + s_linear z; s_angular z), expressed in the root
link's frame W. The acceleration J(q) a + dJ/dt v is from the outward pass of `rnea`.

Several algorithms begin with the outward passes here: poses or velocities of all bodies.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    fit_position,
    link_index,
)
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import VELOCITY, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    IDENTITY,
    ORIGIN,
    ZERO,
    Matrix3,
    Spatial,
    Vector3,
    add,
    cross,
    motion_to_child,
    multiply,
    rotate,
    rotate_back,
    scale,
    spatial_add,
    spatial_at,
    store_spatial,
    subtract,
    z_axis,
)
from rnea_control.model import RobotModel


def forward_kinematics(
    model: RobotModel, ws: Workspace, q: FloatArray, poses: FloatArray
) -> FloatArray:
    """Homogeneous transforms X_WL of all links at positions `q`. Performs no allocation. Errors as
    of `rnea`.

    Args:
        model, ws, q: as of `rnea`.
        poses: output, shape (number of links, 4, 4): rotation R_WL and translation p_WL [m] of each
            link's URDF frame in that of the root link; rows ordered as `model.link_names`;
            overwritten and returned.
    """
    try:
        if not forward_kinematics_kernel(model.bodies, model.links, ws.memory, q, poses):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, poses=poses) from fault
    return poses


def jacobian(
    model: RobotModel, ws: Workspace, q: FloatArray, link: str, J: FloatArray
) -> FloatArray:
    """The Jacobian of a link: its velocity is J v. Performs no allocation.

    Torques J^T F hold a force F = (force; moment) that the link exerts on the world.

    Args:
        model, ws, q: as of `rnea`.
        link: any link of the robot.
        J: output, shape (6, nv): linear velocity of the link frame's origin, then angular velocity,
            both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; else as of `rnea`.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        if not jacobian_kernel(*rows, link_index(model, link), q, J):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, J=J) from fault
    return J


def link_acceleration(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    link: str,
    acceleration: FloatArray,
) -> FloatArray:
    """Acceleration of a link, J a + dJ/dt v. Performs no allocation.

    Args:
        model, ws, q, link: as of `jacobian`.
        v, a: as of `rnea`.
        acceleration: output, shape (6,): of the link frame's origin [m/s^2], without gravity, then
            angular [rad/s^2], both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; else as of `rnea`.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        if not _link_acceleration(*rows, link_index(model, link), q, v, a, acceleration):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v, a=a, acceleration=acceleration) from fault
    return acceleration


def world_to_link_force(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    link: str,
    world_force: FloatArray,
    link_force: FloatArray,
) -> FloatArray:
    """A force given in the world, as a row of `external_forces`. Performs no allocation.

    Args:
        model, ws, q, link: as of `jacobian`.
        world_force: force [N], then moment about the world's origin [Nm], both expressed in the
            root link's frame W, shape (6,). A force f at point p has the moment p x f.
        link_force: output, shape (6,): force, then moment about the link frame's origin, both
            expressed in the link's URDF frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; else as of `rnea`.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        if not _world_to_link_force(*rows, link_index(model, link), q, world_force, link_force):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "world_force": world_force, "link_force": link_force}
        raise argument_error(model, ws, **arrays) from fault
    return link_force


@inlined
def pose_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """R_WB and p_WB of all bodies; and R_PB, p_PB."""
    joint.sines_and_cosines(bodies, memory, q)
    body.store_pose(memory, 0, IDENTITY, ORIGIN)
    for i in range(1, bodies.shape[0]):
        R, p = joint.placement(bodies, memory, q, i)
        R_WP, p_WP = body.pose(memory, body.parent(bodies, i))
        body.store_relative_pose(memory, i, R, p)
        body.store_pose(memory, i, multiply(R_WP, R), add(p_WP, rotate(R_WP, p)))


@inlined
def link_pose(links: FloatArray, memory: FloatArray, k: int) -> tuple[Matrix3, Vector3]:
    """R_WL and p_WL of link k, after `pose_pass`."""
    R, p = body.pose(memory, body.link_body(links, k))
    R_BL, p_BL = body.link_placement(links, k)
    return multiply(R, R_BL), add(p, rotate(R, p_BL))


@inlined
def velocity_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray) -> None:
    """The pose of each body in its parent, and its spatial velocity v = X v_P + S dq."""
    start_velocities(bodies, memory, q)
    for i in range(1, bodies.shape[0]):
        find_velocity(bodies, memory, q, v, i)


@inlined
def start_velocities(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """What `find_velocity` needs first: sines and cosines, and a root at rest."""
    joint.sines_and_cosines(bodies, memory, q)
    store_spatial(memory, 0, VELOCITY, ZERO)


@inlined
def find_velocity(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray, i: int
) -> Spatial:
    """Stores the relative pose and the velocity of body i, and returns the latter."""
    R, p = joint.placement(bodies, memory, q, i)
    v_P = spatial_at(memory, body.parent(bodies, i), VELOCITY)
    velocity = spatial_add(motion_to_child(R, p, v_P), joint.joint_velocity(bodies, v, i))
    body.store_relative_pose(memory, i, R, p)
    store_spatial(memory, i, VELOCITY, velocity)
    return velocity


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,:,::1])")
def forward_kinematics_kernel(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    poses: FloatArray,
) -> bool:
    if not fit_position(bodies, memory, q):
        return False
    if poses.shape[0] != links.shape[0] or poses.shape[1] != 4 or poses.shape[2] != 4:
        return False
    pose_pass(bodies, memory, q)
    for k in range(links.shape[0]):
        R, p = link_pose(links, memory, k)
        for row in range(3):
            poses[k, row, 3] = p[row]
            poses[k, 3, row] = 0.0
            for column in range(3):
                poses[k, row, column] = R[3 * row + column]
        poses[k, 3, 3] = 1.0
    return True


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[::1], f8[:,::1])")
def jacobian_kernel(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    link: int,
    q: FloatArray,
    J: FloatArray,
) -> bool:
    nv = body.velocity_count(bodies)
    if not fit_position(bodies, memory, q) or J.shape[0] != 6 or J.shape[1] != nv:
        return False
    pose_pass(bodies, memory, q)
    _, p_L = link_pose(links, memory, link)
    for row in range(6):
        for column in range(J.shape[1]):
            J[row, column] = 0.0
    i = body.link_body(links, link)
    while i != 0:
        R, p = body.pose(memory, i)
        z, S_angular, S_linear = z_axis(R), joint.s_angular(bodies, i), joint.s_linear(bodies, i)
        linear = add(scale(S_angular, cross(z, subtract(p_L, p))), scale(S_linear, z))
        ratio, column = body.ratio(bodies, i), body.velocity_index(bodies, i)
        for k in range(3):
            J[k, column] += ratio * linear[k]
            J[3 + k, column] += ratio * S_angular * z[k]
        i = body.parent(bodies, i)
    return True


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[::1], f8[::1], f8[::1], f8[::1])")
def _link_acceleration(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    link: int,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    acceleration: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, a, a) or acceleration.shape[0] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    pose_pass(bodies, memory, q)
    i = body.link_body(links, link)
    R, _ = body.pose(memory, i)
    _, p = body.link_placement(links, link)
    w, dw, acc = body.motion(memory, i)
    acc = add(acc, add(cross(dw, p), cross(w, cross(w, p))))
    # The recursion starts from a root that accelerates with -g.
    acc = subtract(rotate(R, acc), body.base_acceleration(bodies))
    dw = rotate(R, dw)
    for k in range(3):
        acceleration[k] = acc[k]
        acceleration[3 + k] = dw[k]
    return True


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[::1], f8[::1], f8[::1])")
def _world_to_link_force(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    link: int,
    q: FloatArray,
    world_force: FloatArray,
    link_force: FloatArray,
) -> bool:
    if not fit_position(bodies, memory, q) or world_force.shape[0] != 6 or link_force.shape[0] != 6:
        return False
    pose_pass(bodies, memory, q)
    R, p = link_pose(links, memory, link)
    f_W = (world_force[0], world_force[1], world_force[2])
    n_W = (world_force[3], world_force[4], world_force[5])
    f = rotate_back(R, f_W)
    n = rotate_back(R, subtract(n_W, cross(p, f_W)))
    for k in range(3):
        link_force[k] = f[k]
        link_force[3 + k] = n[k]
    return True
