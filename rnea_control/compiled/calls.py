"""How Python calls the machine code of a program.

Beside the code stands a function of Python's C interface, `entry`. It checks the arrays and that
the robot's constants are what they were, runs the code, and returns the output; it allocates
nothing. Whatever is not as it expects, it hands on to Python. Like kernels/array_argument.py it
reads NumPy's own records; where that is not proven to work, Python makes all calls.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.compiled.llvm_text import Kind, Lines, pointer_to
from rnea_control.compiled.machine_code import ALONE, MachineCode, assembled
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.compilation import ENTRY_MODULE, objection
from rnea_control.kernels.kernel import READS_ARRAYS
from rnea_control.kernels.linking import c_address
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

_ENTRY, _NAME = "entry", ctypes.create_string_buffer(b"compiled")
_FLOAT64 = np.dtype(np.float64)
# Of Python's C interface.
_METH_FASTCALL = 0x0080
_OF_PYTHON = {
    "Py_IncRef": "void @Py_IncRef(i64)",
    "PyType_IsSubtype": "i32 @PyType_IsSubtype(i64, i64)",
    "PyObject_VectorcallDict": "i64 @PyObject_VectorcallDict(i64, i64, i64, i64)",
}

GRAVITY, ARMATURE = "gravity", "armature"
# What setters change: columns of `model.bodies`, of the root's row for gravity.
_COLUMNS = {
    GRAVITY: range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3),
    "inertia": range(layout.INERTIA, layout.INERTIA + 10),
    ARMATURE: range(layout.ARMATURE, layout.ARMATURE + 1),
}


def entry(shapes: Sequence[tuple[int, ...]]) -> str:
    """`PyObject *entry(self, arguments, count)` in LLVM's language, to be put behind a program for
    one sample. Addresses are integers in it.

    Args:
        shapes: of the program's inputs, then of its output.
    """
    records, lines = importlib.import_module(ENTRY_MODULE), Lines(Kind(1))
    array, descr = records.ArrayRecord, records.DescrRecord

    def load(address: str, offset: int, bits: int = 64) -> str:
        at = lines.let(f"add i64 {address}, {offset}")
        at = lines.let(f"inttoptr i64 {at} to {pointer_to(f'i{bits}')}")
        return lines.let(f"load i{bits}, {pointer_to(f'i{bits}')} {at}")

    def require(found: str, wanted: str | int, bits: int = 64) -> None:
        right = lines.let(f"icmp eq i{bits} {found}, {wanted}")
        lines.do(f"br i1 {right}, label {right}_holds, label %otherwise")
        lines.label(f"{right[1:]}_holds")

    ndarray, otherwise, bodies, expected = (
        load("%self", tuple.__basicsize__ + 8 * k) for k in range(4)
    )
    require("%count", len(shapes))
    data = []
    for k, shape in enumerate(shapes):
        given = load("%arguments", 8 * k)
        kinds = f"i64 {load(given, array.type.offset)}, i64 {ndarray}"
        require(lines.let(f"call i32 @PyType_IsSubtype({kinds})"), 1, 32)
        flags = records.READ_ONLY_FLAGS if k < len(shapes) - 1 else records.WANTED_FLAGS
        found = load(given, array.flags.offset, 32)
        require(lines.let(f"and i32 {found}, {flags}"), flags, 32)
        dtype = load(given, array.descr.offset)
        require(load(dtype, descr.type_num.offset, 32), _FLOAT64.num, 32)
        require(load(dtype, descr.byteorder.offset, 8), ord(_FLOAT64.byteorder), 8)
        require(load(given, array.nd.offset, 32), len(shape), 32)
        dimensions = load(given, array.dimensions.offset)
        for i, length in enumerate(shape):
            require(load(dimensions, 8 * i), length)
        data.append(load(given, array.data.offset))
    numbers = load(bodies, array.data.offset)
    changes = load(load(expected, array.data.offset), 0)
    require(load(numbers, 8 * layout.CHANGES), changes)
    pointer = pointer_to("double")
    data = [lines.let(f"inttoptr i64 {at} to {pointer}") for at in (*data[:-1], numbers, data[-1])]
    lines.do(f"call void @{ALONE}({', '.join(f'{pointer} {each}' for each in data)})")
    lines.do(f"call void @Py_IncRef(i64 {given})")
    lines.do(f"ret i64 {given}")
    lines.label("otherwise")
    call = f"@PyObject_VectorcallDict(i64 {otherwise}, i64 %arguments, i64 %count, i64 0)"
    lines.do(f"ret i64 {lines.let(f'call i64 {call}')}")
    declared = (f"declare {each}" for each in _OF_PYTHON.values())
    head = f"define i64 @{_ENTRY}(i64 %self, i64 %arguments, i64 %count) {{"
    return "\n".join(["", *declared, head, *lines.text, "}"])


def function(
    code: MachineCode, otherwise: Callable[..., Any], bodies: FloatArray, expected: FloatArray
) -> Callable[..., Any]:
    """What Python calls the code by; it keeps all of these.

    Args:
        code: of a program and its `entry`.
        otherwise: is called with the same arguments where something is not as `entry` expects.
        bodies: of the robot.
        expected: of its `Constants`.
    """
    # A PyMethodDef: name, function, flags, documentation. An array stays whole until the function
    # is gone; Python's garbage collector may empty a structure of ctypes before.
    name = ctypes.addressof(_NAME)
    definition = np.array([name, code.address(_ENTRY), _METH_FASTCALL, 0], dtype=np.int64)
    kinds = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *kinds)(("PyCFunction_NewEx", ctypes.pythonapi))
    itself = np.ndarray, otherwise, bodies, expected, definition, code
    made: Callable[..., Any] = new(definition.ctypes.data, itself, None)
    return made


@cache
def direct() -> bool:
    """Whether Python calls machine code directly: proven on a small program."""
    consequence = "Each call of a compiled robot takes some tens of microseconds more"
    return READS_ARRAYS and not objection(_objection, consequence)


def _objection() -> str:
    for name in _OF_PYTHON:
        llvm.add_symbol(name, c_address(getattr(ctypes.pythonapi, name)))
    pointer = pointer_to("double")
    program = f"""define void @{ALONE}({pointer} %x, {pointer} %bodies, {pointer} %output) {{
  %number = load double, {pointer} %x
  store double %number, {pointer} %output
  ret void
}}"""
    code = MachineCode(assembled(program + entry([(1, 2), (1,)])))
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
    return "" if right else "a function of Python's C interface does not do what it does"


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
