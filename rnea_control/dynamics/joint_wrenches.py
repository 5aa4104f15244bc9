"""The forces between links, all six components: what bearings and mountings have to carry.

The recursion of `rnea` computes them on its way; the joint torque is only their component along the
axis.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.rnea import (
    add_to_parent,
    fits,
    outward_pass,
    root_force,
    subtract_external_forces,
)
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    matrix_at,
    rotate_back,
    store_vector,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout


@explained(q=("nq",), v=("nv",), a=("nv",), wrenches=("joints", 6), external_forces=("links", 6))
def joint_wrenches(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    wrenches: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """What each joint's parent link exerts on its child link, and the ground on the root. Gravity
    is included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        wrenches: output, shape (1 + number of joints, 6): first the base reaction, on the root link
            in its frame; then for each joint of `model.joint_names` and `model.mimic_joints` the
            force [N], and the moment about the child link frame's origin [Nm], both expressed in
            the child link's URDF frame; overwritten and returned.
        external_forces: as of `rnea`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    forces = ws.no_forces if external_forces is None else external_forces
    arrays = (model.bodies, model.links, model.joint_links, ws.memory)
    return _joint_wrenches(*arrays, q, v, a, forces, wrenches) and wrenches


@inlined
def collect_pass(bodies: FloatArray, memory: FloatArray) -> None:
    """From the tips to the root: what each body's joint carries; the ground carries all."""
    for i in range(bodies.shape[0] - 1, 0, -1):
        f = vector_at(memory, i, ws_layout.FORCE)
        add_to_parent(bodies, memory, i, f, vector_at(memory, i, ws_layout.MOMENT))


@kernel_on_demand(
    "b1(f8[:,::1], f8[:,::1], i8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1])"
)
def _joint_wrenches(
    bodies: FloatArray,
    links: FloatArray,
    joint_links: IntArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    wrenches: FloatArray,
) -> bool:
    if not fits(bodies, memory, q, v, a) or forces.shape[0] not in (0, links.shape[0]):
        return False
    if forces.shape[1] != 6 or wrenches.shape[0] != joint_links.shape[0] or wrenches.shape[1] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    root_force(bodies, memory)
    if forces.shape[0] != 0:
        subtract_external_forces(links, memory, forces, ws_layout.FORCE)
    collect_pass(bodies, memory)
    for k in range(joint_links.shape[0]):
        link = joint_links[k]
        body = int(links[link, layout.LINK_BODY])
        R_BL = matrix_at(links, link, layout.LINK_ROTATION)
        f, n = (
            vector_at(memory, body, ws_layout.FORCE),
            vector_at(memory, body, ws_layout.MOMENT),
        )
        store_vector(wrenches, k, 0, rotate_back(R_BL, f))
        store_vector(wrenches, k, 3, rotate_back(R_BL, n))
    return True
