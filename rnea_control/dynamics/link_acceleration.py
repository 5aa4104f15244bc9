"""Acceleration of a link: J(q) a + dJ/dt v, from the outward pass of `rnea`."""

from __future__ import annotations

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import body
from rnea_control.dynamics.arguments import (
    ARGUMENT_FAULTS,
    WrongSize,
    argument_error,
    fit,
    link_index,
)
from rnea_control.dynamics.forward_kinematics import pose_pass
from rnea_control.dynamics.rnea import outward_pass
from rnea_control.dynamics.workspace import Workspace
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.kernels.vector3 import add, cross, rotate, subtract
from rnea_control.model import RobotModel


def link_acceleration(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    link: str,
    acceleration: FloatArray,
) -> FloatArray:
    """Acceleration of a link, J a + dJ/dt v. Performs no allocation.

    Args:
        model, ws, q, link: as of `jacobian`.
        v, a: as of `rnea`.
        acceleration: output, shape (6,): of the link frame's origin [m/s^2], without gravity, then
            angular [rad/s^2], both expressed in the root link's frame; overwritten and returned.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the size given
            above.
    """
    try:
        rows = (model.bodies, model.links, ws.memory)
        if not _link_acceleration(*rows, link_index(model, link), q, v, a, acceleration):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, v=v, a=a, acceleration=acceleration) from fault
    return acceleration


@kernel_on_demand("b1(f8[:,::1], f8[:,::1], f8[:,::1], i8, f8[::1], f8[::1], f8[::1], f8[::1])")
def _link_acceleration(
    bodies: FloatArray,
    links: FloatArray,
    memory: FloatArray,
    link: int,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    acceleration: FloatArray,
) -> bool:
    if not fit(bodies, memory, q, v, a, a) or acceleration.shape[0] != 6:
        return False
    outward_pass(bodies, memory, q, v, a)
    pose_pass(bodies, memory, q)
    i = body.link_body(links, link)
    R, _ = body.pose(memory, i)
    _, p = body.link_placement(links, link)
    w, dw, acc = body.motion(memory, i)
    acc = add(acc, add(cross(dw, p), cross(w, cross(w, p))))
    # The recursion starts from a root that accelerates with -g.
    acc = subtract(rotate(R, acc), body.base_acceleration(bodies))
    dw = rotate(R, dw)
    for k in range(3):
        acceleration[k] = acc[k]
        acceleration[3 + k] = dw[k]
    return True
