r"""Steps between positions, for joints whose positions are not plain numbers.

A position is an element of a group; a velocity is a step in it. For most joints the step is added.
A spherical joint's quaternion is multiplied by that of the rotation vector; a floating one's pose
by the motion of constant linear and angular velocity in the body's own frame, as long as 1 s
[Murray, Li, Sastry 1994, sec. 2.3]:

.. math::

    R \leftarrow R\, e^{[\omega]_\times}, \quad
    p \leftarrow p + R \left( 1 + \frac{1 - \cos\theta}{\theta^2} [\omega]_\times
        + \frac{\theta - \sin\theta}{\theta^3} [\omega]_\times^2 \right) v, \quad
    \theta = |\omega|
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.arguments import explained
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import inlined, kernel_on_demand
from rnea_control.kernels.vector3 import (
    Quaternion,
    Vector3,
    add,
    cross,
    dot,
    rotate,
    rotate_back,
    rotation_of_quaternion,
    scale,
    subtract,
)
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Below this angle [rad] series of two terms are exact.
_SMALL = 1e-4


@explained(q=("nq",), step=("nv",), result=("nq",))
def integrate(
    model: RobotModel, ws: Workspace, q: FloatArray, step: FloatArray, result: FloatArray
) -> FloatArray:
    """The position that a step leads to: for a velocity v and a short time dt, `step` is v dt.
    Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q: joint positions, shape (nq,).
        step: in the units of v times 1 s, shape (nv,).
        result: output, shape (nq,), quaternions of length 1; may be `q`; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return _integrate(model.bodies, q, step, result) and result


@explained(q0=("nq",), q1=("nq",), step=("nv",))
def difference(
    model: RobotModel, ws: Workspace, q0: FloatArray, q1: FloatArray, step: FloatArray
) -> FloatArray:
    """The shortest step from `q0` to `q1`: `integrate` leads back. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for it.
        q0, q1: joint positions, shape (nq,). Continuous joints go the shorter way round.
        step: output, shape (nv,); overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    return _difference(model.bodies, model._continuous, q0, q1, step) and step


@inlined
def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """The quaternion of the rotation by b, then by a."""
    return (
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@inlined
def quaternion_of_vector(w: Vector3) -> Quaternion:
    """The quaternion of a rotation vector."""
    angle = math.sqrt(dot(w, w))
    s = 0.5 - angle * angle / 48.0 if angle < _SMALL else math.sin(0.5 * angle) / angle
    return (s * w[0], s * w[1], s * w[2], math.cos(0.5 * angle))


@inlined
def vector_of_quaternion(e: Quaternion) -> Vector3:
    """The rotation vector, at most pi long, of a quaternion of length 1."""
    sign = 1.0 if e[3] >= 0.0 else -1.0
    x, y, z, w = sign * e[0], sign * e[1], sign * e[2], sign * e[3]
    s = math.sqrt(x * x + y * y + z * z)
    factor = (2.0 - s * s / w / w / 1.5) / w if s < _SMALL else 2.0 * math.atan2(s, w) / s
    return (factor * x, factor * y, factor * z)


@inlined
def normalized(e: Quaternion) -> Quaternion:
    """Of length 1."""
    s = 1.0 / math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    return (s * e[0], s * e[1], s * e[2], s * e[3])


@inlined
def screw_translation(w: Vector3, v: Vector3) -> Vector3:
    """Where a motion of constant velocities v and w leads in 1 s, in the frame it began in."""
    angle = math.sqrt(dot(w, w))
    if angle < _SMALL:
        a, b = 0.5 - angle * angle / 24.0, 1.0 / 6.0 - angle * angle / 120.0
    else:
        half = math.sin(0.5 * angle) / angle
        a, b = 2.0 * half * half, (angle - math.sin(angle)) / angle**3
    turned = cross(w, v)
    return add(v, add(scale(a, turned), scale(b, cross(w, turned))))


@inlined
def screw_velocity(w: Vector3, p: Vector3) -> Vector3:
    """The velocity v whose `screw_translation` with w is p."""
    angle = math.sqrt(dot(w, w))
    if angle < _SMALL:
        b = 1.0 / 12.0 + angle * angle / 720.0
    else:
        b = (1.0 - 0.5 * angle / math.tan(0.5 * angle)) / (angle * angle)
    turned = cross(w, p)
    return add(p, add(scale(-0.5, turned), scale(b, cross(w, turned))))


@inlined
def quaternion_at(q: FloatArray, i: int) -> Quaternion:
    """The four numbers from i on."""
    return (q[i], q[i + 1], q[i + 2], q[i + 3])


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1], f8[::1])")
def _integrate(bodies: FloatArray, q: FloatArray, step: FloatArray, result: FloatArray) -> bool:
    nq, nv = int(bodies[0, layout.Q]), int(bodies[0, layout.V])
    if q.shape[0] != nq or result.shape[0] != nq or step.shape[0] != nv:
        return False
    for i in range(1, bodies.shape[0]):
        motion = bodies[i, layout.MOTION]
        at, rate = int(bodies[i, layout.Q]), int(bodies[i, layout.V])
        if motion == layout.AXIS and bodies[i, layout.LEADS] != 0.0:
            result[at] = q[at] + step[rate]
        elif motion in (layout.BALL, layout.FREE):
            free = motion == layout.FREE
            turn, angular = (at + 3, rate + 3) if free else (at, rate)
            e = normalized(quaternion_at(q, turn))
            w = (step[angular], step[angular + 1], step[angular + 2])
            if free:
                v = (step[rate], step[rate + 1], step[rate + 2])
                moved = rotate(rotation_of_quaternion(e), screw_translation(w, v))
                for k in range(3):
                    result[at + k] = q[at + k] + moved[k]
            e = normalized(product(e, quaternion_of_vector(w)))
            for k in range(4):
                result[turn + k] = e[k]
    return True


@kernel_on_demand("b1(f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def _difference(
    bodies: FloatArray, continuous: FloatArray, q0: FloatArray, q1: FloatArray, step: FloatArray
) -> bool:
    nq, nv = int(bodies[0, layout.Q]), int(bodies[0, layout.V])
    if q0.shape[0] != nq or q1.shape[0] != nq or step.shape[0] != nv:
        return False
    for i in range(1, bodies.shape[0]):
        motion = bodies[i, layout.MOTION]
        at, rate = int(bodies[i, layout.Q]), int(bodies[i, layout.V])
        if motion == layout.AXIS and bodies[i, layout.LEADS] != 0.0:
            step[rate] = q1[at] - q0[at]
            if continuous[at] != 0.0:
                step[rate] -= 2.0 * math.pi * math.floor(step[rate] / (2.0 * math.pi) + 0.5)
        elif motion in (layout.BALL, layout.FREE):
            free = motion == layout.FREE
            turn, angular = (at + 3, rate + 3) if free else (at, rate)
            e = normalized(quaternion_at(q0, turn))
            back = (-e[0], -e[1], -e[2], e[3])
            w = vector_of_quaternion(product(back, normalized(quaternion_at(q1, turn))))
            if free:
                way = subtract((q1[at], q1[at + 1], q1[at + 2]), (q0[at], q0[at + 1], q0[at + 2]))
                v = screw_velocity(w, rotate_back(rotation_of_quaternion(e), way))
                for k in range(3):
                    step[rate + k] = v[k]
            for k in range(3):
                step[angular + k] = w[k]
    return True
