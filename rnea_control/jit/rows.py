"""Rows: quantities of all joints in one array, read and written under the same names by kernels and
by Python.

A subclass of `Rows` declares the rows of a float64 array that has a column for each joint:

    class State(Rows):
        position: Vector  # of each joint [rad] or [m]
        friction: Matrix = rows(3)  # several rows
        time: float  # of the arm [s]
        pose: Vector = numbers(7)  # of the arm: position [m] and quaternion

An instance is the array. `state.position` is a view of its row, `state.time` the number in the
first entry of its row, and `state.pose` a view of seven numbers. A kernel has the class name in its
signature, `State`, and reads the same names from its argument. `StateStack` is an array of such
arrays: `stack[i]` is a `State`.

The names cost nothing: a kernel contains the address of the row, as for `array[3]`.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from typing import Any, ClassVar, NamedTuple, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
)

R = TypeVar("R", bound="Rows")

NUMBER, ROW, BLOCK = "float", "Vector", "Matrix"
NUMBERS = "numbers"  # a vector of a fixed size
STACK = "Stack"  # end of the name of an array of such arrays


class Field(NamedTuple):
    """Where a quantity is."""

    kind: str  # NUMBER, ROW, BLOCK or NUMBERS
    first: int  # row
    height: int  # number of its rows; of NUMBERS also their count, which fits for a single joint


def rows(count: int) -> Any:
    """Declares a quantity of several rows."""
    return count


class Rows(np.ndarray):
    """Base class of arrays with named rows. A subclass of a subclass has more of them.

    Attributes:
        fields: the quantities by name.
        count: number of rows.
    """

    fields: ClassVar[dict[str, Field]] = {}
    count: ClassVar[int] = 0
    __numba_array_subtype_dispatch__ = True  # Numba must tell it from other arrays

    def __init_subclass__(cls) -> None:
        cls.fields = dict(cls.fields)
        for name, kind in inspect.get_annotations(cls).items():
            if kind not in (NUMBER, ROW, BLOCK):
                raise TypeError(
                    f"{cls.__name__}.{name} is annotated as {kind!r}; it must be one of "
                    f"'{NUMBER}', '{ROW}' and '{BLOCK}', with annotations as strings"
                )
            declared = cls.__dict__.get(name)
            if isinstance(declared, np.ndarray):
                field = Field(NUMBERS, cls.count, len(declared))
            else:
                field = Field(kind, cls.count, declared if kind == BLOCK else 1)  # type: ignore[arg-type]
            cls.fields[name] = field
            cls.count += field.height
            setattr(cls, name, _property(name, field))
        ROWS[cls.__name__] = cls

    @classmethod
    def zeros(cls: type[R], joints: int, *stack: int) -> R:
        """Zeros, shape (..., count, joints), with the shape of a stack before."""
        return np.zeros((*stack, cls.count, joints)).view(cls)

    @classmethod
    def place(cls, name: str) -> int:
        """Number of the first row of a quantity."""
        return cls.fields[name].first

    def block(self, first: str, last: str) -> np.ndarray:
        """View of the rows from one quantity to another."""
        begin, end = self.fields[first].first, self.fields[last]
        return self[..., begin : end.first + end.height, :].view(np.ndarray)


ROWS: dict[str, type[Rows]] = {}  # by the names of the classes


def _property(name: str, field: Field) -> Any:
    kind, first, height = field
    where = slice(first, first + height) if kind in (BLOCK, NUMBERS) else first

    def of_arm(rows: np.ndarray) -> np.ndarray:
        """The numbers in the first of the rows."""
        block = rows.view(np.ndarray)[..., where, :]
        return block.reshape(*block.shape[:-2], -1)[..., :height]

    def number(rows: Rows) -> float:
        return rows.item(first, 0)

    def view(rows: Rows) -> np.ndarray:
        made = rows.__dict__
        if name in made:
            return made[name]
        owner: Any = rows.base
        lasting = type(owner) is np.ndarray and _layout(owner) == _layout(rows)
        # `zeros` makes it so. A view of `rows` itself would be a reference cycle.
        array = owner if lasting else rows
        part = of_arm(array) if kind == NUMBERS else array[..., where, :].view(np.ndarray)
        if lasting:
            made[name] = part
        return part

    def set_number(rows: Rows, value: float) -> None:
        rows[first, 0] = value

    def fill(rows: Rows, value: Any) -> None:
        if kind == NUMBERS:
            view(rows)[...] = value
        else:
            rows[..., where, :] = value

    return property(number, set_number) if kind == NUMBER else property(view, fill)


def _layout(array: np.ndarray) -> Any:
    """Identity of an array's memory."""
    return array.ctypes.data, array.shape, array.strides


def row_layouts(signature: str) -> list[str]:
    """Layouts of the rows that a signature names."""
    names = (name.removesuffix(STACK) for name in re.findall(r"[A-Z]\w+", signature))
    return [f"{name} {ROWS[name].fields}" for name in names if name in ROWS]


# Numba's types.


class NamedRows:
    """Mixin of Numba's array types: an array with named rows, or a stack of these."""

    def __init__(self, rows: type[Rows], ndim: int) -> None:
        self.rows = rows
        name = f"{type(self).__name__}({rows.__name__}, {ndim})"
        super().__init__(types.float64, ndim, "C", name=name)  # type: ignore[call-arg]

    @property
    def key(self) -> Any:
        """Identity of the type."""
        return (*super().key, self.rows.__name__, str(self.rows.fields))  # type: ignore[misc]

    @property
    def mangling_args(self) -> Any:
        """Part of the names of functions with such arguments."""
        name, arguments = super().mangling_args  # type: ignore[misc]
        return name, [*arguments, self.rows.__name__]

    def part(self, **changes: Any) -> Any:
        """Type of a part of the array, which has no named rows."""
        return super().copy(**changes)  # type: ignore[misc]

    def copy(self, *arguments: Any, **changes: Any) -> Any:
        """Type of a part of the array. An entry of a stack keeps the named rows."""
        part = super().copy(*arguments, **changes)  # type: ignore[misc]
        if part.ndim == 2 < self.ndim and part.layout == "C":  # type: ignore[attr-defined]
            return type(self)(self.rows, 2)
        return part


class RowsType(NamedRows, types.Array):
    """Numba's type of an array with named rows."""


register_model(RowsType)(models.ArrayModel)


@typeof_impl.register(Rows)
def _type_of(rows: Rows, context: Any) -> Any:
    return RowsType(type(rows), rows.ndim)


def rows_types() -> dict[str, RowsType]:
    """Types by their names in signatures."""
    names = {name: RowsType(each, 2) for name, each in ROWS.items()}
    return {**names, **{f"{name}{STACK}": RowsType(each, 3) for name, each in ROWS.items()}}


def with_names(kind: Any) -> Any:
    """Decorator of a Numba type: its arrays have the names of their rows in kernels.

    The type has `rows`, and `part` as `RowsType`.
    """

    @infer_getattr
    class Names(AttributeTemplate):
        key = kind

        def generic_resolve(self, array: Any, name: str) -> Any:  # type: ignore[override]
            field = array.rows.fields.get(name) if array.ndim == 2 else None
            if field is None:
                return None
            if field.kind == NUMBER:
                return types.float64
            return array.part(ndim=2 if field.kind == BLOCK else 1)

    @lower_getattr_generic(kind)
    def read(context: Any, builder: ir.IRBuilder, array: Any, value: Any, name: str) -> Any:
        field = array.rows.fields[name]
        rows = context.make_array(array)(context, builder, value)
        address, joints = _address(builder, rows, field)
        if field.kind == NUMBER:
            return builder.load(address)
        part_type = array.part(ndim=2 if field.kind == BLOCK else 1)
        part = context.make_array(part_type)(context, builder)
        word = joints.type
        height, size = word(field.height), rows.itemsize
        shape, strides, count = [joints], [size], joints
        if field.kind == BLOCK:
            shape, strides = [height, joints], [builder.mul(size, joints), size]
            count = builder.mul(height, joints)
        elif field.kind == NUMBERS:
            shape, count = [height], height
        part.data, part.itemsize, part.nitems = address, size, count
        part.shape = cgutils.pack_array(builder, shape)
        part.strides = cgutils.pack_array(builder, strides)
        part.meminfo, part.parent = rows.meminfo, rows.parent
        return part._getvalue()

    @lower_setattr_generic(kind)
    def write(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any, name: str) -> None:
        array, value_type = of_call.args
        field = array.rows.fields[name]
        if field.kind != NUMBER:
            raise TypeError(f"{name} has several entries: assign to {name}[:]")
        rows = context.make_array(array)(context, builder, values[0])
        number = context.cast(builder, values[1], value_type, types.float64)
        builder.store(number, _address(builder, rows, field)[0])

    return kind


def _address(builder: ir.IRBuilder, rows: Any, field: Field) -> tuple[ir.Value, ir.Value]:
    """Address of the first entry of a quantity, and the number of joints."""
    joints = cgutils.unpack_tuple(builder, rows.shape)[1]
    offset = builder.mul(joints, joints.type(field.first))
    return builder.gep(rows.data, [offset]), joints


with_names(RowsType)


def rows_at(of: type[Rows]) -> Any:
    """Function by which kernels make such an array of its address, and the number of joints."""
    if getattr(numba.config, "DISABLE_JIT", False):

        def made(where: int, joints: int) -> Any:
            numbers = ctypes.c_double * (of.count * joints)
            found = np.ctypeslib.as_array(numbers.from_address(int(where)))
            return found.reshape(of.count, joints).view(of)

        return made
    count, kind = of.count, RowsType(of, 2)
    described = f"{of.__name__} {of.fields}"  # this is also in the fingerprint of kernels
    word, item = ir.IntType(64), 8

    def at(typing: Any, where: Any, joints: Any) -> Any:
        if not isinstance(where, types.Integer):
            raise TypeError(f"not an address of {described}")

        def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
            array = context.make_array(kind)(context, builder)
            joints = context.cast(builder, values[1], of_call.args[1], types.int64)
            array.data = builder.inttoptr(values[0], array.data.type)
            array.itemsize, array.nitems = word(item), builder.mul(word(count), joints)
            strides = [builder.mul(word(item), joints), word(item)]
            array.shape = cgutils.pack_array(builder, [word(count), joints])
            array.strides = cgutils.pack_array(builder, strides)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()

        return kind(where, joints), generate

    return intrinsic(at)
