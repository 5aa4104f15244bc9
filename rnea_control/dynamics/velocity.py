"""Velocities of all bodies: the outward pass that several algorithms begin with."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.workspace import VELOCITY
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.spatial import (
    ZERO,
    Spatial,
    motion_to_child,
    spatial_add,
    spatial_at,
    store_spatial,
)


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
