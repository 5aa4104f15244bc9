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
from llvmlite import ir
from numba.core import cgutils, types

from rnea_control.array_types import FloatArray, IntVector
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.linking import array_at, intrinsic
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# What a call finds wrong.
RIGHT, WRONG_ARGUMENT, CHANGED, NOT_COMPILED = range(4)
# In place of an expected count: the code reads these numbers when it runs.
VARIABLE = -1.0
# What stands in the target of a call, which ends with the shapes of all arrays.
ADDRESS, _BODIES, _EXPECTED, _SIZES = range(4)
NOWHERE: IntVector = np.zeros(_SIZES, dtype=np.int64)

GRAVITY, ARMATURE = "gravity", "armature"
# What setters change: where row 0 of `model.bodies` counts how often, and the columns that change.
_PARTS = {
    GRAVITY: (
        layout.GRAVITY_CHANGES,
        range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3),
    ),
    "inertia": (layout.INERTIA_CHANGES, range(layout.INERTIA, layout.INERTIA + 10)),
    ARMATURE: (layout.ARMATURE_CHANGES, range(layout.ARMATURE, layout.ARMATURE + 1)),
}
_COUNTS = tuple(count for count, _ in _PARTS.values())


def target(
    model: RobotModel, expected: FloatArray, address: int, shapes: Iterable[tuple[int, ...]]
) -> IntVector:
    """What a call is told.

    Args:
        model: the robot; it must stay, as must `expected`.
        expected: how often setters had changed the robot, in the order of `_PARTS`.
        address: where the code is.
        shapes: of its inputs, then of its output.
    """
    places = (each.ctypes.data for each in (model.bodies, expected))
    return np.array([address, *places, *chain(*shapes)], dtype=np.int64)


@intrinsic
def _fit(typing: Any, target: Any, arrays: Any) -> Any:
    """Whether arrays have the shapes that stand in a target."""

    def compare(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(target)(context, builder, arguments[0]).data
        sizes = []
        for kind, value in zip(arrays, cgutils.unpack_tuple(builder, arguments[1]), strict=True):
            array = context.make_array(kind)(context, builder, value)
            sizes += cgutils.unpack_tuple(builder, array.shape)
        fits = cgutils.true_bit
        for k, size in enumerate(sizes, _SIZES):
            wanted = builder.load(builder.gep(numbers, [ir.IntType(64)(k)]))
            fits = builder.and_(fits, builder.icmp_signed("==", size, wanted))
        return fits

    return types.boolean(target, arrays), compare


@intrinsic
def _run(typing: Any, address: Any, arrays: Any) -> Any:
    """Calls the function at an address with the data of arrays, which may be addresses too."""
    number = ir.DoubleType().as_pointer()

    def jump(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.Integer):
                return builder.inttoptr(value, number)
            return builder.bitcast(context.make_array(kind)(context, builder, value).data, number)

        code, given = arguments
        pointers = list(map(pointer, arrays, cgutils.unpack_tuple(builder, given)))
        of_code = ir.FunctionType(ir.VoidType(), [number] * len(pointers))
        builder.call(builder.inttoptr(code, of_code.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(address, arrays), jump


@inlined
def _changed(target: IntVector) -> bool:
    """Whether a setter has changed what is in the code."""
    expected = array_at(target[_EXPECTED], (len(_COUNTS),))
    root = array_at(target[_BODIES], (layout.COLUMNS,))
    for k in range(len(_COUNTS)):
        if expected[k] != VARIABLE and expected[k] != root[_COUNTS[k]]:
            return True
    return False


@inlined
def _call(target: IntVector, arrays: Any) -> int:
    """Runs the code, unless something is wrong: what that is, if anything."""
    if target[ADDRESS] == 0:
        return NOT_COMPILED
    if not _fit(target, arrays):
        return WRONG_ARGUMENT
    if _changed(target):
        return CHANGED
    _run(target[ADDRESS], (*arrays[:-1], target[_BODIES], arrays[-1]))
    return RIGHT


# By their numbers of arrays.
_CALLS: dict[int, Callable[..., int]] = {
    2: lambda target, x, y: _call(target, (x, y)),
    3: lambda target, x, y, z: _call(target, (x, y, z)),
    4: lambda target, x, y, z, w: _call(target, (x, y, z, w)),
    5: lambda target, x, y, z, w, u: _call(target, (x, y, z, w, u)),
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


# In the argument of a bound call, in place of shapes: how many pointers the code takes, and which.
_COUNT, _A, _B, _C, _D, _E, _F = range(_SIZES, _SIZES + 7)


def bound(target: IntVector, *arrays: FloatArray) -> IntVector:
    """The argument of `call_bound` for arrays that were checked; all must stay where they are."""
    *inputs, output = (each.ctypes.data for each in arrays)
    pointers = (*inputs, target[_BODIES], output)
    return np.array([*target[:_SIZES], len(pointers), *pointers], dtype=np.int64)


@kernel("i8(i8[::1])")
def call_bound(target: IntVector) -> int:
    """What `bound` has put together"""
    if _changed(target):
        return CHANGED
    address, count, a, b, c = target[ADDRESS], target[_COUNT], target[_A], target[_B], target[_C]
    if count == 3:
        _run(address, (a, b, c))
    elif count == 4:
        _run(address, (a, b, c, target[_D]))
    elif count == 5:
        _run(address, (a, b, c, target[_D], target[_E]))
    else:
        _run(address, (a, b, c, target[_D], target[_E], target[_F]))
    return RIGHT


def _entries(model: RobotModel, part: str) -> set[tuple[int, int]]:
    rows = range(1) if part == GRAVITY else range(1, len(model.bodies))
    return {(row, column) for row in rows for column in _PARTS[part][1]}


class Constants:
    """The numbers of a robot when this was made.

    Args:
        model, variable: as of `compile_robot`.

    Attributes:
        variable: entries of `model.bodies`, (row, column), that are none: code reads them when it
            runs.
        expected: how often a setter has changed each of `_PARTS`, or `VARIABLE`, for `calls`.

    Raises:
        ArgumentError: a word in `variable` that means nothing.
    """

    def __init__(self, model: RobotModel, variable: Collection[str]) -> None:
        self._model = model
        self.variable = frozenset(entry for word in variable for entry in _entries_of(model, word))
        self._numbers = model.bodies.copy()
        reads = [_entries(model, part) <= self.variable for part in _PARTS]
        self.expected = np.where(reads, VARIABLE, model.bodies[0, list(_COUNTS)])

    def check(self) -> None:
        """Accepts what has changed and was set back.

        Raises:
            ArgumentError: a constant has changed.
        """
        now = self._model.bodies
        differs = now != self._numbers
        differs[0, list(_COUNTS)] = False
        for entry in self.variable:
            differs[entry] = False
        if differs.any():
            row, column = np.argwhere(differs)[0]
            raise ArgumentError(
                f"{self._model.name!r} has changed since it was compiled ({_name(row, column)}); "
                "compile it again, or name what changes in `variable`"
            )
        constant = self.expected != VARIABLE
        self.expected[constant] = now[0, list(_COUNTS)][constant]


def _entries_of(model: RobotModel, word: str) -> set[tuple[int, int]]:
    if word in (GRAVITY, ARMATURE):
        return _entries(model, word)
    if word in model.link_names:
        row = int(model.links[model.link_names.index(word), layout.LINK_BODY])
        return {(row, column) for column in _PARTS["inertia"][1]}
    raise ArgumentError(
        f"variable has {word!r}; it may have {GRAVITY!r}, {ARMATURE!r} and the links of "
        f"{model.name!r}: {', '.join(model.link_names)}"
    )


def _name(row: int, column: int) -> str:
    """What an entry of `model.bodies` is, in words."""
    part = next((part for part, (_, columns) in _PARTS.items() if column in columns), "")
    if part == GRAVITY:
        return part if row == 0 else f"body {row}"
    return f"the {part} of body {row}" if part else f"body {row}"
