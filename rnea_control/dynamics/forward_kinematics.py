"""Where all links are."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.joint import placement
from rnea_control.dynamics.rnea import fits_position
from rnea_control.dynamics.workspace import Workspace, sines_and_cosines
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Matrix3,
    Vector3,
    add,
    matrix_at,
    multiply,
    rotate,
    store_matrix,
    store_vector,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@explained(q=("nq",), poses=("links", 4, 4))
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
    return _forward_kinematics(model.bodies, model.links, ws.memory, q, poses) and (poses)


@inlined
def pose_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """R_WB and p_WB of all bodies; and R_PB, p_PB."""
    sines_and_cosines(bodies, memory, q)
    store_matrix(memory, 0, ws_layout.POSE_ROTATION, IDENTITY)
    store_vector(memory, 0, ws_layout.POSE_TRANSLATION, (0.0, 0.0, 0.0))
    for i in range(1, bodies.shape[0]):
        R, p = placement(bodies, memory, q, i)
        R_WP, p_WP = body_pose(memory, int(bodies[i, layout.PARENT]))
        store_matrix(memory, i, ws_layout.ROTATION, R)
        store_vector(memory, i, ws_layout.TRANSLATION, p)
        store_matrix(memory, i, ws_layout.POSE_ROTATION, multiply(R_WP, R))
        store_vector(memory, i, ws_layout.POSE_TRANSLATION, add(p_WP, rotate(R_WP, p)))


@inlined
def body_pose(memory: FloatArray, i: int) -> tuple[Matrix3, Vector3]:
    """R_WB and p_WB, from `pose_pass`."""
    R = matrix_at(memory, i, ws_layout.POSE_ROTATION)
    return R, vector_at(memory, i, ws_layout.POSE_TRANSLATION)


@inlined
def link_pose(links: FloatArray, memory: FloatArray, k: int) -> tuple[Matrix3, Vector3]:
    """R_WL and p_WL of link k, from `pose_pass`."""
    R, p = body_pose(memory, int(links[k, layout.LINK_BODY]))
    moved = rotate(R, vector_at(links, k, layout.LINK_TRANSLATION))
    return multiply(R, matrix_at(links, k, layout.LINK_ROTATION)), add(p, moved)


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[:,:,::1])")
def _forward_kinematics(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    poses: FloatArray,
) -> bool:
    if not fits_position(bodies, memory, q):
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
