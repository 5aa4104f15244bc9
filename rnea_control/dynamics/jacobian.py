"""Velocity and acceleration of a link from those of the joints.

    (v; w)  =  J(q) dq        (acc; dw)  =  J ddq + dJ/dt dq

of the origin of link frame L, expressed in the root link's frame W. With z the axis of a joint and
r from a point of it to L's origin, its column is (s_angular z x r + s_linear z; s_angular z).
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics import body_state as state
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    fit_position,
)
from rnea_control.dynamics.forward_kinematics import link_pose, pose_pass
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.vector3 import (
    add,
    cross,
    rotate,
    rotate_back,
    scale,
    subtract,
    z_axis,
)
from rnea_control.model import RobotModel


def jacobian(
    model: RobotModel, ws: Workspace, q: FloatArray, link: str, J: FloatArray
) -> FloatArray:
    """The Jacobian of a link: its velocity is J v. Performs no allocation.

    Torques J^T F hold a force F = (force; moment) that the link exerts on the world.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        link: any link of the robot.
        J: output, shape (6, nv): linear velocity of the link frame's origin, then angular velocity,
            both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        if not _jacobian(*rows, link_index(model, link), q, J):
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
    """Acceleration of a link, J a + dJ/dt v; without `a` what velocities alone give. Performs no
    allocation.

    Args:
        model, ws, q, link: as of `jacobian`.
        v, a: joint velocities and accelerations, shape (nv,).
        acceleration: output, shape (6,): of the link frame's origin [m/s^2], without gravity, then
            angular [rad/s^2], both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
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
    """A force given in the world, as `external_forces` of `rnea` want it. Performs no allocation.

    Args:
        model, ws, q, link: as of `jacobian`.
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
        if not _world_to_link_force(*rows, link_index(model, link), q, world_force, link_force):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "world_force": world_force, "link_force": link_force}
        raise argument_error(model, ws, **arrays) from fault
    return link_force


def link_index(model: RobotModel, link: str) -> int:
    """The row of a link in `model.link_names`.

    Raises:
        ArgumentError: an unknown link.
    """
    if link not in model.link_names:
        raise ArgumentError(f"{model.name!r} has no link {link!r}; {', '.join(model.link_names)}")
    return model.link_names.index(link)


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[::1], f8[:,::1])")
def _jacobian(
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
        R, p = state.pose(memory, i)
        z, s_angular, s_linear = z_axis(R), joint.s_angular(bodies, i), joint.s_linear(bodies, i)
        linear = add(scale(s_angular, cross(z, subtract(p_L, p))), scale(s_linear, z))
        ratio, column = body.ratio(bodies, i), body.velocity_index(bodies, i)
        for k in range(3):
            J[k, column] += ratio * linear[k]
            J[3 + k, column] += ratio * s_angular * z[k]
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
    R, _ = state.pose(memory, i)
    _, p = body.link_placement(links, link)
    w, dw, acc = state.motion(memory, i)
    acc = add(acc, add(cross(dw, p), cross(w, cross(w, p))))
    # the root's upward acceleration is in it for gravity's sake
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
