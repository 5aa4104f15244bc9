r"""Gravity torques: the recursion of `rnea` without its velocity and acceleration terms.

.. math::

    a_i = R^T a_P, \quad f_i = m a_i, \quad n_i = m c \times a_i

outward from a root that accelerates with -g, then the inward pass of `rnea`.
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import argument_error
from rnea_control.dynamics.joint import placement
from rnea_control.dynamics.rnea import fits, inward_pass
from rnea_control.dynamics.workspace import Workspace, sines_and_cosines
from rnea_control.kernels.kernel import inlined, kernel
from rnea_control.kernels.vector3 import (
    cross,
    rotate_back,
    scale,
    store_matrix,
    store_vector,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout


def gravity(model: RobotModel, ws: Workspace, q: FloatArray, tau: FloatArray) -> FloatArray:
    """Torques that hold the robot still at `q` against gravity, g(q).

    Equal to `rnea` with zero velocity and acceleration [Featherstone 2008, sec. 5.3]. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; `tau` is
            then untouched.
    """
    try:
        if _gravity(model.bodies, ws.memory, q, tau):
            return tau
    except (TypeError, AttributeError) as error:
        raise _explain(model, ws, q, tau) from error
    raise _explain(model, ws, q, tau)


@inlined
def gravity_outward_pass(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> None:
    """From the root to the tips: the force and moment that carry each body's weight."""
    sines_and_cosines(bodies, memory, q)
    store_vector(memory, 0, ws_layout.ACCELERATION, vector_at(bodies, 0, layout.BASE_ACCELERATION))
    for i in range(1, bodies.shape[0]):
        R, p = placement(bodies, memory, q, i)
        parent = int(bodies[i, layout.PARENT])
        acc = rotate_back(R, vector_at(memory, parent, ws_layout.ACCELERATION))
        store_matrix(memory, i, ws_layout.ROTATION, R)
        store_vector(memory, i, ws_layout.TRANSLATION, p)
        store_vector(memory, i, ws_layout.ACCELERATION, acc)
        store_vector(memory, i, ws_layout.FORCE, scale(bodies[i, layout.INERTIA], acc))
        mc = vector_at(bodies, i, layout.INERTIA + 1)
        store_vector(memory, i, ws_layout.MOMENT, cross(mc, acc))


@kernel("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _gravity(bodies: FloatArray, memory: FloatArray, q: FloatArray, tau: FloatArray) -> bool:
    if not fits(bodies, memory, q, tau, tau):
        return False
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, tau)
    return True


def _explain(model: RobotModel, ws: Workspace, q: FloatArray, tau: FloatArray) -> Exception:
    return argument_error(model, ws, q=(q, ("nq",)), tau=(tau, ("nv",)))
