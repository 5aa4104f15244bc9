"""How a call from Python gets to the machine code of a program: arrays and constants checked, no
allocation.

One kernel for each kind of arguments serves all programs and robots; it is told where the code and
the robot are by one array, which takes less time to pass than a number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache, wraps
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np

from rnea_control.array_types import FloatArray, IntVector
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.linking import array_at, call_c
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# What a call finds wrong.
RIGHT, WRONG_ARGUMENT, CHANGED, NOT_COMPILED = range(4)
# What stands in the target of a call, which ends with the shapes of all arrays.
ADDRESS, _BODIES, _EXPECTED, _SIZES = range(4)
NOWHERE: IntVector = np.zeros(_SIZES, dtype=np.int64)

GRAVITY, ARMATURE = "gravity", "armature"
# What setters change: columns of `model.bodies`, of the root's row for gravity.
_COLUMNS = {
    GRAVITY: range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3),
    "inertia": range(layout.INERTIA, layout.INERTIA + 10),
    ARMATURE: range(layout.ARMATURE, layout.ARMATURE + 1),
}


def target(
    model: RobotModel, expected: FloatArray, address: int, shapes: Iterable[tuple[int, ...]]
) -> IntVector:
    """What a call is told.

    Args:
        model: the robot; it must stay, as must `expected`.
        expected: of `Constants`.
        address: where the code is.
        shapes: of its inputs, then of its output.
    """
    places = (each.ctypes.data for each in (model.bodies, expected))
    return np.array([address, *places, *chain(*shapes)], dtype=np.int64)


@inlined
def _changed(target: IntVector) -> bool:
    """Whether a setter has changed the robot since its constants were checked."""
    expected, root = array_at(target[_EXPECTED], (1,)), array_at(target[_BODIES], (layout.COLUMNS,))
    return expected[0] != root[layout.CHANGES]


@inlined
def _call(target: IntVector, sizes: tuple[int, ...], addresses: tuple[int, ...]) -> int:
    """Runs the code for arrays of these sizes at these addresses, unless something is wrong: what
    that is, if anything."""
    if target[ADDRESS] == 0:
        return NOT_COMPILED
    for k in range(len(sizes)):
        if sizes[k] != target[_SIZES + k]:
            return WRONG_ARGUMENT
    if _changed(target):
        return CHANGED
    call_c(target[ADDRESS], (*addresses[:-1], target[_BODIES], addresses[-1]))
    return RIGHT


# By their numbers of arrays.
_CALLS: dict[int, Callable[..., int]] = {
    2: lambda target, x, y: _call(target, x.shape + y.shape, (x.ctypes.data, y.ctypes.data)),
    3: lambda target, x, y, z: _call(
        target, x.shape + y.shape + z.shape, (x.ctypes.data, y.ctypes.data, z.ctypes.data)
    ),
    4: lambda target, x, y, z, w: _call(
        target,
        x.shape + y.shape + z.shape + w.shape,
        (x.ctypes.data, y.ctypes.data, z.ctypes.data, w.ctypes.data),
    ),
    5: lambda target, x, y, z, w, u: _call(
        target,
        x.shape + y.shape + z.shape + w.shape + u.shape,
        (x.ctypes.data, y.ctypes.data, z.ctypes.data, w.ctypes.data, u.ctypes.data),
    ),
}


@cache
def entry(*dimensions: int) -> Any:
    """The kernel for a target, inputs, which it only reads, and an output of these dimensions."""
    *inputs, output = dimensions
    read = (f"Array(f8, {count}, 'C', True)" for count in inputs)
    signature = f"i8(i8[::1], {', '.join(read)}, Array(f8, {output}, 'C'))"
    return kernel(signature)(_CALLS[len(dimensions)])


_METHOD = """
def {name}(self, {arrays}):
    try:
        found = entry(self._{name}, {arrays})
    except (TypeError, AttributeError):
        found = {WRONG_ARGUMENT}
    return self._again(found, {name!r}, {arrays}) if found else {output}
"""
_DIMENSIONS = {"Vector": 1, "Matrix": 2, "Matrices": 3}
Method = TypeVar("Method", bound=Callable[..., Any])


def method(function: Method) -> Method:
    """Decorator: makes a method of `CompiledRobot` that calls the code of the algorithm of its
    name. Its parameters are the inputs, then the output, which it returns. It is written by a
    template, as any further call in between would take a third of the time of a call."""
    *kinds, _ = function.__annotations__.values()
    arrays = function.__code__.co_varnames[1 : 1 + len(kinds)]
    words = {"name": function.__name__, "arrays": ", ".join(arrays), "output": arrays[-1]}
    names: dict[str, Any] = {"entry": entry(*(_DIMENSIONS[kind] for kind in kinds))}
    exec(_METHOD.format(WRONG_ARGUMENT=WRONG_ARGUMENT, **words), names)
    return cast(Method, wraps(function)(names[function.__name__]))


# In the argument of a bound call, in place of shapes: so many pointers at most.
_POINTERS = 6


def bound(target: IntVector, *arrays: FloatArray) -> IntVector:
    """The argument of `call_bound` for arrays that were checked; all must stay where they are."""
    *inputs, output = (each.ctypes.data for each in arrays)
    pointers = [*inputs, target[_BODIES], output]
    unused = [0] * (_POINTERS - len(pointers))
    return np.array([*target[:_SIZES], *pointers, *unused], dtype=np.int64)


@kernel("i8(i8[::1])")
def call_bound(target: IntVector) -> int:
    """What `bound` has put together; code that takes fewer pointers does not look at the last."""
    if _changed(target):
        return CHANGED
    a, b, c = target[_SIZES], target[_SIZES + 1], target[_SIZES + 2]
    d, e, f = target[_SIZES + 3], target[_SIZES + 4], target[_SIZES + 5]
    call_c(target[ADDRESS], (a, b, c, d, e, f))
    return RIGHT


class Constants:
    """The numbers of a robot when this was made.

    Args:
        model, variable: as of `CompiledRobot`.

    Attributes:
        variable: entries of `model.bodies`, (row, column), that are none: code reads them when it
            runs.
        expected: how often setters had changed the robot when it was last checked, shape (1,).

    Raises:
        ArgumentError: a word in `variable` that means nothing.
    """

    def __init__(self, model: RobotModel, variable: Collection[str]) -> None:
        self._model = model
        self.variable = frozenset(entry for word in variable for entry in _entries(model, word))
        self._numbers = model.bodies.copy()
        self._constant = np.ones(model.bodies.shape, dtype=np.bool_)
        for entry in (*self.variable, (0, layout.CHANGES)):
            self._constant[entry] = False
        self.expected = model.bodies[0, [layout.CHANGES]]

    def check(self) -> None:
        """Accepts what is variable, and what has changed and was set back.

        Raises:
            ArgumentError: a constant has changed.
        """
        changes = self._model.bodies[0, layout.CHANGES]
        differs = (self._model.bodies != self._numbers) & self._constant
        if differs.any():
            row, column = np.argwhere(differs)[0]
            raise ArgumentError(
                f"{self._model.name!r} has changed since it was compiled ({_name(row, column)}); "
                "compile it again, or name what changes in `variable`"
            )
        self.expected[0] = changes


def _entries(model: RobotModel, word: str) -> set[tuple[int, int]]:
    """Of `model.bodies`, what a word in `variable` means."""
    part, rows = word, range(1)
    if word == ARMATURE:
        rows = range(1, len(model.bodies))
    elif word != GRAVITY and word in model.link_names:
        row = int(model.links[model.link_names.index(word), layout.LINK_BODY])
        part, rows = "inertia", range(row, row + 1)
    elif word != GRAVITY:
        raise ArgumentError(
            f"variable has {word!r}; it may have {GRAVITY!r}, {ARMATURE!r} and the links of "
            f"{model.name!r}: {', '.join(model.link_names)}"
        )
    return {(row, column) for row in rows for column in _COLUMNS[part]}


def _name(row: int, column: int) -> str:
    """What an entry of `model.bodies` is, in words."""
    part = next((part for part, columns in _COLUMNS.items() if column in columns), "")
    if part == GRAVITY:
        return part if row == 0 else f"body {row}"
    return f"the {part} of body {row}" if part else f"body {row}"
