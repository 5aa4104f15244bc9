r"""Kinetic and potential energy, center of mass, and generalized momentum.

    T  =  1/2 sum_i ( m v . v + 2 v . (w x mc) + w . I w )  +  1/2 sum_i armature dq^2
    U  =  - sum_i g . ( m p + R mc )

with v and w the linear and angular velocity of body i at the origin of its frame.

The momentum M v and its rate:

.. math::

    p = M v, \quad \dot p = \tau + C^T v - g

With v the spatial velocity of a body, and h the momentum of it and of all bodies beyond it,

    p        =  S . h + armature v
    C^T v    =  (v x S) . h  =  dT/dq

The second line is the derivative of the first, less the joint's torque S . dh/dt: C^T v comes only
from the motion of the axes with their bodies. So neither M nor C is needed; one recursion outward
and one inward are enough [De Luca et al. 2006, eq. 9; Featherstone 2008, sec. 2.10].
"""

from __future__ import annotations

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body, joint, kinematics
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, fit_position, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel, kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model.bodies import ARMATURE, RATIO
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import vectors
from rnea_control.spatial.vectors import ORIGIN, add, cross, dot, rotate_back, scale


def kinetic_energy(model: RobotModel, ws: Workspace, q: Vector, v: Vector) -> float:
    """Kinetic energy of all bodies and of the actuators' rotors, [J]. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        energy: float = _kinetic_energy(model.bodies, ws.memory, q, v)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return energy


def potential_energy(model: RobotModel, ws: Workspace, q: Vector) -> float:
    """Potential energy of gravity, [J]; zero for masses at the root's origin. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        energy: float = _center_of_mass(model.bodies, ws.memory, q, ws.com)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return energy


def center_of_mass(model: RobotModel, ws: Workspace, q: Vector, com: Vector) -> Vector:
    """Center of mass of the whole robot, the root link included. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        com: output, shape (3,), [m], in the root link's frame; overwritten and returned. NaN for a
            robot without mass.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _center_of_mass(model.bodies, ws.memory, q, com)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return com


def generalized_momentum(
    model: RobotModel, ws: Workspace, q: Vector, v: Vector, p: Vector, rate: Vector
) -> Vector:
    """Momentum M v, and its rate C^T v - g without actuator torque and friction. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        p: output, shape (nv,), [Nm s] or [N s]; overwritten and returned.
        rate: output, shape (nv,), [Nm] or [N]; overwritten.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _generalized_momentum(model.bodies, ws.memory, q, v, p, rate)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return p


@inlined
def momentum_passes(
    bodies: Matrix,
    memory: Matrix,
    q: Vector,
    v: Vector,
    gravity_share: float,
    p: Vector,
    rate: Vector,
) -> None:
    """Fills `p` with M v, and `rate` with C^T v less `gravity_share` times g."""
    kinematics.start_velocities(bodies, memory, q)
    start = scale(gravity_share, body.base_acceleration(bodies))
    spatial.store_vector(memory, 0, body.ACCELERATION, start)
    for i in range(1, bodies.shape[0]):
        velocity = kinematics.find_velocity(bodies, memory, q, v, i)
        momentum = spatial.times_motion(spatial.rigid_body(body.inertia(bodies, i)), velocity)
        spatial.store(memory, i, body.MOMENTUM, momentum)
        R, _ = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        acc = rotate_back(R, spatial.vector_at(memory, body.parent(bodies, i), body.ACCELERATION))
        spatial.store_vector(memory, i, body.ACCELERATION, acc)
        m, mc, _ = body.inertia(bodies, i)
        spatial.store(memory, i, body.FORCE, (scale(m, acc), cross(mc, acc)))
    p[:] = 0.0
    rate[:] = 0.0
    for i in range(bodies.shape[0] - 1, 0, -1):
        R, translation = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        momentum, weight = spatial.at(memory, i, body.MOMENTUM), spatial.at(memory, i, body.FORCE)
        change = joint.velocity_product(bodies, i, spatial.at(memory, i, body.VELOCITY), 1.0)
        along = joint.along_axis(bodies, i, momentum)
        along += bodies[i, ARMATURE] * joint.joint_rate(bodies, v, i)
        torque = spatial.dot(momentum, change) - joint.along_axis(bodies, i, weight)
        j = body.velocity_index(bodies, i)
        p[j] += bodies[i, RATIO] * along
        rate[j] += bodies[i, RATIO] * torque
        P = body.parent(bodies, i)
        if P != 0:
            spatial.add_to(memory, P, body.MOMENTUM, spatial.to_parent(R, translation, momentum))
            spatial.add_to(memory, P, body.FORCE, spatial.to_parent(R, translation, weight))


@kernel_on_demand()
def _kinetic_energy(bodies: Matrix, memory: Matrix, q: Vector, v: Vector) -> float:
    require(fit(bodies, memory, q, v, v, v))
    kinematics.velocity_pass(bodies, memory, q, v)
    twice = 0.0
    for i in range(1, bodies.shape[0]):
        linear, w = spatial.at(memory, i, body.VELOCITY)
        m, mc, inertia = body.inertia(bodies, i)
        twice += m * dot(linear, linear)
        twice += 2.0 * dot(linear, cross(w, mc))
        twice += dot(w, vectors.times_symmetric(inertia, w))
        twice += bodies[i, ARMATURE] * joint.joint_rate(bodies, v, i) ** 2
    return 0.5 * twice


@kernel_on_demand()
def _center_of_mass(bodies: Matrix, memory: Matrix, q: Vector, com: Vector) -> float:
    """Fills `com`, and returns the potential energy."""
    require(fit_position(bodies, memory, q) and com.shape[0] == 3)
    kinematics.pose_pass(bodies, memory, q)
    mass, moment = 0.0, ORIGIN
    for i in range(bodies.shape[0]):
        R, p = spatial.pose_at(memory, i, body.POSE)
        m, mc, _ = body.inertia(bodies, i)
        mass += m
        moment = add(moment, add(scale(m, p), vectors.rotate(R, mc)))
    com[:] = (moment[0] / mass, moment[1] / mass, moment[2] / mass)
    return dot(body.base_acceleration(bodies), moment)


@kernel()
def _generalized_momentum(
    bodies: Matrix, memory: Matrix, q: Vector, v: Vector, p: Vector, rate: Vector
) -> None:
    require(fit(bodies, memory, q, v, p, rate))
    momentum_passes(bodies, memory, q, v, 1.0, p, rate)
