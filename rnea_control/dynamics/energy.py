"""Energies, and where the mass is.

    T  =  1/2 sum_i ( m v . v + 2 v . (w x mc) + w . I w )  +  1/2 sum_i armature dq^2
    U  =  - sum_i g . ( m p + R mc )

with v and w the linear and angular velocity of body i at the origin of its frame.
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    fit_position,
)
from rnea_control.dynamics.forward_kinematics import pose_pass, velocity_pass
from rnea_control.dynamics.workspace import VELOCITY, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import spatial_at
from rnea_control.kernels.vector3 import (
    ORIGIN,
    Vector3,
    add,
    cross,
    dot,
    rotate,
    scale,
    times_symmetric,
)
from rnea_control.model import RobotModel

# What the kernels return for arguments that do not fit.
_REFUSED = -math.inf


def kinetic_energy(model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray) -> float:
    """Kinetic energy of all bodies and of the actuators' rotors, [J]. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        energy = _kinetic_energy(model.bodies, ws.memory, q, v)
        if energy == _REFUSED:
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v) from fault
    return energy


def potential_energy(model: RobotModel, ws: Workspace, q: FloatArray) -> float:
    """Potential energy of gravity, [J]; zero for masses at the root's origin. Performs no
    allocation. Arguments and errors as of `kinetic_energy`."""
    try:
        energy = _potential_energy(model.bodies, ws.memory, q)
        if energy == _REFUSED:
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q) from fault
    return energy


def center_of_mass(model: RobotModel, ws: Workspace, q: FloatArray, com: FloatArray) -> FloatArray:
    """Center of mass of the whole robot, the root link included. Performs no allocation.

    Args:
        model, ws, q: as of `kinetic_energy`.
        com: output, shape (3,), [m], in the root link's frame; overwritten and returned. NaN for a
            robot without mass.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        if not _center_of_mass(model.bodies, ws.memory, q, com):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, com=com) from fault
    return com


@inlined
def total_first_moment(bodies: FloatArray, memory: FloatArray) -> tuple[float, Vector3]:
    """Mass, and mass times center of mass in W; after `pose_pass`."""
    mass, moment = 0.0, ORIGIN
    for i in range(bodies.shape[0]):
        R, p = body.pose(memory, i)
        mass += body.mass(bodies, i)
        mc = rotate(R, body.first_moment(bodies, i))
        moment = add(moment, add(scale(body.mass(bodies, i), p), mc))
    return mass, moment


@kernel_on_demand("f8(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _kinetic_energy(bodies: FloatArray, memory: FloatArray, q: FloatArray, v: FloatArray) -> float:
    if not fit(bodies, memory, q, v, v, v):
        return _REFUSED
    velocity_pass(bodies, memory, q, v)
    twice = 0.0
    for i in range(1, bodies.shape[0]):
        linear, w = spatial_at(memory, i, VELOCITY)
        twice += body.mass(bodies, i) * dot(linear, linear)
        twice += 2.0 * dot(linear, cross(w, body.first_moment(bodies, i)))
        twice += dot(w, times_symmetric(body.inertia(bodies, i), w))
        twice += body.armature(bodies, i) * joint.joint_rate(bodies, v, i) ** 2
    return 0.5 * twice


@kernel_on_demand("f8(f8[:,::1], f8[:,::1], f8[::1])")
def _potential_energy(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> float:
    if not fit_position(bodies, memory, q):
        return _REFUSED
    pose_pass(bodies, memory, q)
    _, moment = total_first_moment(bodies, memory)
    return dot(body.base_acceleration(bodies), moment)


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def _center_of_mass(bodies: FloatArray, memory: FloatArray, q: FloatArray, com: FloatArray) -> bool:
    if not fit_position(bodies, memory, q) or com.shape[0] != 3:
        return False
    pose_pass(bodies, memory, q)
    mass, moment = total_first_moment(bodies, memory)
    for k in range(3):
        com[k] = moment[k] / mass
    return True
