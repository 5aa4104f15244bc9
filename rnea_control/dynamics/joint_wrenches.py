"""The forces between links, all six components: the loads of bearings and mountings.

The recursion of `rnea` computes them on its way; the joint torque is only their component along the
axis.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import body
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    forces_fit,
)
from rnea_control.dynamics.body import subtract_external_forces
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import FORCE, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import force_to_parent, rotate_back, store_spatial
from rnea_control.model import RobotModel


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
    is included. Performs no allocation. Errors as of `rnea`.

    Args:
        model, ws, q, v, a: as of `rnea`.
        wrenches: output, shape (1 + number of joints, 6): first what the ground exerts on the root
            link, in its frame; then for each joint of `model.joint_names` and `model.mimic_joints`
            the force [N], and the moment about the child link frame's origin [Nm], both expressed
            in the child link's URDF frame; overwritten and returned.
        external_forces: as of `rnea`.
    """
    try:
        forces = ws.no_forces if external_forces is None else external_forces
        rows = (model.bodies, model.links, model.joint_links, ws.memory)
        if not _joint_wrenches(*rows, q, v, a, forces, wrenches):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "v": v, "a": a, "wrenches": wrenches, "external_forces": external_forces}
        raise argument_error(model, ws, **arrays) from fault
    return wrenches


@inlined
def collect_pass(bodies: FloatArray, memory: FloatArray) -> None:
    """Equations (7) and (8) of `rnea`, the root included."""
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, p = body.relative_pose(memory, i)
        force = force_to_parent(R, p, body.force(memory, i))
        body.add_force(memory, body.parent(bodies, i), force)


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
    if not fit(bodies, memory, q, v, a, a) or not forces_fit(links, forces):
        return False
    if wrenches.shape[0] != joint_links.shape[0] or wrenches.shape[1] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    subtract_external_forces(links, memory, forces, FORCE)
    collect_pass(bodies, memory)
    for k in range(joint_links.shape[0]):
        link = joint_links[k]
        R, _ = body.link_placement(links, link)
        f, n = body.force(memory, body.link_body(links, link))
        store_spatial(wrenches, k, 0, (rotate_back(R, f), rotate_back(R, n)))
    return True
