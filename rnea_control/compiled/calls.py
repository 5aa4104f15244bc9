"""How a call from Python gets to the machine code of a program: arrays and constants checked, no
allocation.

One kernel for each kind of arguments serves all programs and robots; it is told where the code and
the robot are by one array, which takes less time to pass than a number. Python functions that Numba
compiles can call the kernels too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as _intrinsic

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Without the type of a function with a context that callers do not give.
intrinsic: Any = _intrinsic

# What a call finds wrong.
RIGHT, WRONG_ARGUMENT, CHANGED, NOT_COMPILED = range(4)
# Which changes of a model there are, in the order of the expected counts.
CHANGES = (layout.GRAVITY_CHANGES, layout.INERTIA_CHANGES, layout.ARMATURE_CHANGES)
# In place of an expected count: the code reads these numbers when it runs.
VARIABLE = -1.0
# What stands in the target of a call.
ADDRESS, _BODIES, _EXPECTED, _NQ, _NV, _LINKS, _SHAPE = range(7)
_LARGEST = _SHAPE + 3  # outputs have up to three dimensions
NOWHERE: IntArray = np.zeros(_LARGEST, dtype=np.int64)

GRAVITY, ARMATURE = "gravity", "armature"

_OF_GRAVITY = range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3)
_OF_INERTIA = range(layout.INERTIA, layout.INERTIA + 10)
_OF_ARMATURE = range(layout.ARMATURE, layout.ARMATURE + 1)
# The columns of `model.bodies` that change with each count of `CHANGES`.
_COLUMNS = (_OF_GRAVITY, _OF_INERTIA, _OF_ARMATURE)


def target(
    model: RobotModel, expected: FloatArray, address: int, shape: tuple[int, ...]
) -> IntArray:
    """What a call is told.

    Args:
        model: the robot; it must stay, as must `expected`.
        expected: how often setters had changed the robot, in the order of `CHANGES`.
        address: where the code is.
        shape: of its output.
    """
    places = (each.ctypes.data for each in (model.bodies, expected))
    counts = model.nq, model.nv, len(model.link_names), *(*shape, 1, 1)[:3]
    return np.array([address, *places, *counts], dtype=np.int64)


@intrinsic
def _run(typing: Any, address: Any, inputs: Any, bodies: Any, out: Any) -> Any:
    """Calls the function at an address with the data of arrays, which may be addresses too."""
    number = ir.DoubleType().as_pointer()

    def jump(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.Integer):
                return builder.inttoptr(value, number)
            return builder.bitcast(context.make_array(kind)(context, builder, value).data, number)

        code, given, *others = arguments
        values = (*cgutils.unpack_tuple(builder, given), *others)
        pointers = list(map(pointer, (*inputs.types, bodies, out), values))
        of_code = ir.FunctionType(ir.VoidType(), [number] * len(pointers))
        builder.call(builder.inttoptr(code, of_code.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(address, inputs, bodies, out), jump


@intrinsic
def _number_at(typing: Any, address: Any, index: Any) -> Any:
    """An entry of the float64 array at an address."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(array, [arguments[1]]))

    return types.float64(address, index), load


@inlined
def _changed(target: IntArray) -> bool:
    """Whether a setter has changed what is in the code."""
    for k in range(len(CHANGES)):
        count = _number_at(target[_EXPECTED], k)
        if count != VARIABLE and _number_at(target[_BODIES], CHANGES[k]) != count:
            return True
    return False


@inlined
def _call(target: IntArray, q: FloatArray, others_fit: bool, inputs: Any, out: Any) -> int:
    """Runs the code, unless something is wrong: what that is, if anything."""
    if target[ADDRESS] == 0:
        return NOT_COMPILED
    fit = others_fit and q.shape[0] == target[_NQ]
    for k in range(out.ndim):
        fit = fit and out.shape[k] == target[_SHAPE + k]
    if not fit:
        return WRONG_ARGUMENT
    if _changed(target):
        return CHANGED
    _run(target[ADDRESS], inputs, target[_BODIES], out)
    return RIGHT


def _of_q(target: IntArray, q: FloatArray, out: FloatArray) -> int:
    return _call(target, q, True, (q,), out)


def _of_q_v(target: IntArray, q: FloatArray, v: FloatArray, out: FloatArray) -> int:
    return _call(target, q, v.shape[0] == target[_NV], (q, v), out)


def _of_q_v_a(
    target: IntArray, q: FloatArray, v: FloatArray, a: FloatArray, out: FloatArray
) -> int:
    fit = v.shape[0] == target[_NV] and a.shape[0] == target[_NV]
    return _call(target, q, fit, (q, v, a), out)


def _of_forces(
    target: IntArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    out: FloatArray,
) -> int:
    fit = v.shape[0] == target[_NV] and a.shape[0] == target[_NV]
    fit = fit and forces.shape[0] == target[_LINKS] and forces.shape[1] == 6
    return _call(target, q, fit, (q, v, a, forces), out)


# By what they take and fill; `a` may be tau.
vector_of_q = kernel("i8(i8[::1], f8[::1], f8[::1])")(_of_q)
matrix_of_q = kernel("i8(i8[::1], f8[::1], f8[:,::1])")(_of_q)
poses_of_q = kernel("i8(i8[::1], f8[::1], f8[:,:,::1])")(_of_q)
vector_of_q_v = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1])")(_of_q_v)
vector_of_q_v_a = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")(_of_q_v_a)
matrix_of_q_v_a = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")(_of_q_v_a)
vector_of_forces = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])")(_of_forces)

# What follows the target in the argument of a bound call: how many inputs there are, where these
# are, and the output.
_INPUTS, _X, _Y, _Z, _W = range(_LARGEST, _LARGEST + 5)


def bound(target: IntArray, *arrays: FloatArray) -> IntArray:
    """The argument of `call_bound` for arrays that were checked; all must stay where they are."""
    places = [each.ctypes.data for each in arrays]
    return np.array([*target, len(arrays) - 1, *places], dtype=np.int64)


@kernel("i8(i8[::1])")
def call_bound(target: IntArray) -> int:
    """What `bound` has put together"""
    if _changed(target):
        return CHANGED
    address, bodies, inputs = target[ADDRESS], target[_BODIES], target[_INPUTS]
    x, y, out = target[_X], target[_Y], target[_X + inputs]
    if inputs == 1:
        _run(address, (x,), bodies, out)
    elif inputs == 2:
        _run(address, (x, y), bodies, out)
    elif inputs == 3:
        _run(address, (x, y, target[_Z]), bodies, out)
    else:
        _run(address, (x, y, target[_Z], target[_W]), bodies, out)
    return RIGHT


def _entries(model: RobotModel, columns: range) -> set[tuple[int, int]]:
    rows = range(1) if columns is _OF_GRAVITY else range(1, len(model.bodies))
    return {(row, column) for row in rows for column in columns}


class Constants:
    """The numbers of a robot when this was made.

    Args:
        model, variable: as of `compile_robot`.

    Attributes:
        variable: entries of `model.bodies`, (row, column), that are none: code reads them when it
            runs.
        expected: how often a setter has changed each of `CHANGES`, or `VARIABLE`, for `calls`.

    Raises:
        ArgumentError: a word in `variable` that means nothing.
    """

    def __init__(self, model: RobotModel, variable: Collection[str]) -> None:
        self._model = model
        self.variable = frozenset(entry for word in variable for entry in _entries_of(model, word))
        self._numbers = model.bodies.copy()
        self.expected = np.array([model.bodies[0, column] for column in CHANGES])
        for k, columns in enumerate(_COLUMNS):
            if _entries(model, columns) <= self.variable:
                self.expected[k] = VARIABLE

    def check(self) -> None:
        """Accepts what has changed and was set back.

        Raises:
            ArgumentError: a constant has changed.
        """
        now = self._model.bodies
        differs = now != self._numbers
        differs[0, list(CHANGES)] = False
        for entry in self.variable:
            differs[entry] = False
        if differs.any():
            row, column = np.argwhere(differs)[0]
            raise ArgumentError(
                f"{self._model.name!r} has changed since it was compiled ({_name(row, column)}); "
                "compile it again, or name what changes in `variable`"
            )
        for k, column in enumerate(CHANGES):
            if self.expected[k] != VARIABLE:
                self.expected[k] = now[0, column]


def _entries_of(model: RobotModel, word: str) -> set[tuple[int, int]]:
    if word in (GRAVITY, ARMATURE):
        return _entries(model, _OF_GRAVITY if word == GRAVITY else _OF_ARMATURE)
    if word in model.link_names:
        row = int(model.links[model.link_names.index(word), layout.LINK_BODY])
        return {(row, column) for column in _OF_INERTIA}
    raise ArgumentError(
        f"variable has {word!r}; it may have {GRAVITY!r}, {ARMATURE!r} and the links of "
        f"{model.name!r}: {', '.join(model.link_names)}"
    )


def _name(row: int, column: int) -> str:
    """What an entry of `model.bodies` is, in words."""
    if row == 0 and column in _OF_GRAVITY:
        return "gravity"
    if column in _OF_INERTIA:
        return f"the inertia of body {row}"
    return f"the armature of body {row}" if column in _OF_ARMATURE else f"body {row}"
