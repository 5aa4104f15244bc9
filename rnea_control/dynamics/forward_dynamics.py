"""Forward dynamics by the mass matrix, with the friction of real joints.

    M(q) a  =  tau - C(q, v) v - g(q) - tau_f(v)

M by `crba`, the rest by `rnea` and `friction`. M is zero for joints of different branches. Factored
from the leaf bodies inward, M = L^T L with L zero where M is [Featherstone 2008, sec. 6.5].
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import body
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    forces_fit,
)
from rnea_control.dynamics.body import subtract_external_forces
from rnea_control.dynamics.crba import composite_inertia, composite_mass, mass_matrix
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.joint import s_angular, s_linear
from rnea_control.dynamics.rnea import inward_pass, outward_pass
from rnea_control.dynamics.workspace import FORCE, Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.model import RobotModel

# What the kernel returns.
_REFUSED, _SOLVED, _SINGULAR = range(3)
# What rounding leaves of a pivot that is 0, relative to the largest that it could be.
_SMALLEST_PIVOT = 1e-13


def forward_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    a: FloatArray,
    external_forces: FloatArray | None = None,
) -> FloatArray:
    """Joint accelerations that the actuator torques `tau` give, **friction included**.

    The inverse of `inverse_dynamics`. Performs no allocation.

    Args:
        model, ws, q, v: as of `rnea`.
        tau: actuator torques, shape (nv,), [Nm] or [N].
        a: output, shape (nv,), [rad/s^2] or [m/s^2]; overwritten and returned.
        external_forces: as of `rnea`.

    Raises:
        ArgumentError: an array that is not C-contiguous float64 of the size given above; a
            workspace of another model; a singular mass matrix, because a joint moves nothing that
            has inertia; accelerations that are not finite.
    """
    try:
        if ws.model is not model:  # its permutation is that of its own model's tree
            raise WrongSize
        forces = ws.no_forces if external_forces is None else external_forces
        rows = (model.bodies, model.links, model.friction_parameters, ws.memory)
        scratch = (ws.permutation, ws.ancestor, ws.matrix, ws.unit, ws.zeros)
        outcome = _forward_dynamics_with_friction(*rows, *scratch, q, v, tau, forces, a)
        if outcome == _REFUSED:
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        arrays = {"q": q, "v": v, "tau": tau, "a": a, "external_forces": external_forces}
        raise argument_error(model, ws, **arrays) from fault
    if outcome == _SINGULAR:
        raise ArgumentError(
            "the mass matrix is singular because a joint moves nothing that has inertia, or an "
            "argument is not finite. Give every moving link an inertia, or its joint an armature"
        )
    return a


@inlined
def diagonal_bound(
    bodies: FloatArray, memory: FloatArray, permutation: IntArray, bound: FloatArray
) -> None:
    """An upper bound of each diagonal entry of M for any direction of the axis: pivots are compared
    with it. Needs `mass_matrix`."""
    for k in range(bound.shape[0]):
        bound[k] = 0.0
    for i in range(1, bodies.shape[0]):
        xx, _, _, yy, _, zz = composite_inertia(memory, i)
        S_angular, S_linear = s_angular(bodies, i), s_linear(bodies, i)
        felt = S_angular**2 * (xx + yy + zz) + S_linear**2 * composite_mass(memory, i)
        largest = body.ratio(bodies, i) ** 2 * (felt + body.armature(bodies, i))
        bound[permutation[body.velocity_index(bodies, i)]] += largest


@inlined
def factor(H: FloatArray, ancestor: IntArray) -> None:
    """H = L^T L in place, L in the lower triangle [Featherstone 2008, table 6.3]."""
    for k in range(H.shape[0] - 1, -1, -1):
        H[k, k] = math.sqrt(H[k, k])
        i = ancestor[k]
        while i >= 0:
            H[k, i] /= H[k, k]
            i = ancestor[i]
        i = ancestor[k]
        while i >= 0:
            j = i
            while j >= 0:
                H[i, j] -= H[k, i] * H[k, j]
                j = ancestor[j]
            i = ancestor[i]


@inlined
def solve(H: FloatArray, ancestor: IntArray, x: FloatArray) -> None:
    """Replaces x by the solution y of L^T L y = x, with L from `factor`."""
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] /= H[i, i]
        j = ancestor[i]
        while j >= 0:
            x[j] -= H[i, j] * x[i]
            j = ancestor[j]
    for i in range(x.shape[0]):
        j = ancestor[i]
        while j >= 0:
            x[i] -= H[i, j] * x[j]
            j = ancestor[j]
        x[i] /= H[i, i]


@kernel_on_demand(
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], f8[:,::1], f8[::1], "
    "f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])"
)
def _forward_dynamics_with_friction(
    bodies: FloatArray,
    links: FloatArray,
    friction_parameters: FloatArray,
    memory: FloatArray,
    permutation: IntArray,
    ancestor: IntArray,
    H: FloatArray,
    x: FloatArray,
    zeros: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    forces: FloatArray,
    a: FloatArray,
) -> int:
    if not fit(bodies, memory, q, v, tau, a) or not forces_fit(links, forces):
        return _REFUSED
    outward_pass(bodies, memory, q, v, zeros)
    subtract_external_forces(links, memory, forces, FORCE)
    inward_pass(bodies, memory, a)
    for j in range(a.shape[0]):
        x[permutation[j]] = tau[j] - a[j] - friction_torque(friction_parameters, v, j)
    mass_matrix(bodies, memory, permutation, q, H)
    diagonal_bound(bodies, memory, permutation, a)
    factor(H, ancestor)
    outcome = _SOLVED
    for k in range(a.shape[0]):
        if not H[k, k] * H[k, k] > _SMALLEST_PIVOT * a[k]:
            outcome = _SINGULAR
    solve(H, ancestor, x)
    for j in range(a.shape[0]):
        a[j] = x[permutation[j]]
        if not math.isfinite(a[j]):
            outcome = _SINGULAR
    return outcome
