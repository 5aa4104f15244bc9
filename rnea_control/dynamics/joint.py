"""What a joint does to the frame of its body: the one place that knows the types of joints.

All other files see rows of one degree of freedom each, whose axis is z (model/bodies.py).
"""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.workspace import sine_and_cosine
from rnea_control.kernels.kernel import inlined
from rnea_control.kernels.vector3 import (
    Matrix3,
    Vector3,
    add,
    matrix_at,
    multiply,
    rotate,
    rotation_of_quaternion,
    scale,
    turned_about_z,
    vector_at,
    z_axis,
)
from rnea_control.model import bodies as layout


@inlined
def joint_position(bodies: FloatArray, q: FloatArray, i: int) -> float:
    """Position of row i, [rad] or [m]; that of its leader times the ratio, if it mimics one."""
    return bodies[i, layout.RATIO] * q[int(bodies[i, layout.Q])] + bodies[i, layout.OFFSET]


@inlined
def joint_rate(bodies: FloatArray, v: FloatArray, i: int) -> float:
    """The entry of a velocity or acceleration vector for row i."""
    return bodies[i, layout.RATIO] * v[int(bodies[i, layout.V])]


@inlined
def placement(
    bodies: FloatArray, memory: FloatArray, q: FloatArray, i: int
) -> tuple[Matrix3, Vector3]:
    """R_PB and p_PB of row i at positions q; needs `sines_and_cosines`."""
    R = matrix_at(bodies, i, layout.ROTATION)
    p = vector_at(bodies, i, layout.TRANSLATION)
    motion = bodies[i, layout.MOTION]
    if motion == layout.AXIS:
        R = turned_about_z(R, *sine_and_cosine(memory, bodies.shape[0] - 1, i))
        if bodies[i, layout.LINEAR] != 0.0:
            distance = bodies[i, layout.LINEAR] * joint_position(bodies, q, i)
            p = add(p, scale(distance, z_axis(R)))
    elif motion != layout.HELD:
        first = int(bodies[i, layout.Q])
        if motion == layout.FREE:
            p = add(p, rotate(R, (q[first], q[first + 1], q[first + 2])))
            first += 3
        quaternion = (q[first], q[first + 1], q[first + 2], q[first + 3])
        R = _axes_renamed(multiply(R, rotation_of_quaternion(quaternion)))
    return R, p


@inlined
def joint_velocity(bodies: FloatArray, v: FloatArray, i: int) -> tuple[Vector3, Vector3]:
    """Linear and angular velocity that a joint adds to those of its parent, in the frame of row i.

    All rows of a spherical or floating joint have the velocity of their last one: it enters with
    the first, and the rows that are held add nothing.
    """
    motion = bodies[i, layout.MOTION]
    if motion == layout.AXIS:
        rate = joint_rate(bodies, v, i)
        linear = (0.0, 0.0, bodies[i, layout.LINEAR] * rate)
        angular = (0.0, 0.0, bodies[i, layout.ANGULAR] * rate)
    elif motion == layout.HELD:
        linear = angular = (0.0, 0.0, 0.0)
    else:
        first = int(bodies[i, layout.V])
        linear = (0.0, 0.0, 0.0)
        if motion == layout.FREE:
            linear = (v[first + 1], v[first + 2], v[first])
            first += 3
        angular = (v[first + 1], v[first + 2], v[first])
    return linear, angular


@inlined
def _axes_renamed(R: Matrix3) -> Matrix3:
    """R with its columns x, y, z in the order y, z, x: the first row's z is the child's x."""
    return (R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6])
