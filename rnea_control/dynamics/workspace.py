"""`Workspace`: scratch memory of the algorithms; checks of their arguments, and the error that
names the wrong argument.

A kernel checks the type, dimensions and layout of its arrays on entry and raises TypeError
(jit/array_argument.py). It then `require`s the right sizes, which raises TypeError again, and
checks no bounds later. Every algorithm calls its kernel like this:

    try:
        gravity_kernel(model.bodies, ws.memory, q, tau)
    except (TypeError, AttributeError) as fault:
        raise argument_error(**locals()) from fault
    return tau

so that a correct call costs no extra time, and only a failed call is examined here.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import Matrix, Vector
from rnea_control.dynamics.body import COLUMNS, position_count, row_count, velocity_count
from rnea_control.exceptions import ArgumentError
from rnea_control.jit.inlining import inlined
from rnea_control.model import RobotModel

_FLOAT64 = np.dtype(np.float64)
# Shape of each array argument by its name; a name has the same shape in all algorithms.
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


class Workspace:
    """Scratch memory for one model. Each thread needs its own; the algorithms allocate nothing.

    The attributes are for the algorithms; the next call overwrites them.

    Args:
        model: the robot.

    Attributes:
        model: the robot.
        memory: a row for each body, then rows of joint angles.
        zeros: velocities of zero.
        unit, torque: one number for each velocity.
        com: a point.
        matrix: shape (nv, nv).
        no_forces: external forces of no link.

    Raises:
        ArgumentError: not a RobotModel.
    """

    def __init__(self, model: RobotModel) -> None:
        if not isinstance(model, RobotModel):
            raise ArgumentError(f"a workspace is made for a RobotModel, not {model!r}")
        self.model = model
        self.memory = np.zeros((row_count(len(model.bodies) - 1), COLUMNS))
        self.zeros = np.zeros(model.nv)
        self.no_forces = np.zeros((0, 6))
        self.unit = np.zeros(model.nv)
        self.torque = np.zeros(model.nv)
        self.com = np.zeros(3)
        self.matrix = np.zeros((model.nv, model.nv))


@inlined
def require(fits: bool) -> None:
    """Raises TypeError unless the sizes of a kernel's arguments are right."""
    if not fits:
        raise TypeError


@inlined
def fit_position(bodies: Matrix, memory: Matrix, q: Vector) -> bool:
    """True if workspace and positions have the sizes that the model needs."""
    return q.shape[0] == position_count(bodies) and memory.shape[0] == row_count(
        bodies.shape[0] - 1
    )


@inlined
def fit(bodies: Matrix, memory: Matrix, q: Vector, v: Vector, a: Vector, tau: Vector) -> bool:
    """True if also `v`, `a` and `tau` have one number for each velocity."""
    nv = velocity_count(bodies)
    right = v.shape[0] == nv and a.shape[0] == nv and tau.shape[0] == nv
    return right and fit_position(bodies, memory, q)


@inlined
def forces_fit(links: Matrix, forces: Matrix) -> bool:
    """True if there are forces for every link, or for none."""
    return forces.shape[0] in (0, links.shape[0]) and forces.shape[1] == 6


def shapes(model: RobotModel) -> dict[str, tuple[int, ...]]:
    """The shape of each array argument by its name, for this robot."""
    joints = len(model.joint_links)  # the root included
    sizes = {
        "nq": model.nq,
        "nv": model.nv,
        "links": len(model.link_names),
        "wrenches": joints,
        "parameters": 10 * (joints - 1) + 4 * model.nv,
    }
    return {
        name: tuple(sizes[size] if isinstance(size, str) else size for size in of)
        for name, of in SHAPES.items()
    }


def argument_error(model: RobotModel, ws: Workspace, **others: object) -> ArgumentError:
    """Error for the first argument that does not fit.

    Args:
        model, ws: first arguments of the algorithm's call.
        others: its other arguments; arguments named in `SHAPES` are examined, in the order of the
            call. `external_forces` may be None.
    """
    if not isinstance(model, RobotModel) or not isinstance(ws, Workspace):
        return ArgumentError(
            "the first two arguments must be a RobotModel and a Workspace made for it"
        )
    if ws.model is not model and ws.model.bodies.shape != model.bodies.shape:
        return _other_model(model, ws)
    shape_of = shapes(model)
    try:
        for name, array in others.items():
            if name in shape_of and not (name == "external_forces" and array is None):
                check_array(name, array, shape_of[name])
    except ArgumentError as error:
        return error.with_traceback(None)
    return _other_model(model, ws)


def check_array(
    name: str,
    array: object,
    shape: tuple[int, ...],
    dtype: np.dtype = _FLOAT64,
    writeable: bool = True,
) -> None:
    """Raises ArgumentError unless `array` is C-contiguous, of this shape and type, and writeable if
    `writeable`."""
    wanted = f"a C-contiguous {dtype} array of shape {shape}"
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{name} is a {type(array).__name__}; it must be {wanted}")
    if array.dtype != dtype or array.shape != shape:
        found = f"of {array.dtype} and shape {array.shape}"
        raise ArgumentError(f"{name} is {found}; it must be {wanted}")
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned and (flags.writeable or not writeable)):
        raise ArgumentError(
            f"{name} is a read-only or strided view; it must be {wanted}, for example {name}.copy()"
        )


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
