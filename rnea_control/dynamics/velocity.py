"""Velocities of all bodies: the outward pass that most algorithms begin with."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.joint import joint_velocity, placement
from rnea_control.dynamics.workspace import sines_and_cosines
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.vector3 import (
    add,
    cross,
    rotate_back,
    store_matrix,
    store_vector,
    vector_at,
)
from rnea_control.model import bodies as layout


@inlined
def velocity_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray) -> None:
    """Where each body is in its parent, and its linear and angular velocity."""
    sines_and_cosines(bodies, memory, q)
    store_vector(memory, 0, ws_layout.ANGULAR_VELOCITY, (0.0, 0.0, 0.0))
    store_vector(memory, 0, ws_layout.VELOCITY, (0.0, 0.0, 0.0))
    for i in range(1, bodies.shape[0]):
        parent = int(bodies[i, layout.PARENT])
        R, p = placement(bodies, memory, q, i)
        v_J, w_J = joint_velocity(bodies, v, i)
        w_P = vector_at(memory, parent, ws_layout.ANGULAR_VELOCITY)
        v_P = vector_at(memory, parent, ws_layout.VELOCITY)
        store_matrix(memory, i, ws_layout.ROTATION, R)
        store_vector(memory, i, ws_layout.TRANSLATION, p)
        store_vector(memory, i, ws_layout.ANGULAR_VELOCITY, add(rotate_back(R, w_P), w_J))
        linear = add(rotate_back(R, add(v_P, cross(w_P, p))), v_J)
        store_vector(memory, i, ws_layout.VELOCITY, linear)
