"""Placement, velocity and acceleration across a joint, and steps between joint positions.

In dynamics/, only this file knows the joint types. The other files see rows of one degree of
freedom each (model/bodies.py), whose axis is the body's z. The motion subspace is
S = (s_linear z; s_angular z), that is (0; z) for a revolute joint, (z; 0) for a prismatic joint,
and (pitch z; z) for a screw.

A spherical or floating joint is three or six rows. Its first row has the pose and the velocity of
the whole joint; the other rows are held and add only their acceleration.

Most joints add a step to their position. A spherical joint multiplies its quaternion by that of the
step, a rotation vector. A floating joint moves for 1 s with the step as constant velocity in the
body's own frame: spatial/rotation.py has the equations.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body
from rnea_control.dynamics.workspace import Workspace, argument_error, require
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.bodies import AXIS, FLOATING, HELD, RATIO, S_ANGULAR, S_LINEAR, SPHERICAL
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import rotation, vectors
from rnea_control.spatial.algebra import Spatial
from rnea_control.spatial.rotation import LARGEST_ANGLE, Quaternion, rotation_of_quaternion, sincos
from rnea_control.spatial.vectors import Matrix3, Vector3, add, cross, rotate, subtract


def integrate(model: RobotModel, ws: Workspace, q: Vector, step: Vector, result: Vector) -> Vector:
    """Adds a step to a position: for a velocity v and a short time dt, `step` is v dt. Performs no
    allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        step: displacement, shape (nv,), in the units of v times 1 s.
        result: output, shape (nq,), with quaternions of length 1; overwritten and returned. May be
            `q`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _integrate(model.bodies, q, step, result)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return result


def difference(model: RobotModel, ws: Workspace, q0: Vector, q1: Vector, step: Vector) -> Vector:
    """Shortest step from `q0` to `q1`: the inverse of `integrate`. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q0, q1: joint positions, shape (nq,). Continuous joints go the shorter way round.
        step: output, shape (nv,), in the units of v times 1 s; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _difference(model.bodies, q0, q1, step)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return step


@inlined
def joint_rate(bodies: Matrix, v: Vector, i: int) -> float:
    """Velocity or acceleration of row i's joint: the joint's entry of `v` times the row's ratio."""
    return bodies[i, RATIO] * v[body.velocity_index(bodies, i)]


@inlined
def joint_position(bodies: Matrix, q: Vector, i: int) -> float:
    """Position along or about the axis of row i [rad] or [m]"""
    return bodies[i, RATIO] * q[int(bodies[i, layout.Q])] + bodies[i, layout.OFFSET]


@inlined
def along_axis(bodies: Matrix, i: int, force: Spatial) -> float:
    """S . F: component of a spatial force along the joint of row i, in B."""
    f, n = force
    return bodies[i, S_ANGULAR] * n[2] + bodies[i, S_LINEAR] * f[2]


@inlined
def sines_and_cosines(bodies: Matrix, memory: Matrix, q: Vector) -> None:
    """Fills the rows of joint angles: entry i is for the body of row i + 1, angle 0 if the body
    does not turn about its axis."""
    n = bodies.shape[0] - 1
    in_range = True
    for i in range(n):
        angle = 0.0
        if bodies[i + 1, layout.MOTION] == AXIS and bodies[i + 1, S_ANGULAR] != 0.0:
            angle = joint_position(bodies, q, i + 1)
        in_range = in_range and abs(angle) <= LARGEST_ANGLE
        memory[n + 1 + i // body.LANES, body.ANGLE + i % body.LANES] = angle
    for row in range(n + 1, memory.shape[0]):
        if in_range:
            sincos(memory, row, body.ANGLE, body.SINE, body.COSINE, body.LANES)
        else:
            for i in range(body.LANES):
                memory[row, body.SINE + i] = math.sin(memory[row, body.ANGLE + i])
                memory[row, body.COSINE + i] = math.cos(memory[row, body.ANGLE + i])


@inlined
def placement(bodies: Matrix, memory: Matrix, q: Vector, i: int) -> tuple[Matrix3, Vector3]:
    """R_PB and p_PB of row i at positions q; needs `sines_and_cosines`."""
    R, p = spatial.pose_at(bodies, i, layout.ROTATION)
    motion = bodies[i, layout.MOTION]
    if motion == AXIS:
        row, lane = bodies.shape[0] + (i - 1) // body.LANES, (i - 1) % body.LANES
        sine, cosine = memory[row, body.SINE + lane], memory[row, body.COSINE + lane]
        R = vectors.turned_about_z(R, sine, cosine)
        if bodies[i, S_LINEAR] != 0.0:
            distance = bodies[i, S_LINEAR] * joint_position(bodies, q, i)
            p = add(p, vectors.scale(distance, vectors.z_axis(R)))
    elif motion != HELD:
        first = int(bodies[i, layout.Q])
        if motion == FLOATING:
            p = add(p, rotate(R, _vector(q, first)))
            first += 3
        R = _axes_renamed(vectors.multiply(R, rotation_of_quaternion(_quaternion(q, first))))
    return R, p


@inlined
def joint_velocity(bodies: Matrix, v: Vector, i: int) -> Spatial:
    """v_J = S v: velocity of row i relative to its parent, in B."""
    motion = bodies[i, layout.MOTION]
    if motion == AXIS:
        rate = joint_rate(bodies, v, i)
        linear = (0.0, 0.0, bodies[i, S_LINEAR] * rate)
        angular = (0.0, 0.0, bodies[i, S_ANGULAR] * rate)
    elif motion == HELD:
        linear = angular = (0.0, 0.0, 0.0)
    else:
        first = int(bodies[i, layout.V])
        linear = (0.0, 0.0, 0.0)
        if motion == FLOATING:
            linear = (v[first + 1], v[first + 2], v[first])
            first += 3
        angular = (v[first + 1], v[first + 2], v[first])
    return linear, angular


@inlined
def add_angular_velocity(bodies: Matrix, v: Vector, i: int, w: Vector3) -> Vector3:
    """w plus the angular part of `joint_velocity`."""
    if bodies[i, layout.MOTION] == AXIS:
        return (w[0], w[1], w[2] + bodies[i, S_ANGULAR] * joint_rate(bodies, v, i))
    _, w_J = joint_velocity(bodies, v, i)
    return add(w, w_J)


@inlined
def add_acceleration(
    bodies: Matrix, v: Vector, a: Vector, i: int, w: Vector3, dw: Vector3, acc: Vector3
) -> tuple[Vector3, Vector3]:
    """Adds row i's share to the angular acceleration dw and to the acceleration acc of B's origin.

    Returns dw + s_angular (z a + w x z v)  and  acc + s_linear (z a + 2 w x z v), where w is the
    angular velocity of B.
    """
    rate, change = joint_rate(bodies, v, i), joint_rate(bodies, a, i)
    S_angular, S_linear = bodies[i, S_ANGULAR], bodies[i, S_LINEAR]
    if bodies[i, layout.MOTION] == FLOATING:  # the linear velocity turns with the body
        v_J, w_J = joint_velocity(bodies, v, i)
        acc = subtract(acc, cross(w_J, v_J))
    if S_angular != 0.0:
        z_v = S_angular * rate
        dw = (dw[0] + w[1] * z_v, dw[1] - w[0] * z_v, dw[2] + S_angular * change)
    if S_linear != 0.0:
        coriolis = 2.0 * S_linear * rate
        acc = (acc[0] + w[1] * coriolis, acc[1] - w[0] * coriolis, acc[2] + S_linear * change)
    return dw, acc


@inlined
def velocity_product(bodies: Matrix, i: int, velocity: Spatial, rate: float) -> Spatial:
    """velocity x S rate: derivative of S rate for constant `rate`, as the axis moves with the body
    of row i."""
    linear, w = velocity
    angular_J, linear_J = bodies[i, S_ANGULAR] * rate, bodies[i, S_LINEAR] * rate
    x = w[1] * linear_J + linear[1] * angular_J
    y = -w[0] * linear_J - linear[0] * angular_J
    return (x, y, 0.0), (w[1] * angular_J, -w[0] * angular_J, 0.0)


@inlined
def add_along_axis(bodies: Matrix, i: int, motion: Spatial, rate: float) -> Spatial:
    """motion + S rate"""
    linear, angular = motion
    linear = (linear[0], linear[1], linear[2] + bodies[i, S_LINEAR] * rate)
    return linear, (angular[0], angular[1], angular[2] + bodies[i, S_ANGULAR] * rate)


@inlined
def _vector(x: Vector, i: int) -> Vector3:
    return (x[i], x[i + 1], x[i + 2])


@inlined
def _quaternion(q: Vector, i: int) -> Quaternion:
    return (q[i], q[i + 1], q[i + 2], q[i + 3])


@inlined
def _axes_renamed(R: Matrix3) -> Matrix3:
    """R with its columns x, y, z in the order y, z, x: the first row's z is the child's x."""
    return (R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6])


@kernel_on_demand()
def _integrate(bodies: Matrix, q: Vector, step: Vector, result: Vector) -> None:
    nq, nv = body.position_count(bodies), body.velocity_count(bodies)
    require(q.shape[0] == result.shape[0] == nq and step.shape[0] == nv)
    for i in range(1, bodies.shape[0]):
        motion = bodies[i, layout.MOTION]
        at, rate = int(bodies[i, layout.Q]), body.velocity_index(bodies, i)
        if motion == AXIS and bodies[i, layout.POSITION] != layout.FOLLOWER:
            result[at] = q[at] + step[rate]
        elif motion in (SPHERICAL, FLOATING):
            quaternion, angular = (at + 3, rate + 3) if motion == FLOATING else (at, rate)
            e, w = rotation.normalized(_quaternion(q, quaternion)), _vector(step, angular)
            if motion == FLOATING:
                way = rotation.screw_translation(w, _vector(step, rate))
                moved = rotate(rotation_of_quaternion(e), way)
                result[at : at + 3] = add(_vector(q, at), moved)
            e = rotation.normalized(rotation.product(e, rotation.quaternion_of_vector(w)))
            result[quaternion : quaternion + 4] = e


@kernel_on_demand()
def _difference(bodies: Matrix, q0: Vector, q1: Vector, step: Vector) -> None:
    nq, nv = body.position_count(bodies), body.velocity_count(bodies)
    require(q0.shape[0] == q1.shape[0] == nq and step.shape[0] == nv)
    for i in range(1, bodies.shape[0]):
        motion, position = bodies[i, layout.MOTION], bodies[i, layout.POSITION]
        at, rate = int(bodies[i, layout.Q]), body.velocity_index(bodies, i)
        if motion == AXIS and position != layout.FOLLOWER:
            step[rate] = q1[at] - q0[at]
            if position == layout.CIRCLE:
                step[rate] -= 2.0 * math.pi * math.floor(step[rate] / (2.0 * math.pi) + 0.5)
        elif motion in (SPHERICAL, FLOATING):
            quaternion, angular = (at + 3, rate + 3) if motion == FLOATING else (at, rate)
            e0 = rotation.normalized(_quaternion(q0, quaternion))
            e1 = rotation.normalized(_quaternion(q1, quaternion))
            w = rotation.vector_of_quaternion(rotation.product(rotation.conjugate(e0), e1))
            if motion == FLOATING:
                way = subtract(_vector(q1, at), _vector(q0, at))
                way = vectors.rotate_back(rotation_of_quaternion(e0), way)
                step[rate : rate + 3] = rotation.screw_velocity(w, way)
            step[angular : angular + 3] = w
