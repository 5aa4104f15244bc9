r"""Energies, where the mass is, and generalized momentum.

    T  =  1/2 sum_i ( m v . v + 2 v . (w x mc) + w . I w )  +  1/2 sum_i armature dq^2
    U  =  - sum_i g . ( m p + R mc )

with v and w the linear and angular velocity of body i at the origin of its frame.

The momentum M v, and how it changes without actuator torque:

.. math::

    p = M v, \quad \dot p = \tau + C^T v - g

With v the spatial velocity of a body, and h the momentum of it and of all bodies beyond it,

    p        =  S . h + armature v
    C^T v    =  (v x S) . h  =  dT/dq

The second line is the derivative of the first, less the joint's torque S . dh/dt: axes that move
along with their bodies are all that C^T v comes from. So neither M nor C is needed, and one
recursion outward and one inward give all [De Luca et al. 2006, eq. 9; Featherstone 2008,
sec. 2.10].
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import articulated_inertia as articulated
from rnea_control.dynamics import body, joint
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    fit_position,
)
from rnea_control.dynamics.kinematics import (
    find_velocity,
    pose_pass,
    start_velocities,
    velocity_pass,
)
from rnea_control.dynamics.workspace import ACCELERATION, MOMENTUM, VELOCITY, Workspace
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.spatial import (
    ORIGIN,
    Vector3,
    add,
    add_to_spatial,
    cross,
    dot,
    force_to_parent,
    rotate,
    rotate_back,
    scale,
    spatial_at,
    spatial_dot,
    store_spatial,
    store_vector,
    times_symmetric,
    vector_at,
)
from rnea_control.model import RobotModel

# What the kernels return for arguments that do not fit.
_REFUSED = -math.inf


def kinetic_energy(model: RobotModel, ws: Workspace, q: FloatArray, v: FloatArray) -> float:
    """Kinetic energy of all bodies and of the actuators' rotors, [J]. Performs no allocation.
    Errors as of `rnea`.

    Args:
        model, ws, q, v: as of `rnea`.
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
    """Center of mass of the whole robot, the root link included. Performs no allocation. Errors as
    of `rnea`.

    Args:
        model, ws, q: as of `kinetic_energy`.
        com: output, shape (3,), [m], in the root link's frame; overwritten and returned. NaN for a
            robot without mass.
    """
    try:
        if not _center_of_mass(model.bodies, ws.memory, q, com):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, com=com) from fault
    return com


def generalized_momentum(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    p: FloatArray,
    rate: FloatArray,
) -> FloatArray:
    """The momentum M v, and its rate C^T v - g without actuator torque and friction. Performs no
    allocation. Errors as of `rnea`.

    Args:
        model, ws, q, v: as of `rnea`.
        p: output, shape (nv,), [Nm s] or [N s]; overwritten and returned.
        rate: output, shape (nv,), [Nm] or [N]; overwritten.
    """
    try:
        if not _generalized_momentum(model.bodies, ws.memory, q, v, p, rate):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v, p=p, rate=rate) from fault
    return p


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


@inlined
def momentum_passes(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    gravity_share: float,
    p: FloatArray,
    rate: FloatArray,
) -> None:
    """Fills `p` with M v, and `rate` with C^T v less `gravity_share` times g."""
    start_velocities(bodies, memory, q)
    store_vector(memory, 0, ACCELERATION, scale(gravity_share, body.base_acceleration(bodies)))
    for i in range(1, bodies.shape[0]):
        velocity = find_velocity(bodies, memory, q, v, i)
        momentum = articulated.times_motion(articulated.rigid_body(bodies, i), velocity)
        store_spatial(memory, i, MOMENTUM, momentum)
        R, _ = body.relative_pose(memory, i)
        acc = rotate_back(R, vector_at(memory, body.parent(bodies, i), ACCELERATION))
        store_vector(memory, i, ACCELERATION, acc)
        weight = scale(body.mass(bodies, i), acc), cross(body.first_moment(bodies, i), acc)
        body.store_force(memory, i, weight)
    for j in range(p.shape[0]):
        p[j] = rate[j] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, translation = body.relative_pose(memory, i)
        momentum, weight = spatial_at(memory, i, MOMENTUM), body.force(memory, i)
        change = joint.axis_change(bodies, i, spatial_at(memory, i, VELOCITY))
        along = joint.along_axis(bodies, i, momentum)
        along += body.armature(bodies, i) * joint.joint_rate(bodies, v, i)
        torque = spatial_dot(momentum, change) - joint.along_axis(bodies, i, weight)
        j = body.velocity_index(bodies, i)
        p[j] += body.ratio(bodies, i) * along
        rate[j] += body.ratio(bodies, i) * torque
        P = body.parent(bodies, i)
        if P != 0:
            add_to_spatial(memory, P, MOMENTUM, force_to_parent(R, translation, momentum))
            body.add_force(memory, P, force_to_parent(R, translation, weight))


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


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _generalized_momentum(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    p: FloatArray,
    rate: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, p, rate):
        return False
    momentum_passes(bodies, memory, q, v, 1.0, p, rate)
    return True
