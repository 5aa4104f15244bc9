"""Passes an array from Python to a kernel: checked, and without Numba's dispatch.

Numba's dispatch looks up the types of the arguments at each call, which takes longer than the
dynamics of an arm. A direct call of the compiled function avoids this, but checks nothing.
Therefore kernels take their arrays as `ArrayArgument`: they check type, dimensions, layout and byte
order in NumPy's own record of the array, and fill Numba's structure from this record. The kernel
then checks the sizes. An array of records (record.py) must have the very dtype of its class, an
array with named rows (rows.py) must be of its class and have its number of rows.

The records are private to NumPy: `pointers_agree` compares the pointers in them with NumPy's public
attributes, so that `proof.py` runs a kernel only if it follows correct pointers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import reduce
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import NativeValue, models, register_model, unbox
from numba.np.numpy_support import as_dtype

from rnea_control.jit.compilation import parsed, refusal
from rnea_control.jit.record import record_of
from rnea_control.jit.rows import NamedRows, RowsType, with_names

_BYTE = ir.IntType(8)
_INT = ir.IntType(8 * ctypes.sizeof(ctypes.c_int))
POINTER = _BYTE.as_pointer()
# NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE
WANTED_FLAGS = 0x0001 | 0x0100 | 0x0400
READ_ONLY_FLAGS = 0x0001 | 0x0100
_NDARRAY = "rnea_control_ndarray"
_RECORD = "rnea_control_record_"  # beginning of the names of the dtypes of records
_GROUP = "rnea_control_group_"  # beginning of the names of the classes of groups
_ROWS = "rnea_control_rows_"  # beginning of the names of the classes of arrays with named rows
llvmlite.binding.add_symbol(_NDARRAY, id(np.ndarray))
# The head of every object ends with a pointer to the object's type.
_HEAD: list[Any] = [
    ("head", ctypes.c_char * (object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p))),
    ("type", ctypes.c_void_p),
]


class ArrayRecord(ctypes.Structure):
    """PyArrayObject of NumPy's C interface, up to the last field needed."""

    _fields_ = [
        *_HEAD,
        ("data", ctypes.c_void_p),
        ("nd", ctypes.c_int),
        ("dimensions", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


class DescrRecord(ctypes.Structure):
    """PyArray_Descr, the record of a dtype, up to the last field needed."""

    _fields_ = [
        *_HEAD,
        ("typeobj", ctypes.c_void_p),
        ("kind", ctypes.c_char),
        ("char", ctypes.c_char),
        ("byteorder", ctypes.c_char),
        ("other", ctypes.c_char),
        ("type_num", ctypes.c_int),
    ]


class ArrayArgument(types.Array):
    """Numba type of a C-contiguous array that Python passes to a kernel; the array must be
    writeable unless the type is read-only."""

    def copy(self, *arguments: Any, **keywords: Any) -> Any:
        """Type of a part of the array: the same type, so that called functions are compiled
        once."""
        part = super().copy(*arguments, **keywords)
        return ArrayArgument(part.dtype, part.ndim, part.layout, not part.mutable)


register_model(ArrayArgument)(models.ArrayModel)


@with_names
class RowsArgument(NamedRows, ArrayArgument):
    """The same of an array with named rows, which must be of its class (rows.py)."""


register_model(RowsArgument)(models.ArrayModel)


class GroupArgument(types.NamedTuple):
    """Numba type of a group that Python passes to a kernel."""


register_model(GroupArgument)(models.TupleModel)


@unbox(GroupArgument)
def _unbox_group(kind: GroupArgument, value: Any, c: Any) -> NativeValue:
    builder, refused = c.builder, cgutils.alloca_once_value(c.builder, cgutils.true_bit)
    arrays = cgutils.alloca_once(builder, c.context.get_value_type(kind))
    of_class = symbol(builder.module, _GROUP + kind.instance_class.__name__)
    type_ = field(builder, builder.bitcast(value, POINTER), ArrayRecord.type, POINTER)
    with builder.if_else(builder.icmp_unsigned("==", type_, of_class)) as (right, wrong):
        with right:
            fields = [
                c.unbox(each, c.pyapi.tuple_getitem(value, i)) for i, each in enumerate(kind.types)
            ]
            group = c.context.make_tuple(builder, kind, [each.value for each in fields])
            builder.store(group, arrays)
            builder.store(reduce(builder.or_, [each.is_error for each in fields]), refused)
        with wrong:
            c.pyapi.err_set_string("PyExc_TypeError", refusal(kind))
    return NativeValue(builder.load(arrays), is_error=builder.load(refused))


def entry_signature(signature: str) -> Any:
    """`signature`, in Numba's notation, with an `ArrayArgument` for each array."""
    arguments, result = parsed(signature)
    for each in _with_parts(arguments):
        if isinstance(each, types.Array) and isinstance(each.dtype, types.Record):
            record = record_of(each.dtype)
            llvmlite.binding.add_symbol(_RECORD + record.__name__, id(record.dtype))
        if isinstance(each, RowsType):
            llvmlite.binding.add_symbol(_ROWS + each.rows.__name__, id(each.rows))
        if isinstance(each, types.NamedTuple):
            name = each.instance_class.__name__
            llvmlite.binding.add_symbol(_GROUP + name, id(each.instance_class))
    return result(*map(_entry_type, arguments))


def _with_parts(kinds: Any) -> Iterator[Any]:
    """Types, and those of the fields of groups."""
    for kind in kinds:
        yield kind
        if isinstance(kind, types.NamedTuple):
            yield from _with_parts(kind.types)


def _entry_type(kind: Any) -> Any:
    if isinstance(kind, types.NamedTuple):
        return GroupArgument(map(_entry_type, kind.types), kind.instance_class)
    if isinstance(kind, RowsType):
        return RowsArgument(kind.rows, kind.ndim)
    if isinstance(kind, types.Array):
        return ArrayArgument(kind.dtype, kind.ndim, kind.layout, not kind.mutable)
    return kind


@unbox(ArrayArgument)
def _unbox_array(kind: ArrayArgument, value: Any, c: Any) -> NativeValue:
    builder = c.builder
    array = c.context.make_array(kind)(c.context, builder)
    record = builder.bitcast(value, POINTER)
    fits = cgutils.alloca_once_value(builder, cgutils.false_bit)
    ndarray = symbol(builder.module, _NDARRAY)
    # The second test reads fields that only an array has, so the first test must be passed before.
    with builder.if_then(is_array(builder, record, ndarray), likely=True):
        is_right = is_of(builder, record, kind)
        with builder.if_then(is_right, likely=True):
            _read(builder, record, kind, array)
            array.parent = value
            builder.store(_has_rows(builder, record, kind, array), fits)
    refused = builder.not_(builder.load(fits))
    with builder.if_then(refused, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", refusal(kind))
    return NativeValue(array._getvalue(), is_error=refused)


def symbol(module: ir.Module, name: str) -> ir.Value:
    """Address of the Python object that LLVM knows by this name."""
    return module.globals.get(name) or ir.GlobalVariable(module, _BYTE, name)


def is_array(builder: ir.IRBuilder, record: ir.Value, ndarray: ir.Value) -> ir.Value:
    """Tests if the object at the address `record` is an instance of the type at the address
    `ndarray`, by its true type, as `__class__` can be faked."""
    of_python = ir.FunctionType(_INT, [POINTER, POINTER])
    is_subtype = cgutils.get_or_insert_function(builder.module, of_python, "PyType_IsSubtype")
    type_ = field(builder, record, ArrayRecord.type, POINTER)
    return cgutils.is_not_null(builder, builder.call(is_subtype, [type_, ndarray]))


def is_of(builder: ir.IRBuilder, record: ir.Value, kind: ArrayArgument) -> ir.Value:
    """Tests if the array has this type, number of dimensions and layout."""
    dtype = as_dtype(kind.dtype)
    wanted = _INT(WANTED_FLAGS if kind.mutable else READ_ONLY_FLAGS)
    descr = field(builder, record, ArrayRecord.descr, POINTER)
    nd = field(builder, record, ArrayRecord.nd, _INT)
    flags = field(builder, record, ArrayRecord.flags, _INT)
    type_num = field(builder, descr, DescrRecord.type_num, _INT)
    byte_order = field(builder, descr, DescrRecord.byteorder, _BYTE)
    checks = [
        builder.icmp_signed("==", nd, _INT(kind.ndim)),
        builder.icmp_signed("==", builder.and_(flags, wanted), wanted),
        builder.icmp_signed("==", type_num, _INT(dtype.num)),
        builder.icmp_signed("==", byte_order, _BYTE(ord(dtype.byteorder))),
    ]
    if isinstance(kind.dtype, types.Record):  # all records have one type number
        of_class = symbol(builder.module, _RECORD + record_of(kind.dtype).__name__)
        checks.append(builder.icmp_unsigned("==", descr, of_class))
    return reduce(builder.and_, checks)


def _has_rows(builder: ir.IRBuilder, record: ir.Value, kind: ArrayArgument, array: Any) -> ir.Value:
    """Tests if an array has the rows that its type names."""
    if not isinstance(kind, RowsArgument):
        return cgutils.true_bit
    type_ = field(builder, record, ArrayRecord.type, POINTER)
    of_class = builder.icmp_unsigned(
        "==", type_, symbol(builder.module, _ROWS + kind.rows.__name__)
    )
    count = cgutils.unpack_tuple(builder, array.shape)[-2]
    return builder.and_(of_class, builder.icmp_signed("==", count, count.type(kind.rows.count)))


def _read(builder: ir.IRBuilder, record: ir.Value, kind: ArrayArgument, array: Any) -> None:
    """Fills Numba's structure of the array."""
    size = array.itemsize.type
    dimensions = field(builder, record, ArrayRecord.dimensions, size.as_pointer())
    shape = [builder.load(builder.gep(dimensions, [_INT(i)])) for i in range(kind.ndim)]
    strides = [size(as_dtype(kind.dtype).itemsize)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(length, strides[0]))
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.data = field(builder, record, ArrayRecord.data, array.data.type)
    array.itemsize = strides[-1]
    array.nitems = reduce(builder.mul, shape)
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)


def field(builder: ir.IRBuilder, record: ir.Value, field: Any, type_: ir.Type) -> ir.Value:
    """Loads a field of a record, at the field's offset in the ctypes structure."""
    address = builder.gep(record, [_INT(field.offset)])
    return builder.load(builder.bitcast(address, type_.as_pointer()))


def pointers_agree(array: np.ndarray) -> bool:
    """True if the pointers that a kernel follows agree with NumPy's public attributes."""
    found, sizes = ArrayRecord.from_address(id(array)), ctypes.c_ssize_t * array.ndim
    pointers = found.type, found.descr, found.data
    said = id(type(array)), id(array.dtype), array.__array_interface__["data"][0] or None
    # The strides follow the dimensions in memory.
    return pointers == said and (
        array.ndim == 0 or found.strides == (found.dimensions or 0) + ctypes.sizeof(sizes)
    )
