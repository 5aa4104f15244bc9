"""Where all links are; and the outward passes that several algorithms begin with: poses and
velocities of all bodies."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, WrongSize, argument_error, fit_position
from rnea_control.dynamics.workspace import VELOCITY, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    ZERO,
    Spatial,
    motion_to_child,
    spatial_add,
    spatial_at,
    store_spatial,
)
from rnea_control.kernels.vector3 import IDENTITY, ORIGIN, Matrix3, Vector3, add, multiply, rotate
from rnea_control.model import RobotModel


def forward_kinematics(
    model: RobotModel, ws: Workspace, q: FloatArray, poses: FloatArray
) -> FloatArray:
    """Homogeneous transforms X_WL of all links at positions `q`. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        poses: output, shape (number of links, 4, 4): rotation R_WL and translation p_WL [m] of each
            link's URDF frame in that of the root link; rows ordered as `model.link_names`;
            overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        if not _forward_kinematics(model.bodies, model.links, ws.memory, q, poses):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, poses=poses) from fault
    return poses


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


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,:,::1])")
def _forward_kinematics(
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
    fill_poses(bodies, links, memory, q, poses)
    return True


@inlined
def fill_poses(
    bodies: FloatArray, links: FloatArray, memory: FloatArray, q: FloatArray, poses: FloatArray
) -> None:
    """Fills the transforms of all links."""
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
