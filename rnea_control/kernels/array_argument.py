"""How an array comes from Python into a kernel: checked in full, and without a detour.

Numba finds the kernel for the types of the arguments at each call, which takes longer than the
dynamics of an arm. Calling the compiled function itself spares that, but then nobody checks what is
given to it. So the kernels take their arrays as `ArrayArgument`: a Numba array that is read off
NumPy's own record of it, after its type, dimensions, layout and byte order are seen to be right.
The sizes are for the kernel to check.
"""

from __future__ import annotations

import struct
from functools import reduce
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, sigutils, types
from numba.extending import NativeValue, models, register_model, unbox
from numba.np.numpy_support import as_dtype

_BYTE = ir.IntType(8)
_INT = ir.IntType(32)
_POINTER = _BYTE.as_pointer()
# PyArrayObject and PyArray_Descr as of NumPy's C interface, up to the last field needed.
# Every object ends its head with a pointer to its type.
_HEAD = [ir.ArrayType(_BYTE, object.__basicsize__ - struct.calcsize("P")), _POINTER]
_OBJECT = ir.LiteralStructType(_HEAD)
_TYPE, _DATA, _NDIM, _DIMENSIONS, _DESCR, _FLAGS = 1, 2, 3, 4, 7, 8
_ARRAY = ir.LiteralStructType(
    [*_HEAD, _POINTER, _INT, _POINTER, _POINTER, _POINTER, _POINTER, _INT]
)
_BYTE_ORDER, _TYPE_NUMBER = 5, 7
_DTYPE = ir.LiteralStructType([*_HEAD, _POINTER, _BYTE, _BYTE, _BYTE, _BYTE, _INT])
# NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE
_WANTED_FLAGS = 0x0001 | 0x0100 | 0x0400
_NDARRAY = "rnea_control_ndarray"
llvmlite.binding.add_symbol(_NDARRAY, id(np.ndarray))


class ArrayArgument(types.Array):
    """Numba's type of a C-contiguous, writeable array that Python gives to a kernel."""

    def copy(self, *arguments: Any, **keywords: Any) -> Any:
        """The type of a part of it: the same, so that what kernels call is compiled once."""
        part = super().copy(*arguments, **keywords)
        return ArrayArgument(part.dtype, part.ndim, part.layout, not part.mutable)


register_model(ArrayArgument)(models.ArrayModel)


def entry_signature(signature: str) -> Any:
    """`signature`, in Numba's notation, with an `ArrayArgument` for each array."""
    arguments, result = sigutils.normalize_signature(signature)
    return result(
        *(
            ArrayArgument(each.dtype, each.ndim, each.layout)
            if isinstance(each, types.Array)
            else each
            for each in arguments
        )
    )


@unbox(ArrayArgument)
def _unbox_array(kind: ArrayArgument, value: Any, c: Any) -> NativeValue:
    builder = c.builder
    array = c.context.make_array(kind)(c.context, builder)
    fits = cgutils.alloca_once_value(builder, cgutils.false_bit)
    with builder.if_then(_is_array(builder, value), likely=True):
        record = builder.bitcast(value, _ARRAY.as_pointer())
        with builder.if_then(_is_of(builder, record, kind), likely=True):
            builder.store(cgutils.true_bit, fits)
            _read(builder, record, kind, array)
            array.parent = value
    refused = builder.not_(builder.load(fits))
    with builder.if_then(refused, likely=False):
        wanted = f"not a C-contiguous, writeable {kind.dtype} array of {kind.ndim} dimensions"
        c.pyapi.err_set_string("PyExc_TypeError", wanted)
    return NativeValue(array._getvalue(), is_error=refused)


def _is_array(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Whether the object is a numpy.ndarray: by its true type, as `__class__` can be made up."""
    module = builder.module
    ndarray = module.globals.get(_NDARRAY) or ir.GlobalVariable(module, _BYTE, _NDARRAY)
    of_python = ir.FunctionType(_INT, [_POINTER, _POINTER])
    is_subtype = cgutils.get_or_insert_function(module, of_python, "PyType_IsSubtype")
    type_ = _field(builder, builder.bitcast(value, _OBJECT.as_pointer()), _TYPE)
    return cgutils.is_not_null(builder, builder.call(is_subtype, [type_, ndarray]))


def _is_of(builder: ir.IRBuilder, record: ir.Value, kind: ArrayArgument) -> ir.Value:
    """Whether the array has this type, number of dimensions and layout."""
    dtype = as_dtype(kind.dtype)
    descr = builder.bitcast(_field(builder, record, _DESCR), _DTYPE.as_pointer())
    flags = builder.and_(_field(builder, record, _FLAGS), _INT(_WANTED_FLAGS))
    checks = (
        builder.icmp_signed("==", _field(builder, record, _NDIM), _INT(kind.ndim)),
        builder.icmp_signed("==", flags, _INT(_WANTED_FLAGS)),
        builder.icmp_signed("==", _field(builder, descr, _TYPE_NUMBER), _INT(dtype.num)),
        builder.icmp_signed("==", _field(builder, descr, _BYTE_ORDER), _BYTE(ord(dtype.byteorder))),
    )
    return reduce(builder.and_, checks)


def _read(builder: ir.IRBuilder, record: ir.Value, kind: ArrayArgument, array: Any) -> None:
    """Fills Numba's structure of the array."""
    size = array.itemsize.type
    sizes = builder.bitcast(_field(builder, record, _DIMENSIONS), size.as_pointer())
    shape = [builder.load(builder.gep(sizes, [_INT(i)])) for i in range(kind.ndim)]
    strides = [size(as_dtype(kind.dtype).itemsize)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(length, strides[0]))
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.data = builder.bitcast(_field(builder, record, _DATA), array.data.type)
    array.itemsize = strides[-1]
    array.nitems = reduce(builder.mul, shape)
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)


def _field(builder: ir.IRBuilder, structure: ir.Value, index: int) -> ir.Value:
    return builder.load(builder.gep(structure, [_INT(0), _INT(index)]))
