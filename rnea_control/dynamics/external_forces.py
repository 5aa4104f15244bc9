"""Forces that the world exerts on links.

Each is a force and a moment about the link frame's origin, expressed in the link's URDF frame.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.body import link_body, link_placement
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.spatial import (
    add_to_spatial,
    force_to_parent,
    spatial_at,
    spatial_scale,
)


@inlined
def forces_fit(links: FloatArray, forces: FloatArray) -> bool:
    """Whether there are forces for every link, or for none."""
    return forces.shape[0] in (0, links.shape[0]) and forces.shape[1] == 6


@inlined
def subtract_external_forces(
    links: FloatArray, memory: FloatArray, forces: FloatArray, column: int
) -> None:
    """Takes what the world exerts on a body off what its joint must exert.

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
