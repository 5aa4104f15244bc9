"""Forces that the world exerts on links.

Each is a force and a moment about the link frame's origin, expressed in the link's URDF frame.
`world_to_link_force` converts a force that is given in the world.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit_position,
    link_index,
)
from rnea_control.dynamics.body import link_body, link_placement
from rnea_control.dynamics.forward_kinematics import link_pose, pose_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    add_to_spatial,
    force_to_parent,
    spatial_at,
    spatial_scale,
)
from rnea_control.kernels.vector3 import cross, rotate_back, subtract
from rnea_control.model import RobotModel


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


@inlined
def forces_fit(links: FloatArray, forces: FloatArray) -> bool:
    """Whether there are forces for every link, or for none."""
    return forces.shape[0] in (0, links.shape[0]) and forces.shape[1] == 6


@inlined
def subtract_external_forces(
    links: FloatArray, memory: FloatArray, forces: FloatArray, column: int
) -> None:
    """Subtracts what the world exerts on each body from what its joint must exert.

    Args:
        links: of the model.
        memory: of the workspace.
        forces: a row for each link, or no rows for no forces.
        column: where in `memory` the six numbers of each body stand.
    """
    for k in range(forces.shape[0]):
        R, p = link_placement(links, k)
        force = force_to_parent(R, p, spatial_at(forces, k, 0))
        add_to_spatial(memory, link_body(links, k), column, spatial_scale(-1.0, force))


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
