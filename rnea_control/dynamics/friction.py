"""Dynamics with the friction and the constant torque offset of real joints.

    tau_f  =  damping dq  +  coulomb tanh(dq / v_s)  +  offset

The hyperbolic tangent makes Coulomb friction smooth at standstill
[Siciliano et al. 2009, sec. 7.2]. With it the equation of motion is

    M(q) a  +  C(q, v) v  +  g(q)  +  tau_f(v)  =  tau

Forward dynamics solves it for a, with M by `crba` and the other terms by `rnea`. M is factored from
the last joint to the first, M = L^T D L; then L is zero between joints of different branches
[Featherstone 2008, sec. 6.5].
"""

from __future__ import annotations

import math

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics import body
from rnea_control.dynamics.crba import SMALLEST_PIVOT, mass_matrix
from rnea_control.dynamics.rnea import inward_pass, outward_pass, rnea
from rnea_control.dynamics.workspace import Workspace, argument_error, fit, forces_fit, require
from rnea_control.exceptions import ArgumentError
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel, kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# v_s, [rad/s] or [m/s]: at three times this velocity Coulomb friction has 99.5 % of its value.
STICKING_VELOCITY = 0.01


def friction(model: RobotModel, ws: Workspace, v: Vector, tau: Vector) -> Vector:
    """Actuator torques for friction and offset at joint velocities `v`. Performs no allocation.

    From `model.damping`, `model.friction` and `model.torque_offset`, by the equation of this file.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    try:
        _friction(model.friction_parameters, v, tau)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return tau


def inverse_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    a: Vector,
    tau: Vector,
    external_forces: Matrix | None = None,
) -> Vector:
    """Actuator torques for the accelerations `a`, **friction included**: `rnea` + `friction`.

    The inverse of `forward_dynamics`. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        tau: output, shape (nv,), [Nm] or [N]; overwritten and returned.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above.
    """
    rnea(model, ws, q, v, a, tau, external_forces)
    tau += friction(model, ws, v, ws.torque)
    return tau


def forward_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: Vector,
    v: Vector,
    tau: Vector,
    a: Vector,
    external_forces: Matrix | None = None,
) -> Vector:
    """Joint accelerations that the actuator torques `tau` give, **friction included**.

    The inverse of `inverse_dynamics`. Performs no allocation.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        tau: actuator torques, shape (nv,), [Nm] or [N].
        a: output, shape (nv,), [rad/s^2] or [m/s^2]; overwritten and returned.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; a
            singular mass matrix, because a joint moves no inertia; accelerations that are not
            finite.
    """
    try:
        forces = ws.no_forces if external_forces is None else external_forces
        rows = (model.bodies, model.links, model.friction_parameters, ws.memory)
        scratch = (ws.matrix, ws.unit, ws.zeros)
        solved = _forward_dynamics_with_friction(*rows, *scratch, q, v, tau, forces, a)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    if not solved:
        raise ArgumentError(
            "the mass matrix is singular because a joint moves no inertia, or an argument is not "
            "finite. Give every moving link an inertia, or its joint an armature"
        )
    return a


@inlined
def friction_torque(parameters: Matrix, v: Vector, j: int) -> float:
    """tau_f of velocity j; `parameters`: `model.friction_parameters`."""
    torque = parameters[layout.DAMPING, j] * v[j] + parameters[layout.TORQUE_OFFSET, j]
    if parameters[layout.COULOMB, j] != 0.0:
        torque += parameters[layout.COULOMB, j] * math.tanh(v[j] / STICKING_VELOCITY)
    return torque


@kernel()
def _friction(parameters: Matrix, v: Vector, tau: Vector) -> None:
    require(v.shape[0] == tau.shape[0] == parameters.shape[1])
    for j in range(v.shape[0]):
        tau[j] = friction_torque(parameters, v, j)


@inlined
def diagonal_bound(bodies: Matrix, memory: Matrix, bound: Vector) -> None:
    """Upper bound of each diagonal entry of M over all directions of the axis; pivots are compared
    with it. Call `mass_matrix` first."""
    bound[:] = 0.0
    for i in range(1, bodies.shape[0]):
        m, _, (xx, _, _, yy, _, zz) = body.inertia(memory, i, body.COMPOSITE_INERTIA)
        S_angular, S_linear = bodies[i, layout.S_ANGULAR], bodies[i, layout.S_LINEAR]
        felt = S_angular**2 * (xx + yy + zz) + S_linear**2 * m
        largest = bodies[i, layout.RATIO] ** 2 * (felt + bodies[i, layout.ARMATURE])
        bound[body.velocity_index(bodies, i)] += largest


@inlined
def solve(H: Matrix, x: Vector) -> None:
    """Replaces x by the solution y of H y = x, and the lower triangle of H by the diagonal matrix D
    and, below it, L of H = L^T D L [Featherstone 2008, table 6.3]."""
    for k in range(x.shape[0] - 1, -1, -1):
        for i in range(k - 1, -1, -1):
            if H[k, i] != 0.0:
                factor = H[k, i] / H[k, k]
                x[i] -= factor * x[k]
                for j in range(i + 1):
                    H[i, j] -= factor * H[k, j]
                H[k, i] = factor
    for k in range(x.shape[0]):
        x[k] /= H[k, k]
        for i in range(k):
            x[k] -= H[k, i] * x[i]


@kernel_on_demand()
def _forward_dynamics_with_friction(
    bodies: Matrix,
    links: Matrix,
    friction_parameters: Matrix,
    memory: Matrix,
    H: Matrix,
    largest: Vector,
    zeros: Vector,
    q: Vector,
    v: Vector,
    tau: Vector,
    forces: Matrix,
    a: Vector,
) -> bool:
    require(fit(bodies, memory, q, v, tau, a) and forces_fit(links, forces))
    outward_pass(bodies, memory, q, v, zeros)
    body.subtract_external_forces(links, memory, forces, body.FORCE)
    inward_pass(bodies, memory, a)
    for j in range(a.shape[0]):
        a[j] = tau[j] - a[j] - friction_torque(friction_parameters, v, j)
    mass_matrix(bodies, memory, q, H)
    diagonal_bound(bodies, memory, largest)
    solve(H, a)
    solved = True
    for j in range(a.shape[0]):
        regular = H[j, j] > SMALLEST_PIVOT * largest[j]
        solved = solved and regular and math.isfinite(a[j])
    return solved
