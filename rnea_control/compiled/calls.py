"""Calls of a program's machine code from Python.

The machine code has a function of Python's C interface, `entry`. It checks the arrays and that the
robot's constants are unchanged, runs the code, and returns the output; it allocates nothing. It
passes a call with anything unexpected on to Python. It reads NumPy's own records
(jit/array_argument.py); if this is not proven to work, Python makes all calls.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types

from rnea_control.array_types import FloatArray
from rnea_control.compiled.machine_code import ALONE, MachineCode, assembled, assembly
from rnea_control.compiled.programs import BODIES, Program
from rnea_control.compiled.straight_line import DOUBLE, INT64, Builder
from rnea_control.compiled.tracing import Graph
from rnea_control.exceptions import ArgumentError
from rnea_control.jit.compilation import ENTRY_MODULE, objection
from rnea_control.jit.kernel import READS_ARRAYS
from rnea_control.jit.linking import c_address
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

_ENTRY = "entry"
_NAME = ctypes.create_string_buffer(b"compiled")
_METH_FASTCALL = 0x0080  # from Python's C interface
# Functions of Python's C interface that `entry` calls.
_OF_PYTHON = "Py_IncRef", "PyType_IsSubtype", "PyObject_VectorcallDict"

GRAVITY = "gravity"
ARMATURE = "armature"
# Columns of `model.bodies` that each setter changes; the setter of gravity only in row 0.
_COLUMNS = {
    GRAVITY: range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3),
    "inertia": range(layout.COLUMNS)[layout.PARAMETERS],
    ARMATURE: range(layout.ARMATURE, layout.ARMATURE + 1),
}


def add_entry(module: ir.Module, shapes: Sequence[tuple[int, ...]]) -> None:
    """Adds `PyObject *entry(self, arguments, count)` to a program for one sample.

    Args:
        module: module from `assembly`.
        shapes: shapes of the program's inputs, then of its output.
    """
    arrays = importlib.import_module(ENTRY_MODULE)
    record, field, pointer = arrays.ArrayRecord, arrays.field, arrays.POINTER
    objects, integers = pointer.as_pointer(), INT64.as_pointer()
    entry = ir.Function(module, ir.FunctionType(pointer, [objects, objects, INT64]), _ENTRY)
    itself, arguments, count = entry.args
    builder = Builder(entry.append_basic_block())
    refused = entry.append_basic_block()

    def at(words: ir.Value, k: int) -> ir.Value:
        return builder.load(builder.gep(words, [INT64(k)]))

    def require(right: ir.Value) -> None:
        accepted = entry.append_basic_block()
        builder.cbranch(right, accepted, refused)
        builder.position_at_end(accepted)

    equal = partial(builder.icmp_signed, "==")
    head = tuple.__basicsize__ // ctypes.sizeof(ctypes.c_void_p)
    ndarray, otherwise, bodies, expected = (at(itself, head + k) for k in range(4))
    require(equal(count, INT64(len(shapes))))
    data = []
    for k, shape in enumerate(shapes):
        given = at(arguments, k)
        require(arrays.is_array(builder, given, ndarray))
        kind = arrays.ArrayArgument(types.float64, len(shape), "C", k < len(shapes) - 1)
        require(arrays.is_of(builder, given, kind))
        dimensions = field(builder, given, record.dimensions, integers)
        for i, length in enumerate(shape):
            require(equal(at(dimensions, i), INT64(length)))
        data.append(field(builder, given, record.data, DOUBLE.as_pointer()))
    own, known = (field(builder, each, record.data, integers) for each in (bodies, expected))
    require(equal(at(own, layout.CHANGES), at(known, 0)))
    data.insert(-1, builder.bitcast(own, DOUBLE.as_pointer()))
    builder.call(module.get_global(ALONE), data)
    builder.external("Py_IncRef", ir.VoidType(), given)
    builder.ret(given)
    builder.position_at_end(refused)
    all_given = otherwise, arguments, count, pointer(None)
    builder.ret(builder.external("PyObject_VectorcallDict", pointer, *all_given))


def function(
    code: MachineCode, otherwise: Callable[..., Any], bodies: FloatArray, expected: FloatArray
) -> Callable[..., Any]:
    """Python callable for the machine code; keeps its arguments alive.

    Args:
        code: machine code of a program with `entry`.
        otherwise: fallback, called with the same arguments if `entry` finds anything unexpected.
        bodies: `bodies` of the robot.
        expected: `expected` of the robot's `Constants`.
    """
    # A PyMethodDef: name, function, flags, documentation. It is an array because an array stays
    # intact until the function is deleted; the garbage collector may clear a ctypes structure
    # earlier.
    name = ctypes.addressof(_NAME)
    definition = np.array([name, code.address(_ENTRY), _METH_FASTCALL, 0], dtype=np.int64)
    kinds = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(("PyCFunction_NewEx", ctypes.pythonapi))
    itself = np.ndarray, otherwise, bodies, expected, definition, code
    made: Callable[..., Any] = new(definition.ctypes.data, itself, None)
    return made


@cache
def direct() -> bool:
    """True if Python can call machine code directly, as tested on a small program."""
    consequence = "Each call of a compiled robot takes some tens of microseconds more"
    return READS_ARRAYS and not objection(_objection, consequence)


def _objection() -> str:
    for name in _OF_PYTHON:
        llvm.add_symbol(name, c_address(getattr(ctypes.pythonapi, name)))
    graph = Graph()
    first = graph.input("x", 0).reference
    shapes: dict[str, tuple[int, ...]] = {"x": (1, 2), BODIES: (1, layout.COLUMNS)}
    module = assembly(Program("first", shapes, graph, (first,)))
    add_entry(module, [(1, 2), (1,)])
    code = MachineCode(assembled(str(module)))
    bodies, expected = np.zeros((1, layout.COLUMNS)), np.zeros(1)
    call = function(code, lambda *arguments: arguments, bodies, expected)
    x, output, frozen = np.array([[3.0, 4.0]]), np.zeros(1), np.zeros(1)
    frozen.flags.writeable = False
    right = call(x, output) is output and output[0] == 3.0
    others = (
        (x[0], output),
        (x.T, output),
        (x, frozen),
        (x, x),
        (x,),
        (x, 1.0),
        (x.astype(">f8"), output),
    )
    right = right and all(call(*each) == each for each in others)
    bodies[0, layout.CHANGES] = 1.0
    right = right and call(x, output) == (x, output)
    return "" if right else "a function for Python's C interface gives wrong results"


class Constants:
    """Numbers of a robot that are constants of its compiled code.

    Args:
        model: the robot.
        variable: "gravity", "armature", or names of links whose payload changes.

    Attributes:
        variable: entries of `model.bodies`, (row, column), that the code reads when it runs.
        expected: number of changes by the robot's setters at the last check, shape (1,).

    Raises:
        ArgumentError: an unknown word in `variable`.
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
        """Compares the robot's constants with the compiled ones. Variable entries may change, and
        a constant may have changed and been set back.

        Raises:
            ArgumentError: a constant differs.
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
    """Entries of `model.bodies` that a word in `variable` means."""
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
    """Words for an entry of `model.bodies`."""
    part = next((part for part, columns in _COLUMNS.items() if column in columns), "")
    if part == GRAVITY:
        return part if row == 0 else f"body {row}"
    return f"the {part} of body {row}" if part else f"body {row}"
