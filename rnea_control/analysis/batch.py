"""Inverse dynamics of a recorded motion on all cores, for offline identification and analysis.

The rows are divided among threads. Each thread has its own workspace and makes one call of a kernel
that releases the interpreter lock, so the threads run in parallel.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.body import FORCE, subtract_external_forces
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, inward_pass, outward_pass
from rnea_control.dynamics.workspace import check_array
from rnea_control.exceptions import ArgumentError
from rnea_control.jit.kernel import kernel_on_demand
from rnea_control.model import RobotModel


def inverse_dynamics_batch(
    model: RobotModel,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    tau: FloatArray | None = None,
    external_forces: npt.ArrayLike | None = None,
    workers: int | None = None,
) -> FloatArray:
    """Actuator torques at each of N samples of a motion, **friction included**.

    Each row equals `inverse_dynamics` to the last bit. Inputs may be of any layout and type of real
    numbers; an input that is not C-contiguous, writeable float64 is copied. A NaN affects its own
    row only: the torques that depend on it are NaN.

    Args:
        model: the robot; do not change it until the call returns.
        q: joint positions, shape (N, nq), [rad] or [m].
        v: joint velocities, shape (N, nv), [rad/s] or [m/s].
        a: joint accelerations, shape (N, nv), [rad/s^2] or [m/s^2].
        tau: output, C-contiguous float64 of shape (N, nv), [Nm] or [N]; overwritten and returned. A
            new array by default.
        external_forces: forces of the world on each link at each sample, shape (N, links, 6): force
            [N], then moment about the link frame's origin [Nm], both expressed in the link's URDF
            frame; links ordered as `model.link_names`. None: no forces.
        workers: number of threads; one for each CPU by default.

    Raises:
        ArgumentError: an array of another shape or not of real numbers, an output of another type
            or layout, or no workers.
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    if not isinstance(workers, (int, np.integer)) or workers < 1:
        raise ArgumentError(f"workers is {workers!r}; it must be an integer, at least 1")
    q = _real_array("q", q, ("samples", model.nq))
    samples = q.shape[0]
    v = _real_array("v", v, (samples, model.nv))
    a = _real_array("a", a, (samples, model.nv))
    forces = np.zeros((samples, 0, 6))
    if external_forces is not None:
        shape = (samples, len(model.link_names), 6)
        forces = _real_array("external_forces", external_forces, shape)
    tau = np.empty((samples, model.nv)) if tau is None else tau
    check_array("tau", tau, (samples, model.nv))

    def fill(rows: slice) -> None:
        memory = Workspace(model).memory
        arrays = (model.bodies, model.links, model.friction_parameters, memory)
        _inverse_dynamics_rows(*arrays, q[rows], v[rows], a[rows], forces[rows], tau[rows])

    ends = [samples * i // workers for i in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, map(slice, ends[:-1], ends[1:])))
    return tau


def _real_array(name: str, value: npt.ArrayLike, shape: tuple[int | str, ...]) -> FloatArray:
    """Converts to a C-contiguous float64 array of this shape, in which "samples" is any number."""
    wanted = f"an array of real numbers of shape ({', '.join(map(str, shape))})"
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{name} has rows of several lengths; it must be {wanted}") from error
    if array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name} is of {array.dtype}; it must be {wanted}")
    if array.ndim != len(shape) or any(
        size not in (found, "samples") for size, found in zip(shape, array.shape, strict=True)
    ):
        raise ArgumentError(f"{name} is of shape {array.shape}; it must be {wanted}")
    return np.require(array, np.float64, ["C_CONTIGUOUS", "WRITEABLE"])


@kernel_on_demand(
    "void(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], "
    "f8[:,:,::1], f8[:,::1])",
    nogil=True,
)
def _inverse_dynamics_rows(
    bodies: FloatArray,
    links: FloatArray,
    friction_parameters: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    tau: FloatArray,
) -> None:
    for k in range(q.shape[0]):
        outward_pass(bodies, memory, q[k], v[k], a[k])
        subtract_external_forces(links, memory, forces[k], FORCE)
        inward_pass(bodies, memory, tau[k])
        add_armature(bodies, a[k], tau[k])
        for j in range(tau.shape[1]):
            tau[k, j] += friction_torque(friction_parameters, v[k], j)
