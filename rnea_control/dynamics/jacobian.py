"""The Jacobian of a link: its velocity is J(q) v.

With z the axis of a joint and r from a point of it to the origin of the link's frame, its column is
(s_angular z x r + s_linear z; s_angular z), expressed in the root link's frame W.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit_position,
    link_index,
)
from rnea_control.dynamics.forward_kinematics import link_pose, pose_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.vector3 import add, cross, scale, subtract, z_axis
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
    fill_jacobian(bodies, links, memory, link, q, J)
    return True


@inlined
def fill_jacobian(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    link: int,
    q: FloatArray,
    J: FloatArray,
) -> None:
    """Fills J, column by column on the way from the link to the root."""
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
