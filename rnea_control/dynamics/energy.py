r"""Energies, and where the mass is.

.. math::

    T = \tfrac{1}{2} \sum_i \left( m v^2 + 2 v \cdot (\omega \times m c)
        + \omega \cdot I \omega \right) + \tfrac{1}{2} \sum_j I_{m,j} \dot q_j^2, \qquad
    U = -\sum_i g \cdot (m p + R\, m c)

with v and omega of body i at the origin of its frame, and I_m the armatures.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import workspace as ws_layout
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.forward_kinematics import body_pose, pose_pass
from rnea_control.dynamics.joint import joint_rate
from rnea_control.dynamics.rnea import fits, fits_position
from rnea_control.dynamics.velocity import velocity_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Vector3,
    add,
    cross,
    dot,
    rotate,
    scale,
    symmetric_at,
    times_symmetric,
    vector_at,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# What the kernels return for arguments that do not fit.
_REFUSED = -math.inf


@explained(q=("nq",), v=("nv",))
def kinetic_energy(model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray) -> float:
    """Kinetic energy of all bodies and of the drives' rotors, [J]. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    energy = _kinetic_energy(model.bodies, ws.memory, q, v)
    return energy != _REFUSED and energy


@explained(q=("nq",))
def potential_energy(model: RobotModel, ws: Workspace, q: FloatArray) -> float:
    """Potential energy of gravity, [J]; zero for masses at the root's origin. Performs no
    allocation. Arguments and errors as of `kinetic_energy`."""
    energy = _potential_energy(model.bodies, ws.memory, q)
    return energy != _REFUSED and energy


@explained(q=("nq",), com=(3,))
def center_of_mass(model: RobotModel, ws: Workspace, q: FloatArray, com: FloatArray) -> FloatArray:
    """Centre of mass of the whole robot, the root link included. Performs no allocation.

    Args:
        model, ws, q: as of `kinetic_energy`.
        com: output, shape (3,), [m], in the root link's frame; overwritten and returned. NaN for a
            robot without mass.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return _center_of_mass(model.bodies, ws.memory, q, com) and com


@inlined
def first_moment(bodies: FloatArray, memory: FloatArray) -> tuple[float, Vector3]:
    """Mass, and mass times centre of mass in W; needs `pose_pass`."""
    mass, moment = 0.0, (0.0, 0.0, 0.0)
    for i in range(bodies.shape[0]):
        R, p = body_pose(memory, i)
        m = bodies[i, layout.INERTIA]
        mass += m
        mc = rotate(R, vector_at(bodies, i, layout.INERTIA + 1))
        moment = add(moment, add(scale(m, p), mc))
    return mass, moment


@kernel_on_demand("f8(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _kinetic_energy(bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray) -> float:
    if not fits(bodies, memory, q, v, v):
        return _REFUSED
    velocity_pass(bodies, memory, q, v)
    twice = 0.0
    for i in range(1, bodies.shape[0]):
        w = vector_at(memory, i, ws_layout.ANGULAR_VELOCITY)
        linear = vector_at(memory, i, ws_layout.VELOCITY)
        mc = vector_at(bodies, i, layout.INERTIA + 1)
        inertia = symmetric_at(bodies, i, layout.INERTIA + 4)
        twice += bodies[i, layout.INERTIA] * dot(linear, linear)
        twice += 2.0 * dot(linear, cross(w, mc)) + dot(w, times_symmetric(inertia, w))
        twice += bodies[i, layout.ARMATURE] * joint_rate(bodies, v, i) ** 2
    return 0.5 * twice


@kernel_on_demand("f8(f8[:,::1], f8[:,::1], f8[::1])")
def _potential_energy(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> float:
    if not fits_position(bodies, memory, q):
        return _REFUSED
    pose_pass(bodies, memory, q)
    _, moment = first_moment(bodies, memory)
    return dot(vector_at(bodies, 0, layout.BASE_ACCELERATION), moment)


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _center_of_mass(bodies: FloatArray, memory: FloatArray, q: FloatArray, com: FloatArray) -> bool:
    if not fits_position(bodies, memory, q) or com.shape[0] != 3:
        return False
    pose_pass(bodies, memory, q)
    mass, moment = first_moment(bodies, memory)
    for k in range(3):
        com[k] = moment[k] / mass
    return True
