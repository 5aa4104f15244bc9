r"""The regressor: joint torques as a matrix times the robot's parameters.

Inverse dynamics is linear in the inertial parameters of the links and in those of the actuators,
tau = Y(q, v, a) phi; identification solves this for phi [Khalil, Dombre 2004, ch. 12]. All vectors
here are in the link's frame L: s and u are the linear velocity of the link's origin and its angular
velocity for a velocity of 1 of joint j alone, omega and alpha its angular velocity and
acceleration, and a its origin's acceleration less gravity. Then f and n of `rnea` give joint j the
torque

.. math::

    \tau_j &= s \cdot f + u \cdot n \\
    &= m\, s \cdot a + m c \cdot (s \times \alpha + \omega \times (\omega \times s) + a \times u)
    + u \cdot I \alpha + (u \times \omega) \cdot I \omega

The columns of Y, and the rows of phi, are

- ten for each moving body, `BODY_PARAMETERS`, about the origin and in the axes of the joint's child
  link; bodies in the order of `model.joint_names`, then of `model.mimic_joints`. Links on fixed or
  locked joints, and payloads, are part of their body;
- then armature, damping, Coulomb friction and offset, each for all velocities. The rotor of a mimic
  joint counts at its leader, times the ratio squared.
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import IntVector, Matrix, Vector
from rnea_control.dynamics import body
from rnea_control.dynamics.friction import STICKING_VELOCITY
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, require, shapes
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.bodies import RATIO, S_ANGULAR, S_LINEAR
from rnea_control.model.rigid_body import homogeneous, pseudo_inertia_of, ten_parameters
from rnea_control.spatial import algebra as spatial
from rnea_control.spatial import vectors
from rnea_control.spatial.vectors import ORIGIN, Vector3, add, cross, dot, rotate_back, scale

BODY_PARAMETERS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
ACTUATOR_PARAMETERS = ("armature", "damping", "friction", "torque_offset")


def regressor(
    model: RobotModel, ws: Workspace, q: Vector, v: Vector, a: Vector, Y: Matrix
) -> Matrix:
    """Matrix Y(q, v, a) with `inverse_dynamics` = Y `inertial_parameters`. Gravity is included.

    The module's docstring has the equations and the order of the columns. Y does not depend on the
    values of the parameters. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        Y: output, shape (nv, `parameter_count(model)`), torques for a value of 1 of each
            parameter; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        regressor_kernel(model.bodies, model.links, model.joint_links, ws.memory, q, v, a, Y)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return Y


def parameter_count(model: RobotModel) -> int:
    """Number of columns of the regressor."""
    return shapes(model)["Y"][1]


def parameter_names(model: RobotModel) -> tuple[str, ...]:
    """Names of the regressor's columns, such as "panda_link3.mcx" and "panda_joint3.damping".

    Velocities of a joint with several degrees of freedom are numbered: "root_joint[5].friction".
    """
    links = [model.link_names[k] for k in model.joint_links[1:]]
    velocities = []
    for name, part in model.v_slices.items():
        count = part.stop - part.start
        velocities += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
    return (
        *(f"{link}.{parameter}" for link in links for parameter in BODY_PARAMETERS),
        *(
            f"{velocity}.{parameter}"
            for parameter in ACTUATOR_PARAMETERS
            for velocity in velocities
        ),
    )


def inertial_parameters(model: RobotModel) -> Vector:
    """Present parameters phi of the robot, payloads included, shape (`parameter_count(model)`,).

    In SI units: [kg], [kg m], [kg m^2], then the units of `model.armature`, `damping`, `friction`
    and `torque_offset`.
    """
    bodies = []
    for link in model.links[model.joint_links[1:]]:
        R_BL = link[layout.LINK_ROTATION : layout.LINK_ROTATION + 9].reshape(3, 3)
        row = model.bodies[int(link[layout.LINK_BODY])]
        X_LB = homogeneous(R_BL.T, np.zeros(3))
        matrix = pseudo_inertia_of(row[layout.INERTIA : layout.INERTIA + 10])
        bodies.append(ten_parameters(X_LB @ matrix @ X_LB.T))
    armature = np.zeros(model.nv)
    rows = model.bodies[1:]
    rotors = rows[:, layout.RATIO] ** 2 * rows[:, layout.ARMATURE]
    np.add.at(armature, rows[:, layout.V].astype(int), rotors)
    return np.concatenate([*bodies, armature, model.damping, model.friction, model.torque_offset])


@inlined
def body_columns(
    bodies: Matrix, links: Matrix, memory: Matrix, k: int, Y: Matrix, column: int
) -> None:
    """Fills the ten columns of the body of link k, joint by joint on the way to the root."""
    i = body.link_body(links, k)
    # L has the origin of its row's frame B.
    R, _ = spatial.pose_at(links, k, layout.LINK_ROTATION)
    p = ORIGIN
    w, dw, acc = body.motion(memory, i)
    w, dw, acc = rotate_back(R, w), rotate_back(R, dw), rotate_back(R, acc)
    while i != 0:
        # R and p place L in row i; its axis is z.
        ratio, S_angular = bodies[i, RATIO], bodies[i, S_ANGULAR]
        linear = (-S_angular * p[1], S_angular * p[0], bodies[i, S_LINEAR])
        s = scale(ratio, rotate_back(R, linear))
        u = scale(ratio * S_angular, (R[6], R[7], R[8]))
        add_joint_share(Y, body.velocity_index(bodies, i), column, s, u, w, dw, acc)
        R_P, p_P = spatial.pose_at(memory, i, body.POSE_IN_PARENT)
        p = add(vectors.rotate(R_P, p), p_P)
        R = vectors.multiply(R_P, R)
        i = body.parent(bodies, i)


@inlined
def add_joint_share(
    Y: Matrix, row: int, column: int, s: Vector3, u: Vector3, w: Vector3, dw: Vector3, acc: Vector3
) -> None:
    """Adds the torques for a value of 1 of each of the ten parameters to a row of Y, from
    `column`."""
    mc = add(add(cross(s, dw), cross(w, cross(w, s))), cross(acc, u))
    g = cross(u, w)
    Y[row, column] += dot(s, acc)
    spatial.add_to_vector(Y, row, column + 1, mc)
    Y[row, column + 4] += u[0] * dw[0] + g[0] * w[0]
    Y[row, column + 5] += u[0] * dw[1] + u[1] * dw[0] + g[0] * w[1] + g[1] * w[0]
    Y[row, column + 6] += u[0] * dw[2] + u[2] * dw[0] + g[0] * w[2] + g[2] * w[0]
    Y[row, column + 7] += u[1] * dw[1] + g[1] * w[1]
    Y[row, column + 8] += u[1] * dw[2] + u[2] * dw[1] + g[1] * w[2] + g[2] * w[1]
    Y[row, column + 9] += u[2] * dw[2] + g[2] * w[2]


@inlined
def actuator_columns(v: Vector, a: Vector, Y: Matrix, first: int) -> None:
    """Fills the columns of armature, damping, friction and offset, from column `first`."""
    n = v.shape[0]
    for j in range(n):
        Y[j, first + j] = a[j]
        Y[j, first + n + j] = v[j]
        Y[j, first + 2 * n + j] = math.tanh(v[j] / STICKING_VELOCITY)
        Y[j, first + 3 * n + j] = 1.0


@kernel_on_demand()
def regressor_kernel(
    bodies: Matrix,
    links: Matrix,
    joint_links: IntVector,
    memory: Matrix,
    q: Vector,
    v: Vector,
    a: Vector,
    Y: Matrix,
) -> None:
    columns = 10 * (joint_links.shape[0] - 1) + 4 * v.shape[0]
    require(fit(bodies, memory, q, v, a, a) and Y.shape == (v.shape[0], columns))
    outward_pass(bodies, memory, q, v, a)
    Y[:] = 0.0
    for n in range(1, joint_links.shape[0]):  # 0 is the root, which does not move
        body_columns(bodies, links, memory, joint_links[n], Y, 10 * (n - 1))
    actuator_columns(v, a, Y, 10 * (joint_links.shape[0] - 1))
