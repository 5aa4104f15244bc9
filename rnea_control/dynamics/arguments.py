"""Whether the arguments of an algorithm fit the model, and the error that says what is wrong.

A kernel checks the type, dimensions and layout of its arrays on entry and raises TypeError
(kernels/array_argument.py). It then checks their sizes by the functions below, as it checks no
bounds later, and returns False where they do not fit. Every algorithm calls its kernel like this:

    try:
        if not _gravity(model.bodies, ws.memory, q, tau):
            raise WrongSize
    except ARGUMENT_FAULTS as fault:
        raise argument_error(model, ws, q=q, tau=tau) from fault
    return tau

so that a correct call costs nothing more, and a wrong one is examined here.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.body import position_count, velocity_count
from rnea_control.dynamics.workspace import Workspace, row_count
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.model import RobotModel

# The shape of each array argument by its name, the same in all algorithms.
SHAPES: dict[str, tuple[int | str, ...]] = {
    **dict.fromkeys(("q", "q0", "q1", "result"), ("nq",)),
    **dict.fromkeys(("v", "a", "tau", "v_r", "a_r", "step", "p", "rate"), ("nv",)),
    **dict.fromkeys(("M", "C"), ("nv", "nv")),
    **dict.fromkeys(("acceleration", "world_force", "link_force"), (6,)),
    "com": (3,),
    "J": (6, "nv"),
    "Y": ("nv", "parameters"),
    "poses": ("links", 4, 4),
    "wrenches": ("wrenches", 6),
    "external_forces": ("links", 6),
}


class WrongSize(Exception):
    """A kernel has refused its arguments."""


ARGUMENT_FAULTS = (TypeError, AttributeError, WrongSize)


@inlined
def fit_position(bodies: FloatArray, memory: FloatArray, q: FloatArray) -> bool:
    """Whether workspace and positions have the sizes that the model needs."""
    return q.shape[0] == position_count(bodies) and memory.shape[0] == row_count(
        bodies.shape[0] - 1
    )


@inlined
def fit(
    bodies: FloatArray,
    memory: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    """The same, and whether `v`, `a` and `tau` have one number for each velocity."""
    nv = velocity_count(bodies)
    right = v.shape[0] == nv and a.shape[0] == nv and tau.shape[0] == nv
    return right and fit_position(bodies, memory, q)


@inlined
def forces_fit(links: FloatArray, forces: FloatArray) -> bool:
    """Whether there are forces for every link, or for none."""
    return forces.shape[0] in (0, links.shape[0]) and forces.shape[1] == 6


def argument_error(model: RobotModel, ws: Workspace, **arrays: object) -> ArgumentError:
    """The error for the first argument that does not fit.

    Args:
        model, ws: what the algorithm was called with.
        arrays: its array arguments by their names in `SHAPES`; `external_forces` may be None.
    """
    if not isinstance(model, RobotModel) or not isinstance(ws, Workspace):
        return ArgumentError(
            "the first two arguments must be a RobotModel and a Workspace made for it"
        )
    if ws.model is not model and ws.model.bodies.shape != model.bodies.shape:
        return _other_model(model, ws)
    joints = len(model.joint_links)  # with the root's
    sizes = {
        "nq": model.nq,
        "nv": model.nv,
        "links": len(model.link_names),
        "wrenches": joints,
        "parameters": 10 * (joints - 1) + 4 * model.nv,
    }
    for name, array in arrays.items():
        if name == "external_forces" and array is None:
            continue
        shape = tuple(sizes[size] if isinstance(size, str) else size for size in SHAPES[name])
        wanted = f"a C-contiguous float64 array of shape {shape}"
        if not isinstance(array, np.ndarray):
            return ArgumentError(f"{name} is a {type(array).__name__}; it must be {wanted}")
        if array.dtype != np.float64 or array.shape != shape:
            return ArgumentError(
                f"{name} is of {array.dtype} and shape {array.shape}; it must be {wanted}"
            )
        if not array.flags.c_contiguous or not array.flags.writeable:
            return ArgumentError(
                f"{name} is a read-only or strided view; it must be {wanted}, for example "
                f"{name}.copy()"
            )
    return _other_model(model, ws)


def _other_model(model: RobotModel, ws: Workspace) -> ArgumentError:
    return ArgumentError(
        f"the workspace was made for {ws.model!r}, not for {model!r}; make one: Workspace(model)"
    )


def link_index(model: RobotModel, link: str) -> int:
    """The row of a link in `model.link_names`.

    Raises:
        ArgumentError: an unknown link.
    """
    if link not in model.link_names:
        raise ArgumentError(
            f"{model.name!r} has no link {link!r}; it has {', '.join(model.link_names)}"
        )
    return model.link_names.index(link)
